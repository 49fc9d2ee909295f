"""ShapeTracker: shapes and dtypes by rule, with values or without any."""

from __future__ import annotations

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from core.tests.laws.operands import SAMPLES, draw, over
from core.tests.support import Nothing, array
from tensorken_core.language.op import OPS
from tensorken_core.rewriting.fuse import Fuse
from tensorken_core.rewriting.shape_tracker import ShapeTracker
from tensorken_core.tensor.tensor import apply
from tensorken_numpy.backend import Numpy

pytestmark = pytest.mark.usefixtures("on_numpy")


@pytest.mark.feature(61, 115)
@over(SAMPLES)
def test_the_tracker_knows_the_shape_of_every_op(op, sample):
    dtypes = [tk.float64, tk.int32]
    for dtype in dtypes:
        try:
            real = apply(op, draw(op, sample, dtype=dtype), sample[1])
        except tk.errors.DTypeError:
            continue
        tracker = ShapeTracker(Nothing())
        tracked = apply(op, draw(op, sample, dtype=dtype, backend=tracker), sample[1])
        for y, expected in zip(tk.tree.leaves(tracked), tk.tree.leaves(real), strict=True):
            assert (y.shape, y.dtype) == (expected.shape, expected.dtype)
            x = y.representation
            assert (tracker.shape(x), tracker.dtype(x), x.value) == (y.shape, y.dtype, op.name)


@pytest.mark.feature(115)
def test_programs_and_their_derivatives_run_on_shapes():
    tracker = ShapeTracker(Nothing())
    x = tk.zeros((4, 3), backend=tracker)
    w = tk.zeros((3, 2), backend=tracker)

    def loss(w):
        return -(tk.log_softmax(tk.tanh(x @ w)) * tk.softmax(x @ w)).sum()

    assert loss(w).shape == ()
    assert tk.grad(loss)(w).shape == (3, 2)
    assert tk.hvp(loss, (w,), (w,)).shape == (3, 2)
    assert tk.jacrev(lambda w: x @ w)(w).shape == (4, 2, 3, 2)
    assert tk.grad(loss)(w).dtype is tk.float32


@pytest.mark.feature(115, 116)
@over(SAMPLES)
@each_of(
    "stack",
    [
        ShapeTracker(Fuse(Numpy())),
        Fuse(ShapeTracker(Numpy())),
        ShapeTracker(ShapeTracker(Numpy())),
        ShapeTracker(Fuse(ShapeTracker(Fuse(Numpy())))),
    ],
)
def test_a_tracker_anywhere_in_the_stack_changes_nothing(stack, op, sample):
    if op is OPS["fused_multiply_add"]:
        expected = apply(op, draw(op, sample, backend=Numpy()), sample[1])
    else:
        try:
            expected = apply(op, draw(op, sample), sample[1])
        except tk.errors.DTypeError:
            return  # an op on integers
    results = apply(op, draw(op, sample, backend=stack), sample[1])
    for got, wanted in zip(tk.tree.leaves(results), tk.tree.leaves(expected), strict=True):
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(array(got), array(wanted), rtol=1e-14)
        assert stack.shape(got.representation) == wanted.shape
        assert stack.dtype(got.representation) is wanted.dtype


def test_the_repr_names_the_backend_below():
    assert repr(ShapeTracker(Fuse(Numpy()))) == "ShapeTracker(Fuse(Numpy()))"
    assert repr(Fuse(ShapeTracker(Numpy()))) == "Fuse(ShapeTracker(Numpy()))"


def test_errors_come_before_the_backend_is_called():
    tracker = ShapeTracker(Nothing())
    x = tk.zeros((2, 3), backend=tracker)
    with pytest.raises(tk.errors.ShapeError, match=r"^matmul: inner sizes differ, \(2, 3\) @ \(2, 3\)"):
        x @ x
    with pytest.raises(tk.errors.DTypeError, match=r"^neg: not defined for bool"):
        -tk.zeros((2,), "bool", backend=tracker)
    assert (x @ x.T).shape == (2, 2)
