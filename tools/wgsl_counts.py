"""Count what the invocations of a WGSL kernel do, from its text: accesses of memory, multiply-adds, barriers.

The integers of the text are computed for all invocations of the first workgroup at once, so that each `if` and each
loop counts for those invocations that run it.  A loop whose counter is added to is counted for the first iteration,
which stands for all but the last one, and for the last one; a loop whose counter is multiplied or divided is followed.
Conditions on elements count as true.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from tensorken_wgpu.device.limits import bytes_of, workgroup_bytes

Array = np.ndarray[Any, Any]

_MEMORY = re.compile(r"var<storage, \w+> (\w+): array<(.+)>;")
_SHARED = re.compile(r"var<workgroup> (\w+): array<(.+), \d+>;")
_FOR = re.compile(r"for \(var (\w+) = (.+); (.+); \w+ (\+|\*|/)= (.+)\) \{")
_IF = re.compile(r"(else )?if \((.*)\) \{")
_SHORT_IF = re.compile(r"((?:else )?if \(.*\) \{) (.*) \}")
_ASSIGNED = re.compile(r"(?:let |var )?(\w+)(?:: [\w<>]+)? (\+|\*|/|)= (.*);")
_SUM_OF_PRODUCT = re.compile(r"(\w+) = \1 \+ \w+ \* \w+;")


@dataclass(slots=True)
class Counts:
    """The sums over all invocations of a workgroup.

    Attributes:
        size: the invocations of a workgroup.
        workgroup_memory: bytes that they share.
        loads: bytes read from memory.
        stores: bytes written to memory.
        shared_reads: accesses of workgroup memory that read, each of a number or a vector.
        shared_writes: those that write.
        multiply_adds: of numbers, those of vectors count four times.
        exchanges: numbers that invocations of a subgroup get from each other.
        barriers: those that an invocation waits at, all of them the same.
    """

    size: int
    workgroup_memory: int
    loads: float = 0.0
    stores: float = 0.0
    shared_reads: float = 0.0
    shared_writes: float = 0.0
    multiply_adds: float = 0.0
    exchanges: float = 0.0
    barriers: float = 0.0


@dataclass(slots=True)
class _Block:
    """A statement with a block; a block without one has an empty head."""

    head: str
    body: list[_Block | str] = field(default_factory=list)


def counts_of(text: str, workgroups: Sequence[int], subgroup_size: int) -> Counts:
    """The counts of a kernel with its numbers in the text.

    Args:
        text: the module.
        workgroups: their number along three axes.
        subgroup_size: of the device.

    >>> text = '''
    ... @group(0) @binding(1) var<storage, read> x0: array<vec4<f32>>;
    ... @compute @workgroup_size(64)
    ... fn main(@builtin(local_invocation_index) l: u32) {
    ...   for (var v1 = l; v1 < 256u; v1 += 64u) {
    ...     let v2 = x0[v1];
    ...   }
    ...   if (l < 8u) {
    ...     let v3 = x0[l];
    ...   }
    ... }'''
    >>> counts_of(text, (1, 1, 1), 32).loads / 16
    264.0
    """
    match = re.search(r"@workgroup_size\((\d+)\)", text)
    if match is None:
        raise ValueError("counts_of: the text has no @workgroup_size")
    size = int(match[1])
    lines = iter(text[text.index("{", text.index("fn main(")) + 1 :].splitlines())
    counts = Counts(size, workgroup_bytes(text))
    sizes = {name: bytes_of(type_name) for name, type_name in _MEMORY.findall(text)}
    shared = frozenset([name for name, _ in _SHARED.findall(text)])
    l = np.arange(size)
    zero = np.zeros(size, int)
    values: dict[str, Any] = {
        "l": l,
        "g": SimpleNamespace(x=l, y=zero, z=zero),
        "w": SimpleNamespace(x=zero, y=zero, z=zero),
        "n": SimpleNamespace(x=workgroups[0], y=workgroups[1], z=workgroups[2]),
        "subgroup_size": subgroup_size,
        "subgroup": l // subgroup_size,
        "lane": l % subgroup_size,
    }
    _Counting(counts, sizes, shared, values).run(_parsed(lines), np.ones(size))
    return counts


def _parsed(lines: Any) -> list[_Block | str]:
    """The statements up to the brace that closes them."""
    found: list[_Block | str] = []
    for line in lines:
        text = line.strip()
        if text == "}":
            break
        if text.endswith("{"):
            found.append(_Block(text, _parsed(lines)))
        elif short := _SHORT_IF.fullmatch(text):
            found.append(_Block(short[1], [short[2]]))
        elif text:
            found.append(text)
    return found


class _Counting:
    """Goes through statements.

    Args:
        counts: to add to.
        sizes: the bytes of an access of each array in memory.
        shared: the arrays in workgroup memory.
        values: the integers that are known, of all invocations.
    """

    def __init__(
        self, counts: Counts, sizes: Mapping[str, int], shared: frozenset[str], values: dict[str, Any]
    ) -> None:
        self._counts = counts
        self._sizes = sizes
        self._shared = shared
        self._values = values

    def run(self, statements: Sequence[_Block | str], times: Array) -> None:
        """Count statements that each invocation runs so many times."""
        others = times
        for statement in statements:
            if isinstance(statement, str):
                self._count(statement, times)
            elif loop := _FOR.fullmatch(statement.head):
                self._loop(statement.body, times, *loop.groups())
            elif branch := _IF.fullmatch(statement.head):
                is_else, condition = branch.groups()
                given = others if is_else else times
                value = self._value(condition)
                taken = given if value is None else given * np.asarray(value, bool)
                others = given - taken
                if statement.body == ["return;"]:
                    times = times - taken if value is not None else times
                elif statement.body != ["break;"]:
                    self.run(statement.body, taken)
            else:
                self.run(statement.body, times)

    def _loop(
        self,
        body: Sequence[_Block | str],
        times: Array,
        name: str,
        start: str,
        condition: str,
        operator: str,
        step: str,
    ) -> None:
        self._values[name] = first = self._known(start)
        if operator == "+":
            end = self._known(condition.removeprefix(f"{name} < "))
            iterations = np.maximum(-(-(end - first) // self._known(step)), 0)
            self.run(body, times * np.maximum(iterations - 1, 0))
            self._values[name] = first + (iterations - 1) * self._known(step)
            self.run(body, times * (iterations > 0))
            return
        while np.any(running := times * np.asarray(self._known(condition), bool)):
            self.run(body, running)
            self._values[name] = self._known(f"{name} {operator} {step}")

    def _count(self, line: str, times: Array) -> None:
        counts, total = self._counts, float(times.sum())
        target, _, value = line.partition(" = ")
        stored = re.match(r"(\w+)\[", target) if value else None
        read = value if stored else line
        if stored and stored[1] in self._shared:
            counts.shared_writes += total
        elif stored and stored[1] in self._sizes:
            counts.stores += total * self._sizes[stored[1]]
        for name in re.findall(r"(\w+)\[", read):
            if name in self._shared:
                counts.shared_reads += total
            elif name in self._sizes:
                counts.loads += total * self._sizes[name]
        counts.exchanges += total * read.count("subgroupShuffle")
        counts.barriers += float(times.max()) * read.count("workgroupBarrier")
        counts.multiply_adds += total * _multiply_adds(line)
        if assigned := _ASSIGNED.fullmatch(line):
            name, operator, text = assigned.groups()
            found = self._value(f"{name} {operator} ({text})" if operator else text)
            if found is None:
                self._values.pop(name, None)
            else:
                self._values[name] = found

    def _known(self, text: str) -> Any:
        value = self._value(text)
        if value is None:
            raise ValueError(f"counts_of: {text} is not known, so a loop cannot be counted")
        return value

    def _value(self, text: str) -> Any:
        """The integers, or the truth, of an expression; None if it depends on elements."""
        python = re.sub(r"\b(\d+)u\b", r"\1", text).replace("/", "//")
        python = python.replace("&&", ") & (").replace("||", ") | (")
        try:
            return eval(f"({python})", {"__builtins__": {}}, {**_FUNCTIONS, **self._values})
        except (NameError, SyntaxError, TypeError, AttributeError):
            return None


_FUNCTIONS: Mapping[str, Any] = {
    "min": np.minimum,
    "max": np.maximum,
    "select": lambda a, b, condition: np.where(condition, b, a),
}


def _multiply_adds(text: str) -> int:
    vectors = text.count("fma(vec4<")
    return 3 * vectors + text.count("fma(") + bool(_SUM_OF_PRODUCT.fullmatch(text))
