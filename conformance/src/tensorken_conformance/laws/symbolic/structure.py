"""symbolic.shapes, derivatives, parses, declared: the shapes, derivatives and texts of a symbolic backend."""

from __future__ import annotations

from collections.abc import Iterator

import tensorken as tk
from tensorken_conformance.backends.capability_checks import fault_of
from tensorken_conformance.case import Case, Failure
from tensorken_conformance.law import law
from tensorken_conformance.laws.declarations import declared
from tensorken_conformance.laws.derivatives.scenarios import of_some
from tensorken_conformance.levels import is_mandatory
from tensorken_conformance.operands.samples import kinds_of, methods, samples_of, takes
from tensorken_conformance.programs.symbolic import DRAWN, WRITTEN, results_of, symbol, text_of
from tensorken_conformance.programs.trees import Recorder, difference, read
from tensorken_conformance.subject import Subject, require_facts
from tensorken_core.language.dtypes import DTYPES, DType, float32
from tensorken_core.language.op import OPS, Op, Sample
from tensorken_core.tensor.dispatch import apply
from tensorken_core.tensor.tensor import Tensor


def ops(law: str, subject: Subject) -> Iterator[Case]:
    """Each op in each dtype; in the smoke run in the first."""
    for op in methods():
        offered = [dtype.name for dtype in subject.dtypes() if takes(op, dtype)]
        for dtype in offered[:1] if subject.depth == "smoke" else offered:
            yield Case(law, op.name, dtype)


def operands_of(recorder: Recorder, op: Op, sample: Sample, dtype: DType) -> list[Tensor]:
    """Symbols of the shapes that a sample of an op has."""
    shapes, _ = sample
    kinds = kinds_of(op, len(shapes), dtype)
    return [
        symbol(recorder, f"x{i}", shape, kind)
        for i, (shape, kind) in enumerate(zip(shapes, kinds, strict=True))
    ]


def _results(subject: Subject, op: Op, sample: Sample, dtype: DType) -> list[Tensor]:
    found = apply(op, operands_of(Recorder(subject.call_counter), op, sample, dtype), sample[1])
    return list(found) if isinstance(found, tuple) else [found]


@law(
    "symbolic.shapes",
    lambda subject: ops("symbolic.shapes", subject),
    level=lambda case: 1 if is_mandatory(case.op, case.dtype) else 2,
    symbolic=True,
)
def shapes(subject: Subject, case: Case) -> None:
    """The result of every op on symbols has the shape and the dtype of its rules."""
    op, dtype = OPS[case.op], DTYPES[case.dtype]
    for sample in samples_of(op, subject.capabilities.dtypes):
        for y in _results(subject, op, sample, dtype):
            require_facts(case.op, y, y.shape, y.dtype)


def _differentiable(subject: Subject) -> Iterator[Case]:
    if float32.name in subject.capabilities.dtypes:
        for op in methods():
            if op.differentiable and takes(op, float32) and op.results == 1:
                yield Case("symbolic.derivatives", op.name, float32.name)


@law("symbolic.derivatives", _differentiable, level=3, symbolic=True)
def derivatives(subject: Subject, case: Case) -> None:
    """The JVP of an op has the shape and dtype of its result, a cotangent those of its operand."""
    op = OPS[case.op]
    recorder = Recorder(subject.call_counter)
    sample = op.samples[0]
    operands = operands_of(recorder, op, sample, float32)
    positions = [i for i in range(len(operands)) if not op.operand_kinds or op.operand_kinds[i] == "data"]
    f, primals = of_some(lambda *full: apply(op, full, sample[1]), operands, positions)
    tangents = [symbol(recorder, f"t{i}", operands[i].shape) for i in positions]
    y, t = tk.jvp(f, primals, tangents)
    for what, value in (("primal", y), ("tangent", t)):
        require_facts(f"{what} of {case.op}", value, y.shape, y.dtype)
    if y.dtype.kind != "float":
        return
    _, pull = tk.vjp(f, *primals)
    found = pull(symbol(recorder, "u", y.shape, y.dtype))
    for x, cotangent in zip(primals, found if isinstance(found, tuple) else (found,), strict=True):
        require_facts(f"cotangent of {case.op}", cotangent, x.shape, x.dtype)


def _texts(subject: Subject) -> Iterator[Case]:
    yield from ops("symbolic.parses", subject)
    for name in WRITTEN if subject.depth != "smoke" else list(WRITTEN)[:1]:
        yield Case("symbolic.parses", "program", detail=name)
    for number in range(DRAWN[subject.depth]):
        yield Case("symbolic.parses", "program", detail=f"drawn-{number}")


@law("symbolic.parses", _texts, level=2, symbolic=True)
def parses(subject: Subject, case: Case) -> None:
    """The text of a value parses to the ops and params that made it."""
    if case.op == "program":
        made = results_of(subject, case.detail)
    else:
        op, dtype = OPS[case.op], DTYPES[case.dtype]
        made = [
            y
            for sample in samples_of(op, subject.capabilities.dtypes)
            for y in _results(subject, op, sample, dtype)
        ]
    for y in made:
        text = text_of(subject.call_counter, y)
        try:
            found = read(text)
        except ValueError as error:
            raise Failure(f"{text!r}: {error}") from None
        if wrong := difference(y.representation[1], found):
            raise Failure(f"{text!r}: {wrong}")


@law("symbolic.declared", declared("symbolic.declared"), level=2, symbolic=True)
def declarations(subject: Subject, case: Case) -> None:
    """Declarations are about ops and dtypes that exist."""
    subject.call_counter.full((1,), 1, subject.dtypes()[0])
    if says := fault_of(subject.capabilities, case.op, case.detail):
        raise Failure(f"{case.op}: {says}")
