"""Ops on constants that are evaluated in Python give the bits that backends compute."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

import tensorken as tk
from core.tests.support import Required
from tensorken.programs.passes.elements import EXACT_OPS, computed_elements, elements_of
from tensorken.programs.passes.pipeline import optimised
from tensorken_core.language.dtypes import DType, bool_, float16, float32, float64, int32, int64
from tensorken_core.language.op import OPS, Op, run
from tensorken_core.program.program import Equation, Literal, Variable
from tensorken_reference.backend import Reference

REFERENCE = Reference()
NUMBERS: dict[DType, list[Any]] = {
    bool_: [False, True],
    int32: [0, 1, -1, 2048, 2**31 - 1, -(2**31), 77_777],
    int64: [0, -1, 3, 2**63 - 1, -(2**63), 2**31, 2**40 + 1],
}


def check(op: Op, operands: list[tuple[Variable, list[Any]]], params: tuple[Any, ...] = ()) -> None:
    """Check that the elements computed in Python, if any, equal those of the reference, types included."""
    shape = op.shape(*[v.shape for v, _ in operands], *params)
    result = Variable(shape, op.result_dtype(tuple([v.dtype for v, _ in operands]), params))
    here = computed_elements(
        Equation(op, tuple([v for v, _ in operands]), params, (result,)), [xs for _, xs in operands]
    )
    assert here is not None
    there = run(REFERENCE, op, [REFERENCE.new(v.shape, xs, v.dtype) for v, xs in operands], params)
    assert [(type(x), x) for x in here] == [(type(x), x) for x in REFERENCE.ravel(there)]


TRUTH = ("eq", "lt", "where")
"""All values of a bool."""


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (name, dtype)
        for name in sorted(op.name for op in EXACT_OPS)  # a set has another order in each worker
        for dtype in NUMBERS
        if dtype is not bool_ or name in TRUTH
    ],
)
def test_elementwise_ops_of_ints_and_truth_values(name: str, dtype: DType) -> None:
    a, b = zip(*itertools.product(NUMBERS[dtype], repeat=2), strict=True)
    v = Variable((len(a),), dtype)
    data = [(v, list(a)), (v, list(b))]
    if name == "where":
        data = [(Variable(v.shape, bool_), [i % 3 == 0 for i in range(len(a))]), *data]
    check(OPS[name], data)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("reshape", ((3, 1, 2),)),
        ("permute", ((2, 0, 1),)),
        ("flip", ((0, 2),)),
        ("crop", (((0, 1), (0, 1), (1, 3)),)),
        ("expand", ((2, 4, 3),)),
        ("pad", (((1, 0), (0, 2), (0, 1)),)),
    ],
)
def test_movement(name: str, params: tuple[Any, ...]) -> None:
    check(OPS[name], [(Variable((2, 1, 3), int32), [3, 1, -4, 1, 5, 9])], params)
    check(OPS[name], [(Variable((2, 1, 3), bool_), [True, False, False, True, True, False])], params)
    check(OPS[name], [(Variable((2, 1, 3), float32), [3.0, 1.0, -4.0, 1.0, 5.0, 9.0])], params)


def test_casts_on_which_all_backends_agree() -> None:
    small = [0, 1, -1, 2048, -2048, 7]
    for dtype in (bool_, int32, int64, float16, float32, float64):
        check(OPS["cast"], [(Variable((2,), bool_), [True, False])], (dtype,))
        check(OPS["cast"], [(Variable((6,), int32), small)], (dtype,))


@pytest.mark.parametrize(
    ("name", "dtype", "elements", "params"),
    [
        ("cast", float32, [2.0, 3.0], (int32,)),  # floats are left to the backend
        ("cast", int32, [1, 2049], (float32,)),
        ("sin", float32, [2.0, 3.0], ()),
        ("add", float32, [2.0, 3.0], ()),
        ("sum", int32, [2, 3], ((0,),)),
    ],
)
def test_other_ops_are_left_to_the_backend(
    name: str, dtype: DType, elements: list[Any], params: tuple[Any, ...]
) -> None:
    op, v = OPS[name], Variable((2,), dtype)
    operands = (v,) * (op.arity or 1)
    result = Variable((2,), op.result_dtype(tuple([dtype] * len(operands)), params))
    assert computed_elements(Equation(op, operands, params, (result,)), [elements] * len(operands)) is None


def test_a_mask_of_indices_is_computed_without_the_backend() -> None:
    asked: list[str] = []

    class Watched(Required):
        def lt(self, a: Any, b: Any) -> Any:
            asked.append("lt")
            return super().lt(a, b)

        def ravel(self, x: Any) -> Any:
            asked.append("ravel")
            return super().ravel(x)

    backend = Watched()
    x = tk.ones((3, 3), backend=backend)
    program = tk.trace(tk.argsort)(x)
    asked.clear()
    after = optimised(program, backend)
    assert asked == []
    assert len(after.constants) > 0
    for v, constant in after.constants.items():
        here = elements_of(constant)
        assert here is not None and len(here) == math.prod(v.shape) and len({*here}) > 1
        assert not isinstance(v, Literal)
        assert [*here] == [*Required.ravel(backend, constant.representation)]
