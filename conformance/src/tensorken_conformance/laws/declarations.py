"""declarations.*: a backend behaves as it declares, in both directions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorken_conformance.backends.capability_checks import FIELDS, fault_of
from tensorken_conformance.backends.delegation import delegated, may_delegate
from tensorken_conformance.case import Case, Failure, Unsupported
from tensorken_conformance.law import law
from tensorken_conformance.levels import MANDATORY_DTYPES, is_mandatory
from tensorken_conformance.operands.samples import dtypes_of, methods, repeated, samples_of, takes, tensors_of
from tensorken_conformance.subject import Array, Subject
from tensorken_core.errors import BackendError, DTypeError
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.language.op import OPS, Op, run
from tensorken_core.tensor.tensor import Tensor

REFUSALS = (DTypeError, BackendError, NotImplementedError)
"""The exceptions of a backend for unsupported ops and dtypes."""


def first_line(error: BaseException) -> str:
    """The class and message of an exception, in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def missing(subject: Subject) -> Iterator[Case]:
    """Each op that the backend declares unsupported in a dtype that it declares; core refuses all other dtypes."""
    for op in methods():
        for dtype in subject.dtypes():
            if takes(op, dtype) and subject.capabilities.why_not(op.name, dtype.name):
                yield Case("declarations.refuses", op.name, dtype.name)


@law("declarations.refuses", missing, level=4, reads=False)
def refuses(subject: Subject, case: Case) -> None:
    """What the backend declares unsupported does not work; it refuses an op in one line, and before any effect.

    It raises a DTypeError, a BackendError or a NotImplementedError.  For a dtype that is not declared, core raises an
    error before it calls the backend (errors.refused), so the backend may accept such a dtype, or fail in any way.
    """
    reason = subject.capabilities.why_not(case.op, case.dtype) or ""
    op = OPS[case.op]
    sample = samples_of(op, subject.capabilities.dtypes)[0]
    operands = tensors_of(subject, op, sample, DTYPES[case.dtype])
    before = [subject.read(x) for x in operands]
    try:
        result = run(subject.call_counter, op, [x.representation for x in operands], sample[1])
    except REFUSALS as error:
        if len(str(error).splitlines()) != 1:
            raise Failure(f"{case.op}: expected a refusal of one line, got {str(error)!r}") from None
        _check_unchanged(subject, case.op, operands, before)
        raise Unsupported(reason) from None
    except Exception as error:  # noqa: BLE001, the class is wrong
        raise Failure(
            f"{case.op}: declared unsupported ({reason}); expected a DTypeError, BackendError or "
            f"NotImplementedError, got {first_line(error)}"
        ) from None
    raise Failure(
        f"{case.op}: stale declaration: {reason!r} is declared, yet it works and gives "
        f"{_shown(subject, result)}; declare it if this is right, refuse it if not"
    )


def _any_dtype(subject: Subject) -> DType:
    """A dtype of the backend, float32 if it has it."""
    names = [
        name for name in ("float32", *subject.capabilities.dtypes) if name in subject.capabilities.dtypes
    ]
    return DTYPES[names[0]]


def _check_unchanged(subject: Subject, name: str, operands: list[Tensor], before: list[Array]) -> None:
    for x, values in zip(operands, before, strict=False):
        if (after := subject.read(x)).tobytes() != values.tobytes():
            raise Failure(f"{name}: refused, yet an operand was {values.tolist()} and is {after.tolist()}")


def _shown(subject: Subject, result: Any) -> str:
    """The values of a result, if it can be read."""
    try:
        flat = subject.call_counter.ravel(result[0] if type(result) is tuple else result)
        values = flat if isinstance(flat, list) else np.array(memoryview(flat)).tolist()
    except Exception as error:  # noqa: BLE001, any failure is reported
        return f"a result that cannot be read ({first_line(error)})"
    return f"{values[:6]}"


def demanded(subject: Subject) -> Iterator[Case]:
    """Each op without a default body, in each dtype that the backend declares or that level 1 requires."""
    if not subject.capabilities.dtypes:
        yield Case("declarations.levels", "dtypes")
        return
    dtypes = [
        dtype
        for name, dtype in DTYPES.items()
        if name in MANDATORY_DTYPES or (name in subject.capabilities.dtypes and subject.depth != "smoke")
    ]
    for op in methods():
        if op.body is None:
            for dtype in dtypes:
                if takes(op, dtype):
                    yield Case("declarations.levels", op.name, dtype.name)


@law("declarations.levels", demanded, level=lambda case: 1 if _first(case) else 2, stage=1, reads=False)
def levels(subject: Subject, case: Case) -> None:
    """Every op without a default body runs, or is declared unsupported; the ops of level 1 must run."""
    if case.op == "dtypes":
        raise Failure(
            'the backend declares nothing; give its class capabilities = Capabilities(dtypes=("bool", "int32", ...))'
        )
    if reason := subject.capabilities.why_not(case.op, case.dtype):
        raise Unsupported(reason)
    op, dtype = OPS[case.op], DTYPES[case.dtype]
    sample = samples_of(op, subject.capabilities.dtypes)[0]
    try:
        subject.run(op, tensors_of(subject, op, sample, dtype), sample[1])
    except REFUSALS as error:
        raise Failure(
            f"{case.op}: {first_line(error)}; write it, or declare it: unsupported={{'{case.op}': reason}}"
        ) from None


def _first(case: Case) -> bool:
    return case.op == "dtypes" or is_mandatory(case.op, case.dtype)


def declared(law: str) -> Any:
    """The cases of a law on declarations: each entry of each field."""

    def cases(subject: Subject) -> Iterator[Case]:
        for field in FIELDS:
            for key in getattr(subject.capabilities, field):
                yield Case(law, field, detail=key)

    return cases


@law("declarations.entries", declared("declarations.entries"), level=2, reads=False)
def declared_errors(subject: Subject, case: Case) -> None:
    """Declarations are about ops and dtypes that exist, and in a form that can be checked.

    A declared error may not be larger than level 2 allows for any op and dtype of the entry.  An error that is declared
    much larger than measured is noted in the report, and fails nothing.
    """
    subject.call_counter.full((1,), 1, _any_dtype(subject))
    if says := fault_of(subject.capabilities, case.op, case.detail):
        raise Failure(f"{case.op}: {says}")


def own(subject: Subject) -> Iterator[Case]:
    """Each op, in the first dtype that the backend has for it; none if no source of the backend names another one."""
    for op in methods() if may_delegate(subject.backend) else ():
        dtype = _working_dtype(subject, op)
        if dtype is not None:
            yield Case("declarations.own-work", op.name, dtype.name)


def _working_dtype(subject: Subject, op: Op) -> DType | None:
    offered = [d for d in dtypes_of(op) if subject.capabilities.why_not(op.name, d.name) is None]
    return min(offered, key=lambda d: (d.name != "float32", list(DTYPES).index(d.name)), default=None)


@law("declarations.own-work", own, level=4, reads=False)
def own_work(subject: Subject, case: Case) -> None:
    """While the backend runs an op, it delegates to no other backend of this project without declaring it.

    Inherited methods, and interpreters of core around the backend, are its own work.
    """
    op, dtype = OPS[case.op], DTYPES[case.dtype]
    smoke = subject.depth == "smoke"
    for sample in repeated(subject, op) if smoke else samples_of(op, subject.capabilities.dtypes):
        operands = tensors_of(subject, op, sample, dtype)
        with delegated(subject.backend) as others:
            subject.run(op, operands, sample[1])
        if others:
            raise Failure(
                f"{case.op}: delegated to {', '.join(others)}; compute it, leave it to the op's body, or declare "
                f"delegates=(...)"
            )
