"""Names: what the values of a program are called where it is shown: as the function calls them, else a, b, c, ..."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tensorken_core import tree
from tensorken_core.program.program import Literal, Program, Variable

LETTERS = "abcdefghijklmnopqrstuvwxyz"
TAKEN = frozenset({"tk", "OPS", *keyword.kwlist, *keyword.softkwlist})
"""Names that mean something else in the source that `to_python` writes."""


class Names(dict[Variable, str]):
    """Names for variables, given out as they are asked for.

    An input has the name or path that it has in the function, as `x` or `params["b"]`; a literal is its number; the
    others are a, b, ..., z, aa, ab, ...
    """

    def __init__(self, program: Program, avoid: Iterable[str] = ()) -> None:
        found = labels(program)
        super().__init__(zip(program.inputs, found, strict=False))
        taken = TAKEN | {root(label) for label in found} | set(avoid)
        self._letters = (name for name in all_names() if name not in taken)

    def __missing__(self, v: Variable) -> str:
        if isinstance(v, Literal):
            return repr(v.value)
        self[v] = next(self._letters)
        return self[v]


def all_names() -> Iterator[str]:
    """a, b, ..., z, aa, ab, ..."""
    place = 0
    while True:
        yield name_of(place)
        place += 1


def name_of(place: int) -> str:
    """The name at a place: a for 0, z for 25, aa for 26."""
    name = ""
    place += 1
    while place:
        place, letter = divmod(place - 1, len(LETTERS))
        name = LETTERS[letter] + name
    return name


def root(label: str) -> str:
    """The name that a path begins with: `params` of `params["b"][0]`."""
    return label.partition("[")[0].partition(".")[0]


def labels(program: Program) -> list[str]:
    """What the function calls the inputs; fewer than the inputs, or none, where that is not known."""
    return [] if program.arguments is None else labels_of(program.arguments, program.parameters)


def labels_of(arguments: tree.Structure, known: Sequence[str]) -> list[str]:
    """What a function calls the leaves of its arguments, `x` or `params["b"]`, by the names of its parameters."""
    positional, named = tree.unflatten(arguments, range(arguments.size))
    found = [""] * arguments.size
    names = _distinct(arguments, known)
    for name, argument in [*zip(names, positional, strict=True), *named.items()]:
        for path, place in tree.flatten_with_path(argument)[0]:
            found[place] = f"{name}{path}"
    return found


def parameters(program: Program) -> list[str]:
    """The names of the positional arguments, each an identifier that no keyword argument has."""
    assert program.arguments is not None
    return _distinct(program.arguments, program.parameters)


def _distinct(arguments: tree.Structure, known: Sequence[str]) -> list[str]:
    """The names of the positional arguments, each an identifier that no keyword argument has."""
    positional, named = tree.unflatten(arguments, range(arguments.size))
    found: list[str] = []
    known = (*known, *[f"argument_{i}" for i in range(len(known), len(positional))])
    for name in known[: len(positional)]:
        while name in found or name in named:
            name = f"{name}_"
        found.append(name)
    return found


def parameters_of(f: Callable[..., Any], count: int) -> tuple[str, ...]:
    """The names of the parameters of a function that so many positional arguments go to; () if it does not tell."""
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):  # some that are written in C
        return ()
    found: list[str] = []
    for name, parameter in signature.parameters.items():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            found.append(name)
        elif parameter.kind is parameter.VAR_POSITIONAL:
            found += [f"{name}_{i}" for i in range(count - len(found))]
    return tuple(found[:count])


def within(program: Program) -> list[Program]:
    """The program and all that its equations hold at any depth, each once, in the order in which they are met."""
    found = {id(program): program}
    pending = [program]
    while pending:
        inner = [p for e in pending.pop(0).equations for p in e.params if isinstance(p, Program)]
        for p in inner:
            if id(p) not in found:
                found[id(p)] = p
                pending.append(p)
    return list(found.values())


def called_last(program: Program) -> list[Program]:
    """The program and those within it, none before one that runs it."""
    order: list[Program] = []
    seen: set[Program] = set()
    pending: list[tuple[Program, bool]] = [(program, False)]
    while pending:
        one, done = pending.pop()
        if done:
            order.append(one)
        elif one not in seen:
            seen.add(one)
            pending.append((one, True))
            pending += [(p, False) for e in one.equations for p in e.params if isinstance(p, Program)]
    return order[::-1]


def printable(text: str) -> str:
    r"""A text on one line: what a console or a source file would take for more than a letter is spelled out.

    >>> printable("a\nb")
    'a\\nb'
    """
    if text.isprintable():
        return text
    return "".join([c if c.isprintable() else ascii(c)[1:-1] for c in text])


def titles(
    programs: Sequence[Program], spell: Callable[[str], str] = printable, avoid: Iterable[str] = ()
) -> dict[Program, str]:
    """What to call each of several programs: its own name, with a number where two have the same."""
    found: dict[Program, str] = {}
    given = set(avoid)
    for program in programs:
        own = title = spell(program.name)
        count = 1
        while title in given:
            count += 1
            title = f"{own}_{count}"
        given.add(title)
        found[program] = title
    return found


def folded(structure: tree.Structure, leaves: Sequence[Any], combine: Callable[..., Any]) -> Any:
    """Combine leaves, then what came of them, by `combine(container, metadata, children)`, up to the root."""
    rest, done = list(leaves), list[Any]()
    for node in reversed(structure.nodes):
        if node is None:
            done.append(rest.pop())
        else:
            container, metadata, count = node
            children = [done.pop() for _ in range(count)]
            done.append(combine(container, metadata, children))
    return done[0]
