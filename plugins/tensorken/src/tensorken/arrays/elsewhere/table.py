"""The table of names of other libraries: each has an equivalent here, or a reason why there is none.

The names are in names.py, the equivalents and reasons in equivalents.txt.  A name that exists here under the same name
needs no line.  The module is imported only for an error or a page.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tensorken.arrays.elsewhere.names import NAMES
from tensorken_core.tensor.tensor import Tensor

HOMES: Mapping[str, tuple[str, ...]] = {
    "numpy": ("tk",),
    "numpy.linalg": ("tk.linalg", "tk"),
    "numpy.random": ("tk.random",),
    "numpy.fft": ("tk.fft",),
    "numpy.ndarray": ("x", "tk"),
    "jax": ("tk",),
    "jax.numpy": ("tk",),
    "jax.numpy.linalg": ("tk.linalg", "tk"),
    "jax.numpy.fft": ("tk.fft",),
    "jax.lax": ("tk", "tk.linalg", "tk.special"),
    "jax.nn": ("tk", "nn"),
    "jax.random": ("tk.random",),
    "jax.tree": ("tk.tree",),
    "jax.scipy.special": ("tk.special", "tk"),
    "jax.scipy.linalg": ("tk.linalg", "tk"),
    "torch": ("tk", "tk.special", "tk.linalg", "nn"),
    "torch.nn": ("nn",),
    "torch.nn.functional": ("nn", "tk"),
    "torch.nn.utils.rnn": ("nn",),
    "torch.linalg": ("tk.linalg", "tk"),
    "torch.special": ("tk.special", "tk"),
    "torch.fft": ("tk.fft",),
    "torch.Tensor": ("x", "tk", "tk.special", "tk.linalg"),
}
"""Where the names of each module have the same name here."""

ASKED: Mapping[str, tuple[str, ...]] = {
    "tk": (
        *("numpy", "jax.numpy", "jax", "jax.lax", "torch", "others", "jax.nn", "torch.nn.functional"),
        *("jax.scipy.special", "jax.scipy.linalg", "torch.special", "torch.linalg", "torch.nn"),
    ),
    "tk.linalg": ("numpy.linalg", "jax.scipy.linalg", "torch.linalg"),
    "tk.random": ("jax.random", "numpy.random", "others of random"),
    "tk.special": ("jax.scipy.special", "torch.special", "jax.lax"),
    "x": ("torch.Tensor", "numpy.ndarray", "others of tensors"),
    "nn": ("others of networks", "torch.nn", "torch.nn.functional", "torch.nn.utils.rnn", "jax.nn"),
}
"""The modules that an unknown name is looked up in."""


@dataclass(frozen=True, slots=True)
class Row:
    """A name of another library."""

    text: str
    """The equivalent, an expression that may be followed by a remark; or the reason why there is none."""
    exists: bool
    """Whether there is an equivalent."""
    same: bool = False
    """Whether the equivalent has the same name."""
    wins: bool = False
    """Whether the row holds although the name exists here too."""

    def __str__(self) -> str:
        return f"use {self.text}" if self.exists else self.text


def row(path: str, name: str) -> Row | None:
    """The row of a name of another library's module, such as `("torch", "cat")`; None if the table has none."""
    exact, patterns = _written().get(path, ({}, []))
    written = exact.get(name)
    if written is None and path == "torch.Tensor" and not _has("x", name):
        function = _written()["torch"][0].get(name)
        written = function if function is not None and function.wins else None
    if written is not None and written.wins:
        return written
    homes = HOMES.get(path, ())
    for where in homes[:1] if written is not None and written.exists else homes:
        if _has(where, name):
            return Row(f"{where}.{name}", True, True)
    if path == "torch.Tensor" and written is None:
        written = _method(name)
    return written or next((found for pattern, found in patterns if fnmatchcase(name, pattern)), None)


def _method(name: str) -> Row | None:
    """The row of a method of PyTorch, from the function of the same name, or from the method that changes no tensor."""
    if name.endswith("_") and (base := row("torch.Tensor", name[:-1])) is not None and base.exists:
        return Row(f"{base.text.partition(': ')[0]}: tensors are immutable", True)
    return row("torch", name)


def elsewhere(where: str, name: str) -> Row | None:
    """The row of an unknown name of a module here, such as `("tk", "cat")`, or of a tensor, `"x"`."""
    if name.startswith("_"):
        return None
    for path in ASKED[where]:
        if (
            name in _names(path)
            and (found := row(path, name)) is not None
            and found.text != f"{where}.{name}"
        ):
            called = where == "x" and found.same
            return Row(f"{found.text}(x)", True) if called else found
    return Row(f"tk.{name}(x)", True) if where == "x" and _has("tk", name) else None


def missing(what: str, where: str, name: str, owner: object) -> AttributeError:
    """The error for an unknown name, with its equivalent if another library has the name."""
    found = elsewhere(where, name)
    if found is None:
        return AttributeError(f"{what} has no attribute {name!r}", name=name, obj=owner)
    hint = "" if where == "nn" or not found.text.startswith("nn.") else "; import tensorken_nn as nn"
    return AttributeError(f"{what} has no attribute {name!r}; {found}{hint}")


@functools.cache
def _names(path: str) -> frozenset[str]:
    return frozenset(NAMES[path].split() if path in NAMES else _written()[path][0])


@functools.cache
def _has(where: str, name: str) -> bool:
    """Whether there is a name here."""
    if where == "x":  # the descriptor of a name elsewhere is a str, and no member of a tensor is one
        return any(name in vars(kind) and not isinstance(vars(kind)[name], str) for kind in Tensor.__mro__)
    owner = _module(where)
    return owner is not None and name in dir(owner)


def _module(where: str) -> Any:
    path = {"tk": "tensorken", "nn": "tensorken_nn", "tk.tree": "tensorken_core.tree"}.get(where)
    try:
        return importlib.import_module(path or where.replace("tk", "tensorken", 1))
    except ModuleNotFoundError:
        return None


Written = tuple[dict[str, Row], list[tuple[str, Row]]]


@functools.cache
def _written() -> dict[str, Written]:
    """The lines of equivalents.txt by module: the rows of names, and of patterns."""
    found: dict[str, Written] = {}
    sections: list[Written] = []
    for line in Path(__file__).with_name("equivalents.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            sections = [found.setdefault(path.strip(), ({}, [])) for path in line[1:-1].split(",")]
        elif line and not line.startswith("#"):
            matched = re.fullmatch(r"(.+?) ([=!~]) (.+)", line)
            assert matched is not None, line
            entry = Row(matched[3], matched[2] != "!", wins=matched[2] == "~")
            for name in matched[1].split():
                for exact, patterns in sections:
                    if "*" in name:
                        patterns.append((name, entry))
                    else:
                        exact[name] = entry
    return found
