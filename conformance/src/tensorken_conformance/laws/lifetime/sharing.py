"""lifetime.sharing: whether results share memory, and that nobody can tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from tensorken_conformance.case import Case, Failure, Measured
from tensorken_conformance.law import law
from tensorken_conformance.laws.lifetime import memory, samples
from tensorken_conformance.oracles import exact
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS
from tensorken_core.tensor.tensor import Tensor


def cases(subject: Subject) -> Iterator[Case]:
    """Each op in each dtype; a case tries all its samples, in the quick run one."""
    return samples.cases("lifetime.sharing", subject)


@law("lifetime.sharing", cases, level=4)
def sharing(subject: Subject, case: Case) -> Measured:
    """Results share no memory with operands or each other, unless that is declared; changing one changes no other.

    What a representation shows as buffers is compared.  Memory that nothing shows cannot be; but a user cannot
    change that either, except through what `ravel`, numpy and DLPack give: so all that they give of a result is
    changed, and operands, the result and an equal result are read again.  The figure tells how many tensors showed
    their memory.
    """
    op, dtype, visible = OPS[case.op], DTYPES[case.dtype], 0
    for sample in samples.samples(op, subject.depth):
        arrays = samples.operands(subject, op, sample, dtype)
        operands = [subject.tensor(x, DTYPES[x.dtype.name]) for x in arrays]
        params = samples.params_of(subject, sample[1])
        results = [*_tuple(subject.run(op, operands, params)), *_tuple(subject.run(op, operands, params))]
        says = f"{case.op} {params or ''} of {case.dtype} {sample[0]}"
        values = [subject.read(y) for y in results]
        visible += sum([bool(memory.seen(x.representation)) for x in (*operands, *results)])
        if not subject.capabilities.shares_memory:
            given = () if subject.call_counter.has(op) else [x.representation for x in operands]
            # the body of an op that the backend lacks may give an operand as it is
            apart = [y for y in results if not any(y.representation is x for x in given)]
            _check_apart(operands, apart, says)
        for y in results:
            for way, out in memory.WAYS_OUT.items():
                if way != "tolist" and memory.gives(way, y):
                    memory.overwrite(out(y))
        _check_same(
            subject, operands, arrays, f"{says}: an operand, after what was read of results was changed"
        )
        _check_same(subject, results, values, f"{says}: a result, after what was read of results was changed")
    return Measured(figures={"tensors that show memory": float(visible)})


def _tuple(result: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return result if isinstance(result, tuple) else (result,)


def _check_apart(operands: Sequence[Tensor], results: Sequence[Tensor], says: str) -> None:
    for y in results:
        for number, x in enumerate(operands):
            if memory.overlap(x.representation, y.representation):
                raise Failure(
                    f"{says}: the result shares memory with operand {number}; declare shares_memory=True, or copy"
                )
    for y, z in combinations(results, 2):
        if memory.overlap(y.representation, z.representation):
            raise Failure(f"{says}: two results share memory; declare shares_memory=True, or copy")


def _check_same(subject: Subject, tensors: Sequence[Tensor], values: Sequence[Array], says: str) -> None:
    for x, right in zip(tensors, values, strict=True):
        exact.agree(subject, x, right, says)
