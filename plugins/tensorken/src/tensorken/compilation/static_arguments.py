"""Static arguments of jitted functions: values that a function gets unchanged, and that its program depends on."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import Parameter
from typing import Any

from tensorken_core.errors import ArgumentError
from tensorken_core.transforms.arguments import Static

POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


StaticArguments = tuple[tuple[int | str, Static], ...]
"""The static arguments of a call, by index or name."""


@dataclass(frozen=True, slots=True)
class StaticParameters:
    """Which parameters of a function are static, by index and by name.

    Attributes:
        argnums: the given indices, or those that follow from the names.
        names: the given names, or those that follow from the indices.
        optional: whether a call may lack an argument at one of the indices, because it has a name or a default.
    """

    argnums: tuple[int, ...]
    names: frozenset[str]
    optional: bool

    @classmethod
    def of(cls, f: Callable[..., Any], argnums: Any, argnames: Any) -> StaticParameters:
        """The static parameters of f; if only indices or only names are given, the others follow from its signature.

        Raises:
            ArgumentError: if f has no such parameter.
        """
        name = getattr(f, "__name__", "function")
        places, names = _places(argnums), _names(argnames)
        if not places and not names:
            return cls((), frozenset(), True)
        try:
            parameters = list(inspect.signature(f).parameters.values())
        except (TypeError, ValueError):  # some functions written in C
            return cls(places, frozenset(names), False)
        positional = [p.name for p in parameters if p.kind in POSITIONAL]
        by_name = {p.name for p in parameters if p.kind in (*POSITIONAL, Parameter.KEYWORD_ONLY)}
        kinds = {p.kind for p in parameters}
        every_place, every_name = Parameter.VAR_POSITIONAL in kinds, Parameter.VAR_KEYWORD in kinds
        for n in names:
            if n not in by_name and not every_name:
                raise ArgumentError(
                    f"jit: static_argnames {argnames!r}: {name} has no parameter {n!r}; "
                    f"it has {', '.join(p.name for p in parameters) or 'none'}"
                )
        count = len(positional)
        for i in places:
            if not -count <= i < count and not every_place:
                raise ArgumentError(
                    f"jit: static_argnums {argnums!r} does not fit {name}, which has {count} positional parameters; "
                    f"give positions from 0, or names as static_argnames"
                )
        if not every_place:
            places = tuple([i % count for i in places])
        if not names:
            names = [positional[i] for i in places if 0 <= i < count]
        elif not places:
            places = tuple([positional.index(n) for n in names if n in positional])
        return cls(places, frozenset(names), not every_place)


def _places(argnums: Any) -> tuple[int, ...]:
    places = tuple(argnums) if isinstance(argnums, tuple | list) else (argnums,)
    for i in places:
        if type(i) is not int:
            raise ArgumentError(
                f"jit: static_argnums must be an int or a sequence of ints, got {argnums!r}; see static_argnames"
            )
    return places


def _names(argnames: Any) -> Sequence[str]:
    names = [argnames] if isinstance(argnames, str) else argnames
    if not isinstance(names, tuple | list) or not all([isinstance(n, str) for n in names]):
        raise ArgumentError(
            f"jit: static_argnames must be a str or a sequence of str, got {argnames!r}; see static_argnums"
        )
    return names
