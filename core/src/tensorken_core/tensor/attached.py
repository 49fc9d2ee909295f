"""The base class of Tensor; attached.pyi adds the signatures of methods that a library of functions attaches."""

from tensorken_core.tensor.operators import Operators

Attached = Operators
