"""Static arguments of jitted functions: what a function gets as it is, and is traced for."""

from __future__ import annotations

from typing import Any

from tensorken.spec.dtypes import exact


class Static:
    """An argument that the function gets as it is: 1, 1.0 and True are three of them, 0.0 and -0.0 two."""

    __slots__ = ("_key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self._key = _told_apart(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def _told_apart(value: Any) -> Any:
    """What is equal for values of one type that are equal, numbers and tuples of them by their bits."""
    if type(value) in (bool, int, float):
        return exact(value)
    return (type(value), tuple([_told_apart(x) for x in value]) if type(value) is tuple else value)
