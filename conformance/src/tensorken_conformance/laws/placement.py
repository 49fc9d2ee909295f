"""values.movement, arrangement, extrema, indexing, views, extents: ops that move or select elements.

They share the comparison: all trials of an op on an operand, each with the result of numpy or plain Python.  They
differ in the operands: shapes and special values, views of views, or odd and long shapes.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

import numpy as np

from tensorken_conformance.case import Case
from tensorken_conformance.law import law
from tensorken_conformance.layouts import chains, shapes
from tensorken_conformance.limits import NARROW
from tensorken_conformance.numbers.host_arrays import ascending, in_dtype, is_float
from tensorken_conformance.operands import reductions
from tensorken_conformance.oracles import elementwise, exact
from tensorken_conformance.oracles.bounds import Arithmetic
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.language.op import OPS
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.tensor import Tensor

MOVEMENTS = ("reshape", "permute", "expand", "flip", "pad", "crop")
ARRANGEMENTS = ("sort", "argsort", "concatenate")
EXTREMA = ("max", "min", "argmax", "argmin")
INDEXING = ("gather", "scatter_add")
REDUCTIONS: dict[str, Callable[..., Array]] = {
    "sum": lambda x, axes: np.add.reduce(x, axes, x.dtype, keepdims=True) if axes else x,
    "prod": lambda x, axes: np.multiply.reduce(x, axes, x.dtype, keepdims=True) if axes else x,
    "cumsum": lambda x, axis: np.add.accumulate(x, axis, x.dtype),
    "cumprod": lambda x, axis: np.multiply.accumulate(x, axis, x.dtype),
}
"""Ops that may round if the backend declares errors of sums and products."""

Step = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Trial:
    """One call of an op.

    Attributes:
        says: its params, for messages.
        steps: ops with params; the first takes all operands, each other the result so far.
        arrays: the values of the operands.
        tensors: the operands.
        expected: the result; or, where several are right, a function of the actual result that returns it.
    """

    says: str
    steps: Sequence[Step]
    arrays: Sequence[Array]
    tensors: Sequence[Tensor]
    expected: Array | Callable[[Array], Array]


@dataclass(frozen=True, slots=True)
class Operand:
    """The first operand of all trials.

    Attributes:
        subject: the backend under test.
        case: the op and dtype.
        values: the values.
        tensor: the operand.
        number: the number of these values among those of the case.
    """

    subject: Subject
    case: Case
    values: Array
    tensor: Tensor
    number: int = 0

    def check(self, says: str, shown: str | None = None) -> None:
        """Run all trials of the op on this operand.

        Args:
            says: the beginning of messages.
            shown: the shape class by which a script makes the operand; None: there is no script.

        Raises:
            Failure: if a bit differs.
        """
        trials = ((trial, self._run(trial)) for trial in _trials(self))
        for trial, y in self.subject.together(trials):
            right = trial.expected
            right = right(self.subject.read(y)) if callable(right) else np.asarray(right)
            first = shown if trial.arrays and trial.arrays[0] is self.values else ""
            script = functools.partial(
                exact.script_of, self.subject, trial.steps, trial.arrays, right, first or ""
            )
            exact.agree(self.subject, y, right, f"{says}{trial.says}", list if shown is None else script)

    def _run(self, trial: Trial) -> Tensor:
        y, operands = self.tensor, list(trial.tensors)
        for op, params in trial.steps:
            y = self.subject.run(OPS[op], operands, params)
            operands = [y]
        return y


def _trials(x: Operand) -> Iterator[Trial]:
    op = x.case.op
    if op in MOVEMENTS:
        return _movements(x)
    if op == "concatenate":
        return _pieces(x)
    if op in ARRANGEMENTS:
        return _sorted(x)
    return _extremes(x) if op in EXTREMA else _indexed(x) if op in INDEXING else _reduced(x)


# ---- movements ---------------------------------------------------------------------------------------------


def subsets(rank: int) -> list[tuple[int, ...]]:
    """All sets of at most three axes; of more axes, each alone and all together."""
    axes = range(rank)
    if rank <= 3:
        return [chosen for count in range(rank + 1) for chosen in combinations(axes, count)]
    return [(), *[(axis,) for axis in axes], tuple(axes)]


def _orders(shape: Shape) -> list[Any]:
    rank, axes = len(shape), tuple(range(len(shape)))
    if rank <= 3:
        return list(permutations(axes))
    some = [axes[::-1], (*axes[1:], 0), (rank - 1, *axes[:-1])]
    return [*some, (*axes[:-2], rank - 1, rank - 2), (rank - 1, *axes[1:-1], 0)]


def _crops(shape: Shape) -> list[Any]:
    """Limits of all axes: all elements, the first, the last, all but the ends, halves, none; then of one axis."""
    limits: list[Callable[[int], tuple[int, int]]] = [
        lambda n: (0, n),
        lambda n: (0, min(n, 1)),
        lambda n: (max(n - 1, 0), n),
        lambda n: (min(n, 1), max(n - 1, min(n, 1))),
        lambda n: (0, (n + 1) // 2),
        lambda n: (n // 2, n),
        lambda n: (n // 2, n // 2),
    ]
    single = range(len(shape)) if len(shape) > 1 else ()
    return [
        *[tuple(map(limit, shape)) for limit in limits],
        *[tuple([(min(n, 1) if i == axis else 0, n) for i, n in enumerate(shape)]) for axis in single],
    ]


def _pads(shape: Shape) -> list[Any]:
    rank = len(shape)
    single = range(rank) if rank > 1 else ()
    return [
        *[(pad,) * rank for pad in ((0, 0), (1, 0), (0, 2), (2, 1))],
        *[tuple([(1, 2) if i == axis else (0, 0) for i in range(rank)]) for axis in single],
        *([((0, 0),) * (rank - 1) + ((1, 64),)] if rank else []),
    ]


def _reshapes(shape: Shape) -> list[Any]:
    size = int(np.prod(shape, dtype=int))
    found: list[Any] = [shape, (size,), (1, size), (size, 1), (1, *shape, 1), shape[::-1]]
    if len(shape) > 1:
        found.append((shape[0] * shape[1], *shape[2:]))
    factor = next((k for k in range(2, size) if size % k == 0), 0)
    if factor:
        found += [(factor, size // factor), (size // factor, factor)]
    few: dict[int, list[Any]] = {0: [(2, 0, 3), (0, 5)], 1: [()]}
    return found + few.get(size, [])


_PARAMS: dict[str, Callable[[Shape], list[Any]]] = {
    "reshape": _reshapes,
    "permute": _orders,
    "expand": lambda shape: subsets(len(shape)),
    "flip": lambda shape: subsets(len(shape)),
    "pad": _pads,
    "crop": _crops,
}


@functools.cache
def variants(op: str, shape: Shape) -> list[Any]:
    """The params of a movement that are tried on a shape; for expand the axes along which it repeats."""
    return _PARAMS[op](shape)


def _movements(x: Operand) -> Iterator[Trial]:
    for what in variants(x.case.op, x.values.shape):
        steps, values, tensor = [(x.case.op, (what,))], x.values, x.tensor
        if x.case.op == "expand":
            few = tuple([min(n, 1) if i in what else n for i, n in enumerate(values.shape)])
            steps = [("expand", (values.shape,))]
            if x.case.law in ("values.views", "values.covering") or shapes.class_of(x.case.shape).movement:
                steps.insert(0, ("crop", (tuple([(0, n) for n in few]),)))
            else:
                values = np.resize(values, few) if values.size else np.ones(few, values.dtype)
                tensor = x.subject.tensor(values, DTYPES[x.case.dtype])
        expected = values
        for op, params in steps:
            expected = chains.moved(op, expected, params)
        yield Trial(f", {what}", steps, [values], [tensor], np.array(expected))


# ---- arrangement -------------------------------------------------------------------------------------------


PIECES: dict[str, tuple[tuple[float, float] | None, ...]] = {
    "alone": (None,),
    "twice": (None, None),
    "two": (None, (0, 1)),
    "before-none": (None, (0, 0)),
    "after-none": ((0, 0), None),
    "three": ((0, 0.5), None, (0.5, 1)),
    "five": ((0, 0.25), (0.25, 0.5), None, (0.5, 0.5), (0.5, 1)),
}
"""The pieces of a concatenation: None is the operand of the class, the others are parts of a second array."""


def part(values: Array, axis: int, start: float, end: float) -> Array:
    """The part of an array between two fractions of an axis."""
    limits = slice(round(start * values.shape[axis]), round(end * values.shape[axis]))
    return values[(slice(None),) * axis + (limits,)]


def _pieces(x: Operand) -> Iterator[Trial]:
    shape = x.values.shape
    for axis in range(len(shape)):
        second = exact.drawn(x.subject, x.case, (*shape[:axis], 9, *shape[axis + 1 :]), number=x.number)
        chosen = PIECES if x.case.values else {"around": (None, (0, 1), None)}
        for name, pieces in chosen.items():
            arrays = [x.values if piece is None else part(second, axis, *piece) for piece in pieces]
            tensors = [
                x.tensor if piece is None else x.subject.tensor(array, DTYPES[x.case.dtype])
                for piece, array in zip(pieces, arrays, strict=True)
            ]
            expected = np.concatenate(arrays, axis)
            yield Trial(f" along axis {axis}, {name}", [(x.case.op, (axis,))], arrays, tensors, expected)


def order_of(values: Array, axis: int) -> Array:
    """The indices that sort an axis stably, NaN last, by Python's sort."""
    if not values.size:
        return np.zeros(values.shape, "int32")

    def row(numbers: Array) -> list[int]:
        keys = numbers.tolist()
        return sorted(range(len(keys)), key=lambda i: (keys[i] != keys[i], keys[i]))

    return np.apply_along_axis(row, axis, values).astype("int32")


def _sorted(x: Operand) -> Iterator[Trial]:
    for axis in range(x.values.ndim):
        places = order_of(x.values, axis)
        expected = places if x.case.op == "argsort" else np.take_along_axis(x.values, places, axis)
        yield Trial(f" along axis {axis}", [(x.case.op, (axis,))], [x.values], [x.tensor], expected)


# ---- extrema -----------------------------------------------------------------------------------------------


@functools.cache
def axes_of(op: str, shape: Shape) -> tuple[Any, ...]:
    """The axes over which an op can reduce a shape: for argmax and argmin one, for max and min any number."""
    rank = len(shape)
    if op.startswith("arg"):
        return tuple([axis for axis in range(rank) if shape[axis]])
    more = [] if rank <= 3 else [(0, rank - 1), tuple(range(rank))[1::2]]
    return tuple([chosen for chosen in subsets(rank) + more if all(shape[axis] for axis in chosen)])


def rows_over(values: Array, axes: tuple[int, ...]) -> tuple[Array, Shape]:
    """The elements along axes as rows of a matrix, and the shape of the result."""
    kept = [axis for axis in range(values.ndim) if axis not in axes]
    length = int(np.prod([values.shape[axis] for axis in axes], dtype=int))
    count = int(np.prod([values.shape[axis] for axis in kept], dtype=int))
    left = tuple([1 if axis in axes else n for axis, n in enumerate(values.shape)])
    return values.transpose(*kept, *axes).reshape(count, length), left


def extremes(op: str, rows: Array) -> Array:
    """The largest or smallest of each row; NaN if it has one."""
    ordered = ascending(rows, 1)
    if op == "max" or not rows.size:
        return ordered[:, -1:]
    return np.where(ordered[:, -1:] != ordered[:, -1:], ordered[:, -1:], ordered[:, :1])


def places(op: str, rows: Array) -> Array:
    """The index of the first extreme, or NaN, of each row."""
    hits = (rows == extremes(op, rows)) | (rows != rows)
    positions = np.arange(rows.shape[1], dtype="int32")
    return np.asarray(np.where(hits, positions, rows.shape[1]).min(1, keepdims=True), "int32")


def with_signs(expected: Array, rows: Array, got: Array) -> Array:
    """The expected result, with the actual signs of zeros where the row has zeros of both signs."""
    if not is_float(expected) or got.shape != expected.shape:
        return expected
    zeros = rows == 0
    either = (zeros & np.signbit(rows)).any(1) & (zeros & ~np.signbit(rows)).any(1)
    return np.where(either.reshape(expected.shape) & (expected == 0) & (got == 0), got, expected)


def _extremes(x: Operand) -> Iterator[Trial]:
    op = x.case.op
    for what in axes_of(op, x.values.shape):
        rows, left = rows_over(x.values, (what,) if isinstance(what, int) else what)
        found = (places(op[3:], rows) if op.startswith("arg") else extremes(op, rows)).reshape(left)
        expected = functools.partial(with_signs, found, rows)
        yield Trial(f" over {what}", [(op, (what,))], [x.values], [x.tensor], expected)


def _extreme_values(subject: Subject, case: Case, shape: Shape) -> Array:
    """Values for extrema: only the worst value, or one winner as the last element."""
    kind, largest = DTYPES[case.dtype].kind, case.op.removeprefix("arg") == "max"
    ends: Any = (False, True) if kind == "bool" else (-np.inf, np.inf)
    if kind == "int":
        ends = np.iinfo(case.dtype).min, np.iinfo(case.dtype).max
    if case.values == "worst":
        return np.full(shape, ends[not largest], case.dtype)
    ordinary = exact.drawn(subject, case, shape, values="ordinary")
    values = np.full(shape, not largest) if kind == "bool" else np.array(ordinary)
    if values.size:
        values[(-1,) * values.ndim] = ends[largest] if kind != "float" else 120 if largest else -120
    return values


# ---- indexing ----------------------------------------------------------------------------------------------


PATTERNS = {"int32": ("each", "reversed", "repeated", "last", "none"), "int64": ("each", "more", "shuffled")}
"""The patterns of indices by dtype; a case tries all of one dtype."""

VIEWED = {"reversed": "257-flip", "repeated": "65-crop"}
"""The shape classes of indices that are views."""


def indices_of(pattern: str, size: int, key: str) -> Array:
    """Indices of gather into an axis of this size."""
    rng = np.random.default_rng(zlib.crc32(f"{key} {pattern}".encode()))
    plain = {"each": np.arange(size), "reversed": np.arange(size)[::-1], "none": np.arange(0)}
    if pattern in plain:
        return plain[pattern]
    if pattern == "shuffled" or not size:
        return rng.permutation(size)
    if pattern == "last":
        return np.array([size - 1])
    return rng.integers(0, size, 2 * size + 1 if pattern == "more" else size)


def targets_of(pattern: str, count: int, key: str) -> tuple[Array, int]:
    """Indices of scatter_add for some slices, and the size of the resulting axis."""
    rng = np.random.default_rng(zlib.crc32(f"{key} {pattern}".encode()))
    if pattern in ("each", "reversed", "shuffled"):
        return indices_of(pattern, count, key), count
    if pattern == "last":
        return np.full(count, 2), 3
    if pattern == "none":
        return np.arange(count), count + 2
    size = 2 * count + 1 if pattern == "more" else (count + 1) // 2
    return (rng.integers(0, size, count) if count else np.arange(0)), size


def added(values: Array, indices: Array, axis: int, size: int) -> Array:
    """The result of scatter_add in numpy, whose integers wrap; narrow floats are added in a wider format."""
    if values.dtype.name in NARROW:
        return in_dtype(added(values.astype(np.float64), indices, axis, size), values.dtype.name)
    result = np.zeros((*values.shape[:axis], size, *values.shape[axis + 1 :]), values.dtype)
    np.add.at(np.moveaxis(result, axis, 0), indices, np.moveaxis(values, axis, 0))
    return result


def _indexed(x: Operand) -> Iterator[Trial]:
    kind, key = x.case.detail or "int32", f"{x.subject.seed} {x.case.shape}"
    params: tuple[Any, ...]
    for axis, count in enumerate(x.values.shape):
        for pattern in PATTERNS[kind] if x.case.detail else ("reversed", "repeated", "none"):
            if x.case.op == "gather":
                indices, params = indices_of(pattern, count, key), (axis,)
                expected = np.take(x.values, indices, axis)
            else:
                indices, size = targets_of(pattern, count, key)
                params, expected = (axis, size), added(x.values, indices, axis, size)
            shape = VIEWED.get(pattern, "")  # for some patterns the indices are a view
            shape = shape if indices.size and exact.makes(x.subject, shape, DTYPES[kind]) else ""
            tensors = [x.tensor, shapes.operand(x.subject, shape, indices.astype(kind), DTYPES[kind])]
            says = f" along axis {axis}, {pattern} of {kind} indices"
            yield Trial(says, [(x.case.op, params)], [x.values, indices.astype(kind)], tensors, expected)


# ---- reductions --------------------------------------------------------------------------------------------


def _reduced(x: Operand) -> Iterator[Trial]:
    shape, op = x.values.shape, x.case.op
    each: Iterable[Any] = range(len(shape))
    if not op.startswith("cum"):
        each = [axes for (axes,) in reductions.several(shape).values()]
    for what in each:
        with np.errstate(over="ignore", invalid="ignore"):
            if x.case.dtype in NARROW:  # added or multiplied in a wider format, and rounded once
                expected = in_dtype(REDUCTIONS[op](x.values.astype(np.float64), what), x.case.dtype)
            else:
                expected = np.asarray(REDUCTIONS[op](x.values, what))
        yield Trial(f", {what}", [(op, (what,))], [x.values], [x.tensor], expected)


# ---- operands of all classes -------------------------------------------------------------------------------


MORE = {
    **dict.fromkeys(EXTREMA, ("ties", "worst", "last")),
    **dict.fromkeys(("sort", "argsort"), ("ties", "ascending", "descending")),
}
"""Additional value classes: few different values; the worst value alone; one winner, at the end; sorted along every
axis."""


def _cases(law: str, ops: Sequence[str]) -> Callable[[Subject], Iterator[Case]]:
    """Each op and dtype on each class of shapes and values; a case tries all axes and other params."""

    def cases(subject: Subject) -> Iterator[Case]:
        for op in ops:
            for dtype, detail in _dtypes(subject, op):
                if op in MOVEMENTS:  # other laws need these cases
                    yield Case(law, op, dtype.name, "small")
                elif subject.depth == "smoke":
                    yield Case(law, op, dtype.name, "small", "ordinary", detail)
                for shape in exact.classes(subject):
                    if not _fits(op, shapes.class_of(shape).shape) or not exact.makes(subject, shape, dtype):
                        continue
                    plain = op in ("sort", "argsort") or not shapes.class_of(shape).movement
                    for values in (*exact.VALUES, *(MORE.get(op, ()) if plain else ())):
                        yield Case(law, op, dtype.name, shape, values, detail)

    return cases


def _dtypes(subject: Subject, op: str) -> Iterator[tuple[DType, str]]:
    """The dtypes of an op, each with the dtypes of its indices."""
    if op not in INDEXING:
        params: tuple[Any, ...] = (0,) if op in ARRANGEMENTS else ((),)
        yield from [(dtype, "") for dtype in exact.dtypes_for(subject, OPS[op], params)]
        return
    indices = [index for index in PATTERNS if index in subject.capabilities.dtypes]
    params, kinds = (((0,), ("bool", "int", "float")), ((0, 1), ("int",)))[op == "scatter_add"]
    for index in indices[:1] if subject.depth == "smoke" else indices:
        found = exact.dtypes_for(subject, OPS[op], params, beside=(DTYPES[index],), kinds=kinds)
        yield from [(dtype, index) for dtype in found]


def _fits(op: str, shape: Shape) -> bool:
    return op in MOVEMENTS or bool(axes_of(op, shape) if op in EXTREMA else shape)


def _drawn(subject: Subject, case: Case, shape: Shape, number: int) -> Array:
    """The values of a case, sorted along every axis if its class says so."""
    if case.values in ("worst", "last"):
        return _extreme_values(subject, case, shape)
    if case.values not in ("ascending", "descending"):
        return exact.drawn(subject, case, shape, number=number)
    values = np.array(exact.drawn(subject, case, shape, values="ordinary"))
    for axis in range(values.ndim):
        values.sort(axis)
    return values if case.values == "ascending" else np.flip(values)


def _check(subject: Subject, case: Case) -> None:
    shape = shapes.class_of(case.shape).shape
    for number in range(exact.draws(case, shape)):
        values = shapes.fitted(case.shape, _drawn(subject, case, shape, number))
        x = shapes.operand(subject, case.shape, values, DTYPES[case.dtype])
        Operand(subject, case, values, x, number).check(f"{case.op} of {case.dtype} {shape}", case.shape)


_LAW: dict[str, Any] = {"level": exact.level_of, "needs": exact.needs_of}


@law("values.movement", _cases("values.movement", MOVEMENTS), **_LAW, stage=1)
def movement(subject: Subject, case: Case) -> None:
    """A movement of a tensor, which may be a view itself, keeps the bits of each element.

    Padding is zeros (False).  A case tries all params of its op for its shape.
    """
    _check(subject, case)


@law("values.arrangement", _cases("values.arrangement", ARRANGEMENTS), **_LAW)
def arrangement(subject: Subject, case: Case) -> None:
    """Concatenation keeps the bits of its pieces; sorting is stable, with NaN last and zeros of either sign equal.

    Pieces may be empty, or views.
    """
    _check(subject, case)


@law("values.extrema", _cases("values.extrema", EXTREMA), **_LAW)
def extrema(subject: Subject, case: Case) -> None:
    """Extremes over axes are elements, or NaN if there is one; argmax and argmin return the first of equal ones.

    Of two zeros that differ in sign, either may be the extreme.  Over no axes each element is its own extreme; the
    result of an empty tensor is empty.
    """
    _check(subject, case)


@law("values.indexing", _cases("values.indexing", INDEXING), **_LAW)
def indexing(subject: Subject, case: Case) -> None:
    """gather returns the slices at the indices with the same bits; scatter_add of integers their sums, which wrap.

    Indices may repeat, be empty, and be views, in int32 and int64.
    """
    _check(subject, case)


# ---- operands that are views of views ----------------------------------------------------------------------


VIEWED_SHAPES: tuple[Shape, ...] = ((3, 3, 3), (2, 3, 2, 3), (4, 4))
"""Axes of equal sizes, so that confusing two axes changes no shape; the smoke run has the last shape."""

ALL = (*MOVEMENTS, *REDUCTIONS, *EXTREMA, *ARRANGEMENTS, *INDEXING)


def plain_dtypes(subject: Subject, op: str) -> list[DType]:
    """The dtypes in which an op runs on the backend without rounding."""
    if op in INDEXING:
        if "int32" not in subject.capabilities.dtypes:
            return []
        found = exact.dtypes_for(subject, OPS[op], (0, 1)[: len(OPS[op].params)], beside=(DTYPES["int32"],))
    else:
        found = exact.dtypes_for(subject, OPS[op], ((),))
    plain = [d for d in found if d.kind != "float" or Arithmetic(subject.capabilities, d.name).faithful]
    return plain if op in REDUCTIONS or op == "scatter_add" else found


def _random(subject: Subject, case: Case, shape: Shape, *which: int) -> np.random.Generator:
    key = zlib.crc32(f"{case.op} {case.dtype} {shape}".encode())
    return np.random.default_rng([subject.seed, key, *which])


def _distinct(subject: Subject, case: Case, shape: Shape) -> Array:
    """Values that differ by position: ints over the whole range, floats that are whole and have exact sums."""
    kind, size = DTYPES[case.dtype].kind, int(np.prod(shape))
    rng = _random(subject, case, shape)
    if kind == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    if kind == "int":
        ends = np.iinfo(case.dtype)
        return rng.integers(ends.min, ends.max, shape, case.dtype)
    if case.op in ("prod", "cumprod"):
        return rng.choice([1.0, -1.0, -1.0, 2.0], shape).astype(case.dtype)
    few = 8 if case.dtype == "bfloat16" else size  # whose sums of larger numbers would be rounded
    numbers = (1.0 + np.arange(size) % max(few, 1)) * rng.choice([1.0, -1.0], size)
    return rng.permutation(numbers).reshape(shape).astype(case.dtype)


def _view_cases(subject: Subject) -> Iterator[Case]:
    """Each op and dtype; a case tries all chains, shapes and params."""
    for op in ALL:
        yield from [Case("values.views", op, dtype.name) for dtype in plain_dtypes(subject, op)]


@law("values.views", _view_cases, level=2, needs=lambda case: chains.needs(case.dtype))
def viewed(subject: Subject, case: Case) -> None:
    """An op on a view, made by one or two movements, gives the same bits as on a plain operand.

    Operands are permuted, flipped along each axis and along all, cropped likewise, expanded along each, and two of
    these in sequence.  Their axes have equal sizes, so that confusing two axes changes no shape; whole numbers need no
    rounding.
    """
    for shape in VIEWED_SHAPES[-1:] if subject.depth == "smoke" else VIEWED_SHAPES:
        plain = _distinct(subject, case, shape)
        for name, chain in chains.possible(subject, case.dtype, len(shape)).items():
            values = chains.fitted(chain, plain)
            x = subject.apart(chains.lying(subject.call_counter, chain, values, DTYPES[case.dtype]))
            Operand(subject, case, values, x).check(f"{case.op} of {case.dtype} {shape}, {name},")


# ---- odd, long and empty operands --------------------------------------------------------------------------


EXTENTS: dict[str, tuple[Shape, ...]] = {
    "odd": ((31, 53), (13, 11, 17)),
    "none": ((0, 3), (3, 0), (2, 0, 3)),
    "long": ((33_001,),),
}
"""`odd`: more than a thousand elements, and no size is even; `long`: the size overflows an int16."""

COUNTING = ("argmax", "argmin", "argsort", "gather")
"""Ops that count along a long axis; they count alike in all dtypes, so one dtype is tried."""

ELEMENTWISE = ("neg", "abs", "square", "floor", "add", "sub", "mul", "maximum", "minimum", "eq", "lt") + (
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
)
"""Ops whose results are exact."""


def _extent_cases(subject: Subject) -> Iterator[Case]:
    """Each op and dtype on each group of shapes; none in the smoke run."""
    if subject.depth == "smoke":
        return
    for op in ELEMENTWISE:
        for dtype in exact.dtypes_for(subject, OPS[op], operands=OPS[op].arity or 1):
            yield Case("values.extents", op, dtype.name, "odd")
    for op in ALL:
        dtypes = plain_dtypes(subject, op)
        for dtype in dtypes:
            yield Case("values.extents", op, dtype.name, "none")
            if op not in MOVEMENTS:
                yield Case("values.extents", op, dtype.name, "odd")
        if op in COUNTING and dtypes:
            yield Case("values.extents", op, dtypes[-1].name, "long")


def _whole_numbers(subject: Subject, case: Case, shape: Shape, which: int = 0) -> Array:
    """Whole numbers with exact sums; the largest is the last but one."""
    dtype, size = DTYPES[case.dtype], int(np.prod(shape))
    rng = _random(subject, case, shape, which)
    if dtype.kind == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    if case.op in ("prod", "cumprod"):
        return rng.choice([1, -1], shape).astype(case.dtype)
    whole = rng.choice([-3, -2, -1, 1, 2, 3], size)
    if dtype.name in NARROW and (case.op in REDUCTIONS or case.op == "scatter_add"):
        most = 500 if dtype.name == "float16" else 16
        whole[rng.random(size) > most / max(size, 1)] = 0
    if size:
        whole[-2:][:1] = 7
    return whole.reshape(shape).astype(case.dtype)


@law("values.extents", _extent_cases, level=2)
def extents(subject: Subject, case: Case) -> None:
    """An op is right for some thousand elements, along an axis of 33 001, and for empty operands.

    Sizes of operands with elements are odd.  All numbers are whole and small, so that nothing is rounded.
    """
    for shape in EXTENTS[case.shape]:
        says = f"{case.op} of {case.dtype} {shape}"
        arrays = [_whole_numbers(subject, case, shape, i) for i in range(OPS[case.op].arity or 1)]
        tensors = [subject.tensor(x, DTYPES[case.dtype]) for x in arrays[:2]]
        if case.op in ELEMENTWISE:
            rows = tuple([x.reshape(-1) for x in arrays])
            expected = elementwise.expected(OPS[case.op], DTYPES[case.dtype], rows).reshape(shape)
            exact.agree(subject, subject.run(OPS[case.op], tensors), expected, says)
        else:
            Operand(subject, case, arrays[0], tensors[0]).check(says, "")
