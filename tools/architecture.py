"""The check of the architecture: `python -m tools.architecture` prints what it found, and fails on any fault.

import-linter holds the layers, by the contracts in pyproject.toml.  This check holds what its contracts cannot say:

* no circle of imports between files;
* backends and plugins import of `tensorken_core` and `tensorken` the public modules alone;
* core, and the kernel of it, stay within their budgets of code lines.

Imports within functions, and those for types alone, count like all others.  There are no exceptions.
"""

from __future__ import annotations

import graphlib
import io
import sys
import token
import tokenize
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import grimp

from tools.workspace import ROOT, distributions

NOT_CODE = frozenset(
    {
        tokenize.COMMENT,
        tokenize.NL,
        token.NEWLINE,
        token.INDENT,
        token.DEDENT,
        tokenize.ENCODING,
        token.ENDMARKER,
    }
)


def packages() -> list[str]:
    """The import packages of all distributions, core's first."""
    return [
        folder.name
        for home in distributions()
        for folder in sorted((home / "src").iterdir())
        if folder.is_dir()
    ]


def imports_of(names: Iterable[str]) -> dict[str, set[str]]:
    """For each module of these packages the modules among them that it imports, wherever the import stands."""
    graph = grimp.build_graph(*names, exclude_type_checking_imports=False, cache_dir=None)
    return {module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules}


def circle(imports: Mapping[str, Iterable[str]]) -> list[str]:
    """Modules of which each imports the next and the last is the first; empty if there is no circle."""
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        return list(reversed(error.args[1]))
    return []


def private_imports(imports: Mapping[str, Iterable[str]], public: Mapping[str, list[str]]) -> list[str]:
    """Imports into the public packages, from packages that are not their own, of modules that are not public.

    Args:
        imports: for each module those that it imports.
        public: for each importing package the modules that it may import; a module stands for all below it.
    """
    found = []
    for module, imported in sorted(imports.items()):
        package = module.split(".")[0]
        if package not in public:
            continue
        allowed = public[package]
        for name in sorted(imported):
            own = name.split(".")[0] in (package, name)  # the package itself is public
            if own or any(f"{name}.".startswith(f"{one}.") for one in allowed):
                continue
            found.append(f"{module} imports {name}, which is not public to {package}")
    return found


def code_lines(file: Path) -> int:
    """The lines of a Python file that hold code: no comments, docstrings or blank lines."""
    lines: set[int] = set()
    begins = True
    for piece in tokenize.generate_tokens(io.StringIO(file.read_text(encoding="utf-8")).readline):
        if piece.type in NOT_CODE:
            begins = begins or piece.type in (token.NEWLINE, token.INDENT, token.DEDENT)
        elif begins and piece.type == token.STRING:
            begins = False  # an expression that is a string alone: a docstring
        else:
            lines.update(range(piece.start[0], piece.end[0] + 1))
            begins = False
    return len(lines)


def lines_of(paths: Iterable[str]) -> int:
    """The code lines of files and of all Python files in folders, by their paths in the workspace."""
    files = {
        file
        for path in paths
        for file in ([ROOT / path] if path.endswith(".py") else (ROOT / path).rglob("*.py"))
    }
    return sum(map(code_lines, files))


def settings() -> dict[str, Any]:
    """The table `tool.architecture` of pyproject.toml."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found: dict[str, Any] = tomllib.loads(text)["tool"]["architecture"]
    return found


def main() -> int:
    """Check everything; the exit status."""
    sys.path[:0] = [str(folder / "src") for folder in distributions()]
    chosen = settings()
    names = packages()
    imports = imports_of(names)
    faults = private_imports(
        imports, {one: chosen["public"][one] for one in names if one in chosen["public"]}
    )
    round_trip = circle(imports)
    if round_trip:
        faults.append("circle: " + " -> ".join(round_trip))
    print(
        f"{len(imports)} modules, {sum(map(len, imports.values()))} imports: "
        f"{'a circle' if round_trip else '0 circles'}, 0 exceptions"
    )
    for name, budget in chosen["budgets"].items():
        lines = lines_of(budget["paths"])
        print(f"{name}: {lines:,} of {budget['lines']:,} code lines")
        if lines > budget["lines"]:
            faults.append(f"{name}: {lines:,} code lines, {lines - budget['lines']:,} more than its budget")
    for fault in faults:
        print(fault, file=sys.stderr)
    return int(bool(faults))


if __name__ == "__main__":
    raise SystemExit(main())
