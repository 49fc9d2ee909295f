"""Layers: modules that other modules are made of."""

from tensorken_nn.layers.batch_norm import BatchNorm, Statistics
from tensorken_nn.layers.dropout import Dropout
from tensorken_nn.layers.embedding import Embedding
from tensorken_nn.layers.flatten import Flatten
from tensorken_nn.layers.linear import Linear
from tensorken_nn.layers.normalization import LayerNorm, RMSNorm
from tensorken_nn.layers.residual import Residual
from tensorken_nn.layers.sequential import Sequential, mlp

__all__ = [
    "BatchNorm",
    "Dropout",
    "Embedding",
    "Flatten",
    "LayerNorm",
    "Linear",
    "RMSNorm",
    "Residual",
    "Sequential",
    "Statistics",
    "mlp",
]
