"""The cost model, against manual computation and the op table."""

from __future__ import annotations

from math import prod
from typing import Any

import pytest
from hypothesis import given, strategies as st

import tensorken as tk
from tensorken.programs.costs import MOVEMENT_OPS, RULES, flop_count, program_flop_count
from tensorken_core.language.op import OPS, Op
from tensorken_profile.events import Event

WITHOUT_RULE = {"threefry2x32", "cofactors", "pinv", "complex_cofactors", "complex_pinv"}
"""Ops that are not elementwise and have no rule."""


def test_every_op_has_a_rule() -> None:
    methods = {op.name for op in OPS.values() if op.method}
    assert set(RULES) <= methods
    assert set(RULES) >= MOVEMENT_OPS
    others = {op.name for op in OPS.values() if op.method and not op.elementwise}
    assert others == (set(RULES) - {"to_bits", "from_bits"}) | WITHOUT_RULE


@pytest.mark.parametrize("op", [op for op in OPS.values() if op.elementwise], ids=repr)
def test_elementwise_ops_count_one_for_each_element(op: Op) -> None:
    assert op.arity is not None
    if op.name in ("to_bits", "from_bits"):
        assert flop_count(op, [(3, 4)], [], [(3, 4)]) == 0
    else:
        assert flop_count(op, [(3, 4)] * op.arity, [], [(3, 4)]) == 12


@pytest.mark.parametrize(
    ("name", "operands", "params", "results", "count"),
    [
        ("sum", [(3, 4)], [(1,)], [(3, 1)], 12),
        ("convolution", [(5, 2, 7), (4, 2, 3)], [(2,), ((0, 0),), (1,), (1,), 1], [(5, 4, 3)], 2 * 60 * 6),
        ("scatter_add", [(5, 2), (5,)], [0, 9], [(9, 2)], 10),
        ("gather", [(9, 2), (5,)], [0], [(5, 2)], 0),
        ("sort", [(2, 8)], [1], [(2, 8)], 2 * 8 * 3),
        ("sort", [(2, 0)], [1], [(2, 0)], 0),
        ("softmax", [(2, 8)], [(1,)], [(2, 8)], 80),
        ("cholesky", [(7, 3, 3)], [], [(7, 3, 3)], 7 * 9),
        ("solve", [(3, 3), (3, 2)], [], [(3, 2)], 18 + 2 * 2 * 9),
        ("triangular_solve", [(3, 3), (3, 2)], [(True, False)], [(3, 2)], 18),
        ("qr", [(6, 3)], ["reduced"], [(6, 3), (3, 3)], 4 * 6 * 9 - 36),
        ("svd", [(3, 6)], [False], [(3, 3), (3,), (3, 6)], 6 * 6 * 9 + 20 * 27),
        ("concatenate", [(2,), (3,)], [0], [(5,)], 0),
        ("fft", [(3, 8), (3, 8)], [False], [(3, 8), (3, 8)], 5 * 24 * 3),
        ("rfft", [(3, 8)], [], [(3, 5), (3, 5)], 5 * 12 * 3),
        ("irfft", [(3, 5), (3, 5)], [8], [(3, 8)], 5 * 12 * 3),
        ("pad", [(2,)], [((1, 1),)], [(4,)], 0),
    ],
)
def test_counts_agree_with_manual_computation(
    name: str,
    operands: list[tuple[int, ...]],
    params: list[object],
    results: list[tuple[int, ...]],
    count: int,
) -> None:
    assert flop_count(OPS[name], operands, params, results) == count


@given(st.integers(1, 5), st.integers(1, 6), st.integers(1, 7))
def test_a_matrix_product_counts_the_same_eager_and_compiled(m: int, k: int, n: int) -> None:
    a, b = (
        tk.arange(m * k, dtype="float32").reshape((m, k)),
        tk.arange(k * n, dtype="float32").reshape((k, n)),
    )
    with tk.profile() as p:
        (a @ b).tolist()
    assert sum([event.flop for event in p.events]) <= 2 * m * k * n + m * k + k * n
    if min(m, k, n) > 1:
        assert [event.flop for event in p.events if event.flop] == [2 * m * k * n]
    assert program_flop_count(tk.trace(lambda a, b: a @ b)(a, b)) == 2 * m * k * n


def test_loops_and_branches_in_programs_are_counted() -> None:
    x = tk.arange(5, dtype="float32")

    def loop(total: Any, x: Any) -> Any:
        return tk.scan(lambda total, x: (tk.sin(total) * x, total), total, x)[0]

    def branch(x: Any) -> Any:
        return tk.cond(x.sum() > 0, lambda x: tk.sin(tk.cos(x)), lambda x: x + 1.0, x)

    assert program_flop_count(tk.trace(loop)(tk.tensor(1.0), x)) == 5 * 2
    assert program_flop_count(tk.trace(branch)(x)) == 5 + 1 + 5 + 5


def test_bytes_are_counted_except_for_views() -> None:
    shape_dtypes = (((3, 4), tk.float64),)
    for views, name, expected in ((True, "permute", 0), (False, "permute", 192), (True, "exp", 192)):
        event = Event(
            name, "op", 0, 1, 1, 0, None, None, shape_dtypes, shape_dtypes, OPS[name], (), True, views
        )
        assert event.bytes == expected == (0 if expected == 0 else 2 * 8 * prod((3, 4)))
