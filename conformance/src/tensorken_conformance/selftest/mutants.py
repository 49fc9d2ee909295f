"""Mutants: the reference backend with one operator, constant or comparison of its op bodies changed.

MODULES hold the bodies: the methods of `Reference`, and the functions that they use to move, convert, add, multiply
and round.  A site is one node of their syntax trees; a mutant is the whole backend with the code of one function, or
one value of a module, replaced and restored afterwards. The oracles of the laws on values share no code with that
backend, so a mutant cannot change its own oracle.

Not mutated: the enclosures of elementary functions (`fixed`, `circular`, `exponentials`, `logarithms`, `power` and the
strategy in `function`), where a guard bit changes the time and never a result; declarations, which compute nothing;
text; and `strict=` of `zip`, which is an assertion.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from types import CodeType, FunctionType, ModuleType
from typing import Any

from tensorken_conformance.selftest.source_changes import changes, replaced

PACKAGE = "tensorken_reference"

MODULES = ("backend", "arrays", "rows", "conversion", "sums", "products", "bits", "rounding")
"""The modules that are mutated."""

DECLARED = ("_ULP",)
"""Values that declare capabilities and compute nothing."""

EQUIVALENTS = "equivalents.txt"
"""The file of mutants that return the original results for all operands: `id | reason` on each line."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change.

    Attributes:
        module: the name of the module.
        function: the qualified name of the function or method, or the name of a value of the module.
        change: the old and the new node, and the number of this change within the function.
        line: the line in the module.
        site: the number of the node in the module's syntax tree.
    """

    module: str
    function: str
    change: str
    line: int
    site: int

    @property
    def place(self) -> str:
        """The qualified name of the function or value, with its module."""
        return f"{self.module}.{self.function}"

    @property
    def id(self) -> str:
        """Such as `sums._units:Sub-to-Add-1`; it does not depend on lines."""
        return f"{self.place}:{self.change}"


# ---- the mutants of a module -------------------------------------------------------------------------------


@functools.cache
def _tree(module: str) -> ast.Module:
    source = inspect.getsource(importlib.import_module(f"{PACKAGE}.{module}"))
    return ast.parse(source)


def _sites(module: str) -> Iterator[tuple[str, ast.AST]]:
    """The nodes of all functions and values of a module, with their names."""

    def inside(name: str, node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, ast.AST) and not (isinstance(part, ast.keyword) and part.arg == "strict"):
                    yield name, part
                    yield from inside(name, part)

    def within(prefix: str, body: list[ast.stmt]) -> Iterator[tuple[str, ast.AST]]:
        for node in body:
            if isinstance(node, ast.FunctionDef):
                yield from inside(prefix + node.name, node)
            elif isinstance(node, ast.ClassDef):
                yield from within(f"{prefix}{node.name}.", node.body)
            elif isinstance(node, ast.Assign) and not prefix:
                target = node.targets[0]
                name = ast.unparse(target.elts[0] if isinstance(target, ast.Tuple) else target)
                if name not in DECLARED:
                    yield from inside(name, node)

    yield from within("", _tree(module).body)


@functools.cache
def mutants() -> dict[str, Mutant]:
    """All mutants, by their ids."""
    found: dict[str, Mutant] = {}
    for module in MODULES:
        for site, (function, node) in enumerate(_sites(module)):
            for change, _ in changes(node):
                count = 1
                while f"{module}.{function}:{change}-{count}" in found:
                    count += 1
                mutant = Mutant(module, function, f"{change}-{count}", getattr(node, "lineno", 0), site)
                found[mutant.id] = mutant
    return found


# ---- in place ----------------------------------------------------------------------------------------------


@contextmanager
def mutated(mutant: Mutant) -> Iterator[None]:
    """Replace the code of the mutant's function, or its value, within a `with` statement."""
    module = importlib.import_module(f"{PACKAGE}.{mutant.module}")
    tree = _changed(mutant)
    if code_of(mutant.module, mutant.function) is not None:
        with _exchanged_code(_function(module, mutant.function), _code(module, tree, mutant.function)):
            yield
    else:
        with _exchanged_values(module, tree, mutant.function):
            yield


def _changed(mutant: Mutant) -> ast.Module:
    """The syntax tree of the module with the change."""
    tree = _tree(mutant.module)
    for site, (function, node) in enumerate(_sites(mutant.module)):
        if site != mutant.site:
            continue
        for change, make in changes(node):
            if mutant.change.rpartition("-")[0] == change and function == mutant.function:
                changed = replaced(tree, node, make())
                assert isinstance(changed, ast.Module)
                return ast.fix_missing_locations(changed)
    raise ValueError(f"there is no mutant {mutant.id}")


def _function(module: ModuleType, name: str) -> FunctionType:
    found: Any = module
    for part in name.split("."):
        found = inspect.getattr_static(found, part)
    assert isinstance(found, FunctionType)
    return found


def code_of(module: str, name: str) -> CodeType | None:
    """The code of a function or method; None for a value."""
    home = importlib.import_module(f"{PACKAGE}.{module}")
    is_value = not isinstance(vars(home).get(name.split(".")[0]), FunctionType | type)
    return None if is_value else _function(home, name).__code__


def _code(module: ModuleType, tree: ast.Module, name: str) -> CodeType:
    code = compile(tree, module.__file__ or PACKAGE, "exec", dont_inherit=True)
    for part in name.split("."):
        code = next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == part)
    return code


@contextmanager
def _exchanged_code(function: FunctionType, code: CodeType) -> Iterator[None]:
    original = function.__code__
    function.__code__ = code
    try:
        yield
    finally:
        function.__code__ = original


@contextmanager
def _exchanged_values(module: ModuleType, tree: ast.Module, name: str) -> Iterator[None]:
    """Assign new values in the module and in all modules that imported them."""
    statement = next(
        node
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).strip("(").split(",")[0] == name
    )
    values = dict(vars(module))
    exec(compile(ast.Module([statement], []), module.__file__ or PACKAGE, "exec"), values)
    places = [place for name, place in list(sys.modules.items()) if name.startswith(f"{PACKAGE}.")]
    changed = [
        (place, key, vars(place)[key], value)
        for key, value in values.items()
        if key in vars(module) and vars(module)[key] is not value
        for place in places
        if vars(place).get(key) is vars(module)[key]
    ]
    try:
        for place, key, _, value in changed:
            setattr(place, key, value)
        yield
    finally:
        for place, key, original, _ in changed:
            setattr(place, key, original)


# ---- what is known of them ---------------------------------------------------------------------------------


def equivalents() -> dict[str, str]:
    """The mutants that are listed as changing nothing, with reasons.

    Raises:
        ValueError: if a line is malformed, or names an unknown mutant.
    """
    found: dict[str, str] = {}
    text = resources.files(__package__).joinpath(EQUIVALENTS).read_text("utf-8")
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            id, bar, reason = (part.strip() for part in line.partition(" | "))
            if not bar or not reason or id in found:
                raise ValueError(f"{EQUIVALENTS}: {line!r} is no new line of the form `id | reason`")
            if id not in mutants():
                raise ValueError(f"{EQUIVALENTS}: there is no mutant {id!r}; take the line out")
            found[id] = reason
    return found
