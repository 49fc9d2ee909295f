"""The files of the kit have no import cycles, including imports within functions and for type checkers."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import tensorken_conformance

PACKAGE = tensorken_conformance.__name__
FOLDER = Path(tensorken_conformance.__file__).parent


def imported(source: str, modules: set[str]) -> set[str]:
    """The modules among these that a source imports anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            below = {f"{node.module}.{name.name}" for name in node.names}
            found |= below & modules or {node.module}
    return found & modules


def test_there_are_no_import_cycles() -> None:
    paths = [path for path in FOLDER.rglob("*.py") if "project" not in path.relative_to(FOLDER).parts]
    names = {".".join((PACKAGE, *path.relative_to(FOLDER).with_suffix("").parts)): path for path in paths}
    files = {name.removesuffix(".__init__"): path.read_text("utf-8") for name, path in names.items()}
    graph = {name: imported(text, set(files)) - {name} for name, text in files.items()}
    for name in (f"{PACKAGE}.laws", f"{PACKAGE}.faults"):  # which import all that is in their folder
        graph[name] |= {other for other in files if other.startswith(f"{name}.")}
    assert len(graph) > 100
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from None
