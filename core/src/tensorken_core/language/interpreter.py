"""Interpreter: what every meaning of the language has, be it a backend or a level above one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from tensorken_core.errors import BackendError, MissingOpError
from tensorken_core.language.dtypes import DType
from tensorken_core.language.op import Op
from tensorken_core.language.shapes import Shape

R = TypeVar("R")
"""The representation of tensors: np.ndarray, str, Dual, ..."""


class Overrides(dict[Op, "Callable[..., Any] | None"]):
    """For each op the method with which a class of interpreters overrides it, or None; found at first use."""

    def __init__(self, interpreter: type[Any]) -> None:
        self.interpreter = interpreter

    def __missing__(self, op: Op) -> Callable[..., Any] | None:
        if not op.method:
            return None  # not kept: such an op may be made for one call
        method = getattr(self.interpreter, op.name, None)
        # The language's own method carries its op: it is no override, and leads to `interpret`.
        self[op] = None if getattr(method, "op", None) is op else method
        return self[op]


def _no_default() -> Interpreter[Any]:
    raise BackendError(
        "there is no default backend: import tensorken_core.host.registry, which chooses one, or pass a tensor"
    )


class Interpreter(Generic[R]):
    """A meaning of the language over representations of type R.

    A subclass overrides the ops that it treats specially; every other op arrives at `interpret`, so an interpreter
    over *any* op is one method.
    """

    overrides: ClassVar[Overrides]
    tensor_type: ClassVar[type[Any]]
    """`Tensor`, with which rules and bodies compute; tensor.py sets it, so that the language need not import it."""

    coerce: ClassVar[Callable[..., Any]]
    """`coerce(data, dtype=None, interpreter=None)`: a tensor of data on a backend, the default one if None.

    tensor.py sets a function that takes Python numbers and nested sequences of them; `tensorken` replaces it by one
    that takes more, such as the arrays of other libraries.
    """

    default: ClassVar[Callable[[], Interpreter[Any]]] = staticmethod(_no_default)
    """`default()`: the backend of data without a tensor beside it; the plugin host sets it."""

    name_of: ClassVar[Callable[[Interpreter[Any]], str]] = staticmethod(repr)
    """`name_of(interpreter)`: the name of a backend in messages; the plugin host knows more of them."""

    depth: int = 0
    """The number of levels below this one."""

    levels_below: tuple[Interpreter[Any], ...] = ()
    """The levels below this one, the backend first."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.overrides = Overrides(cls)

    @property
    def below(self) -> Interpreter[Any] | None:
        """The level that this one stands on; None for a backend."""
        return None

    @property
    def base(self) -> Interpreter[Any]:
        """The backend at the bottom of the levels; a backend is its own."""
        return self

    def interpret(self, op: Op, operands: Sequence[R], params: tuple[Any, ...]) -> Any:
        """Give the op its meaning."""
        raise MissingOpError(f"{op.name}: {type(self).__name__} does not implement it")

    def shape(self, x: R) -> Shape:
        """The shape of x: free at any time, never runs delayed work."""
        raise NotImplementedError(f"{type(self).__name__} must define shape(x)")

    def dtype(self, x: R) -> DType:
        """The dtype of x: free at any time, never runs delayed work."""
        raise NotImplementedError(f"{type(self).__name__} must define dtype(x)")

    def lift(self, x: Any) -> R:
        """Raise a value of the level below to this level, as a constant."""
        raise NotImplementedError(f"{type(self).__name__} is no level")

    def lift_from(self, x: Any, start: Interpreter[Any]) -> R:
        """Raise a value of any level below to this level, as a constant."""
        raise NotImplementedError(f"{type(self).__name__} is no level")

    def lower(self, x: R) -> Any:
        """The value at the level below that x stands for; its derivative, if any, is dropped."""
        raise NotImplementedError(f"{type(self).__name__} is no level")
