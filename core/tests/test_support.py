"""The backends and functions of the tests' support module work as documented."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from core.tests.laws.operands import over
from core.tests.support import Counting, Strict, Strideless
from tensorken_core.language.op import OPS


@pytest.mark.parametrize("backend", [Strideless(), Strict()], ids=repr)
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (0, 2)])
def test_a_device_without_strides_permutes_every_shape(backend: Strideless, shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape, dtype=int), dtype="float32").reshape(shape)
    order = tuple(reversed(range(len(shape))))
    y = backend.permute(x, order)
    assert y.shape == x.T.shape
    assert y.tolist() == x.T.tolist()
    assert y.flags.c_contiguous
    assert not np.shares_memory(x, y) or not x.size
    assert tk.permute_dims(tk.tensor(x, backend=backend), order).tolist() == x.T.tolist()


def f(w: tk.Tensor, x: tk.Tensor) -> tk.Tensor:
    """A product of matrices, in a loop too."""
    return tk.fori_loop(0, 3, lambda i, x: tk.tanh(x @ w), x).sum()


@pytest.mark.parametrize("wrapper", [lambda backend: backend, tk.Fuse], ids=["alone", "fused"])
def test_ops_of_a_jitted_call_are_counted(wrapper: Callable[[Counting], Any]) -> None:
    counting = Counting()
    w = tk.eye(3, backend=wrapper(counting))
    fast = tk.jit(f)
    for _ in range(2):
        counting.clear()
        fast(w, w).item()
        assert counting.calls["tanh"] == counting.sizes["tanh", (3, 3)] == 3


@pytest.mark.parametrize("wrapper", [lambda backend: backend, tk.Fuse], ids=["alone", "fused"])
def test_ops_of_a_jitted_call_are_checked(wrapper: Callable[[Strict], Any]) -> None:
    class Careless(Strict):
        def tanh(self, x: Any) -> Any:
            return super().tanh(super().sum(x, [0]))

    w = tk.ones((3, 3), backend=wrapper(Careless()))
    with pytest.raises(TypeError, match="unhashable"):
        tk.jit(f)(w, w)


def test_all_rows_of_a_test_run_and_failures_are_reported() -> None:
    tried: list[tuple[int, str]] = []

    @each_of("number", [1, 2, 3])
    @each_of(("letter", "wrong"), [("a", (2,)), ("b", (2, 3))])
    def test(number: int, letter: str, wrong: tuple[int, ...]) -> None:
        tried.append((number, letter))
        assert number not in wrong

    with pytest.raises(ExceptionGroup, match="2 of 3 rows failed") as caught:
        test()
    assert tried == [(number, letter) for number in (1, 2, 3) for letter in "ab"]
    both, last = caught.value.exceptions
    assert isinstance(both, ExceptionGroup)
    assert [error.__notes__ for error in (*both.exceptions, both, last)] == [
        ["with letter='a', wrong=(2,)"],
        ["with letter='b', wrong=(2, 3)"],
        ["with number=2"],
        ["with letter='b', wrong=(2, 3)", "with number=3"],
    ]


def test_a_law_runs_for_each_sample_of_an_op() -> None:
    seen = []

    @over([(OPS["exp"], ((3,), ())), (OPS["exp"], ((), ())), (OPS["log"], ((2,), ()))])
    def test(op: Any, sample: Any) -> None:
        seen.append(sample)

    (mark,) = test.pytestmark
    assert mark.args[0] == "op"
    assert list(mark.args[1]) == [OPS["exp"], OPS["log"]]
    test(op=OPS["exp"])
    assert seen == [((3,), ()), ((), ())]
