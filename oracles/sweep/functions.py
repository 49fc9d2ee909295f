"""The public functions, read from the modules, and their rows."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorken as tk
import tensorken_nn as nn
from oracles.sweep.judge import SPELLINGS
from oracles.sweep.row import Row
from oracles.sweep.rows import ROWS

MODULES = {
    "tk": tk,
    "tk.linalg": tk.linalg,
    "tk.fft": tk.fft,
    "tk.special": tk.special,
    "tk.random": tk.random,
}
NETWORKS = (nn.activations, nn.losses, nn.clipping)


@dataclass(frozen=True, slots=True)
class Function:
    """A public function, by all its names."""

    value: Callable[..., Any]
    names: tuple[str, ...]

    @property
    def spellings(self) -> set[str]:
        """The names that a refusal may begin with."""
        short = {name.rpartition(".")[2] for name in self.names}
        return {*short, *(op for name in short for op in SPELLINGS.get(name, ()))}


def public_functions() -> list[Function]:
    """Every public function once, under all its names, in the order of the modules."""
    found: dict[int, list[str]] = {}
    values: dict[int, Any] = {}
    for prefix, module in {**MODULES, "nn": nn}.items():
        for name in sorted(set(dir(module))):
            value = getattr(module, name)
            if (
                name.startswith("_")
                or inspect.ismodule(value)
                or inspect.isclass(value)
                or not callable(value)
            ):
                continue
            if module is nn and not any(getattr(part, name, None) is value for part in NETWORKS):
                continue
            values[id(value)] = value
            found.setdefault(id(value), []).append(f"{prefix}.{name}")
    return [Function(values[key], tuple(names)) for key, names in found.items()]


def row_of(function: Function) -> tuple[str, Row] | None:
    """The row of a function, with the name under which it stands; None if it has none."""
    return next(((name, ROWS[name]) for name in function.names if name in ROWS), None)
