"""The laws on derivatives hold on right backends, and each finds the faults that it is there for."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import tensorken as tk
from tensorken_conformance.case import Case
from tensorken_conformance.law import LAWS
from tensorken_conformance.laws.derivatives import (  # noqa: F401 - importing a module registers its laws
    batches,
    closed_forms,
    consistency,
    decisions,
    differences,
    primal_bits,
)
from tensorken_conformance.laws.derivatives.scenarios import scenarios
from tensorken_conformance.laws.derivatives.ties import TIES
from tensorken_conformance.running.examine import examine
from tensorken_conformance.subject import Subject
from tensorken_core.language.capabilities import Capabilities
from tensorken_core.language.op import OPS
from tensorken_core.levels import batch, forward
from tensorken_core.rewriting.fuse import Fuse
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference

IDS = [id for id in LAWS if id.startswith("derivatives.")]


def found_by(law, names, backend=None, seed=0):
    """The cases of a law about these ops and functions that fail."""
    subject = Subject(backend or Fuse(Numpy()), "tried", seed)
    cases = [case for case in LAWS[law].cases(subject) if case.op in names]
    assert cases, f"{law} has no cases for {names}"
    return [(case, r.says) for case in cases if (r := examine(subject, LAWS[law], case)).status == "failed"]


@contextlib.contextmanager
def changed(name, **facts):
    """An op with other rules, for a while; what the tape keeps for them is found anew."""
    op = OPS[name]
    before = {key: getattr(op, key) for key in (*facts, "tape_needs")}
    for key, value in {**facts, "tape_needs": {}}.items():
        object.__setattr__(op, key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            object.__setattr__(op, key, value)


# ---- rules that are wrong ----------------------------------------------------------------------------------


def test_a_cotangent_that_is_not_summed_over_a_broadcast_axis_is_found():
    def first_alone(t, y, x, shape):
        return t.crop(tuple((0, 1 if a != b else b) for a, b in zip(x.shape, shape, strict=True)))

    with changed("expand", vjp=(first_alone,)):
        assert found_by("derivatives.consistency", ["add", "expand", "nested-broadcasts"])
        assert found_by("derivatives.consistency", ["mul"])


def test_ties_that_are_not_shared_are_found():
    def whole(t, y, x, axes):
        return t.expand(x.shape) * x.eq(y.expand(x.shape)).astype(x.dtype)

    def pushed(t, y, x, axes):
        return (t * x.eq(y.expand(x.shape)).astype(x.dtype)).sum(axes, keepdims=True)

    with changed("max", jvp=(pushed,), vjp=(whole,)):
        assert found_by("derivatives.decisions", ["max-shares-ties"])
    with changed("max", vjp=(whole,)):
        assert found_by("derivatives.consistency", ["max-with-ties"])


def test_a_rule_that_uses_a_stale_operand_is_found():
    kept = []

    def stale(t, y, a, b):
        kept.append(b)
        return t * (kept[-2] if len(kept) > 1 and kept[-2].shape == b.shape else b)

    with changed("mul", vjp=(stale, OPS["mul"].vjp[1])):
        assert found_by("derivatives.consistency", ["mul", "horner", "recurrence"])


def test_a_wrong_sign_in_a_second_derivative_alone_is_found():
    def bent(t, y, x):
        slope = x.cos()
        return t * (tk.stop_gradient(slope) * 2.0 - slope)

    with changed("sin", jvp=(bent,), vjp=(bent,)):
        assert not found_by("derivatives.consistency", ["sin"])
        assert found_by("derivatives.differences", ["sin"])
        assert found_by("derivatives.orders", ["sin"])


def test_a_rule_off_by_a_millionth_in_both_modes_is_found():
    def off(t, y, x):
        return t * y * (1.0 + 1e-6)

    with changed("exp", jvp=(off,), vjp=(off,)):
        assert found_by("derivatives.orders", ["exp"])
        assert found_by("derivatives.differences", ["exp"])


@pytest.mark.parametrize("name", ["exp", "tanh", "log"])
def test_a_vjp_off_by_few_units_in_the_last_place_is_found(name):
    (rule,) = OPS[name].vjp
    with changed(name, vjp=(lambda t, y, x: rule(t, y, x) * (1.0 + 2.0**-46),)):
        assert found_by("derivatives.consistency", [name])
        assert found_by("derivatives.consistency", [name])


def test_a_permutation_that_is_not_inverted_is_found():
    with changed("permute", vjp=(lambda t, y, x, order: t.permute(order).reshape(x.shape),)):
        assert found_by("derivatives.consistency", ["permute"])


def test_exchanged_operands_in_the_pullback_of_products_of_matrices_are_found():
    first, second = OPS["mul"].vjp

    def exchanged(t, y, a, b):
        return (second if t.ndim > 2 else first)(t, y, a, b)

    with changed("mul", vjp=(exchanged, second)):
        assert found_by("derivatives.consistency", ["matmul-chain", "attention", "matmul-batched"])


def test_a_rule_wrong_for_three_axes_or_more_is_found():
    (rule,) = OPS["sum"].vjp
    with changed("sum", vjp=(lambda t, y, x, axes: rule(t, y, x, axes) * (2.0 if x.ndim > 2 else 1.0),)):
        assert found_by("derivatives.consistency", ["sum"])
    (rule,) = OPS["tanh"].vjp
    wrong = (lambda t, y, x: rule(t, y, x) * (2.0 if x.ndim > 2 else 1.0),)
    with changed("tanh", jvp=wrong, vjp=wrong):
        assert found_by("derivatives.differences", ["tanh"])


def test_a_rule_wrong_for_axes_of_size_one_is_found():
    (rule,) = OPS["cumsum"].vjp

    def wrong(t, y, x, axis):
        return rule(t, y, x, axis) * (2.0 if x.shape[axis] == 1 else 1.0)

    with changed("cumsum", vjp=(wrong,)):
        assert found_by("derivatives.consistency", ["cumsum"])


def test_a_cotangent_of_another_dtype_is_found():
    with changed("log", vjp=(lambda t, y, x: (t / x).astype("float32"),)):
        assert found_by("derivatives.consistency", ["log"])
    with changed("cast", vjp=(lambda t, y, x, dtype: t,)):
        assert found_by("derivatives.consistency", ["cast"])


def test_a_rule_that_is_not_linear_is_found():
    (rule,) = OPS["sqrt"].jvp
    with changed("sqrt", jvp=(lambda t, y, x: rule(t, y, x) + t * t * 1e-9,)):
        assert found_by("derivatives.consistency", ["sqrt"])
    with changed("sqrt", jvp=(lambda t, y, x: rule(t, y, x) + 1e-30,)):
        assert found_by("derivatives.consistency", ["sqrt"])


def test_a_hessian_that_is_not_symmetric_is_found():
    def half_constant(t, y, a, b):
        return t * tk.stop_gradient(b) if t.ndim else t * b

    with changed("mul", jvp=(half_constant, OPS["mul"].jvp[1])):
        assert found_by("derivatives.consistency", ["mul", "polynomial-of-matrices"])


@pytest.mark.parametrize("name", ["cholesky", "qr", "eigh", "svd", "solve", "inv", "det"])
def test_a_wrong_rule_of_an_op_on_matrices_is_found(name):
    op = OPS[name]
    if op.vjp_all is not None:
        rule = op.vjp_all
        facts = {"vjp_all": lambda *args: tuple(t if t is None else t * (1.0 + 1e-7) for t in rule(*args))}
    else:
        (rule,) = op.vjp
        facts = {"vjp": (lambda *args: rule(*args) * (1.0 + 1e-7),)}
    with changed(name, **facts):
        assert found_by("derivatives.consistency", [name])


# ---- interpreters that are wrong ---------------------------------------------------------------------------


def test_a_primal_that_jvp_changes_by_one_unit_in_the_last_place_is_found(monkeypatch):
    right = forward.Forward.interpret

    def nudged(self, op, operands, params):
        y = right(self, op, operands, params)
        if op is OPS["tanh"]:
            x = forward.Tensor(self.inner, y.primal)
            y.primal = x.apply(OPS["nextafter"], x + 1.0).representation
        return y

    monkeypatch.setattr(forward.Forward, "interpret", nudged)
    assert found_by("derivatives.primal-bits", ["tanh", "recurrence"])


@pytest.mark.parametrize(("kind", "name"), [("axis", "cumsum"), ("axes", "sum"), ("axes", "flip")])
def test_a_batch_along_another_axis_is_found(monkeypatch, kind, name):
    monkeypatch.setitem(batch.SHIFT_PARAM, kind, lambda param, size: param)
    assert found_by("derivatives.vmap", [name])


def test_a_batch_rule_that_takes_the_rows_of_the_first_example_is_found(monkeypatch):
    monkeypatch.setattr(batch.Batch, "_offset_indices", lambda self, indices, count: indices)
    assert found_by("derivatives.vmap", ["gather"])


# ---- backends that are wrong -------------------------------------------------------------------------------


class OuterProductsOff(Numpy):
    """Contractions that leave an axis of each operand and sum the first: what only pulling back through `@` needs."""

    def fused_multiply_add(self, a, b, axes):
        y = super().fused_multiply_add(a, b, axes)
        mixed = any(m != n for m, n in zip(a.shape, b.shape, strict=True))
        return y * (1.0 + 1e-12) if mixed and axes == (0,) and y.dtype == np.float64 else y


def test_a_contraction_that_only_derivatives_use_is_found():
    assert found_by("derivatives.consistency", ["matmul-chain", "attention"], Fuse(OuterProductsOff()))


class HalfExpand(Numpy):
    """Sums over more than one axis forget the last element."""

    def sum(self, x, axes):
        y = super().sum(x, axes)
        return y - x[-1:, -1:] if len(axes) == 2 and x.ndim == 2 else y


def test_a_sum_that_only_broadcast_operands_need_is_found():
    assert found_by("derivatives.consistency", ["mul", "div"], HalfExpand())


# ---- right backends ----------------------------------------------------------------------------------------


class Narrow(Numpy):
    """Without float64, and with errors of its own."""

    capabilities = Capabilities(dtypes=("bool", "int32", "float32"), ulp={"*": 2})


@pytest.mark.parametrize(
    "backend",
    [
        *[
            pytest.param(examined, marks=pytest.mark.nightly)
            for examined in (Fuse(Numpy()), Fuse(Reference()), Narrow())
        ],
        Fuse(Narrow()),
    ],
    ids=repr,
)
@pytest.mark.parametrize("law", IDS)
def test_right_backends_pass(law, backend):
    names = ["pow", "layer-norm", "cholesky", "nested", "max-shares-ties", "cast", *TIES]
    assert found_by(law, names, backend) == []


def test_a_report_says_which_bounds_come_from_monte_carlo_rounding():
    subject = Subject(Fuse(Numpy()), "numpy")
    case = Case("derivatives.consistency", "eigh", "float64", detail="3x3")
    result = examine(subject, LAWS[case.law], case)
    assert result.status == "passed"
    assert "from Monte Carlo rounding" in result.worst
    case = Case("derivatives.consistency", "tanh", "float64", detail="2x3")
    assert examine(subject, LAWS[case.law], case).worst == ""


def test_every_op_with_derivatives_is_among_the_scenarios():
    named = {name for name, _ in scenarios()}
    assert {op.name for op in OPS.values() if op.differentiable and op.higher_order is None} <= named
