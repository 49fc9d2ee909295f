"""Workgroups: reductions and scans over the invocations of a workgroup.

Both combine numbers as a tree whose shape depends on the size of the workgroup only: first neighbours, then pairs of
neighbours, then fours.  Where the device has subgroups, invocations of a subgroup exchange their numbers directly, and
only the results of subgroups pass through workgroup memory.  The tree is the same without subgroups, and with
subgroups of every size, so the bits are too.  A scan is J. Sklansky's, "Conditional-sum addition logic", 1960: the
right half of each part of the tree gets the total of the left half.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from tensorken_wgpu.wgsl.ops import Accumulator
from tensorken_wgpu.wgsl.target import Target

if TYPE_CHECKING:
    from tensorken_wgpu.wgsl.writer import Writer

_LONG = ("f64", "i64")
"""The types of 64 bits, which devices with subgroups need not exchange."""

Combine = Callable[[Mapping[str, tuple[str, str]]], None]
"""Writes, for each number by its name, the first one combined with the second one, assigned to the first one."""


class Workgroup:
    """Writes the parts of a kernel that concern a whole workgroup, whose invocations all run them.

    Args:
        writer: of the kernel.
        size: the number of invocations, a power of two.
        target: the device.

    Attributes:
        declarations: of workgroup memory.
    """

    def __init__(self, writer: Writer, size: int, target: Target) -> None:
        self.declarations: list[str] = []
        self._writer = writer
        self._size = size
        self._target = target
        self._is_memory_used = False
        self._counts: Counter[int] = Counter()  # of reductions by subgroups, for each number of invocations

    def reduce(
        self,
        totals: Sequence[tuple[str, str]],
        combine: Combine,
        sharing: int | None = None,
        is_commutative: bool = True,
    ) -> None:
        """Combine numbers of neighbouring invocations; each invocation gets the result.

        Args:
            totals: the type and the name of each number, a variable.
            combine: combines two of each, of which the first one is assigned to.
            sharing: the number of invocations whose numbers are combined, a power of two; None for all.
            is_commutative: whether `combine` gives the same bits for exchanged operands.
        """
        sharing = self._size if sharing is None else sharing
        if self.exchanges:
            self._reduce_by_subgroups(totals, combine, sharing, is_commutative)
        else:
            self._reduce_in_memory(totals, combine, sharing)

    @property
    def exchanges(self) -> bool:
        """Whether numbers are combined by subgroups; then the first operands are the variables themselves."""
        return self._target.has_subgroups

    def _declare(self, name: str, type_name: str, size: int) -> str:
        declaration = f"var<workgroup> {name}: array<{type_name}, {size}>;"
        if declaration not in self.declarations:
            self.declarations.append(declaration)
        return name

    # ---- in workgroup memory -------------------------------------------------------------------------------

    def _reduce_in_memory(self, totals: Sequence[tuple[str, str]], combine: Combine, sharing: int) -> None:
        """The number of invocation i is written to the place whose bits are those of i in reverse.

        So the invocations that combine neighbours are the first ones, and read neighbouring places.
        """
        writer = self._writer
        if self._is_memory_used:
            writer.line("workgroupBarrier();")
        self._is_memory_used = True
        names = [
            self._declare(f"shared_{type_name}_{i}", type_name, self._size)
            for i, (type_name, _) in enumerate(totals)
        ]
        is_whole = sharing == self._size
        number = "l" if is_whole else writer.named(("number", sharing), f"l % {sharing}u")
        first = "0" if is_whole else f"l - {number}"
        place = f"{'' if is_whole else f'{first} + '}(reverseBits(l) >> {33 - sharing.bit_length()}u)"
        for name, (_, total) in zip(names, totals, strict=True):
            writer.line(f"{name}[{place}] = {total};")
        writer.line("workgroupBarrier();")
        s = writer.new_name()
        with writer.block(f"for (var {s} = {sharing // 2}u; {s} > 0u; {s} /= 2u)"):
            with writer.block(f"if ({number} < {s})"):
                combine(
                    {
                        total: (f"{name}[l]", f"{name}[l + {s}]")
                        for name, (_, total) in zip(names, totals, strict=True)
                    }
                )
            writer.line("workgroupBarrier();")
        for name, (_, total) in zip(names, totals, strict=True):
            writer.line(f"{total} = {name}[{first}];")

    # ---- by subgroups --------------------------------------------------------------------------------------

    def _reduce_by_subgroups(
        self, totals: Sequence[tuple[str, str]], combine: Combine, sharing: int, is_commutative: bool
    ) -> None:
        """Each subgroup combines its numbers; then the results of subgroups are read by all, and combined again.

        Small subgroups leave several results, which are combined in the same way.  The next reduction of as many
        invocations uses other memory, so that none overwrites a result that another one still has to read.
        """
        writer = self._writer
        self._combine_lanes(totals, combine, f"min(subgroup_size, {sharing}u)", is_commutative)
        key = f"{sharing}_{self._counts[sharing] % 2}"
        self._counts[sharing] += 1
        names = [
            self._declare(f"totals_{type_name}_{i}_{key}", type_name, self._size // 2)
            for i, (type_name, _) in enumerate(totals)
        ]
        begin, count = writer.new_name(), writer.new_name()
        subgroup, row, rows = "subgroup", "", ""
        if sharing < self._size:
            subgroup = f"subgroup % ({sharing}u / subgroup_size)"
            row, rows = f" + l / {sharing}u * {count}", f" * {self._size // sharing}u"
        writer.line(f"var {begin} = 0u;")
        with writer.block(
            f"for (var {count} = {sharing}u / subgroup_size; {count} > 1u; {count} /= subgroup_size)"
        ):
            number = subgroup if subgroup == "subgroup" else writer.named(("subgroup", count), subgroup)
            with writer.block(f"if (lane == 0u && {number} < {count})"):
                for name, (_, total) in zip(names, totals, strict=True):
                    writer.line(f"{name}[{begin}{row} + {number}] = {total};")
            writer.line("workgroupBarrier();")
            for name, (_, total) in zip(names, totals, strict=True):
                writer.line(f"{total} = {name}[{begin}{row} + l % {count}];")
            self._combine_lanes(totals, combine, f"min(subgroup_size, {count})", is_commutative)
            writer.line(f"{begin} += {count}{rows};")

    def _combine_lanes(
        self, totals: Sequence[tuple[str, str]], combine: Combine, lanes: str, is_commutative: bool
    ) -> None:
        """Combine the numbers of each part of a subgroup, of this many invocations; each of them gets the result.

        The first invocation of a part always has the number of the first operand, so if the order matters, the others
        get the result of the first one.
        """
        writer = self._writer
        d = writer.new_name()
        with writer.block(f"for (var {d} = 1u; {d} < {lanes}; {d} *= 2u)"):
            pairs = {}
            for type_name, total in totals:
                other = writer.new_name()
                writer.line(f"let {other} = {_shuffled(type_name, 'subgroupShuffleXor', total, d)};")
                pairs[total] = total, other
            combine(pairs)
        if not is_commutative:
            for type_name, total in totals:
                first = _shuffled(type_name, "subgroupShuffle", total, f"lane & (0u - {lanes})")
                writer.line(f"{total} = {first};")

    # ---- scans ---------------------------------------------------------------------------------------------

    def scan(self, accumulator: Accumulator, total: str, before: str) -> None:
        """Combine the number of each invocation with those of the invocations before it.

        Args:
            accumulator: how two numbers are combined.
            total: the name of the number, a variable.
            before: the name of the result, a new variable: the numbers before that of the invocation, combined.
        """
        writer, type_name = self._writer, accumulator.type
        shared = self._declare("scanned", type_name, self._size // 2 if self.exchanges else self._size)
        number, count, is_last = "l", f"{self._size}u", ""
        if self.exchanges:
            self._scan_lanes(accumulator, total)
            number, is_last = "subgroup", "lane == subgroup_size - 1u"
            count = f"{self._size}u / subgroup_size"
        with self._if(is_last):
            writer.line(f"{shared}[{number}] = {total};")
        writer.line("workgroupBarrier();")
        d = writer.new_name()
        with writer.block(f"for (var {d} = 1u; {d} < {count}; {d} *= 2u)"):
            with writer.block(f"if (({number} & {d}) != 0u)"):
                first = f"{shared}[({number} & (0u - {d})) - 1u]"
                writer.line(f"{total} = {accumulator.combine(first, total)};")
                with self._if(is_last):
                    writer.line(f"{shared}[{number}] = {total};")
            writer.line("workgroupBarrier();")
        writer.line(f"var {before}: {type_name} = {accumulator.start};")
        if self.exchanges:
            own = writer.new_name()
            writer.line(
                f"let {own} = {_shuffled(type_name, 'subgroupShuffle', total, 'max(lane, 1u) - 1u')};"
            )
            writer.line(f"if (lane > 0u) {{ {before} = {own}; }}")
            writer.line(f"else if (subgroup > 0u) {{ {before} = {shared}[subgroup - 1u]; }}")
        else:
            writer.line(f"if (l > 0u) {{ {before} = {shared}[l - 1u]; }}")

    def _scan_lanes(self, accumulator: Accumulator, total: str) -> None:
        """Combine the number of each invocation with those before it in its subgroup."""
        writer = self._writer
        d, last = writer.new_name(), writer.new_name()
        with writer.block(f"for (var {d} = 1u; {d} < min(subgroup_size, {self._size}u); {d} *= 2u)"):
            lane = f"((lane | {d}) & (0u - {d})) - 1u"  # the last one of the left half
            writer.line(f"let {last} = {_shuffled(accumulator.type, 'subgroupShuffle', total, lane)};")
            writer.line(f"if ((lane & {d}) != 0u) {{ {total} = {accumulator.combine(last, total)}; }}")

    def _if(self, condition: str) -> Any:
        """A block for the invocations of a condition, all of them for an empty one."""
        return self._writer.block(f"if ({condition})") if condition else nullcontext()


def _shuffled(type_name: str, function: str, x: str, lane: str) -> str:
    """The number of another invocation of the subgroup; numbers of 64 bits pass as two words."""
    if type_name not in _LONG:
        return f"{function}({x}, {lane})"
    words = [f"u64({function}(u32(bitcast<u64>({x}){shift}), {lane}))" for shift in ("", " >> 32u")]
    return f"bitcast<{type_name}>({words[0]} | ({words[1]} << 32u))"
