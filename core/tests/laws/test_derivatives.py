"""Laws of derivative rules, for every op of the table: the rules are right, linear, transposes, and change no value."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import tensorken as tk
from core.tests.laws.operands import (
    DIFFERENTIABLE,
    SAMPLES,
    as_function,
    draw,
    over,
    random_like,
    smooth,
    takes,
)
from core.tests.support import FUSED, array
from tensorken_core.language.op import OPS
from tensorken_core.levels import reverse

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("on_numpy")]


def subsets(op, sample):
    """Every choice of active operands."""
    places = [i for i in smooth(op) if i < len(sample[0])]
    return [s for n in range(1, len(places) + 1) for s in itertools.combinations(places, n)]


def inner(a, b):
    return math.fsum((array(a) * array(b)).ravel().tolist())


@pytest.mark.feature(107)
@over(DIFFERENTIABLE)
def test_the_vjp_is_the_transpose_of_the_jvp(op, sample):
    """<u, J v> = <Jᵀ u, v>, for every choice of active operands."""
    operands = draw(op, sample)
    for active in subsets(op, sample):
        f, at = as_function(op, sample, operands, active), [operands[i] for i in active]
        v = [random_like(x, i) for i, x in enumerate(at)]
        y, pushed = tk.jvp(f, at, v)
        u = random_like(y, "u")
        _, pull_back = tk.vjp(f, *at)
        pulled = pull_back(u)
        left, right = inner(u, pushed), math.fsum(inner(p, t) for p, t in zip(pulled, v, strict=True))
        assert left == pytest.approx(right, rel=1e-12, abs=1e-13)


@pytest.mark.feature(79, 107)
@over(DIFFERENTIABLE)
def test_the_jvp_agrees_with_finite_differences(op, sample):
    operands = draw(op, sample)
    for active in subsets(op, sample):
        f, at = as_function(op, sample, operands, active), [operands[i] for i in active]
        v = [random_like(x, i) for i, x in enumerate(at)]
        step = 1e-6
        ahead = array(f(*[x + t * step for x, t in zip(at, v, strict=True)]))
        behind = array(f(*[x - t * step for x, t in zip(at, v, strict=True)]))
        pushed = array(tk.jvp(f, at, v)[1])
        np.testing.assert_allclose(pushed, (ahead - behind) / (2 * step), rtol=1e-7, atol=1e-8)


@pytest.mark.feature(79, 107, 108)
@over(DIFFERENTIABLE)
def test_the_second_derivative_agrees_with_finite_differences_of_the_first(op, sample):
    operands = draw(op, sample)
    active = subsets(op, sample)[-1]
    f, at = as_function(op, sample, operands, active), [operands[i] for i in active]
    v, w = ([random_like(x, (name, i)) for i, x in enumerate(at)] for name in "vw")

    def slope(*at):
        return tk.jvp(f, at, v)[1]

    step = 1e-6
    ahead = array(slope(*[x + t * step for x, t in zip(at, w, strict=True)]))
    behind = array(slope(*[x - t * step for x, t in zip(at, w, strict=True)]))
    pushed = tk.jvp(slope, at, w)[1]
    np.testing.assert_allclose(array(pushed), (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-7)
    # ... and the other three mixes of the modes agree with it
    u = random_like(pushed, "u")
    expected = pytest.approx(inner(u, pushed), rel=1e-11, abs=1e-12)
    pulled = tk.vjp(slope, *at)[1](u)
    assert math.fsum(inner(p, t) for p, t in zip(pulled, w, strict=True)) == expected

    def gradient(*at):
        return tk.vjp(f, *at)[1](u)

    pushed = tk.jvp(gradient, at, w)[1]
    assert math.fsum(inner(p, t) for p, t in zip(pushed, v, strict=True)) == expected
    pulled = tk.vjp(gradient, *at)[1](tuple(v))
    assert math.fsum(inner(p, t) for p, t in zip(pulled, w, strict=True)) == expected


@pytest.mark.feature(131)
@over(DIFFERENTIABLE)
def test_cotangents_have_the_shape_and_dtype_of_their_operands(op, sample):
    for dtype in (tk.float32, tk.float64):
        operands = draw(op, sample, dtype=dtype)
        for active in subsets(op, sample):
            f, at = as_function(op, sample, operands, active), [operands[i] for i in active]
            y, pull_back = tk.vjp(f, *at)
            for x, pulled in zip(at, pull_back(tk.ones_like(y)), strict=True):
                assert (pulled.shape, pulled.dtype) == (x.shape, x.dtype)
                assert array(pulled).shape == x.shape
                assert str(array(pulled).dtype) == str(x.dtype)
            pushed = tk.jvp(f, at, [tk.ones_like(x) for x in at])[1]
            assert (pushed.shape, pushed.dtype) == (y.shape, y.dtype)
            assert (array(pushed).shape, str(array(pushed).dtype)) == (y.shape, str(y.dtype))


@pytest.mark.feature(107)
@over(DIFFERENTIABLE)
def test_the_rules_are_linear_in_the_tangent(op, sample):
    operands = draw(op, sample)
    active = subsets(op, sample)[-1]
    f, at = as_function(op, sample, operands, active), [operands[i] for i in active]
    v, w = ([random_like(x, (name, i)) for i, x in enumerate(at)] for name in "vw")
    combined = [a * 2.0 - b * 3.0 for a, b in zip(v, w, strict=True)]

    def push(t):
        return array(tk.jvp(f, at, t)[1])

    np.testing.assert_allclose(push(combined), 2.0 * push(v) - 3.0 * push(w), rtol=1e-12, atol=1e-13)
    y, pull_back = tk.vjp(f, *at)
    a, b = random_like(y, "a"), random_like(y, "b")
    for whole, one, other in zip(pull_back(a * 2.0 - b * 3.0), pull_back(a), pull_back(b), strict=True):
        np.testing.assert_allclose(
            array(whole), 2.0 * array(one) - 3.0 * array(other), rtol=1e-12, atol=1e-13
        )
    assert not any(array(t).any() for t in pull_back(tk.zeros_like(y)))
    assert not push([tk.zeros_like(x) for x in at]).any()


# The ops with floating-point operands; fused_multiply_add is not part of the differentiable language.
FLOATING = [
    (op, sample) for op, sample in SAMPLES if takes(op, tk.float64) and op is not OPS["fused_multiply_add"]
]


@pytest.mark.feature(186)
@over(FLOATING)
def test_differentiation_changes_no_bit_of_the_value(op, sample):
    operands = draw(op, sample)
    places = tuple(i for i in smooth(op) if i < len(operands))
    f, at = as_function(op, sample, operands, places), [operands[i] for i in places]
    plain = array(f(*at))
    expected = plain.tobytes()
    pushed = tk.jvp(f, at, [random_like(x, i) for i, x in enumerate(at)])
    assert array(pushed[0]).tobytes() == expected
    assert array(tk.vjp(f, *at)[0]).tobytes() == expected
    nested = tk.jvp(lambda *at: tk.vjp(lambda *at: tk.jvp(f, at, at)[0], *at)[0], at, at)
    assert array(nested[0]).tobytes() == expected
    if not op.differentiable:
        assert not array(pushed[1]).any()


@pytest.mark.feature(93, 135)
@over(DIFFERENTIABLE)
def test_the_tape_keeps_enough_for_the_rules(op, sample, monkeypatch):
    """The VJP with the inferred savings has the very bits of the VJP with everything kept."""
    operands = draw(op, sample)
    for active in subsets(op, sample):
        f, at = as_function(op, sample, operands, active), [operands[i] for i in active]
        y, thrifty = tk.vjp(f, *at)
        flags = tuple(i in active for i in range(len(operands)))
        with monkeypatch.context() as patch:
            patch.setitem(op.tape_needs, flags, (reverse.VALUE,) * (op.results + len(operands)))
            _, lavish = tk.vjp(f, *at)
        u = random_like(y, "u")
        for few, all_of_them in zip(thrifty(u), lavish(u), strict=True):
            assert array(few).tobytes() == array(all_of_them).tobytes()


def needs_of(op, active):
    return reverse._tape_needs(op, active)


@pytest.mark.feature(93, 135)
def test_the_tape_keeps_few_values():
    """The values that the tape keeps for each kind of rule: (of the result, of each operand)."""
    nothing, shape, value = reverse.NOTHING, reverse.SHAPE, reverse.VALUE
    expected = {
        ("add", (True, True)): (nothing, nothing, nothing),
        ("sub", (True, True)): (nothing, nothing, nothing),
        ("neg", (True,)): (nothing, nothing),
        ("mul", (True, True)): (nothing, value, value),
        ("mul", (True, False)): (nothing, nothing, value),
        ("mul", (False, True)): (nothing, value, nothing),
        ("div", (True, False)): (nothing, nothing, value),
        ("div", (False, True)): (value, nothing, value),
        ("exp", (True,)): (value, nothing),
        ("sqrt", (True,)): (value, nothing),
        ("tanh", (True,)): (nothing, value),
        ("relu", (True,)): (value, nothing),
        ("log", (True,)): (nothing, value),
        ("sin", (True,)): (nothing, value),
        ("sum", (True,)): (nothing, shape),
        ("reshape", (True,)): (nothing, shape),
        ("expand", (True,)): (nothing, shape),
        ("pad", (True,)): (nothing, shape),
        ("crop", (True,)): (nothing, shape),
        ("permute", (True,)): (nothing, nothing),
        ("flip", (True,)): (nothing, nothing),
        ("cumsum", (True,)): (nothing, nothing),
        ("cast", (True,)): (nothing, reverse.SHAPE_AND_DTYPE),
        ("where", (False, True, True)): (nothing, value, nothing, nothing),
        ("gather", (True, False)): (nothing, shape, value),
        ("scatter_add", (True, False)): (nothing, nothing, value),
        ("floor", (True,)): (),
        ("eq", (True, True)): (),
        ("mul", (False, False)): (),
    }
    for (name, active), needs in expected.items():
        assert needs_of(OPS[name], active) == needs, name


KEEPING = [op for op in OPS.values() if op.differentiable and op.vjp_all is None and op.higher_order is None]


@pytest.mark.feature(93)
@pytest.mark.parametrize("op", KEEPING, ids=lambda op: op.name)
def test_every_value_that_the_tape_keeps_matters(op):
    """If a kept value is changed, some cotangent changes: no value is kept needlessly."""
    for active in subsets(op, op.samples[0]):
        flags = tuple(i in active for i in range(op.arity))
        for place, need in enumerate(needs_of(op, flags)):
            if need == reverse.VALUE:
                assert any(
                    changes(op, sample, variant(draw(op, sample)), active, place)
                    for sample in op.samples
                    for variant in (list, with_a_tie, with_a_zero)
                ), f"{op.name} keeps value {place} in vain when {active} are active"


def with_a_tie(operands):
    """The last two operands made equal, since values that choose between them matter only then."""
    return [*operands[:-2], operands[-1], operands[-1]] if len(operands) > 1 else operands


def with_a_zero(operands):
    return [tk.zeros_like(operands[0]), *operands[1:]]


def changes(op, sample, operands, active, place):
    """Whether the cotangents change with the value that the tape keeps at this position."""
    tapes = []
    f = as_function(op, sample, operands, active)

    def g(*at):
        y = f(*at)
        tapes.append(y.interpreter.tape)
        return y

    y, pull_back = tk.vjp(g, *[operands[i] for i in active])
    u = random_like(y, "u")
    before = [array(t).tobytes() for t in pull_back(u)]
    (saved,) = [record[2] for record in tapes[0] if record is not None and record[0] is op]
    saved[place] = spoilt(saved[place])
    return [array(t).tobytes() for t in pull_back(u)] != before


def spoilt(held):
    """Different values of the same kind: NaN, the opposite condition, the next index."""
    values = FUSED.ravel(held)
    other = (
        ~values
        if values.dtype.kind == "b"
        else np.where(values == 0, 1, 0)
        if values.dtype.kind == "i"
        else values * np.nan
    )
    return FUSED.new(FUSED.shape(held), other, FUSED.dtype(held))


@pytest.mark.feature(66, 97)
def test_the_rules_cover_the_op():
    """An op has a JVP exactly where it has a VJP, and rules for no more operands than it has."""
    for op in OPS.values():
        assert (op.jvp_all is None) == (op.vjp_all is None), op
        assert [rule is None for rule in op.jvp] == [rule is None for rule in op.vjp], op
        if op.arity is not None:
            assert len(op.jvp) in (0, op.arity), op
        for place, role in enumerate(op.operand_kinds):
            assert role == "data" or op.vjp[place] is None, op
        if op.differentiable and op.higher_order is None:
            assert op.samples, f"{op} has rules, and no sample to try them"
