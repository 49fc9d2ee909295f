"""A failure of an op that a backend leaves to its body says why: ops that run as one, or an inaccurate op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from conformance.tests.examining import run_law
from tensorken_conformance.case import Case
from tensorken_conformance.running import bodies
from tensorken_conformance.running.plan import law_named
from tensorken_conformance.subject import Subject
from tensorken_core.errors import BackendError
from tensorken_core.language.dtypes import float32, float64
from tensorken_core.language.raw import RawTensor
from tensorken_numpy.backend import Numpy


class Delayed(np.ndarray[Any, Any]):
    """A result with the function and the operands that it was computed from."""

    made: tuple[str, Any, Any] | None = None


class Delaying(Numpy):
    """Remembers how a result was made, until it is read and made again."""

    def note(self, name: str, a: Any, b: Any) -> Any:
        y = np.asarray(getattr(super(), name)(np.asarray(a), np.asarray(b))).view(Delayed)
        y.made = name, a, b
        return y

    def mul(self, a: Any, b: Any) -> Any:
        return self.note("mul", a, b)

    def sub(self, a: Any, b: Any) -> Any:
        return self.note("sub", a, b)


class Contracting(Delaying):
    """Subtracts from products, and products from numbers, before they are rounded."""

    def sub(self, a: Any, b: Any) -> Any:
        wide = [self.wide(x) for x in (a, b)]
        return (wide[0] - wide[1]).astype(a.dtype) if a.dtype == np.float32 else super().sub(a, b)

    def wide(self, x: Any) -> Any:
        name, *factors = getattr(x, "made", None) or ("", x)
        found = [np.asarray(f, np.float64) for f in factors]
        with np.errstate(all="ignore"):
            return found[0] * found[1] if name == "mul" else np.asarray(x, np.float64)


class Simplifying(Delaying):
    """Rewrites a - (a - b) to b."""

    def sub(self, a: Any, b: Any) -> Any:
        name, x, y = getattr(b, "made", None) or ("", None, None)
        return y if name == "sub" and x is a else super().sub(a, b)


class Refusing(Numpy):
    """Raises an exception in each difference."""

    def sub(self, a: Any, b: Any) -> Any:
        raise BackendError("sub: the kernel does not compile")


class PoorExp(Numpy):
    """exp is off by a ten-thousandth for large numbers."""

    def exp(self, x: Any) -> Any:
        y = super().exp(x)
        return np.where(abs(x) > 64, y * y.dtype.type(1.0001), y)


class PoorSigmoid(PoorExp):
    """Its own sigmoid is off, as that of the body would be."""

    def sigmoid(self, x: Any) -> Any:
        return super().sigmoid(x) + x.dtype.type(0.25)


class SortsDown(Numpy):
    """Its own op with a body is wrong."""

    def sort(self, x: Any, axis: int) -> Any:
        return -np.sort(-x, axis)


OF_PRODUCTS = (
    "; right when each step of its body is read back: the library computes products and sums of several ops"
)
OF_STEPS = (
    "; right when each step of its body is read back: the library computes several of them as one; override "
)
OF_EXP = "; fails with exp, which is inaccurate itself ("


@pytest.mark.parametrize("around", [lambda raw: raw, tk.Lazy], ids=["eager", "lazy"])
@pytest.mark.parametrize(
    ("backend", "op", "cause", "end"),
    [
        (Contracting, "gaussian", bodies.AS_ONE, OF_PRODUCTS),
        (Simplifying, "remainder", bodies.AS_ONE, OF_STEPS),
        (PoorExp, "cosh", "with exp, which is inaccurate itself", OF_EXP),
        (PoorSigmoid, "sigmoid", "", ""),
        (SortsDown, "sort", "", ""),
    ],
)
def test_a_failure_says_why_the_body_is_wrong(
    around: Callable[[Any], Any], backend: type[Numpy], op: str, cause: str, end: str
) -> None:
    method = vars(backend).get(op, getattr(RawTensor, op))
    examined = around(type("Examined", (backend,), {op: method})())
    law = "values.arrangement" if op == "sort" else "values.elementwise"
    results = run_law(examined, law, where=lambda case: case.id.startswith(f"{law}/{op}/float32/"))
    failed = [result for result in results if result.status == "failed"]
    assert cause in {result.cause for result in failed} <= {cause, ""}
    assert all((end in result.says) == bool(result.cause) for result in failed if end)


def test_contraction_is_measured() -> None:
    found = {
        (kind, dtype): bodies._contracts(Subject(kind(), "examined"), dtype)
        for kind in (Numpy, Contracting, Simplifying, Refusing)
        for dtype in (float32, float64)
    }
    assert [key for key, contracts in found.items() if contracts] == [(Contracting, float32)]


def test_a_long_case_is_not_examined_by_steps() -> None:
    subject = Subject(type("Examined", (PoorExp,), {"cosh": RawTensor.cosh})(), "examined")
    law, case = (
        law_named("values.elementwise"),
        Case("values.elementwise", "cosh", "float32", "prime", "mixed"),
    )
    assert bodies.cause_in_body(subject, law, case, 0.1)[0]
    assert bodies.cause_in_body(subject, law, case, 2 * bodies.LONGEST) == ("", "")
    assert bodies.cause_in_body(subject, law, case, -5.0 / 3.0) == ("", "")  # no time is left
