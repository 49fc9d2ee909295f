"""Value classes, distances in ULP, and the limits of declared errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tensorken_conformance import limits
from tensorken_conformance.laws.elementwise import EXACT, takes
from tensorken_conformance.operands import pools
from tensorken_conformance.oracles import ulp
from tensorken_conformance.subject import Subject
from tensorken_core.language.capabilities import Capabilities
from tensorken_core.language.dtypes import DTYPES, float16, float32, float64
from tensorken_core.language.op import OPS
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference

FLOATS = (float16, float32, float64)
ELEMENTWISE = [op for op in OPS.values() if op.elementwise]


# ---- pools -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)
def test_each_pool_has_rows_of_operands(op: Any) -> None:
    subject = Subject(Numpy(), "a")
    for dtype in DTYPES.values():
        if takes(subject, op, dtype):
            for values in pools.classes(dtype):
                rows = pools.rows(op, dtype, values, 0, 96)
                roles = op.operand_kinds or ("data",) * op.arity
                dtypes = [np.dtype(bool if role == "condition" else dtype.name) for role in roles]
                assert [column.dtype for column in rows] == dtypes
                assert len({len(column) for column in rows}) == 1
                assert 1 <= len(rows[0]) <= 96


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", ["sin", "mul", "where"])
def test_each_class_contains_the_values_of_its_name(name: str, dtype: Any) -> None:
    tiny, top = np.finfo(dtype.name).tiny, np.finfo(dtype.name).max

    def data(values: str) -> Any:
        return [c for c in pools.rows(OPS[name], dtype, values, 0, 192) if c.dtype != bool]

    with np.errstate(invalid="ignore"):
        for column in data("small"):
            assert (column == np.rint(column)).all() and (np.abs(column) <= 12).all()
        for column in data("normals"):
            assert np.isfinite(column).all() and len(np.unique(column)) > 60
        assert np.any([column == 0 for column in data("zeros")], 0).all()
        assert {(c == 0).any() and np.signbit(c[c == 0]).any() for c in data("zeros")} == {True}
        assert np.any([np.isinf(column) for column in data("infinities")], 0).all()
        assert np.any([np.isnan(column) for column in data("nans")], 0).all()
        assert np.any([(c != 0) & (np.abs(c) < tiny) for c in data("subnormals")], 0).all()
        assert all((np.abs(c) == top).any() for c in data("extremes"))
        for column in data("mixed"):
            assert np.isnan(column).any() and np.isinf(column).any() and (column == 0).any()


def test_pools_depend_only_on_the_seed() -> None:
    op = OPS["pow"]
    first = [column.tolist() for column in pools.rows(op, float32, "normals", 4, 96)]
    pools.rows.cache_clear()
    assert [column.tolist() for column in pools.rows(op, float32, "normals", 4, 96)] == first
    with pytest.raises(ValueError, match="read-only"):
        pools.rows(op, float32, "normals", 4, 96)[0][0] = 1.0


def test_the_exhaustive_class_has_all_float16_numbers() -> None:
    (column,) = pools.rows(OPS["exp"], float16, pools.EXHAUSTIVE, 0, 1)
    assert len(set(column.view(np.uint16).tolist())) == 2**16


# ---- distance ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_the_distance_of_neighbours_is_one(dtype: Any) -> None:
    scalar = np.dtype(dtype.name).type
    x = np.array(
        [1.0, -1.0, 2.0, np.finfo(scalar).max, np.finfo(scalar).tiny, -np.finfo(scalar).tiny, 0.1], scalar
    )
    for side in (math.inf, -math.inf):
        with np.errstate(over="ignore", under="ignore"):
            neighbours = np.nextafter(x, scalar(side))
        assert ulp.distance(neighbours, x).tolist() == [1] * len(x)
    smallest = np.finfo(scalar).smallest_subnormal
    y, z = (
        np.array([smallest, -smallest, 0.0, 3.0], scalar),
        np.array([-smallest, -smallest, smallest, 3.0], scalar),
    )
    assert ulp.distance(y, z).tolist() == [2, 0, 1, 0]


def test_numbers_of_another_class_or_sign_of_zero_are_far_apart() -> None:
    got = np.array([math.nan, 1.0, math.nan, 0.0, -0.0, 5e-324, math.inf])
    true = np.array([math.nan, math.nan, 1.0, -0.0, -0.0, -0.0, -math.inf])
    assert ulp.distance(got, true).tolist() == [0, ulp.FAR, ulp.FAR, ulp.FAR, 0, ulp.FAR, ulp.FAR]
    low, high = np.iinfo("int64").min, np.iinfo("int64").max
    assert ulp.distance(np.array([low, 3, 3]), np.array([high, 3, 5])).tolist() == [ulp.FAR, 0, 2]
    assert ulp.distance(np.array([True, False]), np.array([False, False])).tolist() == [1, 0]


def test_the_error_of_a_cancelling_sum_is_relative_to_its_operands() -> None:
    a, b = np.array([-0.7, -0.7]), np.array([-0.69, 3.0])
    true = np.logaddexp(a, b)
    got = true + np.array([np.spacing(0.7), np.spacing(3.0)])
    assert ulp.distance_beside(got, true, (a, b)).tolist() == [1, 1]
    assert ulp.distance_beside(np.array([math.nan]), np.array([1.0]), (a[:1], b[:1])).tolist() == [ulp.FAR]


# ---- limits ------------------------------------------------------------------------------------------------------


def test_every_rounded_op_has_a_limit() -> None:
    subject = Subject(Numpy(), "a")
    rounded = {op.name for op in ELEMENTWISE if takes(subject, op, float32)} - EXACT - {"floor"}
    assert rounded == {*limits.ARITHMETIC, *limits.QUOTIENTS, *limits.FUNCTIONS}


@pytest.mark.parametrize("backend", [Numpy(), Reference()], ids=["numpy", "reference"])
def test_first_party_backends_declare_no_more_than_the_levels_allow(backend: Any) -> None:
    declared: Capabilities = backend.capabilities
    for name in (*limits.ARITHMETIC, *limits.QUOTIENTS, *limits.FUNCTIONS):
        for dtype in FLOATS:
            error = declared.largest_error(name, dtype.name)
            assert error is not None and error <= limits.largest(name, dtype.name, 2), f"{name} {dtype}"
    for name in ("add", "sub", "mul", "div", "sqrt"):
        assert {declared.largest_error(name, dtype.name) for dtype in FLOATS} == {0}
