"""derivatives.primal-bits: differentiation changes no bit of a function's value."""

from __future__ import annotations

from typing import Any

import tensorken as tk
from tensorken_conformance.case import Case, Failure
from tensorken_conformance.law import law
from tensorken_conformance.laws.derivatives.scenarios import cases_of, dyadic, scenario_of
from tensorken_conformance.laws.read_back import bits
from tensorken_conformance.subject import Subject
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.tensor.tensor import Tensor


@law("derivatives.primal-bits", cases_of("derivatives.primal-bits"), level=3)
def primal_bits(subject: Subject, case: Case) -> None:
    """Differentiation, nested too, changes no bit of the value of a function; nor does vmap over one example."""
    scenario, rng = scenario_of(case), subject.random(case)
    dtype, values = DTYPES[case.dtype], scenario.draw(rng)
    operands = scenario.operands(subject.stack, values, dtype)
    f, at = scenario.along(operands, scenario.variables), [operands[i] for i in scenario.variables]
    t = scenario.operands(subject.stack, [dyadic(rng, x.shape) for x in values], dtype)
    v = [t[i] for i in scenario.variables]

    def jvp(g: Any) -> Any:
        return lambda *at: tk.jvp(g, at, v)[0]

    def vjp(g: Any) -> Any:
        return lambda *at: tk.vjp(g, *at)[0]

    def one(*at: Tensor) -> Tensor:
        mapped: Tensor = tk.vmap(f)(*[x.reshape((1, *x.shape)) for x in at])
        return mapped.reshape(mapped.shape[1:])

    expected = subject.read(f(*at))
    ways: dict[str, Any] = {
        "jvp": jvp(f),
        "vjp": vjp(f),
        "vmap": one,
        "jvp of vjp": jvp(vjp(f)),
        "vjp of jvp": vjp(jvp(f)),
        "jvp of jvp": jvp(jvp(f)),
        "vjp of vjp": vjp(vjp(f)),
    }
    for way, value in ways.items():
        got = subject.read(value(*at))
        if bits(got) != bits(expected):
            differs = [(a, b) for a, b in zip(got.flat, expected.flat, strict=True) if bits(a) != bits(b)]
            raise Failure(
                f"{case.op}: expected the value {differs[0][1].item()!r} under {way}, too, got {differs[0][0].item()!r}"
            )
