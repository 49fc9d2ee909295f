"""Automatic differentiation with objects: a vertex is a number with references to its operands.

The package is for learning: vertices, their parents and gradients, and functions with a hand-written forward and
backward can be inspected. The built-in functions use the derivatives of `tensorken`'s ops. The value of a vertex is a
float or a tensor of any backend.

>>> from tensorken_nn.vertex import Vertex
>>> x = Vertex(3.0)
>>> y = x * x + x
>>> y.backward()
>>> y, x.grad
(Vertex(12.0), 7.0)
"""

from tensorken_nn.vertex import functions
from tensorken_nn.vertex.arithmetic import ElementError
from tensorken_nn.vertex.components import Component, Linear, Sequential
from tensorken_nn.vertex.function import Function
from tensorken_nn.vertex.functions import (
    add,
    cos,
    exp,
    lift,
    log,
    matmul,
    mult,
    relu,
    sigmoid,
    sin,
    sqrt,
    squared_error,
    tanh,
)
from tensorken_nn.vertex.initialisers import He, Normal, WeightInitialiser, Xavier, Zeros
from tensorken_nn.vertex.matrix import Matrix
from tensorken_nn.vertex.node import Vertex
from tensorken_nn.vertex.optimisers import SGD, Adam, MomentumSGD, Optimiser
from tensorken_nn.vertex.vector import Vector

__all__ = [
    "SGD",
    "Adam",
    "Component",
    "ElementError",
    "Function",
    "He",
    "Linear",
    "Matrix",
    "MomentumSGD",
    "Normal",
    "Optimiser",
    "Sequential",
    "Vector",
    "Vertex",
    "WeightInitialiser",
    "Xavier",
    "Zeros",
    "add",
    "cos",
    "exp",
    "functions",
    "lift",
    "log",
    "matmul",
    "mult",
    "relu",
    "sigmoid",
    "sin",
    "sqrt",
    "squared_error",
    "tanh",
]
