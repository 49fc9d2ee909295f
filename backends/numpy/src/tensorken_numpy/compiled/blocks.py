"""Write a fusion group: a loop that runs all equations on one block of the elements before the next."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorken_core.language.dtypes import exact
from tensorken_numpy.arrays import Array, Sizes
from tensorken_numpy.clamping import SMALL_SIZE, slow_with_scalar
from tensorken_numpy.compiled import layouts
from tensorken_numpy.compiled.emitter import Emitter
from tensorken_numpy.compiled.equations import write_equation
from tensorken_numpy.compiled.lifetimes import equations_of
from tensorken_numpy.compiled.memory import CACHE_LINE
from tensorken_numpy.compiled.predicates import is_literal
from tensorken_numpy.compiled.schedule import BLOCK_SIZE, REDUCTIONS, ROW_OPS, FusionGroup
from tensorken_numpy.compiled.templates import safe_in_place, template
from tensorken_numpy.compiled.values import Value, in_memory
from tensorken_numpy.compiled.writing import (
    mask_dtype,
    uses_masks,
    with_filled_numbers,
    write_steps,
    write_sum,
    write_where,
    write_where_constant,
)
from tensorken_numpy.exponential_sums import log_softmax_of_rows, logsumexp_of_rows, softmax_of_rows
from tensorken_numpy.sums import BLAS_MIN_SIZE, dtype_of_sums

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable

MAX_TRANSPOSED = 256
"""The most elements taken from a transposed array along its contiguous axis before the next row."""

_REDUCE: dict[str, Any] = {
    "prod": np.multiply.reduce,
    "max": np.maximum.reduce,
    "min": np.minimum.reduce,
}

_ROW_FUNCTIONS: dict[str, Any] = {
    "softmax": softmax_of_rows,
    "log_softmax": log_softmax_of_rows,
    "logsumexp": logsumexp_of_rows,
}


def write_group(emitter: Emitter, group: FusionGroup) -> None:
    """Write the loop over blocks; values that the rest of the program needs are written into full-size arrays."""
    equations = equations_of(group)
    if len(equations) == 1 and _is_one_call(equations[0]) and not _is_transposed(emitter, equations[0]):
        write_equation(emitter, equations[0])
    else:
        _BlockLoop(emitter, group).write()


def _is_transposed(emitter: Emitter, equation: Equation) -> bool:
    return bool(_transposed_axes([emitter.value(v).layout for v in equation.operands]))


def _is_one_call(equation: Equation) -> bool:
    """Whether one call on whole arrays is as good as one call per block."""
    steps = template(equation.op.name, [_dtype(x) for x in equation.operands], [None, None])
    if steps is None or len(steps) > 1:
        return steps is None
    ufunc, _, inputs = steps[0]
    numbers = any([not isinstance(x, str) for x in inputs]) or any([is_literal(x) for x in equation.operands])
    return not (numbers and slow_with_scalar(ufunc, _dtype(equation.results[0])))


class _BlockLoop:
    """The loop of one group.

    Adjacent axes are merged if every array of the group has both or repeats both, so that blocks can be cut evenly.
    """

    def __init__(self, emitter: Emitter, group: FusionGroup) -> None:
        self.emitter = emitter
        self.source = emitter.source
        self.group = group
        self.equations = equations_of(group)
        inside = dict.fromkeys([v for e in self.equations for v in e.results])
        self.inputs = list(
            dict.fromkeys(
                [v for e in self.equations for v in e.operands if v not in inside and not is_literal(v)]
            )
        )
        self.last = {v: i for i, e in enumerate(self.equations) for v in e.operands}
        self.writer_index = {v: i for i, e in enumerate(self.equations) for v in e.results}
        self.base: dict[Variable, Variable] = {}
        for e in self.equations:
            if e.op.name == "expand":
                self.base[e.results[0]] = self.base.get(e.operands[0], e.operands[0])
        self.needed = [v for v in inside if emitter.lifetimes.needed_after(v, emitter.step)]
        self.outputs = list(dict.fromkeys([self.base.get(v, v) for v in self.needed]))
        self.columns: list[Callable[[Any], list[Any]]] = []
        self.column_names: list[str] = []
        self.names: dict[Variable, str] = {}
        self._indices: dict[tuple[bool, ...], str] = {}
        self._free: dict[tuple[Sizes, np.dtype[Any]], list[tuple[str, Any]]] = {}
        self._slot: dict[Variable, tuple[str, Any]] = {}
        self._sharing: dict[str, list[Variable]] = {}  # name of each slot in use -> the values in it
        self._regions: list[Any] = []
        self._full: dict[Any, str] = {}

    # ---- blocks --------------------------------------------------------------------------------------------

    def _merge_axes(self) -> list[list[int]]:
        """The axes of the group, as runs of adjacent axes that can be merged."""
        emitter, shape = self.emitter, self.group.shape
        patterns = [emitter.compact[v] for e in self.equations for v in (*e.operands, *e.results)]
        for e in self.equations:
            if e.op.name in REDUCTIONS or e.op.name in ROW_OPS:
                patterns.append(tuple([1 if i in e.params[0] else n for i, n in enumerate(shape)]))
        input_layouts = [emitter.value(v).layout for v in self.inputs]
        runs: list[list[int]] = []
        for i in range(len(shape)):
            together = (
                bool(runs)
                and i != self.group.lead
                and all([(p[i] == shape[i]) == (p[i - 1] == shape[i - 1]) for p in patterns])
                and all([_adjacent(x, i) for x in input_layouts])
            )
            if together:
                runs[-1].append(i)
            else:
                runs.append([i])
        return runs

    def write(self) -> None:
        """Write the lines of the loop."""
        emitter, source, group = self.emitter, self.source, self.group
        self.runs = self._merge_axes()
        self.shape = self._merged(group.shape)
        lead = sum([run[0] < group.lead for run in self.runs])
        values = {v: emitter.value(v) for v in self.inputs}
        arrays = {v: emitter.reshaped(x, self._merged(x.shape), v) for v, x in values.items()}
        self.sizes = self._sizes(lead, [x.layout for x in arrays.values()])
        self.cut = max([i for i, n in enumerate(self.sizes) if n < self.shape[i]], default=0)
        self.blocks = list(_cut(self.shape[: self.cut + 1], self.sizes))
        for v in self.outputs:
            value = emitter.target(v, emitter.compact[v], self._read_before(v))
            arrays[v] = emitter.reshaped(value, self._merged(value.shape), v)
        self.arrays = arrays
        for v, x in arrays.items():
            self.names[v] = self._block_of(x)
        start = len(source.lines)
        body, source.lines = source.lines, []
        indent, source.indent = source.indent, source.indent + "    "
        for v in arrays:
            if self.names[v].endswith("]"):  # slice once per block
                self.names[v] = source.assign(self.names[v])
        for i, equation in enumerate(self.equations):
            self._write(i, equation)
        lines, source.lines, source.indent = source.lines, body, indent
        assert start == len(source.lines)
        columns = self.columns
        table = source.bound_per_instance(
            lambda memory: list(zip(*[column(memory) for column in columns], strict=True))
        )
        source.line(f"for {', '.join(self.column_names)}, in {table}:")
        source.lines += lines
        for region in self._regions:
            emitter.planner.free(region)
        for v in self.needed:
            emitter.values[v] = emitter.values[self.base.get(v, v)]

    @functools.cached_property
    def _replaceable(self) -> dict[Any, list[tuple[int, bool, Variable]]]:
        """The inputs whose memory is free after this group, by shape, dtype and donation.

        Each with the index of its last reader in the group, and whether no other value of the group shares its
        memory; sorted by last reader, latest first.
        """
        owner = self.emitter.lifetimes.owner
        owners = Counter([owner(x) for x in self.inputs])
        last = {x: self.last.get(x, -1) for x in self.inputs if owners[owner(x)] == 1}
        unshared = dict.fromkeys(last, True)
        for v, x in self.base.items():
            if x in last:
                last[x] = max(last[x], self.last.get(v, -1))
                unshared[x] = False
        replaceable: dict[Any, list[tuple[int, bool, Variable]]] = {}
        for x, index in last.items():
            key = self.emitter.dying_memory(x)
            if key is not None:
                replaceable.setdefault(key, []).append((index, unshared[x], x))
        for candidates in replaceable.values():
            candidates.sort(key=lambda candidate: -candidate[0])
        return replaceable

    def _read_before(self, v: Variable) -> list[Variable]:
        """An input whose last read within a block comes before this value is written; at most one."""
        escapes = self.emitter.lifetimes.owner(v) in self.emitter.lifetimes.escaping
        candidates = self._replaceable.get((self.emitter.compact[v], _dtype(v), escapes), [])
        index = self.writer_index[v]
        for i in range(len(candidates) - 1, -1, -1):
            last, unshared, x = candidates[i]
            if last > index:
                break
            if last < index or (unshared and self._safe_in_place(x, self.equations[index])):
                del candidates[i]
                return [x]
        return []

    def _safe_in_place(self, x: Variable, equation: Equation) -> bool:
        """Whether the result of this equation may overwrite the operand."""
        operands = equation.operands
        steps = template(equation.op.name, [_dtype(v) for v in operands], [None, None])
        if equation.op.name in REDUCTIONS or equation.op.name in ROW_OPS or steps is None:
            return False
        return all(
            [safe_in_place(steps, letter) for v, letter in zip(operands, "ab", strict=False) if v is x]
        )

    def _sizes(self, lead: int, inputs: Sequence[Array]) -> Sizes:
        """The shape of a block: whole along the axes from `lead` on.

        Before `lead` it grows up to the block size, first along the axes in which a transposed input is contiguous,
        then from the last axis to the first.
        """
        sizes = [*[1] * lead, *self.shape[lead:]]
        transposed = _transposed_axes(inputs) if lead == len(sizes) else ()
        for i in (*transposed, *reversed(range(lead))):
            if sizes[i] == 1:
                most = max(1, BLOCK_SIZE // math.prod(sizes))
                sizes[i] = min(self.shape[i], most, MAX_TRANSPOSED if i in transposed[:1] else most)
        return tuple(sizes)

    def _merged(self, shape: Sizes) -> Sizes:
        return tuple([math.prod([shape[i] for i in run]) for run in self.runs])

    def _column(self, make: Callable[[Any], list[Any]]) -> str:
        """A loop variable, which takes one entry of a list per block."""
        name = self.source.new_name()
        self.columns.append(make)
        self.column_names.append(name)
        return name

    def _block_of(self, x: Value) -> str:
        """The name of a value's part for the current block."""
        if x.layout.size == 1:
            return self.emitter.single(x).name
        uncut = tuple([n == 1 for n in x.shape[: self.cut + 1]])
        if all(uncut):
            return x.name
        blocks = self.blocks

        def index(block: tuple[slice, ...]) -> tuple[slice, ...]:
            return tuple([slice(None) if one else part for one, part in zip(uncut, block, strict=True)])

        if x.storage == "local":
            known = self._indices.get(uncut)
            if known is None:
                known = self._indices[uncut] = self._column(lambda memory: [index(block) for block in blocks])
            return f"{x.name}[{known}]"
        if x.storage == "constant":
            array = x.layout
            return self._column(lambda memory: [array[index(block)] for block in blocks])
        layout, offset = x.layout, x.offset

        def views(memory: Array) -> list[Array]:
            array = in_memory(memory, layout, offset)
            return [array[index(block)] for block in blocks]

        return self._column(views)

    def _constant(self, array: Array) -> str:
        """The name of the current block of a constant array with the axes of this loop."""
        return self._block_of(Value(functools.partial(self.source.bound, array), array, "constant"))

    # ---- scratch -------------------------------------------------------------------------------------------

    def _scratch(self, shape: Sizes, dtype: np.dtype[Any]) -> tuple[str, Any]:
        """A scratch array, and the key of its shape and dtype."""
        free = self._free.setdefault((shape, dtype), [])
        if free:
            return free.pop()
        key = (shape, dtype)
        repeated = tuple([n == 1 and m != 1 for n, m in zip(shape, self.shape, strict=True)])
        sizes = tuple([1 if one else n for one, n in zip(repeated, self.sizes, strict=True)])
        layout = layouts.contiguous(sizes, dtype)
        region = self.emitter.planner.take(max(layout.nbytes, CACHE_LINE))
        self._regions.append(region)
        blocks = self.blocks

        def views(memory: Array) -> list[Array]:
            array = in_memory(memory, layout, region.offset)
            pieces: dict[Sizes, Array] = {}
            result = []
            for block in blocks:
                ends = tuple(
                    [1 if one else s.stop - s.start for one, s in zip(repeated, block, strict=False)]
                )
                if ends not in pieces:
                    pieces[ends] = array[tuple([slice(0, n) for n in ends])]
                result.append(pieces[ends])
            return result

        return self._column(views), key

    def _filled(self, number: Any, dtype: np.dtype[Any]) -> str:
        """An array as large as the block, filled with this number."""
        key = (exact(number), dtype)
        if key not in self._full:
            array = np.full(self.sizes, number, dtype)
            pieces = [array[tuple([slice(0, s.stop - s.start) for s in block])] for block in self.blocks]
            self._full[key] = self._column(lambda memory: pieces)
        return self._full[key]

    def _release(self, slot: tuple[str, Any]) -> None:
        self._free[slot[1]].append(slot)

    # ---- ops -----------------------------------------------------------------------------------------------

    def _operand(self, v: Variable) -> str:
        return self.emitter.operand(v) if is_literal(v) else self.names[v]

    def _dying_scratch(self, i: int, equation: Equation) -> list[Variable]:
        """Operands in scratch arrays that no later equation reads."""
        return [v for v in dict.fromkeys(equation.operands) if v in self._slot and self._last_use(v) == i]

    def _last_use(self, v: Variable) -> int:
        """The index of the last equation that reads this value, or a value that shares its array."""
        return max([self.last.get(w, -1) for w in self._sharing[self._slot[v][0]]])

    def _occupy(self, v: Variable, slot: tuple[str, Any]) -> None:
        """Put a value into a slot, which it may share."""
        self._slot[v] = slot
        self._sharing.setdefault(slot[0], []).append(v)

    def _vacate(self, slot: tuple[str, Any]) -> None:
        """Remove all values from a slot."""
        for v in self._sharing.pop(slot[0]):
            del self._slot[v]

    def _write(self, i: int, equation: Equation) -> None:
        (v,) = equation.results
        name = equation.op.name
        if name == "expand":
            self._alias(v, equation.operands[0])
        elif name in REDUCTIONS:
            self._reduce(equation)
        elif name in ROW_OPS:
            self._rows(equation)
        else:
            self._elementwise(i, equation)
        for operand in self._dying_scratch(i, equation):
            slot = self._slot.get(operand)
            if slot is None:  # released with a value that shared its array
                continue
            if any([w in equation.results for w in self._sharing[slot[0]]]):
                continue
            self._vacate(slot)
            self._release(slot)

    def _alias(self, v: Variable, operand: Variable) -> None:
        self.names[v] = self.names[operand] if not is_literal(operand) else self._operand(operand)
        if operand in self._slot:
            self._occupy(v, self._slot[operand])

    def _target(self, v: Variable) -> str:
        """The name of the array that the result of a block is written to."""
        if v in self.names:
            return self.names[v]
        slot = self._scratch(self._merged(self.emitter.compact[v]), _dtype(v))
        self._occupy(v, slot)
        self.names[v] = slot[0]
        return slot[0]

    def _elementwise(self, i: int, equation: Equation) -> None:
        source, operands, (v,) = self.source, equation.operands, equation.results
        names = [self._operand(x) for x in operands]
        dtypes = [_dtype(x) for x in operands]
        steps = template(equation.op.name, dtypes, [x.value if is_literal(x) else None for x in operands])
        is_full = self._merged(self.emitter.compact[equation.results[0]]) == self.shape
        filled = self._filled if is_full and math.prod(self.sizes) > SMALL_SIZE else None
        names = with_filled_numbers(names, operands, steps, dtypes[0], filled)
        if equation.op.name == "cast" and not (dtypes[0].kind == "f" and _dtype(v).kind in "iu"):
            source.line(f"{source.bound(np.copyto)}({self._target(v)}, {names[0]}, 'unsafe')")
        elif equation.op.name == "where" and uses_masks(self.shape, dtypes[1]):
            condition = self.arrays.get(self.base.get(operands[0], operands[0]))
            if (
                condition is not None
                and condition.storage == "constant"
                and condition.layout.size <= BLOCK_SIZE
            ):
                known = condition.layout
                write_where_constant(
                    self.emitter, operands, names, self._target(v), known, self._constant, dtypes[1]
                )
                return
            mask = self._scratch(self._merged(self.emitter.compact[operands[0]]), mask_dtype(dtypes[1]))
            write_where(self.emitter, operands, names, self._target(v), mask[0], dtypes[1])
            self._release(mask)
        elif steps is None:
            method = source.bound(getattr(self.emitter.backend, equation.op.name))
            params = [source.bound(p) for p in equation.params]
            self._result(v, f"{method}({', '.join([*names, *params])})")
        else:
            if v not in self.names:
                self._reuse_operand(i, equation, steps)
            target = self._target(v)
            needs = any(["t" in (to, *inputs) for _, to, inputs in steps])
            scratch = self._scratch(self._merged(self.emitter.compact[v]), _dtype(v)) if needs else None
            write_steps(self.emitter, steps, names, target, scratch[0] if scratch else "", dtypes[-1], filled)
            if scratch is not None:
                self._release(scratch)

    def _reuse_operand(self, i: int, equation: Equation, steps: Any) -> None:
        """Let the result overwrite the scratch array of an operand that dies here."""
        (v,) = equation.results
        key = (self._merged(self.emitter.compact[v]), _dtype(v))
        for operand, letter in zip(equation.operands, "ab", strict=False):
            if (
                operand in self._slot
                and self._slot[operand][1] == key
                and self._last_use(operand) == i
                and safe_in_place(steps, letter)
                and (
                    equation.operands.count(operand) == 1 or all([safe_in_place(steps, one) for one in "ab"])
                )
            ):
                slot = self._slot[operand]
                self._vacate(slot)
                self._occupy(v, slot)
                self.names[v] = slot[0]
                return

    def _result(self, v: Variable, expression: str) -> None:
        """Copy the array that a call returns to its target, or use the array directly if there is no target."""
        source = self.source
        if v in self.names:
            source.line(f"{source.bound(np.copyto)}({self.names[v]}, {expression})")
        else:
            self.names[v] = source.assign(expression)

    def _axes(self, axes: Sizes) -> Sizes:
        return tuple(
            [
                axis
                for axis, run in enumerate(self.runs)
                if any([i in axes and self.group.shape[i] != 1 for i in run])
            ]
        )

    def _has_contiguous_rows(self, v: Variable, axes: Sizes) -> bool:
        """Whether the rows of each block of a value are contiguous."""
        value = self.arrays.get(v)
        if value is not None and not value.contiguous:
            return False
        merged = self._axes(axes)
        return self.cut == 0 and bool(merged) and merged == tuple(range(merged[0], len(self.shape)))

    def _reduce(self, equation: Equation) -> None:
        source, (v,), (x,), (axes,) = self.source, equation.results, equation.operands, equation.params
        names = (self._operand(x), self._target(v))
        dtype = "None" if equation.op.name in ("max", "min") else source.bound(dtype_of_sums(_dtype(v)))
        if equation.op.name == "sum":
            rows = math.prod(self.sizes) >= BLAS_MIN_SIZE and self._has_contiguous_rows(x, axes)
            write_sum(self.emitter, names[0], self._axes(axes), names[1], _dtype(v), rows)
            return
        reduce = source.bound(_REDUCE[equation.op.name])
        source.line(f"{reduce}({names[0]}, {self._axes(axes)}, {dtype}, {names[1]}, True)")

    def _rows(self, equation: Equation) -> None:
        (v,), (x,), (axes,) = equation.results, equation.operands, equation.params
        if (
            equation.op.name in _ROW_FUNCTIONS
            and _dtype(v) != np.float64
            and self._has_contiguous_rows(x, axes)
        ):
            target = self._target(v)
            function = self.source.bound(_ROW_FUNCTIONS[equation.op.name])
            self.source.line(f"{function}({self._operand(x)}, {self._axes(axes)}, {target})")
            return
        method = self.source.bound(getattr(self.emitter.backend, equation.op.name))
        self._result(v, f"{method}({self._operand(x)}, {self._axes(axes)})")


def _dtype(v: Variable) -> np.dtype[Any]:
    return np.dtype(v.dtype.name)


def _adjacent(x: Array, i: int) -> bool:
    """Whether axes i-1 and i can be merged."""
    return bool(x.shape[i] == 1 or x.shape[i - 1] == 1 or x.strides[i - 1] == x.strides[i] * x.shape[i])


def _transposed_axes(inputs: Sequence[Array]) -> Sizes:
    """The contiguous axis and the last axis of the first large input for which these differ; empty if none.

    Blocks should hold adjacent elements of this input as well as of the others.
    """
    for x in inputs:
        axes = [i for i, n in enumerate(x.shape) if n > 1]
        if x.size > BLOCK_SIZE and axes:
            along = min(axes, key=lambda i: (abs(x.strides[i]), -i))
            if along != axes[-1]:
                return along, axes[-1]
    return ()


def _cut(shape: Sizes, sizes: Sizes) -> Iterator[tuple[slice, ...]]:
    """The blocks in row-major order."""
    starts = [range(0, n, step) for n, step in zip(shape, sizes, strict=False)]
    for start in itertools.product(*starts):
        yield tuple([slice(i, min(i + step, n)) for i, step, n in zip(start, sizes, shape, strict=False)])
