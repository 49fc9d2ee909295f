"""Interpreter: the base class of everything that gives ops a meaning, backends and levels alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from tensorken_core.errors import BackendError, DTypeError, MissingOpError
from tensorken_core.language.dtypes import DType
from tensorken_core.language.op import Op
from tensorken_core.language.shapes import Shape

R = TypeVar("R")
"""The representation of tensors: np.ndarray, str, Dual, ..."""


class Overrides(dict[Op, "Callable[..., Any] | None"]):
    """For each op the method by which a class of interpreters overrides it, or None; looked up at first use."""

    def __init__(self, interpreter: type[Any]) -> None:
        self.interpreter = interpreter

    def __missing__(self, op: Op) -> Callable[..., Any] | None:
        if not op.method:
            return None  # not cached: such an op may be made for one call
        method = getattr(self.interpreter, op.name, None)
        # The language's own method has an attribute `op`: it is no override, and calls `interpret`.
        self[op] = None if getattr(method, "op", None) is op else method
        return self[op]


def _no_default() -> Interpreter[Any]:
    raise BackendError(
        "there is no default backend: import tensorken_core.host.registry, which chooses one, or pass a tensor"
    )


def _no_complex(op: Op, operands: Sequence[Any], params: tuple[Any, ...]) -> Any:
    raise DTypeError(f"{op.name}: not defined for complex numbers here: import tensorken, which defines it")


class Interpreter(Generic[R]):
    """Gives the ops of the language a meaning, over representations of type R.

    A subclass overrides the ops that it treats specially, by methods of their names; every other op arrives at
    `interpret`.  So an interpreter that treats all ops alike defines one method.
    """

    overrides: ClassVar[Overrides]
    tensor_type: ClassVar[type[Any]]
    """`Tensor`, which rules and bodies compute with; tensor.py sets it, since the language does not import it."""

    coerce: ClassVar[Callable[..., Any]]
    """`coerce(data, dtype=None, interpreter=None)`: converts data to a tensor on a backend, by default the default one.

    tensor.py sets a function that takes Python numbers and nested sequences of them; `tensorken` replaces it by one
    that also takes arrays of other libraries.
    """

    apply_complex: ClassVar[Callable[..., Any]] = staticmethod(_no_complex)
    """`apply_complex(op, operands, params)`: runs an op of which an operand is complex; `tensorken` sets it."""

    complex_type: ClassVar[type[Any]] = complex
    """The class of complex tensors, with the parts as arguments; `tensorken` sets it."""

    complex_of: ClassVar[Callable[..., Any]]
    """`complex_of(x, dtype)`: a real tensor in a complex dtype; `tensorken` sets it."""

    default: ClassVar[Callable[[], Interpreter[Any]]] = staticmethod(_no_default)
    """`default()`: the backend for data that is combined with no tensor; the plugin host sets it."""

    name_of: ClassVar[Callable[[Interpreter[Any]], str]] = staticmethod(repr)
    """`name_of(interpreter)`: the name of a backend in messages; the plugin host sets it to the registered name."""

    eager: bool = True
    """Whether ops are computed when they are called; False for Trace and the levels above it."""

    depth: int = 0
    """The number of levels below this one."""

    gave_number: bool = False
    """Whether a value was read as a Python number, which has no derivative."""

    levels_below: tuple[Interpreter[Any], ...] = ()
    """The interpreters below this level, the backend first."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.overrides = Overrides(cls)

    @property
    def below(self) -> Interpreter[Any] | None:
        """The interpreter below this level; None for a backend."""
        return None

    @property
    def base(self) -> Interpreter[Any]:
        """The backend below all levels; for a backend, the backend itself."""
        return self

    def interpret(self, op: Op, operands: Sequence[R], params: tuple[Any, ...]) -> Any:
        """The result of an op on representations; a tuple if the op has several results."""
        raise MissingOpError(f"{op.name}: {type(self).__name__} does not implement it")

    def shape(self, x: R) -> Shape:
        """The shape of x; a cheap call that never runs delayed work."""
        raise NotImplementedError(f"{type(self).__name__} must define shape(x)")

    def dtype(self, x: R) -> DType:
        """The dtype of x; a cheap call that never runs delayed work."""
        raise NotImplementedError(f"{type(self).__name__} must define dtype(x)")

    def lift(self, x: Any) -> R:
        """A value of the level below, lifted to this level as a constant."""
        raise NotImplementedError(f"{type(self).__name__} is not a level")

    def lift_from(self, x: Any, start: Interpreter[Any]) -> R:
        """A value of any level below, lifted to this level as a constant."""
        raise NotImplementedError(f"{type(self).__name__} is not a level")

    def lower(self, x: R) -> Any:
        """The value of x at the level below, without its derivative."""
        raise NotImplementedError(f"{type(self).__name__} is not a level")
