"""The PyTorch backend: values and derivatives as on numpy, exchange of tensors, donation, and torch's settings."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
import torch

import tensorken as tk
from core.tests.beyond_range import check_numbers_beyond_the_range
from core.tests.bfloat16 import check_rounded_once
from core.tests.each import each_of
from core.tests.small_functions import FUNCTIONS, X, assert_results_of_numpy
from tensorken_core.errors import BackendError, ExchangeError


@pytest.fixture(autouse=True)
def torch_backend() -> Any:
    """Use the backend within each test."""
    with tk.use_backend("torch"):
        yield


@each_of("name", FUNCTIONS)
@pytest.mark.parametrize("transform", [lambda f: f, tk.jit], ids=["eager", "jit"])
def test_results_are_those_of_numpy(name: str, transform: Any) -> None:
    assert_results_of_numpy(name, transform)


def test_torchs_settings_stay() -> None:
    """A gradient by torch's own autograd works before and after, and no global state changes."""

    def state() -> tuple[Any, ...]:
        return (
            torch.is_grad_enabled(),
            torch.get_default_dtype(),
            torch.get_num_threads(),
            torch.get_rng_state().tolist(),
            torch.are_deterministic_algorithms_enabled(),
            torch.get_float32_matmul_precision(),
            random.getstate(),
            str(np.random.get_state()),
            np.geterr(),
        )

    before = state()
    f = tk.jit(lambda x: tk.softmax(x @ x.T, -1) + tk.random.normal(tk.random.key(0), (3, 3)))
    f(tk.tensor(X, dtype="float32")).realize()
    assert state() == before
    a = torch.ones(2, requires_grad=True)
    (a * a).sum().backward()
    assert a.grad is not None
    assert a.grad.tolist() == [2.0, 2.0]


def test_settings_of_the_user_do_not_change_results() -> None:
    default = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)
        with torch.inference_mode():
            masked = tk.softmax(tk.tensor([-np.inf, -np.inf], dtype="float16"), -1)
            x = tk.jit(lambda x: tk.tanh(x) * 2.0 + 1.0)(tk.tensor(X, dtype="float32"))
    finally:
        torch.set_default_dtype(default)
    assert masked.tolist() == [0.5, 0.5]
    assert x.dtype.name == "float32"
    np.testing.assert_allclose(x, np.tanh(X) * 2.0 + 1.0, rtol=1e-6)


# ---- exchange ------------------------------------------------------------------------------------------------


@each_of("dtype", ("bool", "int32", "int64", "float16", "float32", "float64"))
def test_tensors_of_torch_go_in_and_out_without_a_copy(dtype: str) -> None:
    a = torch.from_numpy(X.astype(dtype))
    for x in (tk.from_dlpack(a, copy=False), tk.asarray(a, copy=False)):
        assert x.array().data_ptr() == a.data_ptr()
        assert x.dtype.name == dtype
    y = tk.tensor(X.astype(dtype)).reshape((4, 3))
    assert np.from_dlpack(y).ctypes.data == y.array().data_ptr()
    assert torch.from_dlpack(y).data_ptr() == y.array().data_ptr()


def test_bfloat16_goes_in_and_out_without_a_copy_and_is_rounded_once() -> None:
    a = torch.tensor([1.5, -0.0, torch.inf, 2.0**-133], dtype=torch.bfloat16)
    for x in (tk.from_dlpack(a, copy=False), tk.asarray(a, copy=False)):
        assert (x.array().data_ptr(), x.dtype) == (a.data_ptr(), tk.bfloat16)
        assert torch.from_dlpack(x).data_ptr() == a.data_ptr()
        assert x.tolist() == a.tolist()
    check_rounded_once([1.0 + 2.0**-8 + 2.0**-40, -3.4e38, 1e-40, -5e-41, 2.0**62 + 2.0**54])
    assert tk.signbit(tk.tensor([-math.nan, math.nan], "bfloat16")).tolist() == [True, False]


def test_numbers_beyond_the_range_are_infinite() -> None:
    check_numbers_beyond_the_range()


def test_a_tensor_outlives_the_array_it_was_made_of() -> None:
    x = tk.from_dlpack(np.arange(6.0), copy=False)
    y = torch.from_dlpack(tk.tensor(X))
    garbage = [np.full(6, 7.0) for _ in range(100)]
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    np.testing.assert_array_equal(y, X)
    assert len(garbage) == 100


def test_tk_tensor_copies() -> None:
    a = torch.ones(3)
    x = tk.tensor(a)
    a += 1.0
    assert x.tolist() == [1.0, 1.0, 1.0]


def test_an_array_with_negative_strides_is_copied() -> None:
    assert tk.tensor(np.arange(3.0)[::-1]).tolist() == [2.0, 1.0, 0.0]
    with pytest.raises(ExchangeError, match="cannot avoid a copy"):
        tk.asarray(np.arange(3.0)[::-1], copy=False)


@each_of("make", (tk.tensor, tk.from_dlpack, lambda a: tk.from_dlpack(a, copy=False)))
def test_a_tensor_that_requires_grad_is_an_error(make: Any) -> None:
    with pytest.raises(ExchangeError, match=r"requires? grad.*\.detach\(\)"):
        make(torch.ones(3, requires_grad=True))


# ---- donation ------------------------------------------------------------------------------------------------


def update() -> Any:
    """A function that changes its donated argument."""
    return tk.jit(lambda x: x * 2.0 + 1.0, donate_argnums=0)


def test_a_donated_input_gives_its_memory() -> None:
    f, x = update(), tk.tensor(X)
    pointers = {x.array().data_ptr()}
    for _ in range(5):
        x = f(x)
        pointers.add(x.array().data_ptr())
    assert len(pointers) == 1
    np.testing.assert_allclose(x, 32.0 * X + 31.0)


@each_of(
    "share",
    (
        lambda x: x.array(),
        lambda x: x.array().numpy(),
        lambda x: x.array()[1:],
        np.from_dlpack,
        lambda x: torch.utils.dlpack.to_dlpack(x.array()),
        lambda x: x.reshape((12,)),
    ),
)
def test_a_donated_input_that_is_used_elsewhere_stays(share: Any) -> None:
    f, x = update(), tk.tensor(X)
    shared = share(x)
    y = f(x)
    if hasattr(shared, "reshape"):
        elements = np.asarray(shared).reshape(-1)
        np.testing.assert_array_equal(elements, X.reshape(-1)[-elements.size :])
    else:
        np.testing.assert_array_equal(torch.utils.dlpack.from_dlpack(shared), X)
    np.testing.assert_allclose(y, 2.0 * X + 1.0)


def test_memory_of_another_library_is_never_overwritten() -> None:
    a = X.copy()
    y = update()(tk.from_dlpack(a, copy=False))
    np.testing.assert_array_equal(a, X)
    np.testing.assert_allclose(y, 2.0 * X + 1.0)


def test_views_of_one_donated_input_are_read_before_it_is_overwritten() -> None:
    f = tk.jit(lambda x: (x + 1.0, x.T * 2.0, x[0] - x[1]), donate_argnums=0)
    for y, expected in zip(f(tk.tensor(X)), (X + 1.0, X.T * 2.0, X[0] - X[1]), strict=True):
        np.testing.assert_allclose(y, expected, rtol=1e-12)


# ---- devices and options -------------------------------------------------------------------------------------


def test_devices() -> None:
    assert tk.devices("torch")[0] == "cpu"
    assert tk.ones(3, backend="torch", device="cpu").tolist() == [1.0, 1.0, 1.0]
    for name in ("cuda:7", "xpu"):
        with pytest.raises(BackendError, match=rf"torch.*{name}.*cpu"):
            tk.use_backend("torch", name)


def test_an_unknown_mode_of_torch_compile_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORKEN_TORCH_COMPILE", "fast")
    with pytest.raises(BackendError, match="COMPILE='fast': expected one of default, "):
        tk.jit(lambda x: x + 1.0)(tk.ones(3))


def test_the_graph_is_shown() -> None:
    lowered = tk.jit(lambda x, w, b: tk.relu(x @ w + b)).lower(tk.ones((2, 3)), tk.ones((3, 4)), tk.ones(4))
    text = lowered.as_text("torch")
    assert "torch.addmm(reshape_4, x0, x1)" in text
    assert "torch.relu_" in text
