"""Automatic differentiation as objects: a vertex is a number that knows what it was computed from.

A front end to learn with.  Everything that the gradient of a computation needs can be looked at: the vertices, their
parents, their gradients, and functions with a forward and a backward written by hand.  The functions that come with it
have the derivatives of `tensorken`'s own ops, and a vertex may hold a tensor of any backend instead of a float.

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
