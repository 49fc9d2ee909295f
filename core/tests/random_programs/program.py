"""Program: a random program as Python text over a namespace `xp`, so that it runs on Tensorken and on JAX."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.tests.random_programs import rules
from core.tests.random_programs.numbers import Array, is_python, kind

_NAME = re.compile(r"\bx\d+\b")


@dataclass(frozen=True, eq=False)
class Leaf:
    """An input: its name and values, or a Python number."""

    name: str
    values: Any

    @property
    def text(self) -> str:
        """The Python expression of the numpy array, or of the number."""
        if is_python(self.values):
            return repr(self.values)
        return f'np.array({listed(self.values)}, "{self.values.dtype}").reshape({self.values.shape})'


@dataclass(frozen=True)
class Step:
    """An assignment: the names of the results, and an expression over `xp` and earlier names.

    Attributes:
        row: the name of the kind of step.
        names: the names of the results; more than one if the expression is a tuple.
        text: the expression.
        exact: whether it rounds nothing, so that all results must be equal, not only close.
    """

    row: str
    names: tuple[str, ...]
    text: str
    exact: bool

    @property
    def operands(self) -> tuple[str, ...]:
        """The earlier names in the expression."""
        return tuple(sorted(set(_NAME.findall(self.text)), key=lambda name: int(name[1:])))

    @property
    def line(self) -> str:
        """The assignment."""
        return f"{', '.join(self.names)}{',' if len(self.names) > 1 else ''} = {self.text}"

    def __call__(self, xp: Any, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """The results from the values of the operands."""
        found = expression(self.text, self.operands)(xp, *[values[name] for name in self.operands])
        return tuple(found) if len(self.names) > 1 else (found,)


@dataclass(frozen=True)
class Program:
    """Leaves and steps, in an order in which they can be computed.

    Attributes:
        leaves: the inputs.
        steps: the assignments.
        smooth: whether its derivatives can be compared.
        whole: whether all values are small integers, so that sums and products in any order are equal.
    """

    leaves: tuple[Leaf, ...]
    steps: tuple[Step, ...]
    smooth: bool = False
    whole: bool = False

    @property
    def ends(self) -> tuple[str, ...]:
        """The names of results that no step uses."""
        used = {name for step in self.steps for name in step.operands}
        return tuple(name for step in self.steps for name in step.names if name not in used)

    def run(self, xp: Any, values: Mapping[str, Any]) -> dict[str, Any]:
        """All values, computed from the leaves (and from given results of steps)."""
        found = dict(values)
        for step in self.steps:
            if step.names[0] not in found:
                found.update(zip(step.names, step(xp, found), strict=True))
        return found

    def only(self, steps: Sequence[Step], values: Mapping[str, Array] | None = None) -> Program:
        """A program of only these steps; results of other steps that they use become leaves with the given values."""
        used = {name for step in steps for name in step.operands}
        made = {name for step in steps for name in step.names}
        leaves = [leaf for leaf in self.leaves if leaf.name in used]
        known = {*made, *(leaf.name for leaf in leaves)}
        leaves += [Leaf(name, as_given((values or {})[name])) for name in sorted(used - known)]
        return replace(self, leaves=tuple(leaves), steps=tuple(steps))

    def needed(self, steps: Sequence[Step]) -> Program:
        """These steps and all steps that they depend on."""
        wanted = {name for step in steps for name in step.operands}
        kept = list(steps)
        for step in reversed(self.steps):
            if step not in kept and wanted & set(step.names):
                kept.append(step)
                wanted.update(step.operands)
        return self.only([step for step in self.steps if step in kept])

    def script(self) -> str:
        """The program as a Python script."""
        body = [step.line for step in self.steps]
        text = "\n".join(body)
        lines = ["import numpy as np", "import tensorken as tk"]
        found = [name for name in rules.NAMES if f"{name}(" in text]
        if found:
            lines.append(f"from core.tests.random_programs.rules import {', '.join(found)}")
        if any(re.search(r"\b(inf|nan)\b", leaf.text) for leaf in self.leaves):
            lines.append("from math import inf, nan")
        lines += [f"def f(xp, {', '.join(leaf.name for leaf in self.leaves)}):"]
        lines += [f"    {line}" for line in body]
        ends = self.ends
        lines += [f"    return {', '.join(ends)}{',' if len(ends) == 1 else ''}"]
        lines += [f"{leaf.name} = {leaf.text}" for leaf in self.leaves]
        return "\n".join(lines)


@functools.lru_cache(maxsize=4096)
def expression(text: str, names: tuple[str, ...]) -> Callable[..., Any]:
    """A printed expression, compiled to a function of `xp` and values."""
    scope = {name: getattr(rules, name) for name in rules.NAMES}
    return eval(
        f"lambda {', '.join(('xp', *names))}: {text}", {**scope, "np": np, "inf": math.inf, "nan": math.nan}
    )  # type: ignore[no-any-return]


def as_given(x: Any) -> Any:
    """A Python number as it is, anything else as an array."""
    return x if is_python(x) else np.asarray(x)


def listed(values: Array) -> str:
    """The values as nested lists, with the fewest digits that identify each number."""
    if kind(values) == "c" and values.ndim == 0:
        return f"complex({listed(values.real)}, {listed(values.imag)})"
    if kind(values) not in "fc":
        return str(values.tolist())
    if values.ndim == 0:
        return str(values[()]) if np.isfinite(values) else repr(float(values))
    return f"[{', '.join(listed(row) for row in values)}]"
