"""The files of the kit have no import cycles, including imports within functions and for type checkers."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import tensorken_conformance

PACKAGE = tensorken_conformance.__name__
FOLDER = Path(tensorken_conformance.__file__).parent


def imports_of(source: str, modules: set[str]) -> set[str]:
    """The members of `modules` that a source imports, at any place in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            members = {f"{node.module}.{name.name}" for name in node.names}
            names |= members & modules or {node.module}
    return names & modules


def test_there_are_no_import_cycles() -> None:
    paths = [path for path in FOLDER.rglob("*.py") if "project" not in path.relative_to(FOLDER).parts]
    names = {".".join((PACKAGE, *path.relative_to(FOLDER).with_suffix("").parts)): path for path in paths}
    files = {name.removesuffix(".__init__"): path.read_text("utf-8") for name, path in names.items()}
    graph = {name: imports_of(text, set(files)) - {name} for name, text in files.items()}
    for name in (f"{PACKAGE}.laws", f"{PACKAGE}.faults"):  # they import all modules of their folders
        graph[name] |= {other for other in files if other.startswith(f"{name}.")}
    assert len(graph) > 100
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from None


def test_the_command_imports_rich_and_jinja2_only_on_demand() -> None:
    """A run that is not shown in a terminal needs neither, and a run without a page not jinja2."""
    users = set()
    for path in FOLDER.rglob("*.py"):
        body = [
            node
            for node in ast.parse(path.read_text("utf-8")).body
            if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        names = [
            name
            for node in body
            for name in (
                [node.module or ""] if isinstance(node, ast.ImportFrom) else [n.name for n in node.names]
            )
        ]
        if {name.partition(".")[0] for name in names} & {"rich", "jinja2"}:
            users.add(path.stem)
        assert not [name for name in names if name.endswith((".report.page", ".report.rich_text"))], path
    assert users == {"page", "rich_text"}
