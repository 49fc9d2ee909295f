"""lifetime.operands-unchanged: an op only reads its operands."""

from __future__ import annotations

from collections.abc import Iterator

from tensorken_conformance.case import Case
from tensorken_conformance.law import law
from tensorken_conformance.laws.lifetime import samples
from tensorken_conformance.oracles import exact
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS, Op
from tensorken_core.tensor.tensor import Tensor


def cases(subject: Subject) -> Iterator[Case]:
    """Each op in each dtype; a case tries all its samples, around thresholds of sizes too, and views as operands."""
    return samples.cases("lifetime.operands-unchanged", subject)


@law("lifetime.operands-unchanged", cases, level=4)
def operands_unchanged(subject: Subject, case: Case) -> None:
    """After an op its operands, and what these are views of, have the same bits as before.

    That holds after the result was read, too, and where one tensor is every operand.
    """
    op, dtype = OPS[case.op], DTYPES[case.dtype]
    for sample in samples.samples(op, subject.depth):
        params = samples.params_of(subject, sample[1])
        arrays = samples.operands(subject, op, sample, dtype)
        tensors = [subject.tensor(x, DTYPES[x.dtype.name]) for x in arrays]
        _check(subject, op, tensors, params, list(zip(tensors, arrays, strict=True)), "")
        if op.elementwise and len(tensors) == 2 and arrays[0].dtype == arrays[1].dtype:
            _check(subject, op, [tensors[0]] * 2, params, [(tensors[0], arrays[0])], "of one tensor twice, ")
        if sample[0][0] and not subject.capabilities.why_not("flip", case.dtype):
            axes = tuple(range(arrays[0].ndim))
            source = subject.tensor(
                arrays[0][(slice(None, None, -1),) * len(axes)], DTYPES[arrays[0].dtype.name]
            )
            view = subject.run(OPS["flip"], [source], (axes,))
            watched = [(source, arrays[0][(slice(None, None, -1),) * len(axes)]), (view, arrays[0])]
            _check(subject, op, [view, *tensors[1:]], params, watched, "of a flipped tensor, ")


def _check(
    subject: Subject,
    op: Op,
    tensors: list[Tensor],
    params: tuple[object, ...],
    watched: list[tuple[Tensor, Array]],
    says: str,
) -> None:
    result = subject.run(op, tensors, params)
    for y in result if isinstance(result, tuple) else (result,):
        subject.read(y)
    for number, (x, values) in enumerate(watched):
        exact.agree(subject, x, values, f"{op.name} {params or ''} {says}operand {number} has changed")
