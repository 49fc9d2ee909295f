"""Names of the values of a program in its text forms: the function's names for inputs, else a, b, c, ..."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tensorken_core import tree
from tensorken_core.program.program import Literal, Program, Variable
from tensorken_core.text import printable

LETTERS = "abcdefghijklmnopqrstuvwxyz"
RESERVED_NAMES = frozenset({"tk", "OPS", *keyword.kwlist, *keyword.softkwlist})
"""Names with another meaning in the source that `to_python` writes."""


class Names(dict[Variable, str]):
    """The name of each variable; a new name is made at the first look-up.

    An input has its name or path in the function, as `x` or `params["b"]`; a literal is its number; all other
    variables are a, b, ..., z, aa, ab, ...
    """

    def __init__(self, program: Program, avoid: Iterable[str] = ()) -> None:
        input_names = labels(program)
        super().__init__(zip(program.inputs, input_names, strict=False))
        taken = RESERVED_NAMES | {root(label) for label in input_names} | set(avoid)
        self._letters = (name for name in letter_names() if name not in taken)

    def __missing__(self, v: Variable) -> str:
        if isinstance(v, Literal):
            return repr(v.value)
        self[v] = next(self._letters)
        return self[v]


def letter_names() -> Iterator[str]:
    """a, b, ..., z, aa, ab, ..."""
    index = 0
    while True:
        yield letter_name(index)
        index += 1


def letter_name(index: int) -> str:
    """The name at an index: a for 0, z for 25, aa for 26."""
    name = ""
    index += 1
    while index:
        index, letter = divmod(index - 1, len(LETTERS))
        name = LETTERS[letter] + name
    return name


def root(label: str) -> str:
    """The name at the start of a path: `params` of `params["b"][0]`."""
    return label.partition("[")[0].partition(".")[0]


def labels(program: Program) -> list[str]:
    """The function's names of the inputs; the list is shorter than the inputs, or empty, if they are unknown."""
    return [] if program.arguments is None else labels_of(program.arguments, program.parameters)


def labels_of(arguments: tree.Structure, parameter_names: Sequence[str]) -> list[str]:
    """The names of the leaves of a function's arguments, as `x` or `params["b"]`, from the names of its parameters."""
    positional, named = tree.unflatten(arguments, range(arguments.size))
    result = [""] * arguments.size
    names = _unique_parameters(arguments, parameter_names)
    for name, argument in [*zip(names, positional, strict=True), *named.items()]:
        for path, index in tree.flatten_with_path(argument)[0]:
            result[index] = f"{name}{path}"
    return result


def parameters(program: Program) -> list[str]:
    """The names of the positional arguments, each an identifier that no keyword argument has."""
    assert program.arguments is not None
    return _unique_parameters(program.arguments, program.parameters)


def _unique_parameters(arguments: tree.Structure, parameter_names: Sequence[str]) -> list[str]:
    """The names of the positional arguments, each an identifier that no keyword argument has."""
    positional, named = tree.unflatten(arguments, range(arguments.size))
    names: list[str] = []
    parameter_names = (
        *parameter_names,
        *[f"argument_{i}" for i in range(len(parameter_names), len(positional))],
    )
    for name in parameter_names[: len(positional)]:
        while name in names or name in named:
            name = f"{name}_"
        names.append(name)
    return names


def parameters_of(f: Callable[..., Any], count: int) -> tuple[str, ...]:
    """The names of the parameters that receive `count` positional arguments; () if the function has no signature."""
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):  # some functions written in C have no signature
        return ()
    names: list[str] = []
    for name, parameter in signature.parameters.items():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(name)
        elif parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{name}_{i}" for i in range(count - len(names))]
    return tuple(names[:count])


def all_programs(program: Program) -> list[Program]:
    """The program and all programs in its equations' params, at any depth, each once, breadth first."""
    programs = {id(program): program}
    pending = [program]
    while pending:
        inner = [p for e in pending.pop(0).equations for p in e.params if isinstance(p, Program)]
        for p in inner:
            if id(p) not in programs:
                programs[id(p)] = p
                pending.append(p)
    return list(programs.values())


def callers_first(program: Program) -> list[Program]:
    """The program and all programs within it, each after all programs that run it."""
    order: list[Program] = []
    seen: set[Program] = set()
    pending: list[tuple[Program, bool]] = [(program, False)]
    while pending:
        current, done = pending.pop()
        if done:
            order.append(current)
        elif current not in seen:
            seen.add(current)
            pending.append((current, True))
            pending += [(p, False) for e in current.equations for p in e.params if isinstance(p, Program)]
    return order[::-1]


def unique_names(
    programs: Sequence[Program], spell: Callable[[str], str] = printable, avoid: Iterable[str] = ()
) -> dict[Program, str]:
    """A unique name for each program: its own name, with a number appended if another program has the same name."""
    names: dict[Program, str] = {}
    used = set(avoid)
    for program in programs:
        base = title = spell(program.name)
        count = 1
        while title in used:
            count += 1
            title = f"{base}_{count}"
        used.add(title)
        names[program] = title
    return names


def fold(structure: tree.Structure, leaves: Sequence[Any], combine: Callable[..., Any]) -> Any:
    """Reduce a tree from its leaves up to the root by `combine(container, metadata, children)`."""
    rest, done = list(leaves), list[Any]()
    for node in reversed(structure.nodes):
        if node is None:
            done.append(rest.pop())
        else:
            container, metadata, count = node
            children = [done.pop() for _ in range(count)]
            done.append(combine(container, metadata, children))
    return done[0]
