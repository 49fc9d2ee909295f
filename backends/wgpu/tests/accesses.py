"""Accesses: how often a kernel reads or writes each element of a value, counted in its text."""

from __future__ import annotations

import re
from math import ceil, prod
from typing import Any

_LOOP = re.compile(r"for \(var \w+ = (\w+); \w+ < #u(\d+)#; \w+ \+= (\d+)u\) \{")


def accesses(kernel: Any, value: Any) -> float:
    """The number of elements of a value that the invocations of a kernel read, or write, for each element."""
    bound = {v: f"x{i}" for i, v in enumerate(kernel.reads)} | {
        v: f"y{i}" for i, v in enumerate(kernel.writes)
    }
    name = bound.get(value)
    return 0.0 if name is None else _accesses(kernel, name) / prod(value.shape)


def _accesses(kernel: Any, name: str) -> int:
    text = kernel.template
    size = 4 if f" {name}: array<vec4<" in text else 1
    total, repeats = 0, [1]
    for line in text[text.index("fn main") :].splitlines():
        single = len(re.findall(rf"\b{name}\[[^\]]*\]\[", line))
        total += repeats[-1] * (size * len(re.findall(rf"\b{name}\[", line)) - (size - 1) * single)
        if line.endswith("{"):
            loop = _LOOP.search(line)
            repeats.append(repeats[-1] * (ceil(int(loop[2]) / int(loop[3])) if loop else 1))
        elif line.strip() == "}":
            repeats.pop()
    workgroup = re.search(r"workgroup_size\((\d+)\)", text)
    assert workgroup is not None
    return total * int(workgroup[1]) * prod(kernel.workgroups)
