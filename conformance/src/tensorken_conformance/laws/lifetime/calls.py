"""lifetime.calls: a call of an op changes no operand, and no later call changes its result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from tensorken_conformance.case import Case, Failure, Measured
from tensorken_conformance.law import law
from tensorken_conformance.laws import placement, sampled
from tensorken_conformance.laws.lifetime import memory
from tensorken_conformance.operands import samples
from tensorken_conformance.oracles import exact
from tensorken_conformance.subject import Array, Depth, Subject
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.language.op import OPS, Op, Sample
from tensorken_core.tensor.tensor import Tensor

TIMES: dict[Depth, int] = {"smoke": 2, "default": 20, "deep": 20}
"""The number of runs of each sample, and of runs on other operands; few in the smoke run, for slow backends."""

MOST, ELEMENTS = 150, 600
"""The most runs of a small sample, and of elements that they compute.  All samples of an op make some 400 calls; an
error in one of fifty calls at random is missed once in 3 000 times."""

KINDS = 5
"""The number of different other operands."""

SIZES = (63, 64, 65, 255, 256, 257)


def cases(subject: Subject) -> Iterator[Case]:
    """Each op in each dtype, but not the longest bodies in the smoke run."""
    return sampled.cases("lifetime.calls", subject)


@law("lifetime.calls", cases, level=4)
def calls(subject: Subject, case: Case) -> Measured:
    """A call keeps the bits of its operands; its result keeps its bits, and is the same each time.

    Operands do not change either after the result was read, where all operands are one tensor, and where one is a view,
    whose source does not change.  Results share no memory with operands or each other, unless that is declared: the
    buffers of the representations are compared.  Users can change other memory only through the results of `ravel`,
    numpy and DLPack: so these are changed, and operands, the result and an equal result are read again.  The figure is
    the number of tensors with visible memory.

    Then all samples of the op run many times, on the same operands and on others.  The results of an op that is
    declared nondeterministic are not compared.
    """
    op, dtype = OPS[case.op], DTYPES[case.dtype]
    visible = sum([_once(subject, op, sample, dtype) for sample in varied(subject, op)])
    _often(subject, op, dtype)
    return Measured(figures={"tensors that show memory": float(visible)})


def varied(subject: Subject, op: Op) -> list[Sample]:
    """The samples of the op, and for ops of any size some around thresholds; in the smoke run one."""
    found = samples.repeated(subject, op)
    if subject.depth == "smoke":
        return found
    shapes = (*[(n,) for n in SIZES], (3, 4, 2), (17, 16))
    if op.elementwise:
        found += [((shape,) * (op.arity or 1), ()) for shape in shapes]
    elif op.name in placement.MOVEMENTS and op.name != "expand":
        found += [((shape,), (p,)) for shape in shapes for p in placement.variants(op.name, shape)]
    elif op.arity == 1 and op.params == ("axes",):
        found += [((shape,), (axes,)) for shape in shapes for axes in placement.axes_of("max", shape)]
    elif op.arity == 1 and op.params == ("axis",):
        found += [((shape,), (axis,)) for shape in shapes for axis in range(len(shape))]
    elif op.name == "cast":
        found += [((shape,), found[0][1]) for shape in shapes]
    else:
        found += [sample for n in SIZES for sample in samples.of_size(op, n)]
    return found


def _once(subject: Subject, op: Op, sample: Sample, dtype: DType) -> int:
    """Call an op twice, change the values read, and compare all tensors; returns how many have visible memory."""
    shapes, params = sample
    given = samples.values_of(op, sample, dtype, subject.seed)
    arrays = [x for x, _ in given]
    operands = [subject.tensor(*one) for one in given]
    says = f"{op.name} {params or ''} of {dtype} {shapes}"
    results = [y for _ in range(2) for y in subject.results(op, operands, params)]
    values = [subject.read(y) for y in results]
    _check(subject, operands, arrays, f"{says}: operand")
    if not subject.capabilities.shares_memory:
        sources = () if subject.call_counter.has(op) else [x.representation for x in operands]
        # the default body of an op may return an operand
        apart = [y for y in results if not any(y.representation is x for x in sources)]
        _check_apart(operands, apart, says)
    for y in results:
        for way, out in memory.WAYS_OUT.items():
            if way != "tolist" and memory.gives(way, y):
                memory.overwrite(out(y))
    _check(subject, operands, arrays, f"{says}: after what was read of results was changed, operand")
    _check(subject, results, values, f"{says}: after what was read of results was changed, result")
    if op.elementwise and len(operands) == 2 and arrays[0].dtype == arrays[1].dtype:
        _read(subject, subject.results(op, [operands[0]] * 2, params))
        _check(subject, operands[:1], arrays, f"{says}, of one tensor twice: operand")
    if shapes[0] and not subject.capabilities.why_not("flip", dtype.name):
        axes = tuple(range(arrays[0].ndim))
        source = subject.tensor(np.flip(arrays[0]), given[0][1])
        view = subject.apart(subject.run(OPS["flip"], [source], (axes,)))
        _read(subject, subject.results(op, [view, *operands[1:]], params))
        _check(subject, [view, *operands[1:]], arrays, f"{says}, of a flipped tensor: operand")
        _check(subject, [source], [np.flip(arrays[0])], f"{says}, of a flipped tensor: source")
    return sum([bool(memory.seen(x.representation)) for x in (*operands, *results)])


def _read(subject: Subject, results: Sequence[Tensor]) -> list[Array]:
    return [subject.read(y) for y in results]


def _check(subject: Subject, tensors: Sequence[Tensor], values: Sequence[Array], says: str) -> None:
    for number, (x, right) in enumerate(zip(tensors, values, strict=False)):
        exact.agree(subject, x, right, f"{says} {number} has changed")


def _check_apart(operands: Sequence[Tensor], results: Sequence[Tensor], says: str) -> None:
    pairs = [
        (f"the result shares memory with operand {i}", x, y) for i, x in enumerate(operands) for y in results
    ]
    pairs += [("two results share memory", x, y) for x, y in combinations(results, 2)]
    for wrong, x, y in pairs:
        if memory.overlap(x.representation, y.representation):
            raise Failure(f"{says}: {wrong}; declare shares_memory=True, or copy")


def times(subject: Subject, op: Op, size: int) -> int:
    """The number of runs of a sample of this size: more for small ones, unless the op is a factorization."""
    least = TIMES[subject.depth]
    if samples.heavy(op) or subject.depth == "smoke":
        return least
    return max(least, min(MOST, ELEMENTS // max(size, 1)))


def _often(subject: Subject, op: Op, dtype: DType) -> None:
    free = op.name in subject.capabilities.nondeterministic
    kept, largest = [], 0
    for sample in samples.repeated(subject, op):
        given = samples.values_of(op, sample, dtype, subject.seed)
        operands = [subject.tensor(*one) for one in given]
        first = subject.results(op, operands, sample[1])
        count = times(subject, op, sum([x.size for x, _ in given]))
        kept.append((sample, operands, first, [y.flat() for y in first], _read(subject, first), count))
        largest = max(largest, count)
    others = TIMES[subject.depth] // (2 if samples.heavy(op) else 1)
    for turn in range(1, largest):
        for sample, operands, _, _, right, count in kept:
            if turn < count:
                again = _read(subject, subject.results(op, operands, sample[1]))
                for got, expected in zip(again, right, strict=True):
                    if not free:
                        exact.same(got, expected, f"{op.name} {sample[1] or ''} of {dtype}, call {turn + 1}")
            if turn <= others:
                number = 1 + turn % KINDS
                beside = samples.values_of(op, sample, dtype, subject.seed + 1000 * number)
                _read(subject, subject.results(op, [subject.tensor(*one) for one in beside], sample[1]))
    for _, _, first, flats, right, _ in kept:
        _check(subject, first, right, f"{op.name} of {dtype}, read again after {largest} later calls: result")
        for flat, expected in zip(flats, right, strict=True):
            now = memory.numbers(flat, expected.dtype).reshape(expected.shape)
            exact.same(
                now, expected, f"{op.name} of {dtype}: the result of ravel has changed after later calls"
            )
