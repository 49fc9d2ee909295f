"""Check the architecture: `python -m tools.architecture` prints the faults, and fails if there are any.

import-linter checks the layers, by the contracts in pyproject.toml.  This tool checks rules that the contracts cannot
express:

* there is no cycle of imports between files;
* backends, plugins and the kit import only the public modules of other packages;
* core, and its kernel, stay within their budgets of code lines.

Imports within functions and for type checkers count like all others.  There are no exceptions.
"""

from __future__ import annotations

import graphlib
import io
import sys
import token
import tokenize
from collections.abc import Iterable, Mapping
from pathlib import Path

import grimp

from tools.workspace import ROOT, distributions, settings

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
        for home in distributions(optional=True)
        for folder in sorted((home / "src").iterdir())
        if folder.is_dir()
    ]


def imports_of(names: Iterable[str]) -> dict[str, set[str]]:
    """For each module of these packages, the modules of these packages that it imports, also within functions."""
    graph = grimp.build_graph(*names, exclude_type_checking_imports=False, cache_dir=None)
    return {module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules}


def cycle(imports: Mapping[str, Iterable[str]]) -> list[str]:
    """A cycle of imports: each module imports the next, and the last is the first; empty if there is none."""
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        return list(reversed(error.args[1]))
    return []


def private_imports(imports: Mapping[str, Iterable[str]], public: Mapping[str, list[str]]) -> list[str]:
    """Imports of modules of other packages that are not public to the importing package.

    Args:
        imports: for each module the modules that it imports.
        public: for each importing package the modules that it may import, with their submodules; a subpackage may have
            modules of its own beside those of its package.
    """
    faults = []
    for module, imported in sorted(imports.items()):
        package = module.split(".")[0]
        if package not in public:
            continue
        importers = [importer for importer in public if f"{module}.".startswith(f"{importer}.")]
        allowed = [name for importer in importers for name in public[importer]]
        for name in sorted(imported):
            own = name.split(".")[0] in (package, name)  # the package itself is public
            if own or any(f"{name}.".startswith(f"{public_name}.") for public_name in allowed):
                continue
            faults.append(f"{module} imports {name}, which is not public to {max(importers, key=len)}")
    return faults


def code_lines(file: Path) -> int:
    """The number of lines of a Python file with code, not comments, docstrings or blank lines."""
    lines: set[int] = set()
    is_start = True
    for item in tokenize.generate_tokens(io.StringIO(file.read_text(encoding="utf-8")).readline):
        if item.type in NOT_CODE:
            is_start = is_start or item.type in (token.NEWLINE, token.INDENT, token.DEDENT)
        elif is_start and item.type == token.STRING:
            is_start = False  # a statement that is only a string: a docstring
        else:
            lines.update(range(item.start[0], item.end[0] + 1))
            is_start = False
    return len(lines)


def lines_of(paths: Iterable[str]) -> int:
    """The number of code lines of files, and of all Python files in folders, by their paths in the workspace."""
    files = {
        file
        for path in paths
        for file in ([ROOT / path] if path.endswith(".py") else (ROOT / path).rglob("*.py"))
    }
    return sum(map(code_lines, files))


def main() -> int:
    """Run all checks; returns the exit status."""
    sys.path[:0] = [str(folder / "src") for folder in distributions(optional=True)]
    rules = settings()["architecture"]
    imports = imports_of(packages())
    faults = private_imports(imports, rules["public"])
    import_cycle = cycle(imports)
    if import_cycle:
        faults.append("cycle: " + " -> ".join(import_cycle))
    print(
        f"{len(imports)} modules, {sum(map(len, imports.values()))} imports: "
        f"{'a cycle' if import_cycle else '0 cycles'}, 0 exceptions"
    )
    for name, budget in rules["budgets"].items():
        lines = lines_of(budget["paths"])
        print(f"{name}: {lines:,} of {budget['lines']:,} code lines")
        if lines > budget["lines"]:
            faults.append(f"{name}: {lines:,} code lines, {lines - budget['lines']:,} more than its budget")
    for fault in faults:
        print(fault, file=sys.stderr)
    return int(bool(faults))


if __name__ == "__main__":
    raise SystemExit(main())
