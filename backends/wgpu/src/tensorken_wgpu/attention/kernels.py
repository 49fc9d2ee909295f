"""Attention kernels: a contraction of a matrix of weights that are computed from scores, without either in memory.

The weights are an array over pairs of a *row*, such as a query, and a *key*; they are computed from *scores*, which
are contractions over features.  A workgroup owns a block of rows.  It goes through all keys, a block of them at a time:
it computes the scores of the block and from them the weights, and adds the products of the weights and the *values* of
these keys to its part of the result.

If the weights are a softmax of scores along the keys, their maximum and sum are not known before the last block.  So
the exponentials are of differences from the largest score so far; where a larger one is found, the sums up to there
are multiplied by the exponential of the difference.  The result is divided by the sum at the end.  Sources: M. Milakov
and N. Gimelshein, "Online normalizer calculation for softmax", 2018; T. Dao, D. Fu, S. Ermon, A. Rudra and C. Ré,
"FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness", 2022.

Workgroup memory holds vectors of four neighbouring rows, keys or columns, as in `blocks`: a slice of the features of
both operands of a score, or a slice of the values; the weights of a block, through which the invocations that share
rows exchange them; and the maxima and sums of rows over the keys of each invocation.  Where there is enough memory, the
rows are held for all features, and not loaded again for each block of keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensorken.kernels.element_indices import ElementIndex
from tensorken.kernels.index_expressions import IndexExpression, constant_index, variable
from tensorken_wgpu.attention.indices import (
    Attention,
    AttentionIndices,
    Score,
    Softmax,
    operand_indices,
)
from tensorken_wgpu.kernels.kernel import Kernel, kernel_template, workgroup_grid
from tensorken_wgpu.wgsl.ops import expressions, maxima, sums
from tensorken_wgpu.wgsl.templates import index_text, integer
from tensorken_wgpu.wgsl.writer import Writer

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable
    from tensorken_wgpu.wgsl.target import Target
    from tensorken_wgpu.wgsl.vectors import Vector

DEPTH = 32
"""The most features in a slice."""

VALUES = 512
"""The most vectors in a slice of the values."""

BARRIER = "workgroupBarrier();"


@dataclass(frozen=True, slots=True)
class Slices:
    """A dimension in slices.

    Attributes:
        count: of the slices.
        size: of a slice, a multiple of four; the last one may go beyond the dimension.
    """

    count: int
    size: int


@dataclass(frozen=True, slots=True)
class AttentionBlock:
    """The rows that a workgroup owns, and the keys that it computes at a time.

    Attributes:
        rows: of an invocation: 4 or 8.
        down: how many invocations have different rows, a power of two.
        across: how many invocations share rows, each with four keys, a power of two.
        holds_rows: whether the rows stay in workgroup memory.
    """

    rows: int
    down: int
    across: int
    holds_rows: bool = False

    def __str__(self) -> str:
        held = ", held" if self.holds_rows else ""
        return f"attention block {self.all_rows}x{self.keys} of {self.rows}x4{held}"

    @property
    def all_rows(self) -> int:
        """The number of rows."""
        return self.rows * self.down

    @property
    def keys(self) -> int:
        """The number of keys."""
        return 4 * self.across

    @property
    def workgroup_size(self) -> int:
        """The number of invocations."""
        return self.down * self.across

    @property
    def groups(self) -> int:
        """The number of groups of four rows."""
        return self.all_rows // 4

    def features(self, count: int) -> Slices:
        """The slices of this many features."""
        slices = -(-count // DEPTH)
        return Slices(slices, -(-count // (4 * slices)) * 4)

    def values(self, columns: int) -> Slices:
        """The slices of the keys of a block for values with this many columns."""
        size = self.keys
        while size > 4 and size * self.vectors_of_columns(columns) * self.across > VALUES:
            size //= 2
        return Slices(self.keys // size, size)

    def vectors_of_columns(self, columns: int) -> int:
        """The vectors of four columns of the result that an invocation computes for each of its rows."""
        return -(-columns // (4 * self.across))

    def accumulators(self, columns: int) -> int:
        """The numbers of the result that an invocation holds in registers."""
        return 4 * self.rows * self.vectors_of_columns(columns)

    def shared(self, attention: Attention, columns: int) -> dict[str, int]:
        """The arrays in workgroup memory, and the number of vectors of each."""
        slices = [self.features(score.features) for score in attention.scores]
        sizes = {"shared_rows": max([s.size for s in slices]) * self.groups}
        if self.holds_rows:
            sizes = {f"shared_rows{k}": s.count * s.size * self.groups for k, s in enumerate(slices)}
        values = self.values(columns).size * self.vectors_of_columns(columns) * self.across
        sizes["shared_tile"] = max([*[s.size * self.across for s in slices], values])
        sizes["shared_weights"] = self.keys * self.groups
        if attention.is_online:
            sizes["shared_parts"] = self.across * self.groups
        return sizes

    def shared_bytes(self, attention: Attention, columns: int) -> int:
        """The bytes of workgroup memory."""
        return 16 * sum(self.shared(attention, columns).values())


def _swizzled(place: str, number: str, count: int) -> str:
    """A place among this many, a power of two, exchanged with others in a way that depends on a number."""
    return f"(({place}) ^ (({number}) & {count - 1}u))"


_Line = Callable[[IndexExpression], ElementIndex]
"""A row, or a key, of an operand: from a feature or a column to the element."""


@dataclass(frozen=True, slots=True)
class _Four:
    """Four neighbouring indices along a dimension.

    Attributes:
        indices: each in range.
        conditions: for each index whether it was in range before; None if all are.
    """

    indices: list[IndexExpression]
    conditions: list[str] | None


class AttentionKernel:
    """Writes an attention kernel.

    Args:
        attention: to compute.
        producers: for each computed value its equation.
        block: of a workgroup.
        target: the device.
        vectors: the vectors in which values are read and written.
    """

    def __init__(
        self,
        attention: Attention,
        producers: Mapping[Variable, Equation],
        block: AttentionBlock,
        target: Target,
        vectors: Mapping[Variable, Vector] | None = None,
    ) -> None:
        self.attention = attention
        self.block = block
        self.features = [block.features(score.features) for score in attention.scores]
        computed = [*attention.equation.results, *[score.equation.results[0] for score in attention.scores]]
        if attention.softmax:
            computed += [attention.softmax.weights]
        self.online = attention.softmax if attention.is_online else None
        self.writer = Writer(producers, attention.sources, frozenset(computed), vectors, target)
        self.indices = AttentionIndices(attention, producers, self.writer)
        self.ops = expressions("float32")
        self.groups = block.groups
        self.mine = block.rows // 4  # groups of four rows of an invocation
        self.columns = block.vectors_of_columns(self.indices.size(self.indices.columns))
        self.width = self.columns * block.across  # vectors of a row of the result

    # ---- the kernel ----------------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        """Write the kernel.

        Raises:
            NotComputedHere: if the weights need elements that the kernel does not compute.
        """
        writer, indices = self.writer, self.indices
        rows, keys = indices.size(indices.rows), indices.size("inner")
        blocks = indices.size("batch") * -(-rows // self.block.all_rows)
        self._start(blocks)
        for k in range(len(self.features) if self.block.holds_rows else 0):
            self._copy_rows(k, constant_index(0), self.features[k].count)
        self._declare()
        name, count = writer.new_name(), -(-keys // self.block.keys)
        with writer.block(f"for (var {name} = 0u; {name} < {integer(count)}; {name} += 1u)"):
            self._add_block(variable(name, count))
        self._results()
        sizes = self.block.shared(self.attention, indices.size(indices.columns))
        shared = [f"var<workgroup> {name}: array<vec4<f32>, {size}>;" for name, size in sizes.items()]
        features = sum([score.features for score in self.attention.scores])
        return Kernel(
            kernel_template(writer, self.block.workgroup_size, shared),
            workgroup_grid(blocks),
            tuple(writer.reads),
            tuple(writer.writes),
            blocks * (keys + self.block.all_rows) * (features + indices.size(indices.columns)),
            (self.attention.equation,),
            is_proved=writer.is_proved,
        )

    def _start(self, blocks: int) -> None:
        """Write the head of the body: the block of the workgroup, and the rows of the invocation."""
        writer, block, indices = self.writer, self.block, self.indices
        writer.line("let q = w.x + w.y * n.x;")
        writer.line(f"if (q >= {integer(blocks)}) {{ return; }}")
        rows = indices.size(indices.rows)
        self.batch, tile = variable("q", blocks).divided(-(-rows // block.all_rows), writer)
        self.first = tile.times(block.all_rows)
        writer.line(f"let down = l / {block.across}u;")
        writer.line(f"let across = l % {block.across}u;")
        softmax = self.attention.softmax if self.attention.is_known else None
        for row in self._my_rows():  # what belongs to them is then known in the loops
            found = [
                indices.inside(indices.weight(self.batch, row, constant_index(key)))
                for key in range(2 if softmax else 1)
            ]
            places = [self._row_of(softmax, inside[softmax.x]) for inside in found] if softmax else []
            if softmax and places[0].key == places[1].key:  # else the keys have maxima and sums
                self._known_statistics(softmax, places[0])

    def _my_rows(self) -> list[IndexExpression]:
        """The rows of the invocation."""
        size = self.indices.size(self.indices.rows)
        fours = [self._four(self._row(h), size, self.block.all_rows) for h in range(self.mine)]
        return [row for four in fours for row in four.indices]

    def _declare(self) -> None:
        """Declare the sums of an invocation's part of the result, and the maximum and the sum of each row."""
        line, start = self.writer.line, sums("float32").start
        for i in range(self.block.rows):
            for v in range(self.columns):
                line(f"var result{i}_{v} = vec4<f32>({start});")
        if self.online:
            for h in range(self.mine):
                line(f"var maximum{h} = vec4<f32>({maxima('float32').start});")
            for i in range(self.block.rows):
                line(f"var total{i}: f32 = {start};")

    # ---- from memory to workgroup memory -------------------------------------------------------------------

    def _four(self, start: IndexExpression, size: int, block: int) -> _Four:
        """Four neighbouring indices, moved into a dimension of this size, which is divided into blocks of this size."""
        writer = self.writer
        if size % block == 0:
            return _Four([start.plus(e) for e in range(4)], None)
        if size % 4 == 0:
            four = start.over(4)
            name = writer.index(f"min({index_text(four)}, {integer(size // 4 - 1)})", size // 4)
            condition = f"{index_text(four)} < {integer(size // 4)}"
            return _Four([name.times(4).plus(e) for e in range(4)], [condition] * 4)
        numbers = [start.plus(e) for e in range(4)]
        clamped = [writer.index(f"min({index_text(i)}, {integer(size - 1)})", size) for i in numbers]
        return _Four(clamped, [f"{index_text(i)} < {integer(size)}" for i in numbers])

    @contextmanager
    def _units(self, count: int) -> Iterator[IndexExpression]:
        """A loop over units of work, which the invocations of the workgroup share."""
        name = self.writer.new_name()
        head = f"for (var {name} = l; {name} < {count}u; {name} += {self.block.workgroup_size}u)"
        with self.writer.block(head):
            yield variable(name, count)

    def _square(
        self,
        v: Variable,
        line_of: Callable[[IndexExpression], _Line],
        lines: _Four,
        numbers: _Four,
    ) -> list[list[str]]:
        """The elements of an operand at four lines and four numbers in each line; 0 where one is out of range."""
        places = [(line, number) for line in range(4) for number in range(4)]
        found = [line_of(line) for line in lines.indices]
        elements = self.writer.values(v, [found[line](numbers.indices[number]) for line, number in places])
        square: list[list[str]] = [[] for _ in range(4)]
        for (line, number), element in zip(places, elements, strict=True):
            conditions = [
                four.conditions[i] for four, i in ((lines, line), (numbers, number)) if four.conditions
            ]
            if conditions:
                element = f"select(0.0f, {element}, {' && '.join(conditions)})"
            square[line].append(element)
        return square

    def _operand(self, score: Score, number: int, row: IndexExpression, key: IndexExpression) -> _Line:
        """A row or a key of an operand of a score, as a function of the feature."""
        indices = self.indices
        inside = indices.inside(indices.weight(self.batch, row, key))
        element = inside[score.equation.results[0]]
        return lambda feature: operand_indices(score.equation, element, feature, self.writer)[number]

    def _copy_rows(self, k: int, first: IndexExpression, slices: int) -> None:
        """Copy some slices of the features of the operand of a score that has rows, from this feature on.

        Vectors are swizzled: an invocation transposes a square, and neighbouring ones have squares of other features,
        whose vectors would otherwise be in the same banks of the memory.
        """
        indices, writer = self.indices, self.writer
        score, zero = self.attention.scores[k], constant_index(0)
        fours = slices * self.features[k].size // 4
        with self._units(self.groups * fours) as unit:
            group, four = unit.divided(fours, writer)
            rows = self._four(self.first + group.times(4), indices.size(indices.rows), self.block.all_rows)
            square = self._square(
                score.equation.operands[score.of_rows],
                lambda row: self._operand(score, score.of_rows, row, zero),
                _Four(rows.indices, None),  # results of other rows are not used
                self._of_score(k, first + four.times(4)),
            )
            for c in range(4):
                vector = ", ".join([line[c] for line in square])
                start = index_text(four.times(4 * self.groups).plus(c * self.groups))
                place = _swizzled(index_text(group), index_text(four), self.groups)
                writer.line(f"{self._rows_of(k)}[{start} + {place}] = vec4<f32>({vector});")

    def _rows_of(self, k: int) -> str:
        """The array in workgroup memory with the rows of a score."""
        return f"shared_rows{k}" if self.block.holds_rows else "shared_rows"

    def _of_score(self, k: int, feature: IndexExpression) -> _Four:
        """Four features of a score from this one on."""
        slices = self.features[k]
        return self._four(feature, self.attention.scores[k].features, slices.count * slices.size)

    def _copy_keys(self, k: int, first: IndexExpression, block: IndexExpression) -> None:
        """Copy a slice of the features of the keys of a block, from this feature on; swizzled as rows are."""
        across, zero, score = self.block.across, constant_index(0), self.attention.scores[k]
        fours = self.features[k].size // 4
        with self._units(across * fours) as unit:
            group, four = unit.divided(fours, self.writer)
            square = self._square(
                score.equation.operands[1 - score.of_rows],
                lambda key: self._operand(score, 1 - score.of_rows, zero, key),
                _Four(self._keys(block, group).indices, None),  # weights of other keys are 0
                self._of_score(k, first + four.times(4)),
            )
            place = _swizzled(index_text(group), index_text(four), across)
            for c in range(4):
                vector = ", ".join([line[c] for line in square])
                start = index_text(four.times(4 * across).plus(c * across))
                self.writer.line(f"shared_tile[{start} + {place}] = vec4<f32>({vector});")

    def _copy_values(self, block: IndexExpression, first: IndexExpression) -> None:
        """Copy the values of a slice of the keys of a block, from this group of four keys on."""
        indices = self.indices
        groups = self.block.values(indices.size(indices.columns)).size // 4
        with self._units(groups * self.width) as unit:
            group, column = unit.divided(self.width, self.writer)
            square = self._square(
                self.attention.values,
                lambda key: lambda column: indices.value(self.batch, key, column),
                self._keys(block, first + group),
                _Four(self._columns(column).indices, None),  # results of other columns are not used
            )
            for e in range(4):
                place = index_text(group.times(4 * self.width).plus(e * self.width) + column)
                self.writer.line(f"shared_tile[{place}] = vec4<f32>({', '.join(square[e])});")

    def _keys(self, block: IndexExpression, group: IndexExpression) -> _Four:
        """Four keys of a block."""
        start = block.times(self.block.keys) + group.times(4)
        return self._four(start, self.indices.size("inner"), self.block.keys)

    def _columns(self, vector: IndexExpression) -> _Four:
        """Four columns of the result."""
        return self._four(vector.times(4), self.indices.size(self.indices.columns), 4 * self.width)

    # ---- a block of keys -----------------------------------------------------------------------------------

    def _add_block(self, block: IndexExpression) -> None:
        """Add the products of the weights and values of a block of keys.

        A barrier before a copy waits for the reads of the slice that it replaces.
        """
        writer = self.writer
        for k, slices in enumerate(self.features):
            for i in range(self.block.rows):
                writer.line(f"var score{k}_{i} = vec4<f32>({sums('float32').start});")
            with self._slices(slices.count) as number:
                writer.line(BARRIER)
                if not self.block.holds_rows:
                    self._copy_rows(k, number.times(slices.size), 1)
                self._copy_keys(k, number.times(slices.size), block)
                writer.line(BARRIER)
                self._add_slice(k, number)
        weights = self._weights(self._my_rows(), self._keys(block, variable("across", self.block.across)))
        for h in range(self.mine):
            for e in range(4):
                vector = ", ".join([weights[4 * h + i][e] for i in range(4)])
                place = _swizzled(self._group(h), "across", self.groups)
                start = f"across * {4 * self.groups}u + {e * self.groups}u"
                writer.line(f"shared_weights[{start} + {place}] = vec4<f32>({vector});")
        slices = self.block.values(self.indices.size(self.indices.columns))
        with self._slices(slices.count) as number:
            if slices.count > 1 or not self.online:  # else there was one since the scores
                writer.line(BARRIER)
            self._copy_values(block, number.times(slices.size // 4))
            writer.line(BARRIER)
            self._multiply(number.times(slices.size // 4), slices.size // 4)

    @contextmanager
    def _slices(self, count: int) -> Iterator[IndexExpression]:
        """A loop over slices, or a single one."""
        if count == 1:
            yield constant_index(0)
            return
        name = self.writer.new_name()
        with self.writer.block(f"for (var {name} = 0u; {name} < {count}u; {name} += 1u)"):
            yield variable(name, count)

    def _row(self, group: int) -> IndexExpression:
        """The first row of one of the invocation's groups of four."""
        down = variable("down", self.block.down).times(self.block.rows)
        return self.first + down.plus(4 * group)

    def _group(self, group: int) -> str:
        """The number of one of the invocation's groups of four rows among those of the block."""
        return index_text(variable("down", self.block.down).times(self.mine).plus(group))

    def _add_slice(self, k: int, number: IndexExpression) -> None:
        """Add the products of a slice of features to the scores of the invocation's rows and keys."""
        writer, across, groups, size = self.writer, self.block.across, self.groups, self.features[k].size
        first = number.times(size // 4) if self.block.holds_rows else constant_index(0)
        f = writer.new_name()
        with writer.block(f"for (var {f} = 0u; {f} < {size // 4}u; {f} += 1u)"):
            of_keys = writer.named(("keys", k), f"{f} * {4 * across}u + {_swizzled('across', f, across)}")
            four = writer.named(("four", k), index_text(first + variable(f, size // 4)))
            of_rows = [
                writer.named(
                    ("rows", k, h), f"{four} * {4 * groups}u + {_swizzled(self._group(h), four, groups)}"
                )
                for h in range(self.mine)
            ]
            for c in range(4):
                keys = writer.named(("keys", k, c), f"shared_tile[{of_keys} + {c * across}u]")
                for h, start in enumerate(of_rows):
                    rows = writer.named(("rows", k, c, h), f"{self._rows_of(k)}[{start} + {c * groups}u]")
                    for e in range(4):
                        total = f"score{k}_{4 * h + e}"
                        writer.line(f"{total} = fma(vec4<f32>({rows}.{'xyzw'[e]}), {keys}, {total});")

    def _weights(self, rows: Sequence[IndexExpression], keys: _Four) -> list[list[str]]:
        """The weights of the invocation's rows and keys; 0 for keys out of range."""
        writer, attention, softmax = self.writer, self.attention, self.attention.softmax
        weight_indices = [[self.indices.weight(self.batch, row, key) for key in keys.indices] for row in rows]
        inside = [[self.indices.inside(index) for index in of_row] for of_row in weight_indices]
        for k, score in enumerate(attention.scores):
            v = score.equation.results[0]
            finish = sums(v.dtype.name).finish
            for i, of_row in enumerate(inside):
                for e, found in enumerate(of_row):
                    name = writer.named(("score", k, i, e), finish(f"score{k}_{i}.{'xyzw'[e]}"))
                    writer.define(v, found[v].linear, name)
        if softmax:
            make = self._known_weights if attention.is_known else self._exponentials
            for of_row, names in zip(inside, make(softmax, inside, keys), strict=True):
                for found, name in zip(of_row, names, strict=True):
                    writer.define(softmax.weights, found[softmax.weights].linear, name)
        weights = [writer.values(attention.weights, of_row) for of_row in weight_indices]
        return [[self._if_key(keys, e, name, "0.0f") for e, name in enumerate(names)] for names in weights]

    def _if_key(self, keys: _Four, e: int, name: str, other: str) -> str:
        """A number, or another one if the key is out of range."""
        return f"select({other}, {name}, {keys.conditions[e]})" if keys.conditions else name

    def _exponentials(
        self, softmax: Softmax, inside: Sequence[Sequence[Mapping[Variable, ElementIndex]]], keys: _Four
    ) -> list[list[str]]:
        """The exponentials of the differences from the new maxima; sums and results are brought to these."""
        writer, ops, least = self.writer, self.ops, maxima("float32").start
        start = sums("float32").start
        scores = [writer.values(softmax.x, [found[softmax.x] for found in of_row]) for of_row in inside]
        for h in range(self.mine):
            largest = []
            for names in scores[4 * h : 4 * h + 4]:
                a, b, c, d = [self._if_key(keys, e, name, least) for e, name in enumerate(names)]
                largest.append(f"max(max({a}, {b}), max({c}, {d}))")
            writer.line(f"{self._part(h)} = vec4<f32>({', '.join(largest)});")
        writer.line(BARRIER)
        exponentials = []
        for h in range(self.mine):
            name = writer.new_name()
            writer.line(f"var {name} = maximum{h};")
            for number in range(self.block.across):
                writer.line(f"{name} = max({name}, {self._part(h, number)});")
            for e in range(4):
                i, old, new = 4 * h + e, f"maximum{h}.{'xyzw'[e]}", f"{name}.{'xyzw'[e]}"
                base = new
                if not softmax.shares_infinities:
                    base = writer.named(("base", i), ops["where"](ops["eq"](new, least), start, new))
                factor = writer.named(("factor", i), self._exponential(softmax, old, new, base))
                names = [
                    writer.named(("exponential", i, x), self._exponential(softmax, x, new, base))
                    for x in scores[i]
                ]
                exponentials.append(names)
                terms = [self._if_key(keys, number, x, "0.0f") for number, x in enumerate(names)]
                writer.line(
                    f"total{i} = total{i} * {factor} + (({terms[0]} + {terms[1]}) + ({terms[2]} + {terms[3]}));"
                )
                for v in range(self.columns):
                    writer.line(f"result{i}_{v} = result{i}_{v} * {factor};")
            writer.line(f"maximum{h} = {name};")
        return exponentials

    def _known_weights(
        self, softmax: Softmax, inside: Sequence[Sequence[Mapping[Variable, ElementIndex]]], keys: _Four
    ) -> list[list[str]]:
        """The softmax, from the maximum and the sum of each row in memory."""
        writer, ops = self.writer, self.ops
        weights = []
        for of_row in inside:
            indices = [found[softmax.x] for found in of_row]
            names = []
            for x, index in zip(writer.values(softmax.x, indices), indices, strict=True):
                maximum, reciprocal = self._known_statistics(softmax, self._row_of(softmax, index))
                y = self._exponential(softmax, x, maximum, maximum)
                names.append(writer.named(("weight", index.key), ops["mul"](y, reciprocal)))
            weights.append(names)
        return weights

    def _exponential(self, softmax: Softmax, x: str, maximum: str, base: str) -> str:
        """The exponential of the difference from a base, which is the maximum, or 0 if that is -infinity."""
        ops = self.ops
        y = ops["exp"](ops["sub"](x, base))
        return ops["where"](ops["eq"](x, maximum), "1.0f", y) if softmax.shares_infinities else y

    def _known_statistics(self, softmax: Softmax, row: IndexExpression) -> tuple[str, str]:
        """The maximum of a row, and the reciprocal of its sum, from memory."""
        writer = self.writer
        maximum, total = [
            writer.value(v, writer.element(v.shape, row)) for v in (softmax.maximum, softmax.total)
        ]
        return maximum, writer.named(("reciprocal", row.key), self.ops["div"]("1.0f", total))

    def _row_of(self, softmax: Softmax, x: ElementIndex) -> IndexExpression:
        """The row-major index of the row of an element of the softmax's operand."""
        shape = [1 if axis in softmax.axes else n for axis, n in enumerate(softmax.x.shape)]
        return x.before_expand(shape).linear

    def _part(self, group: int, across: int | None = None) -> str:
        """The part of an invocation, or of the one with this number across, of a number for each row of a group."""
        number = "across" if across is None else f"{across}u"
        rows = variable("down", self.block.down).times(self.mine).plus(group).times(self.block.across)
        return f"shared_parts[{index_text(rows)} + {number}]"

    def _multiply(self, first: IndexExpression, count: int) -> None:
        """Add the products of weights and values in workgroup memory.

        Args:
            first: the first group of four keys of the slice.
            count: of its groups.
        """
        writer, groups, width, across = self.writer, self.groups, self.width, self.block.across
        g = writer.new_name()
        with writer.block(f"for (var {g} = 0u; {g} < {count}u; {g} += 1u)"):
            group = writer.named(("group", g), index_text(first + variable(g, count)))
            for e in range(4):
                values = [
                    writer.named(
                        ("values", e, v),
                        f"shared_tile[{g} * {4 * width}u + {e * width + v * across}u + across]",
                    )
                    for v in range(self.columns)
                ]
                for h in range(self.mine):
                    place = writer.named(("place", h), _swizzled(self._group(h), group, groups))
                    weights = writer.named(
                        ("weights", e, h),
                        f"shared_weights[{group} * {4 * groups}u + {e * groups}u + {place}]",
                    )
                    for i in range(4):
                        for v, vector in enumerate(values):
                            total = f"result{4 * h + i}_{v}"
                            writer.line(
                                f"{total} = fma(vec4<f32>({weights}.{'xyzw'[i]}), {vector}, {total});"
                            )

    # ---- results -------------------------------------------------------------------------------------------

    def _results(self) -> None:
        """Divide by the sums of the rows, and store."""
        writer, softmax, indices = self.writer, self.online, self.indices
        totals = self._totals(softmax) if softmax else None
        (v,), result = self.attention.equation.results, self.attention.results[0]
        finish = sums(v.dtype.name).finish
        size = indices.size(indices.columns)
        step = 4 if size % 4 == 0 else 1
        for h in range(self.mine):
            rows = self._four(self._row(h), indices.size(indices.rows), self.block.all_rows)
            for e, row in enumerate(rows.indices):
                i = 4 * h + e
                with self._if(rows.conditions[e] if rows.conditions else ""):
                    if softmax and totals and self.attention.is_stored:
                        with self._if("across == 0u"):
                            self._store_statistics(softmax, row, f"maximum{h}.{'xyzw'[e]}", totals[i])
                    for number in range(self.columns):
                        vector = variable("across", self.block.across).plus(number * self.block.across)
                        columns = self._columns(vector)
                        places = [
                            writer.element(v.shape, indices.result(self.batch, row, column))
                            for column in columns.indices
                        ]
                        for place, name in zip(places, "xyzw", strict=True):
                            element = f"result{i}_{number}.{name}"
                            if totals:
                                element = self.ops["div"](element, totals[i])
                            writer.define(v, place.linear, writer.bind(finish(element), v.dtype))
                        elements = writer.values(
                            result, [writer.element(result.shape, place.linear) for place in places]
                        )
                        for c in range(0, 4, step):
                            with self._if(columns.conditions[c] if columns.conditions else ""):
                                writer.store(
                                    result,
                                    [(places[j].linear, elements[j]) for j in range(c, c + step)],
                                )

    @contextmanager
    def _if(self, condition: str) -> Iterator[None]:
        """A block for a condition, if there is one."""
        if condition:
            with self.writer.block(f"if ({condition})"):
                yield
        else:
            yield

    def _totals(self, softmax: Softmax) -> list[str]:
        """The names of the sums of the invocation's rows, over all keys."""
        writer, ops = self.writer, self.ops  # the maxima in the same memory were read before a barrier
        for h in range(self.mine):
            parts = ", ".join([f"total{4 * h + e}" for e in range(4)])
            writer.line(f"{self._part(h)} = vec4<f32>({parts});")
        writer.line(BARRIER)
        totals = []
        for h in range(self.mine):
            name = writer.new_name()
            writer.line(f"var {name} = {self._part(h, 0)};")
            for number in range(1, self.block.across):
                writer.line(f"{name} += {self._part(h, number)};")
            for e in "xyzw":
                total = f"{name}.{e}"
                if not softmax.shares_infinities:
                    is_least = ops["eq"](f"maximum{h}.{e}", maxima("float32").start)
                    total = ops["where"](is_least, "nan()", total)
                totals.append(writer.named(("total", h, e), total))
        return totals

    def _store_statistics(self, softmax: Softmax, row: IndexExpression, maximum: str, total: str) -> None:
        """Store the maximum and the sum of a row."""
        inside = self.indices.inside(self.indices.weight(self.batch, row, constant_index(0)))
        place = self._row_of(softmax, inside[softmax.x])
        for v, number in ((softmax.maximum, maximum), (softmax.total, total)):
            self.writer.store(v, [(place, sums(v.dtype.name).finish(number))])
