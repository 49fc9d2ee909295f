"""Workgroup memory: the invocations that share a row merge their states there, always in the same order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tensorken.kernels.index_expressions import IndexExpression
from tensorken_wgpu.kernels.accumulations import Accumulation
from tensorken_wgpu.kernels.layouts import Layout
from tensorken_wgpu.kernels.workgroups import Workgroup
from tensorken_wgpu.wgsl.dtypes import SIZES
from tensorken_wgpu.wgsl.ops import TYPES
from tensorken_wgpu.wgsl.target import Target
from tensorken_wgpu.wgsl.templates import index_text
from tensorken_wgpu.wgsl.writer import Writer

MAX_DIRECT = 8
"""The most states that each invocation merges; more are merged in two steps."""

State = tuple[Accumulation, Sequence[str]]
"""An accumulation, and the variables of its state."""


class WorkgroupMemory:
    """Writes the parts of a kernel that use the memory of a workgroup.

    It has two halves, which are used in turn: one may still be read while the other is written, so that no barrier
    is needed before.

    Args:
        writer: of the kernel.
        layout: of its rows.
        target: the device.
        accumulations: of the kernel.
    """

    def __init__(
        self, writer: Writer, layout: Layout, target: Target, accumulations: Sequence[Accumulation]
    ) -> None:
        self._writer = writer
        self._layout = layout
        self._workgroup = Workgroup(writer, layout.invocations, target)
        types = {dtype for a in accumulations for dtype in a.dtypes}
        # bytes of one type of an invocation in a half
        self._bytes = target.workgroup_memory // (2 * layout.invocations * max(len(types), 1))
        self._arrays: dict[str, None] = {}
        self._batches = 0

    @property
    def declarations(self) -> list[str]:
        """The declarations of the arrays that are used so far."""
        return [*self._arrays, *self._workgroup.declarations]

    def combine(self, states: Sequence[State], slot: IndexExpression) -> None:
        """Merge the states of the invocations that share a row; then all of them have the result.

        Args:
            states: to merge; as many at once as the memory has.
            slot: the index of the invocation among those that share the row.
        """
        if self._layout.sharing == 1:
            return
        if self._workgroup.exchanges and not self._layout.is_across:  # neighbours share a row
            self._exchange(states)
            return
        batches: list[list[State]] = [[]]
        size = 0
        for a, state in states:
            more = sum([SIZES[dtype] for dtype in a.dtypes])
            if batches[-1] and size + more > self._bytes:
                batches.append([])
                size = 0
            batches[-1].append((a, state))
            size += more
        for batch in batches:
            self._combine(batch, slot)

    def _exchange(self, states: Sequence[State]) -> None:
        """Merge all states at once by subgroups."""

        def merge(pairs: Mapping[str, tuple[str, str]]) -> None:
            for a, state in states:
                a.merge(state, [[pairs[part][1] for part in state]])

        parts = [
            (TYPES[dtype], part) for a, state in states for dtype, part in zip(a.dtypes, state, strict=True)
        ]
        self._workgroup.reduce(parts, merge, self._layout.sharing, is_commutative=False)

    def _combine(self, states: Sequence[State], slot: IndexExpression) -> None:
        """Some invocations merge some of the states each; then all merge these results: few barriers are needed."""
        layout, writer = self._layout, self._writer
        sharing, half = layout.sharing, self._batches % 2
        self._batches += 1
        arrays = [
            [self._array(TYPES[dtype], (half, i, c)) for c, dtype in enumerate(a.dtypes)]
            for i, (a, _) in enumerate(states)
        ]
        stride = layout.rows if layout.is_across else 1
        self._put(states, arrays)
        writer.line("workgroupBarrier();")
        left = sharing
        if sharing > MAX_DIRECT:
            left = 1 << (sharing.bit_length() - 1) // 2
            with writer.block(f"if ({index_text(slot)} < {left}u)"):
                for (a, state), names in zip(states, arrays, strict=True):
                    _merge(a, state, names, "l", sharing // left, left * stride)
                self._put(states, arrays)
            writer.line("workgroupBarrier();")
        first = writer.named(
            "first", f"l % {layout.rows}u" if layout.is_across else f"l - {index_text(slot)}"
        )
        for (a, state), names in zip(states, arrays, strict=True):
            for part, name in zip(state, names, strict=True):
                writer.line(f"{part} = {name}[{first}];")
            _merge(a, state, names, first, left, stride)

    def _put(self, states: Sequence[State], arrays: Sequence[Sequence[str]]) -> None:
        for (_, state), names in zip(states, arrays, strict=True):
            for part, name in zip(state, names, strict=True):
                self._writer.line(f"{name}[l] = {part};")

    def _array(self, type_name: str, key: tuple[int, ...]) -> str:
        """The name of an array with an element for each invocation."""
        name = "_".join(["shared", type_name, *map(str, key)])
        self._arrays[f"var<workgroup> {name}: array<{type_name}, {self._layout.invocations}>;"] = None
        return name


def _merge(
    a: Accumulation, state: Sequence[str], names: Sequence[str], first: str, count: int, step: int
) -> None:
    """Merge this many states of the arrays, except the first, which the variables have."""
    a.merge(state, [[f"{name}[{first} + {s * step}u]" for name in names] for s in range(1, count)])
