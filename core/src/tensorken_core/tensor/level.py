"""Levels: interpreters that stand on one another, the running one, and how values rise from level to level."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

from tensorken_core.errors import ArgumentError, EscapedTensorError, MixedBackendError
from tensorken_core.language.diffable import Diffable
from tensorken_core.language.dtypes import DType
from tensorken_core.language.interpreter import Interpreter, R
from tensorken_core.language.shapes import Shape


class ClosureError(ArgumentError):
    """A user's function closes over a tensor of an enclosing transform, where it cannot."""

    def __init__(self, name: str, what: str = "the function") -> None:
        super().__init__(
            f"{name}: {what} used a tensor of an enclosing transform that is not among its arguments; "
            f"pass it as an argument"
        )


class Level(Diffable[R]):
    """An interpreter that stands on another.

    Each call of a transform makes a fresh one, so the object itself tells apart the values of nested calls; it is
    closed when the function returns, and then refuses new ops.
    """

    transform: str = "transform"
    """The name of the transform, for messages."""

    hint: str = "return it from the function (has_aux=True for extra results)"
    """How a value leaves the transform, for messages."""

    placeholder: str | None = None
    """What a tensor on it is called where its values cannot be shown."""

    base: Any = None
    below: Any = None

    def __init__(self, inner: Interpreter[Any]) -> None:
        self.inner = self.below = inner
        self.base = inner.base
        self.depth = inner.depth + 1
        # All levels below, the backend first. Not this one too: a reference to itself would keep its tape alive.
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
        """What a representation holds at the level below, be it one value or one an example."""
        return self.lower(x)

    def escaped_error(self, op_name: str) -> EscapedTensorError:
        """The error of an op on a closed level."""
        return EscapedTensorError(
            f"{op_name}: this tensor was made inside {self.transform}, which has returned; "
            f"{self.hint} instead of keeping it aside"
        )


_running: ContextVar[Level[Any] | None] = ContextVar("tensorken_running_level", default=None)


def inside_a_transform() -> bool:
    """Whether a function of a transform is running, so that what is made now may close over its tensors."""
    return _running.get() is not None


class current_level:
    """`with running(level):` makes this the running level, and closes it at the end, however the end comes."""

    __slots__ = ("_level", "_token")

    def __init__(self, level: Level[Any]) -> None:
        self._level = level

    def __enter__(self) -> None:
        self._token = _running.set(self._level)

    def __exit__(self, *exception: object) -> None:
        _running.reset(self._token)
        self._level.closed = True


class new_levels_on:
    """`with standing_on(interpreter):` new levels stand on it, whichever level runs outside."""

    __slots__ = ("_level", "_token")

    def __init__(self, interpreter: Interpreter[Any]) -> None:
        self._level = interpreter if isinstance(interpreter, Level) else None

    def __enter__(self) -> None:
        self._token = _running.set(self._level)

    def __exit__(self, *exception: object) -> None:
        _running.reset(self._token)


def interpreter_below(interpreters: Sequence[Interpreter[Any]], transform: str) -> Interpreter[Any]:
    """What a new level stands on: the running level if the operands can rise to it, else the deepest of theirs.

    Raises:
        MixedBackendError, EscapedTensorError: if they cannot meet.
    """
    level = _running.get()
    deepest = interpreters[0]
    if len(interpreters) > 1 or isinstance(deepest, Level):
        deepest = meet(interpreters, transform)
    while level is not None and level.closed:  # in a task or thread that outlives what it was started in
        level = level.inner if isinstance(level.inner, Level) else None
    if level is not None and (deepest is level or deepest in level.levels_below):
        return level
    return deepest


def meet(interpreters: Sequence[Interpreter[Any]], op_name: str) -> Interpreter[Any]:
    """The deepest of the operands' interpreters, to which all others can rise.

    Raises:
        MixedBackendError: if two operands live on different backends.
        EscapedTensorError: if one escaped the transform that made it.
    """
    deepest = max(interpreters, key=lambda interpreter: interpreter.depth)
    if isinstance(deepest, Level) and deepest.closed:
        raise deepest.escaped_error(op_name)
    for interpreter in interpreters:
        if interpreter is deepest or interpreter in deepest.levels_below:
            continue
        if interpreter.base is not deepest.base:
            raise MixedBackendError(
                f"{op_name}: operands live on different backends, {interpreter.base!r} and {deepest.base!r}; "
                f"move one with x.to(name)"
            )
        if isinstance(interpreter, Level) and interpreter.closed:
            raise interpreter.escaped_error(op_name)
        raise EscapedTensorError(
            f"{op_name}: the operands belong to two transforms that do not enclose one another; return values "
            f"instead of passing them sideways, and start threads in contextvars.copy_context()"
        )
    return deepest


def lift(representation: Any, start: Interpreter[Any], to: Interpreter[Any]) -> Any:
    """Raise a representation as a constant from a level to the same or one above it, one step a level."""
    return representation if start is to else to.lift_from(representation, start)


def lifted(x: Any, to: Interpreter[Any]) -> Any:
    """The representation of a tensor as a constant at a level above its own, or at its own."""
    return lift(x.representation, x.interpreter, to)


def lower(representation: Any, interpreter: Interpreter[Any]) -> tuple[Interpreter[Any], Any]:
    """The backend below, and the value there that the representation stands for."""
    while interpreter.below is not None:
        representation = interpreter.lower(representation)
        interpreter = interpreter.below
    return interpreter, representation


def lower_with_batch_axes(representation: Any, interpreter: Interpreter[Any]) -> tuple[Interpreter[Any], Any]:
    """As `lower`, but a value that differs between the examples of a batch comes with all of them."""
    while isinstance(interpreter, Level):
        representation = interpreter.lower_with_batch_axis(representation)
        interpreter = interpreter.inner
    return interpreter, representation
