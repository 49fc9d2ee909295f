"""Every error that Tensorken raises on purpose.

Each class is also the built-in exception that people expect, so `except ValueError` keeps working.
A message is one line: the op, what came, what was needed, the way out.
"""

from __future__ import annotations


class TensorkenError(Exception):
    """The base of all errors that Tensorken raises on purpose."""


class ShapeError(TensorkenError, ValueError):
    """Shapes do not fit the op."""


class AxisError(ShapeError, IndexError):
    """An axis is out of range or given twice."""


class DTypeError(TensorkenError, TypeError):
    """The op is not defined for this dtype, or the dtype is unknown."""


class ScalarRangeError(TensorkenError, OverflowError):
    """A Python number does not fit the dtype."""


class IndexingError(TensorkenError, IndexError):
    """An index is out of range or of a kind that is not supported."""


class ArgumentError(TensorkenError, TypeError):
    """An argument is of a kind that the function does not take."""


class StructureError(TensorkenError, ValueError):
    """Two pytrees differ in structure."""


class GradientError(TensorkenError, TypeError):
    """This cannot be differentiated: not scalar-valued, not floating point, or unused."""


class EscapedTensorError(TensorkenError, RuntimeError):
    """A tensor outlived the transform that made it."""


class ImmutableError(TensorkenError, TypeError):
    """Tensors cannot be assigned to."""


class ConcretizationError(TensorkenError, TypeError):
    """A value was asked for where only shapes are known."""


class BackendError(TensorkenError, RuntimeError):
    """A backend or plugin cannot be loaded or used."""


class UnknownBackendError(BackendError, LookupError):
    """No backend of this name is installed."""


class MixedBackendError(TensorkenError, ValueError):
    """Operands live on different backends."""


class MissingOpError(BackendError, NotImplementedError):
    """The backend has no method for this op, and the op has no default body."""


class ExchangeError(TensorkenError, BufferError, ValueError):
    """Values cannot pass between this library and another as was asked."""
