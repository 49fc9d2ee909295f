"""Layers: modules that other modules are made of."""

from tensorken_nn.layers.linear import Linear
from tensorken_nn.layers.sequential import Sequential, mlp

__all__ = ["Linear", "Sequential", "mlp"]
