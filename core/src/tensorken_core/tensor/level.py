"""Level, an interpreter above another one; the running level; and lifting of values from level to level."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from operator import attrgetter
from typing import Any

from tensorken_core.errors import ArgumentError, EscapedTensorError, MixedBackendError
from tensorken_core.language.diffable import Diffable
from tensorken_core.language.dtypes import DType
from tensorken_core.language.interpreter import Interpreter, R
from tensorken_core.language.shapes import Shape


class ClosureError(ArgumentError):
    """A user's function closes over a tensor of an enclosing transform where closures are not supported."""

    def __init__(self, name: str, what: str = "the function") -> None:
        super().__init__(
            f"{name}: {what} used a tensor of an enclosing transform that is not among its arguments; "
            f"pass it as an argument"
        )


class Level(Diffable[R]):
    """An interpreter above another one: it gives ops a meaning in terms of ops of the level below.

    Each call of a transform makes a new level, so that the values of nested calls cannot be confused.  When the
    function returns, the level is closed: an op on it then raises an EscapedTensorError.

    A subclass defines `lift`, `lower` and `interpret`.
    """

    transform: str = "transform"
    """The name of the transform, for messages."""

    hint: str = "return it from the function (has_aux=True for extra results)"
    """How to get a value out of the transform, for messages."""

    placeholder: str | None = None
    """The text that is printed instead of the values, for a level without values."""

    base: Any = None
    below: Any = None

    def __init__(self, inner: Interpreter[Any]) -> None:
        self.inner = self.below = inner
        self.base, self.eager = inner.base, inner.eager
        self.depth = inner.depth + 1
        # Without this level: a reference to itself would keep its tape alive until the next garbage collection.
        self.levels_below: tuple[Interpreter[Any], ...] = (*inner.levels_below, inner)
        self.closed = False

    def shape(self, x: R) -> Shape:
        return self.inner.shape(self.lower(x))

    def dtype(self, x: R) -> DType:
        return self.inner.dtype(self.lower(x))

    def lift_from(self, x: Any, start: Interpreter[Any]) -> R:
        inner = self.inner
        return self.lift(x if start is inner else inner.lift_from(x, start))

    def lower_with_batch_axis(self, x: R) -> Any:
        """The value at the level below; a batched value keeps its batch axis."""
        return self.lower(x)

    def escaped_error(self, op_name: str) -> EscapedTensorError:
        """The error for an op on a closed level."""
        return EscapedTensorError(
            f"{op_name}: this tensor was made inside {self.transform}, which has returned; "
            f"{self.hint} instead of storing it elsewhere"
        )


_running: ContextVar[Level[Any] | None] = ContextVar("tensorken_running_level", default=None)


def inside_a_transform() -> bool:
    """Whether a transform is running, so that a function may close over its tensors."""
    return _running.get() is not None


class current_level:
    """`with current_level(level):` runs a function at the level, which is closed at the end, also after an error."""

    __slots__ = ("_level", "_token")

    def __init__(self, level: Level[Any]) -> None:
        self._level = level

    def __enter__(self) -> None:
        self._token = _running.set(self._level)

    def __exit__(self, *exception: object) -> None:
        _running.reset(self._token)
        self._level.closed = True


class levels_on:
    """`with levels_on(interpreter):` creates new levels on the interpreter instead of the running level."""

    __slots__ = ("_level", "_token")

    def __init__(self, interpreter: Interpreter[Any]) -> None:
        self._level = interpreter if isinstance(interpreter, Level) else None

    def __enter__(self) -> None:
        self._token = _running.set(self._level)

    def __exit__(self, *exception: object) -> None:
        _running.reset(self._token)


def interpreter_below(interpreters: Sequence[Interpreter[Any]], transform: str) -> Interpreter[Any]:
    """The interpreter below a new level: the running level, or else the deepest of the operands' interpreters.

    The running level is taken if all operands can be lifted to it; without operands and a running level, the default
    backend.

    Raises:
        MixedBackendError, EscapedTensorError: if there is no level to which all operands can be lifted.
    """
    level = _running.get()
    if not interpreters:
        interpreters = [Interpreter.default() if level is None else level.base]
    result = interpreters[0]
    if len(interpreters) > 1 or isinstance(result, Level):
        result = deepest(interpreters, transform)
    while level is not None and level.closed:  # this task or thread outlives the transform that started it
        level = level.inner if isinstance(level.inner, Level) else None
    if level is not None and (result is level or result in level.levels_below):
        return level
    return result


_DEPTH = attrgetter("depth")


def deepest(interpreters: Sequence[Interpreter[Any]], op_name: str) -> Interpreter[Any]:
    """The deepest of the operands' interpreters, if the operands of all others can be lifted to it.

    Raises:
        MixedBackendError: if two operands live on different backends.
        EscapedTensorError: if an operand escaped the transform that made it.
    """
    result = max(interpreters, key=_DEPTH)
    if isinstance(result, Level) and result.closed:
        raise result.escaped_error(op_name)
    for interpreter in interpreters:
        if interpreter is result or interpreter in result.levels_below:
            continue
        if interpreter.base is not result.base:
            raise MixedBackendError(
                f"{op_name}: operands live on different backends, {interpreter.base!r} and {result.base!r}; "
                f"move one with x.to(name)"
            )
        if isinstance(interpreter, Level) and interpreter.closed:
            raise interpreter.escaped_error(op_name)
        raise EscapedTensorError(
            f"{op_name}: the operands belong to two transforms, neither inside the other; return values "
            f"instead of storing them elsewhere, and start threads in contextvars.copy_context()"
        )
    return result


def lift(representation: Any, start: Interpreter[Any], to: Interpreter[Any]) -> Any:
    """Lift a representation as a constant from one level to another above it, one level at a time."""
    return representation if start is to else to.lift_from(representation, start)


def lifted(x: Any, to: Interpreter[Any]) -> Any:
    """The representation of a tensor, lifted as a constant to a level above its own; unchanged at its own."""
    return x.representation if x.interpreter is to else to.lift_from(x.representation, x.interpreter)


def lower(representation: Any, interpreter: Interpreter[Any]) -> tuple[Interpreter[Any], Any]:
    """The backend below all levels, and the value of the representation there."""
    while interpreter.below is not None:
        representation = interpreter.lower(representation)
        interpreter = interpreter.below
    return interpreter, representation
