"""Static arguments of jitted functions: values that a function gets unchanged and that its program depends on."""

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
        argnums: the indices, given or inferred from the names.
        names: the names, given or inferred from the indices.
        optional: whether a call may lack an argument at one of the indices, as it has a name or a default.
    """

    argnums: tuple[int, ...]
    names: frozenset[str]
    optional: bool

    @classmethod
    def of(cls, f: Callable[..., Any], argnums: Any, argnames: Any) -> StaticParameters:
        """The static parameters of f; if only indices or only names are given, its signature determines the other.

        Raises:
            ArgumentError: if f has no such parameter.
        """
        name = getattr(f, "__name__", "function")
        indices, names = _argnums(argnums), _names(argnames)
        if not indices and not names:
            return cls((), frozenset(), True)
        try:
            parameters = list(inspect.signature(f).parameters.values())
        except (TypeError, ValueError):  # some functions written in C
            return cls(indices, frozenset(names), False)
        positional = [p.name for p in parameters if p.kind in POSITIONAL]
        by_name = {p.name for p in parameters if p.kind in (*POSITIONAL, Parameter.KEYWORD_ONLY)}
        kinds = {p.kind for p in parameters}
        has_varargs, has_varkeywords = Parameter.VAR_POSITIONAL in kinds, Parameter.VAR_KEYWORD in kinds
        for n in names:
            if n not in by_name and not has_varkeywords:
                raise ArgumentError(
                    f"jit: static_argnames {argnames!r}: {name} has no parameter {n!r}; "
                    f"it has {', '.join(p.name for p in parameters) or 'none'}"
                )
        count = len(positional)
        for i in indices:
            if not -count <= i < count and not has_varargs:
                raise ArgumentError(
                    f"jit: static_argnums {argnums!r} does not fit {name}, which has {count} positional parameters; "
                    f"give positions from 0, or names as static_argnames"
                )
        if not has_varargs:
            indices = tuple([i % count for i in indices])
        if not names:
            names = [positional[i] for i in indices if 0 <= i < count]
        elif not indices:
            indices = tuple([positional.index(n) for n in names if n in positional])
        return cls(indices, frozenset(names), not has_varargs)


def _argnums(argnums: Any) -> tuple[int, ...]:
    indices = tuple(argnums) if isinstance(argnums, tuple | list) else (argnums,)
    for i in indices:
        if type(i) is not int:
            raise ArgumentError(
                f"jit: static_argnums must be an int or a sequence of ints, got {argnums!r}; see static_argnames"
            )
    return indices


def _names(argnames: Any) -> Sequence[str]:
    names = [argnames] if isinstance(argnames, str) else argnames
    if not isinstance(names, tuple | list) or not all([isinstance(n, str) for n in names]):
        raise ArgumentError(
            f"jit: static_argnames must be a str or a sequence of str, got {argnames!r}; see static_argnums"
        )
    return names
