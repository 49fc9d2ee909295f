"""derivatives.*: correct backends pass, and the laws detect wrong rules, interpreters and backends."""

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
)
from tensorken_conformance.laws.derivatives.scenarios import scenarios
from tensorken_conformance.laws.derivatives.ties import TIES
from tensorken_conformance.running.examine import examine
from tensorken_conformance.subject import Subject
from tensorken_core.language.capabilities import Capabilities
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_core.levels import batch, forward
from tensorken_core.rewriting.fuse import Fuse
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference

IDS = [id for id in LAWS if id.startswith("derivatives.")]


def failures(law, names, backend=None, seed=0):
    """The failed cases of a law on the named ops and functions, with their messages."""
    subject = Subject(backend or Fuse(Numpy()), "examined", seed)
    cases = [case for case in LAWS[law].cases(subject) if case.op in names]
    assert cases, f"{law} has no cases for {names}"
    return [(case, r.says) for case in cases if (r := examine(subject, LAWS[law], case)).status == "failed"]


@contextlib.contextmanager
def changed(name, **rules):
    """Replace rules of an op within a `with` statement, and clear the values that the tape saves for it."""
    op = OPS[name]
    before = {key: getattr(op, key) for key in (*rules, "tape_needs")}
    for key, value in {**rules, "tape_needs": {}}.items():
        object.__setattr__(op, key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            object.__setattr__(op, key, value)


# ---- wrong rules ---------------------------------------------------------------------------------------------


def test_a_cotangent_not_summed_over_broadcast_axes_is_detected():
    def crop_first(t, y, x, shape):
        return t.crop(tuple((0, 1 if a != b else b) for a, b in zip(x.shape, shape, strict=True)))

    with changed("expand", vjp=(crop_first,)):
        assert failures("derivatives.consistency", ["add", "expand", "nested-broadcasts"])
        assert failures("derivatives.consistency", ["mul"])


def test_derivatives_not_shared_among_ties_are_detected():
    def unshared_vjp(t, y, x, axes):
        return t.expand(x.shape) * x.eq(y.expand(x.shape)).astype(x.dtype)

    def unshared_jvp(t, y, x, axes):
        return (t * x.eq(y.expand(x.shape)).astype(x.dtype)).sum(axes, keepdims=True)

    with changed("max", jvp=(unshared_jvp,), vjp=(unshared_vjp,)):
        assert failures("derivatives.decisions", ["max"])
    with changed("max", vjp=(unshared_vjp,)):
        assert failures("derivatives.consistency", ["max-with-ties"])


def test_a_rule_that_uses_a_stale_operand_is_detected():
    operands = []

    def stale(t, y, a, b):
        operands.append(b)
        return t * (operands[-2] if len(operands) > 1 and operands[-2].shape == b.shape else b)

    with changed("mul", vjp=(stale, OPS["mul"].vjp[1])):
        assert failures("derivatives.consistency", ["mul", "horner", "recurrence"])


def test_a_wrong_sign_of_only_the_second_derivative_is_detected():
    def flipped_second(t, y, x):
        slope = x.cos()
        return t * (tk.stop_gradient(slope) * 2.0 - slope)

    with changed("sin", jvp=(flipped_second,), vjp=(flipped_second,)):
        assert not failures("derivatives.consistency", ["sin"])
        assert failures("derivatives.differences", ["sin"])
        assert failures("derivatives.orders", ["sin"])


def test_an_error_of_a_millionth_in_both_modes_is_detected():
    def off(t, y, x):
        return t * y * (1.0 + 1e-6)

    with changed("exp", jvp=(off,), vjp=(off,)):
        assert failures("derivatives.orders", ["exp"])
        assert failures("derivatives.differences", ["exp"])


@pytest.mark.parametrize("name", ["exp", "tanh", "log"])
def test_a_vjp_off_by_a_few_units_in_the_last_place_is_detected(name):
    (rule,) = OPS[name].vjp
    with changed(name, vjp=(lambda t, y, x: rule(t, y, x) * (1.0 + 2.0**-46),)):
        assert failures("derivatives.consistency", [name])
        assert failures("derivatives.consistency", [name])


def test_a_pullback_with_the_permutation_not_inverted_is_detected():
    with changed("permute", vjp=(lambda t, y, x, order: t.permute(order).reshape(x.shape),)):
        assert failures("derivatives.consistency", ["permute"])


def test_exchanged_operands_in_the_pullback_of_matmul_are_detected():
    first, second = OPS["mul"].vjp

    def exchanged(t, y, a, b):
        return (second if t.ndim > 2 else first)(t, y, a, b)

    with changed("mul", vjp=(exchanged, second)):
        assert failures("derivatives.consistency", ["matmul-chain", "attention", "matmul-batched"])


def test_a_rule_wrong_for_three_or_more_axes_is_detected():
    (rule,) = OPS["sum"].vjp
    with changed("sum", vjp=(lambda t, y, x, axes: rule(t, y, x, axes) * (2.0 if x.ndim > 2 else 1.0),)):
        assert failures("derivatives.consistency", ["sum"])
    (rule,) = OPS["tanh"].vjp
    doubled = (lambda t, y, x: rule(t, y, x) * (2.0 if x.ndim > 2 else 1.0),)
    with changed("tanh", jvp=doubled, vjp=doubled):
        assert failures("derivatives.differences", ["tanh"])


def test_a_rule_wrong_for_axes_of_size_one_is_detected():
    (rule,) = OPS["cumsum"].vjp

    def doubled(t, y, x, axis):
        return rule(t, y, x, axis) * (2.0 if x.shape[axis] == 1 else 1.0)

    with changed("cumsum", vjp=(doubled,)):
        assert failures("derivatives.consistency", ["cumsum"])


def test_a_cotangent_of_another_dtype_is_detected():
    with changed("log", vjp=(lambda t, y, x: (t / x).astype("float32"),)):
        assert failures("derivatives.consistency", ["log"])
    with changed("cast", vjp=(lambda t, y, x, dtype: t,)):
        assert failures("derivatives.consistency", ["cast"])


def test_a_rule_that_is_not_linear_is_detected():
    (rule,) = OPS["sqrt"].jvp
    with changed("sqrt", jvp=(lambda t, y, x: rule(t, y, x) + t * t * 1e-9,)):
        assert failures("derivatives.consistency", ["sqrt"])
    with changed("sqrt", jvp=(lambda t, y, x: rule(t, y, x) + 1e-30,)):
        assert failures("derivatives.consistency", ["sqrt"])


def test_a_hessian_that_is_not_symmetric_is_detected():
    def half_constant(t, y, a, b):
        return t * tk.stop_gradient(b) if t.ndim else t * b

    with changed("mul", jvp=(half_constant, OPS["mul"].jvp[1])):
        assert failures("derivatives.consistency", ["mul", "polynomial-of-matrices"])


@pytest.mark.parametrize("name", ["cholesky", "qr", "eigh", "svd", "solve", "inv", "det"])
def test_a_wrong_rule_of_a_linear_algebra_op_is_detected(name):
    op = OPS[name]
    if op.vjp_all is not None:
        rule = op.vjp_all
        rules = {"vjp_all": lambda *args: tuple(t if t is None else t * (1.0 + 1e-7) for t in rule(*args))}
    else:
        (rule,) = op.vjp
        rules = {"vjp": (lambda *args: rule(*args) * (1.0 + 1e-7),)}
    with changed(name, **rules):
        assert failures("derivatives.consistency", [name])


# ---- wrong interpreters --------------------------------------------------------------------------------------


def test_a_primal_changed_by_jvp_in_the_last_bit_is_detected(monkeypatch):
    original = forward.Forward.interpret

    def nudged(self, op, operands, params):
        y = original(self, op, operands, params)
        if op is OPS["tanh"]:
            x = forward.Tensor(self.inner, y.primal)
            y.primal = x.apply(OPS["nextafter"], x + 1.0).representation
        return y

    monkeypatch.setattr(forward.Forward, "interpret", nudged)
    assert failures("derivatives.consistency", ["tanh", "recurrence"])


@pytest.mark.parametrize(("param", "name"), [("axis", "cumsum"), ("axes", "sum"), ("axes", "flip")])
def test_an_axis_param_not_shifted_by_vmap_is_detected(monkeypatch, param, name):
    monkeypatch.setitem(batch.SHIFT_PARAM, param, lambda value, size: value)
    assert failures("derivatives.vmap", [name])


def test_a_batch_rule_that_reads_rows_of_the_first_example_is_detected(monkeypatch):
    monkeypatch.setattr(batch.Batch, "offset_indices", lambda self, indices, count: indices)
    assert failures("derivatives.vmap", ["gather"])


# ---- faulty backends -----------------------------------------------------------------------------------------


class InaccurateOuterProducts(Numpy):
    """Inaccurate contractions over the first axis that keep an axis of each operand, as only pullbacks of `@` need."""

    matmul = RawTensor.matmul  # a product is a contraction

    def fused_multiply_add(self, a, b, axes):
        y = super().fused_multiply_add(a, b, axes)
        mixed = any(m != n for m, n in zip(a.shape, b.shape, strict=True))
        return y * (1.0 + 1e-12) if mixed and axes == (0,) and y.dtype == np.float64 else y


def test_a_wrong_contraction_that_only_pullbacks_run_is_detected():
    assert failures("derivatives.consistency", ["matmul-chain", "attention"], Fuse(InaccurateOuterProducts()))


class SumWithoutLast(Numpy):
    """Sums of matrices over both axes leave out the last element."""

    def sum(self, x, axes):
        y = super().sum(x, axes)
        return y - x[-1:, -1:] if len(axes) == 2 and x.ndim == 2 else y


def test_a_wrong_sum_that_only_broadcast_operands_run_is_detected():
    assert failures("derivatives.consistency", ["mul", "div"], SumWithoutLast())


# ---- correct backends --------------------------------------------------------------------------------------


class Narrow(Numpy):
    """Lacks float64, and declares errors of 2 ULP."""

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
def test_correct_backends_pass(law, backend):
    names = [
        "pow",
        "layer-norm",
        "cholesky",
        "nested",
        "cast",
        "rfft",
        "complex-quotient",
        *TIES,
    ]
    assert failures(law, names, backend) == []


def test_results_name_bounds_from_monte_carlo_rounding():
    subject = Subject(Fuse(Numpy()), "numpy")
    case = Case("derivatives.consistency", "eigh", "float64", detail="3x3")
    result = examine(subject, LAWS[case.law], case)
    assert result.status == "passed"
    assert "from Monte Carlo rounding" in result.worst
    case = Case("derivatives.consistency", "tanh", "float64", detail="2x3")
    assert examine(subject, LAWS[case.law], case).worst == ""


def test_the_scenarios_include_every_differentiable_op():
    names = {name for name, _ in scenarios()}
    assert {op.name for op in OPS.values() if op.differentiable and op.higher_order is None} <= names
