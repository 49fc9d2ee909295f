"""The methods of tensors that are functions of the namespace: one line each."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tensorken.operators import Operators

if TYPE_CHECKING:
    from tensorken.tensor import Tensor  # noqa: F401, named in strings below

Result = TypeVar("Result")


class StandsFor(Generic[Result]):
    """A method that is the function of its name in a room, with the tensor as first argument.

    It is looked up at first use, since functions are built on tensors, and then stands in the class itself.
    """

    def __init__(self, room: str = "tensorken") -> None:
        self.room = room

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name

    def __get__(self, x: Any, owner: Any = None) -> Callable[..., Result]:
        function = getattr(import_module(self.room), self.name)
        setattr(self.owner, self.name, function)
        return function if x is None else function.__get__(x)  # type: ignore[no-any-return]


stands_for = StandsFor["Tensor"]


class Methods(Operators):
    """What numpy has as a method as well; each is documented where its function is."""

    __slots__ = ()
    __hash__ = Operators.__hash__

    clip = stands_for()
    diagonal = stands_for()
    trace = stands_for("tensorken.functions.diagonals")  # tk.trace is of functions
    dot = stands_for()
    all = stands_for()
    any = stands_for()
    argmax = stands_for()
    argmin = stands_for()
    mean = stands_for()
    repeat = stands_for()
    flatten = stands_for()
    ravel = stands_for()
    squeeze = stands_for()
    swapaxes = stands_for()
    take = stands_for()
    cumprod = stands_for()
    cumsum = stands_for()
    nonzero = StandsFor["tuple[Tensor, ...]"]()
    searchsorted = stands_for()
    argsort = stands_for()
    sort = stands_for()
    std = stands_for()
    var = stands_for()
    as_strided = stands_for()
