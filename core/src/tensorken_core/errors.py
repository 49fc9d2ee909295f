"""The errors that Tensorken raises.

Each class also derives from the built-in exception that users expect, so `except ValueError` works.
A message is one line: the op, the operand, the requirement, and a remedy.  An error about the operands of an op has a
note with the line of the user's code, since the traceback ends in the library.
"""

from __future__ import annotations

import re
from typing import Any

from tensorken_core.source_line import users_call

_PREFIX = re.compile(r"[\w.]+: ")


class TensorkenError(Exception):
    """The base class of the errors that Tensorken raises.

    >>> import tensorken as tk
    >>> [base.__name__ for base in tk.errors.ShapeError.__bases__]
    ['OperandError', 'ValueError']
    """


def _named(arguments: tuple[Any, ...], called: str | None) -> tuple[Any, ...]:
    """The arguments of an error whose message begins with the function that the user called, not with an inner one."""
    if (
        called is None
        or not arguments
        or not isinstance(arguments[0], str)
        or not _PREFIX.match(arguments[0])
    ):
        return arguments
    prefix = f"{called}: "
    if arguments[0].partition(": ")[0].endswith(f".{called}"):  # with its module
        return arguments
    message = _PREFIX.sub("", arguments[0], count=1).removeprefix(prefix)
    return (prefix + message, *arguments[1:])


class OperandError(TensorkenError):
    """The operands of an op do not fit; a note names the line of the user's code.

    The message begins with the public function that this line calls, if it calls one, and not with an op that the
    function runs.

    >>> import tensorken as tk
    >>> try:
    ...     exec(compile("tk.ones(3) + tk.ones(4)", "model.py", "exec"), {"tk": tk})
    ... except tk.errors.OperandError as error:
    ...     print(*error.__notes__)
    at model.py:1
    """

    def __init__(self, *arguments: Any) -> None:
        line, called = users_call()
        super().__init__(*_named(arguments, called))
        if line is not None and not line.is_example:  # in an example doctest would compare the note
            self.add_note(f"at {line}")


class ShapeError(OperandError, ValueError):
    """Shapes do not fit the op.

    >>> import tensorken as tk
    >>> tk.ones(3) + tk.ones(4)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tensorken_core.errors.ShapeError: add: shapes (3,) and (4,) do not broadcast...
    """


class AxisError(ShapeError, IndexError):
    """An axis is out of range or given twice.

    >>> import tensorken as tk
    >>> tk.ones((2, 3)).sum(axis=2)
    Traceback (most recent call last):
    tensorken_core.errors.AxisError: sum: axis 2 is out of range for shape (2, 3); axes run from -2 to 1
    """


class DTypeError(OperandError, TypeError):
    """The op is not defined for this dtype, or the dtype is unknown.

    >>> import tensorken as tk
    >>> tk.tensor([True]) - tk.tensor([True])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tensorken_core.errors.DTypeError: sub: not defined for bool...
    """


class ScalarRangeError(OperandError, OverflowError):
    """A Python number is out of the range of the dtype.

    >>> import tensorken as tk
    >>> tk.tensor([1]) + 2**31  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tensorken_core.errors.ScalarRangeError: add: 2147483648 does not fit int32...
    """


class IndexingError(OperandError, IndexError):
    """An index is out of range, or of an unsupported kind.

    >>> import tensorken as tk
    >>> tk.ones(3)[3]
    Traceback (most recent call last):
    tensorken_core.errors.IndexingError: index: 3 is out of range for axis 0 of shape (3,); it has 3 elements
    """


class ArgumentError(TensorkenError, TypeError):
    """A function does not accept an argument of this type or form.

    >>> import tensorken as tk
    >>> tk.sin(None)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tensorken_core.errors.ArgumentError: sin: cannot make a tensor of NoneType...
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*_named(arguments, users_call()[1]))


class AxisNameError(ArgumentError, NameError):
    """No enclosing transform has an axis of this name, or two have.

    >>> import tensorken as tk
    >>> tk.psum(1.0, "rows")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tensorken_core.errors.AxisNameError: psum: no axis is named 'rows'...
    """


class GroupError(TensorkenError, RuntimeError):
    """The members of a group of processes call different collectives, or one has ended.

    >>> import tensorken as tk
    >>> def program(group):
    ...     op = tk.psum if group.rank else tk.pmax
    ...     return tk.spread(lambda x: op(x, "workers"), group)(1.0)
    >>> tk.distributed.run_threads(program, 2)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tensorken_core.errors.GroupError: ...: the members run different programs...
    """


class LinearAlgebraError(OperandError, ValueError):
    """A matrix is singular, not positive definite, or lacks another required property.

    >>> import tensorken as tk
    >>> tk.linalg.inv([[1.0, 2.0], [2.0, 4.0]])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tensorken_core.errors.LinearAlgebraError: inv: matrix of shape (2, 2) is singular...
    """


class StructureError(TensorkenError, ValueError):
    """Two pytrees differ in structure.

    >>> import tensorken as tk
    >>> tk.jvp(tk.sin, (1.0,), ([1.0],))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tensorken_core.errors.StructureError: jvp: tangents: at [0]: expected a leaf, got a list of 1...
    """


class GradientError(TensorkenError, TypeError):
    """A function cannot be differentiated: its value is not a scalar, or an argument is not floating-point or unused.

    >>> import tensorken as tk
    >>> tk.grad(tk.sin)(tk.ones(3))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tensorken_core.errors.GradientError: grad needs a scalar-valued function, got shape (3,)...
    """


class EscapedTensorError(TensorkenError, RuntimeError):
    """A tensor outlived the transform that made it.

    >>> import tensorken as tk
    >>> kept = []
    >>> value = tk.grad(lambda x: (kept.append(x), x * x)[1])(3.0)
    >>> try:
    ...     kept[0] + 1.0
    ... except RuntimeError as error:
    ...     print(str(error).partition(";")[0])
    add: this tensor was made inside grad, which has returned
    """


class ImmutableError(TensorkenError, TypeError):
    """Tensors cannot be assigned to.

    >>> import tensorken as tk
    >>> x = tk.ones(3)
    >>> x[0] = 2.0  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tensorken_core.errors.ImmutableError: assignment: tensors are immutable...
    """


class ConcretizationError(TensorkenError, TypeError):
    """A value was read where only its shape and dtype are known.

    >>> import tensorken as tk
    >>> tk.symbol("x").item()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tensorken_core.errors.ConcretizationError: the string backend has no values, only the expression x...
    """

    def at(self, name: str) -> ConcretizationError:
        """The same error, prefixed with the name of the function that the user called, or else with this name."""
        return ConcretizationError(*_named((f"{name}: {self}",), users_call()[1]))


class NonFiniteError(TensorkenError, FloatingPointError):
    """An op returned a NaN, or an infinity, for operands without any; raised while `debug_nans` is on.

    >>> import tensorken as tk
    >>> with tk.debug_nans():
    ...     tk.sqrt(-1.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tensorken_core.errors.NonFiniteError: sqrt: gives NaN for float32 ()...
    """


class BackendError(TensorkenError, RuntimeError):
    """A backend or plugin cannot be loaded or used.

    >>> import tensorken as tk
    >>> tk.ones(3, backend="numpy", device="moon")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tensorken_core.errors.BackendError: backend 'numpy' has no device 'moon'; its devices are cpu...
    """


class UnknownBackendError(BackendError, LookupError):
    """No backend of this name is installed.

    >>> import tensorken as tk
    >>> try:
    ...     tk.ones(3, backend="nunpy")
    ... except LookupError as error:
    ...     print(str(error).splitlines()[0])
    unknown backend 'nunpy'
    """


class SettingError(BackendError, ValueError):
    """An environment variable has a value that it does not allow.

    >>> import os
    >>> import tensorken as tk
    >>> from tensorken_core.host.variables import switch
    >>> os.environ["TENSORKEN_EXAMPLE"] = "maybe"
    >>> switch("TENSORKEN_EXAMPLE")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tensorken_core.errors.SettingError: TENSORKEN_EXAMPLE='maybe': expected 1 or 0 ... (or unset it)
    >>> del os.environ["TENSORKEN_EXAMPLE"]
    """


class MixedBackendError(OperandError, ValueError):
    """Operands live on different backends.

    >>> import tensorken as tk
    >>> tk.ones(3, backend="numpy") + tk.ones(3, backend="reference")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tensorken_core.errors.MixedBackendError: add: operands live on different backends...
    """


class MissingOpError(BackendError, NotImplementedError):
    """The backend has no method for this op, and the op has no default body.

    >>> import tensorken as tk
    >>> from tensorken_core.language.raw import RawTensor
    >>> class Empty(RawTensor[float]):
    ...     pass
    >>> Empty().exp(1.0)
    Traceback (most recent call last):
    tensorken_core.errors.MissingOpError: exp: Empty has no method for it; it is required of a backend
    """


class ExchangeError(TensorkenError, BufferError, ValueError):
    """Values cannot be exchanged with another library as requested.

    >>> import tensorken as tk
    >>> tk.asarray([1.0, 2.0], copy=False)
    Traceback (most recent call last):
    tensorken_core.errors.ExchangeError: asarray: cannot avoid a copy of these values; leave out copy=False
    """


class ProgramError(TensorkenError, ValueError):
    """A program cannot be saved, a saved program cannot be loaded, or a program gets other values than it was made for.

    >>> import tempfile, pathlib
    >>> import tensorken as tk
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "empty.tk")
    ...     path.touch()
    ...     tk.Program.load(path)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tensorken_core.errors.ProgramError: load: ...: it is not JSON...
    """


class NestingError(TensorkenError, RecursionError):
    """Transformed functions call each other more deeply than Python's recursion limit allows.

    >>> import tensorken as tk
    >>> def f(x, depth=0):
    ...     return tk.jit(lambda x: f(x, depth + 1))(x)
    >>> f(1.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tensorken_core.errors.NestingError: <lambda>: Python's recursion limit of ... is too low for ... traced functions...
    """


class RetraceWarning(UserWarning):
    """`tk.jit` traces a function again and again, which costs far more than running it.

    >>> import warnings
    >>> import tensorken as tk
    >>> double = tk.jit(lambda x: x + x)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     for n in range(16):
    ...         y = double(tk.ones(n))
    >>> print(caught[0].message)  # doctest: +ELLIPSIS
    jit: <lambda> has been traced 16 times, ... argument leaf 0 is float32[15] after float32[14]; pad ...
    """
