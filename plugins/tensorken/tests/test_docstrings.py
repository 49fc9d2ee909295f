"""Public names are documented: a sentence, an example, which pytest runs, and the errors that are raised.

Public names are looked up (tools/public_modules.py), so new names are checked automatically. An error that all
functions of a module raise may be documented in the module's docstring.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import tensorken as tk
from core.tests.each import each_of
from tensorken_core.errors import ArgumentError, AxisError, DTypeError, ShapeError
from tools import reference
from tools.public_modules import PublicModule, public_modules, public_names
from tools.reference_topics import TOPICS


def members() -> Iterator[tuple[PublicModule, str]]:
    """Every function and class of every public module."""
    for owner in public_modules():
        for name in owner.names:
            thing = owner.object(name)
            if inspect.isroutine(thing) or inspect.isclass(thing):
                yield owner, name


def test_the_rooms_hold_all_that_is_public() -> None:
    held = {name for owner in public_modules() if owner.namespace == "tensorken" for name in owner.names}
    held |= {name for owner in public_modules() for name in owner.aliases}
    assert public_names() == {name for name in held if not name.startswith("_")}
    assert {"sin", "sum", "matmul", "grad", "vmap", "use_backend", "float32", "Tensor"} <= public_names()


def test_the_reference_has_every_public_name() -> None:
    pages = reference.pages()
    topics = {module: topic.page for topic in TOPICS for module in topic.modules}
    for owner in public_modules():
        page = pages[topics.get(owner.page, owner.page)]
        for name in (*owner.names, *owner.aliases):
            assert re.search(rf"^\.\. (auto\w+|py:\w+):: {re.escape(name)}\b", page, re.MULTILINE), name
    assert [page for page in pages if f"   {page}\n" not in pages["index"]] == ["index"]


@each_of(("owner", "name"), members())
def test_a_public_name_is_documented(owner: PublicModule, name: str) -> None:
    assert shortcomings(owner, name) == []


@each_of("name", [n for names in reference.tensor_members().values() for n in names])
def test_every_method_is_documented_here_or_where_its_function_is(name: str) -> None:
    own = inspect.cleandoc(reference.own_docstring(inspect.getattr_static(tk.Tensor, name)) or "")
    of_function = inspect.getdoc(getattr(tk, name, None)) or ""
    assert is_sentence((own or of_function).partition("\n")[0])
    assert has_example(own) or has_example(of_function)


# ---- what a docstring says, and what a function does -----------------------------------------------------------


def shortcomings(owner: PublicModule, name: str) -> list[str]:
    """The parts that the documentation of a public name lacks."""
    thing = owner.object(name)
    text = inspect.getdoc(thing) or ""
    found = []
    if not is_sentence(text.partition("\n")[0]):
        found.append("its docstring begins with no sentence")
    if not has_example(text):
        found.append("its docstring has no example after an empty line")
    if inspect.isroutine(thing):
        told = raises_of(text) | raises_of(inspect.getdoc(owner.module) or "")
        untold = [error.__name__ for error in errors_of(thing) if told.isdisjoint(lineage(error))]
        if untold:
            found.append(f"its docstring and its module's do not mention {' and '.join(sorted(untold))}")
    return found


def is_sentence(line: str) -> bool:
    """Whether a line ends as a sentence or a clause does."""
    return line.endswith((".", ":", ";", ","))


def has_example(docstring: str) -> bool:
    """Whether a docstring has a self-contained example."""
    return "\n\n>>> " in docstring


def raises_of(docstring: str) -> set[str]:
    """The names of the errors in a docstring's section `Raises:`."""
    section = re.search(r"^Raises:\n((?:[ ]+.*\n?|\n)+)", docstring, re.MULTILINE)
    lines = re.findall(r"^    (\w[\w, ]*):", section[1], re.MULTILINE) if section else []
    return {name.strip() for line in lines for name in line.split(",")}


def lineage(error: type[BaseException]) -> set[str]:
    """The names by which an error may be documented: its own, and those of its bases in Tensorken or Python."""
    return {base.__name__ for base in error.__mro__ if issubclass(base, Exception) and base is not Exception}


def errors_of(function: Any) -> set[type[Exception]]:
    """The errors in a function's own code, and those of calls with invalid arguments.

    Errors for an argument of the wrong type, where a tensor or a function is needed, are not counted.
    """
    found = stated(inspect.unwrap(function)) | tried(function)
    return {error for error in found if not issubclass(error, ArgumentError)}


def stated(function: Any) -> set[type[Exception]]:
    """The errors in `raise` statements of a function and of the private functions of its module that it calls."""
    module = inspect.getmodule(function)
    pending, seen, found = [function], set(), set()
    while pending:
        current = pending.pop()
        seen.add(current)
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(current)))):
            if (
                isinstance(node, ast.Raise)
                and isinstance(node.exc, ast.Call)
                and isinstance(node.exc.func, ast.Name)
            ):
                name = node.exc.func.id
                error = getattr(module, name, None) or getattr(builtins, name)
                found |= (
                    {error} if inspect.isclass(error) else set()
                )  # a function that only constructs an error does not raise it
            called = getattr(module, node.id, None) if isinstance(node, ast.Name) else None
            private = inspect.isfunction(called) and called.__name__.startswith("_")
            if private and called.__module__ == function.__module__ and called not in seen:
                pending.append(called)
    return found


def tried(function: Callable[..., Any]) -> set[type[Exception]]:
    """The errors of dtypes, shapes and axes that calls with unsuitable tensors raise."""
    parameters = inspect.signature(function).parameters.values()
    needed = [p for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    found: set[type[Exception]] = set()

    def attempt(*arguments: Any, **keywords: Any) -> None:
        try:
            function(*arguments, **keywords)
        except (DTypeError, ShapeError) as error:
            found.add(type(error))
        except Exception:  # noqa: BLE001, some functions take no tensors at all
            pass

    if all(p.name in OPERANDS for p in needed):
        for dtype in ("bool", "int32", "float32"):
            attempt(*[tk.ones((2, 3), dtype)] * len(needed))
        if len(needed) == 2:
            attempt(tk.ones((2,)), tk.ones((3,)))
    unfit = {p.name: UNFIT[p.name] for p in parameters if p.name in UNFIT}
    if all(p.name in OPERANDS or p.name in UNFIT for p in needed):
        for name in unfit:
            fit = {p.name: tk.ones((2, 3)) for p in needed if p.name in OPERANDS}
            attempt(**(fit | {p.name: FIT[p.name] for p in needed if p.name in UNFIT} | {name: unfit[name]}))
    return found


OPERANDS = {"x", "a", "b", "c", "x1", "x2", "y", "condition"}
"""The names of parameters that take tensors."""

UNFIT: dict[str, Any] = {
    **dict.fromkeys(("axis", "axes", "axis1", "axis2", "source", "destination"), 7),
    **dict.fromkeys(("shape", "dimensions"), (-1,)),
    **dict.fromkeys(("num", "n", "m"), -1),
}
"""The names of parameters that take axes or sizes, with invalid values."""

FIT = {name: 0 if value == 7 else 2 for name, value in UNFIT.items()}
"""Valid values of the same parameters for tensors of two axes."""


def test_the_errors_of_a_function_are_found() -> None:
    assert errors_of(tk.sin) == set()
    assert errors_of(tk.negative) == {DTypeError}
    assert errors_of(tk.sum) == {AxisError}
    assert errors_of(tk.logaddexp) == {ShapeError}
    assert errors_of(tk.vmap) == {ShapeError}


def test_raises_sections_are_read() -> None:
    text = "One.\n\nRaises:\n    ShapeError, AxisError: if so,\n        and more: so.\n    DTypeError: else.\n\n>>> 1\n"
    assert raises_of(text) == {"ShapeError", "AxisError", "DTypeError"}
    assert raises_of("One.\n\n>>> 1\n1") == set()
