"""The public names of numpy, JAX and PyTorch, and the page that lists their equivalents.

python -m tools.foreign_names          write docs/names.md
python -m tools.foreign_names --read   first read the names of the installed libraries
"""

from __future__ import annotations

import argparse
import importlib
import sys
import textwrap
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

from tensorken.arrays.elsewhere import names, table
from tools.workspace import ROOT

LIBRARIES = {"numpy": "numpy", "jax": "JAX", "torch": "PyTorch"}

SOURCES = {
    "numpy": ("numpy", "numpy.linalg", "numpy.random", "numpy.fft", "numpy.ndarray"),
    "jax": (
        "jax",
        "jax.numpy",
        "jax.numpy.linalg",
        "jax.numpy.fft",
        "jax.lax",
        "jax.nn",
        "jax.random",
        "jax.tree",
        "jax.scipy.special",
        "jax.scipy.linalg",
    ),
    "torch": (
        "torch",
        "torch.nn",
        "torch.nn.functional",
        "torch.nn.utils.rnn",
        "torch.linalg",
        "torch.special",
        "torch.fft",
        "torch.Tensor",
    ),
}
"""The modules and classes whose names are listed, by library."""

FILE = ROOT / "plugins/tensorken/src/tensorken/arrays/elsewhere/names.py"
PAGE = ROOT / "docs/names.md"


def public_names(path: str) -> list[str]:
    """The public names of an installed module or class, without what it imports from other packages."""
    owner = _imported(path)
    library = path.partition(".")[0]
    listed = set(getattr(owner, "__all__", ()))
    return sorted(
        name
        for name in {*dir(owner), *listed}
        if not name.startswith("_")
        and name != library
        and (
            name in listed
            or (
                _belongs(library, value := getattr(owner, name, None))
                and not (listed and isinstance(value, type))
            )
        )
    )


def _imported(path: str) -> Any:
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        owner, _, name = path.rpartition(".")
        return getattr(importlib.import_module(owner), name)


def _belongs(library: str, value: Any) -> bool:
    """Whether a value is the library's own, not a module or class that it imports from another package."""
    if isinstance(value, ModuleType):
        return value.__name__.split(".")[0] == library
    home = getattr(value, "__module__", None) or library
    return home == "builtins" or home.split(".")[0] not in sys.stdlib_module_names


def source() -> str:
    """The text of the file of names, for the installed libraries."""
    versions = {library: version(library).partition("+")[0] for library in LIBRARIES}
    lines = [
        '"""The public names of numpy, JAX and PyTorch; `python -m tools.foreign_names --read` writes this file."""',
        "",
        f"VERSIONS = {versions!r}".replace("'", '"'),
        '"""The versions of the libraries."""',
        "",
        "NAMES = {",
    ]
    for paths in SOURCES.values():
        for path in paths:
            text = textwrap.fill(" ".join(public_names(path)), 109, break_on_hyphens=False)
            lines += [f'    "{path}": """', text, '""",']
    return "\n".join([*lines, "}", '"""The names of each module or class, separated by blanks."""', ""])


def page() -> str:
    """The page of docs/ that lists every name with its equivalent or the reason why there is none."""
    versions = ", ".join(f"{LIBRARIES[library]} {names.VERSIONS[library]}" for library in LIBRARIES)
    parts = [
        "# numpy, JAX and PyTorch names",
        f"Every public name of {versions}, with its equivalent here or the reason why there is none. "
        "`tk` is `tensorken`, `nn` is `tensorken_nn`, and `x` a tensor. An unknown name gets the same answer "
        "as an error: `tk.cat`, `x.detach`, `nn.Dense`.",
        "This page is written by `python -m tools.foreign_names`.",
    ]
    for library, paths in SOURCES.items():
        parts.append(f"## {LIBRARIES[library]}")
        for path in paths:
            parts += _section(path)
    return "\n\n".join(_wrapped(part) for part in parts) + "\n"


def _section(path: str) -> list[str]:
    same: dict[str, list[str]] = {}
    equivalents: dict[str, list[str]] = {}
    reasons: dict[str, list[str]] = {}
    for name in names.NAMES[path].split():
        row = table.row(path, name)
        if row is None:
            raise SystemExit(f"{path}.{name}: no row in equivalents.txt")
        if row.same:
            same.setdefault(row.text.removesuffix(name), []).append(f"`{name}`")
        else:
            (equivalents if row.exists else reasons).setdefault(row.text, []).append(f"`{name}`")
    parts = [f"### `{path}`"]
    parts += [f"The same name as `{where}…`: {', '.join(found)}." for where, found in same.items()]
    if equivalents:
        rows = [f"| {', '.join(found)} | {_cell(text)} |" for text, found in equivalents.items()]
        parts.append("\n".join(["| name | here |", "|---|---|", *rows]))
    parts += [f"**Not here: {text}.** {', '.join(found)}." for text, found in reasons.items()]
    return parts


def _cell(text: str) -> str:
    """Code, and the remark behind it in plain text."""
    code, colon, remark = text.partition(": ")
    code, comma, rest = code.partition(", which")
    return f"`{code}`".replace("|", "\\|") + comma + rest + colon + remark


def _wrapped(part: str) -> str:
    if part.startswith(("|", "#")):
        return part
    return textwrap.fill(part, 120, break_long_words=False, break_on_hyphens=False)


def main(arguments: list[str] | None = None) -> int:
    """Write the page, and before that the names if asked for."""
    parser = argparse.ArgumentParser(prog="python -m tools.foreign_names", description=__doc__)
    parser.add_argument("--read", action="store_true", help="read the names of the installed libraries")
    if parser.parse_args(arguments).read:
        Path(FILE).write_text(source(), encoding="utf-8")
        importlib.reload(names)
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
