"""The methods of tensors that are functions of the namespace: one line each."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from tensorken.operators import Operators


class stands_for:
    """A method that is the function of its name in `tensorken`, with the tensor as first argument.

    It is looked up at first use, since functions are built on tensors, and then stands in the class itself.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name

    def __get__(self, x: Any, owner: Any = None) -> Callable[..., Any]:
        function = getattr(import_module("tensorken"), self.name)
        setattr(self.owner, self.name, function)
        return function if x is None else function.__get__(x)  # type: ignore[no-any-return]


class Methods(Operators):
    """What numpy has as a method as well; each is documented where its function is."""

    __slots__ = ()
    __hash__ = Operators.__hash__

    diagonal = stands_for()
    trace = stands_for()
    dot = stands_for()
    repeat = stands_for()
    flatten = stands_for()
    squeeze = stands_for()
    swapaxes = stands_for()
    take = stands_for()
    as_strided = stands_for()
