"""The backend: its results, its number of kernels, and its errors."""

from __future__ import annotations

import gc
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from backends.wgpu.tests.subnormal_numbers import without_subnormals
from tensorken_core.errors import BackendError, DTypeError
from tensorken_core.language.capabilities import Capabilities
from tensorken_core.language.dtypes import DTYPES
from tensorken_wgpu import backend as backend_module
from tensorken_wgpu.backend import Wgpu
from tensorken_wgpu.wgsl.dtypes import SIZES


def drawn(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def close(x: Any, y: Any, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=tolerance, atol=tolerance)


@pytest.mark.feature(64)
def test_the_backend_is_selected_by_name() -> None:
    from tensorken_wgpu.device.adapters import adapters

    if not adapters():
        pytest.skip("there is no adapter")
    with tk.use_backend("wgpu"):
        x = tk.tensor([1.0, 2.0])
        assert (x.backend, (x + x).tolist()) == ("wgpu", [2.0, 4.0])


FUNCTIONS: dict[str, Any] = {
    "a chain": lambda x: tk.sum(tk.tanh(tk.exp(-x * x) / 2 + x) / (1 + x * x)),
    "a product of matrices": lambda x: x @ x.T,
    "softmax": lambda x: tk.softmax(x, -1),
    "windows": lambda x: tk.stack([x[:, i : i + 3] for i in range(3)], 1).sum(1),
    "movements": lambda x: tk.pad(x.T[::-1].reshape((5, 6)), ((1, 0), (0, 2))),
    "sorted": lambda x: tk.sort(x, axis=1),
    "running sums": lambda x: tk.cumsum(x, 1),
    "rows": lambda x: x[tk.tensor(np.array([3, 0, 3], np.int32), backend=x.interpreter.base)],
    "the largest": lambda x: tk.argmax(x, 1),
    "a derivative": tk.grad(lambda x: (tk.sin(x) * tk.log(x * x + 1)).sum()),
    "a derivative of rows": tk.grad(lambda x: (x[0:1] * x[2]).sum()),
    "a matrix of derivatives": lambda x: tk.jacrev(lambda r: tk.tanh(r) * r[0])(x[0]),
    "a batch": lambda x: tk.vmap(lambda r: r / r.sum())(x * x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_equal_numpys(lazy: Any, name: str) -> None:
    f, x = FUNCTIONS[name], drawn(6, 5)
    right = f(tk.tensor(x, backend="numpy"))
    close(f(tk.tensor(x, backend=lazy)), right)
    close(tk.jit(f)(tk.tensor(x, backend=lazy)), right)


def test_control_flow_runs_step_by_step(lazy: Any) -> None:
    x = tk.tensor(drawn(3), backend=lazy)
    carry, ys = tk.scan(lambda c, r: (c + r, c * r), x.sum(), x)
    c, want = float(np.asarray(x).sum()), []
    for r in np.asarray(x):
        want.append(c * r)
        c += r
    close(carry, c)
    close(ys, want)


def test_elementwise_and_movements_are_one_kernel(lazy: Any, device: Any) -> None:
    x = tk.tensor(drawn(6, 5), backend=lazy)
    before = dict(device.statistics)
    (tk.tanh((x.T[::-1] + 1.0).reshape((6, 5)) * x)).tolist()
    assert device.statistics["kernels"] - before["kernels"] == 1
    assert device.statistics["submissions"] - before["submissions"] == 1


def test_a_training_loop_needs_no_more_memory_and_kernels(lazy: Any, device: Any) -> None:
    w, x = tk.tensor(drawn(8, 4), backend=lazy), tk.tensor(drawn(16, 8, seed=1), backend=lazy)
    step = tk.jit(lambda w: w - 0.01 * tk.grad(lambda w: (tk.tanh(x @ w) ** 2).sum())(w))
    for _ in range(20):
        w = step(w)
    w.tolist()
    before = dict(device.statistics)
    for _ in range(100):
        w = step(w)
    assert np.isfinite(np.asarray(w)).all()
    assert device.statistics["pipelines"] == before["pipelines"]
    assert device.statistics["bytes"] == before["bytes"]


def test_pending_kernels_read_memory_before_it_is_overwritten(lazy: Any) -> None:
    """Each pass drops an operand that a pending kernel reads; the next pass must not overwrite it."""
    found = []
    for i in range(50):
        x = tk.tensor(np.full(100, i, np.float32), backend=lazy)
        y = x + 1.0
        y.realize()
        del x
        found.append(y)
    assert [y[0].item() for y in found] == [i + 1.0 for i in range(50)]


def test_memory_in_collected_cycles_is_reused(lazy: Any) -> None:
    """The garbage collector finalises everything in a cycle; no buffer may be among it."""
    for i in range(20):
        x = tk.tensor(np.full(100, i, np.float32), backend=lazy)
        cycle: list[Any] = [x.interpreter.value(x.representation)]
        cycle.append(cycle)
        del x, cycle
        gc.collect()
        y = tk.tensor(np.full(100, -i, np.float32), backend=lazy) + 1.0
        assert y[99].item() == 1.0 - i


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_no_elements(lazy: Any, shape: tuple[int, ...]) -> None:
    x = tk.tensor(np.zeros(shape, np.float32), backend=lazy)
    assert (x + 1.0).tolist() == np.zeros(shape).tolist()
    assert x.sum().item() == 0.0
    assert tk.pad(x, tuple([(1, 1)] * len(shape))).shape == tuple([n + 2 for n in shape])


def test_more_workgroups_than_fit_along_one_axis(lazy: Any) -> None:
    count = 256 * 65535 + 300
    x = tk.full((count,), 2.0, backend=lazy)
    y = x + tk.tensor([1.0], backend=lazy)
    assert (y[0].item(), y[count - 1].item()) == (3.0, 3.0)


def test_long_loops_run_to_the_end(lazy: Any) -> None:
    x = np.ones(4_194_241, np.int32)
    x[-1] = 5
    assert tk.tensor(x, backend=lazy).sum().item() == 4_194_245
    assert tk.tensor(x, backend=lazy).max().item() == 5
    indices = tk.tensor(np.arange(100_000, dtype=np.int32) % 3, backend=lazy)
    ones = tk.tensor(np.ones(100_000, np.int32), backend=lazy)
    assert ones.scatter_add(indices, 0, 4).tolist() == [33334, 33333, 33333, 0]
    rows = tk.tensor(x[:100_000].reshape(2, 50_000), backend=lazy)
    assert rows.sum(1).tolist() == [50_000, 50_000]


def test_out_of_range_casts_and_signed_zeros(lazy: Any, raw: Any) -> None:
    x = tk.tensor(np.array([3e9, math.inf, -math.inf, -3e9, math.nan, -2.7], np.float32), backend=lazy)
    assert x.astype("int32").tolist() == [2**31 - 1, 2**31 - 1, -(2**31), -(2**31), 0, -2]
    assert abs(tk.tensor(np.array([-3, 4], np.int32), backend=lazy)).tolist() == [3, 4]
    zeros = tk.tensor(np.full((2, 3), -0.0, np.float32), backend=lazy)
    assert not np.signbit(np.asarray(zeros.sum(0))).any()
    powers = tk.tensor(np.array([-149.0, -89.36721, 0.5, 127.0, 128.0], np.float32), backend=lazy)
    right = np.array([2.0**-149, 2.0**-89.36721, 2.0**0.5, 2.0**127, math.inf], np.float32)
    np.testing.assert_allclose(np.asarray(tk.exp2(powers)), without_subnormals(right, raw), rtol=3e-6)


def test_unsupported_dtypes_are_errors(lazy: Any, raw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorken_core.language.dtypes import int64

    monkeypatch.setattr(raw, "capabilities", Capabilities(dtypes=("bool", "int32", "float32")))
    with pytest.raises(DTypeError, match="float64"):
        tk.tensor([1.0], "float64", backend=tk.Lazy(raw))
    with pytest.raises(DTypeError, match=r"new: .* has no int64, only bool, int32, float32; cast to one"):
        raw.new((1,), [1], int64)


@pytest.mark.parametrize(("value", "is_software"), [("gpu", False), (" Software", True)])
def test_a_variable_chooses_the_kernels(
    device: Any, monkeypatch: pytest.MonkeyPatch, value: str, is_software: bool
) -> None:
    monkeypatch.setenv("TENSORKEN_WGPU_KERNELS", value)
    assert Wgpu(device).target.is_software == is_software
    monkeypatch.setenv("TENSORKEN_WGPU_KERNELS", "vulkan")
    with pytest.raises(BackendError, match=r"TENSORKEN_WGPU_KERNELS='vulkan': expected one of gpu, software"):
        Wgpu(device)


SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 3.0, -3.0, math.inf, -math.inf, math.nan, 1e-40, 3e38, 16777217.0],
    np.float32,
)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "eq", "lt", "pow"])
def test_special_values(lazy: Any, raw: Any, name: str) -> None:
    from tensorken_core.language.op import OPS
    from tensorken_core.tensor.dispatch import apply

    def computed(where: Any, *operands: Any) -> Any:
        return np.asarray(apply(OPS[name], [tk.tensor(x, backend=where) for x in operands]))

    a, b = [x.ravel() for x in np.meshgrid(SPECIAL, SPECIAL)]
    ours, numpys = computed(lazy, a, b), computed("numpy", a, b)
    lost = computed("numpy", without_subnormals(a, raw), without_subnormals(b, raw))
    if lost.dtype != bool:
        lost = without_subnormals(lost, raw)
    numpys = np.where(
        ours == numpys, numpys, lost
    )  # `maximum`, which only selects, may keep a subnormal number
    np.testing.assert_array_equal(np.isnan(ours), np.isnan(numpys))
    there = ~np.isnan(numpys)
    error = 4e-7 if name == "pow" else (raw.capabilities.largest_error(name, "float32") or 0) * 2.0**-23
    if error:
        np.testing.assert_allclose(ours[there], numpys[there], rtol=error)
    else:
        np.testing.assert_array_equal(ours[there], numpys[there])
    if ours.dtype == np.float32:
        np.testing.assert_array_equal(np.signbit(ours[there]), np.signbit(numpys[there]))


def test_sums_are_rounded_before_they_cancel(lazy: Any) -> None:
    """A compiler that simplifies (x + big) - big to x, or contracts products and sums, breaks code that relies on
    rounding.
    """
    x = tk.tensor(np.array([1.0 + 2.0**-20, math.inf, math.nan], np.float32), backend=lazy)
    assert ((x + 2.0**20) - 2.0**20)[0].item() == 1.0
    assert np.isnan(np.asarray(x - x)).tolist() == [False, True, True]
    assert np.isnan(np.asarray(x * 0.0)).tolist() == [False, True, True]
    square = float(np.float32(1.0 + 2.0**-20) ** 2)
    assert (x * x - square)[0].item() == 0.0


FILLS = [0.0, -0.0, 1.0, -1.0, -2.5, math.inf, -math.inf, math.nan, -math.nan, 1e-45, 6e-8, 5e-324]


@pytest.mark.parametrize("dtype", DTYPES)
def test_large_fills_are_computed_on_the_device(
    raw: Any, monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    if dtype not in raw.capabilities.dtypes:
        pytest.skip(f"{raw.device.name} has no {dtype}")
    values: dict[str, list[Any]] = {"bool": [False, True], "int": [0, 1, -1, 2**31 - 1, -(2**31)]}
    if dtype == "uint32":
        values["int"] = [0, 1, 2**31, 2**32 - 1]
    if dtype == "int64":
        values["int"] += [2**31, 2**63 - 1, -(2**63)]
    size, shape, uploads, upload = SIZES[dtype] * 2331, (7, 333), [], raw.device.upload

    def recorded(data: Any) -> Any:
        uploads.append(len(data))
        return upload(data)

    for value in values.get(DTYPES[dtype].kind, FILLS):
        right = raw.full(shape, value, DTYPES[dtype])
        with monkeypatch.context() as patched:
            patched.setattr(backend_module, "MAX_HOST_FILL", 0)
            patched.setattr(raw.device, "upload", recorded)
            found = raw.full(shape, value, DTYPES[dtype])
        assert (found.shape, found.dtype) == (right.shape, right.dtype)
        one, other = [raw.device.read(x.memory, size + -size % 4)[:size] for x in (found, right)]
        assert bytes(one) == bytes(other)
    assert max(uploads) <= 8


def test_tensors_that_are_too_large_are_errors(raw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if it would need too many bindings: the size is the cause to report."""
    monkeypatch.setattr(raw.device._pool, "most", 2**20)
    monkeypatch.setattr(backend_module, "MAX_HOST_FILL", 2**20)
    monkeypatch.setattr(raw, "target", replace(raw.target, binding_size=1024))
    monkeypatch.setattr(raw, "_single_ops", {})
    lazy = tk.Lazy(raw)
    x = tk.tensor([1.0], backend=lazy)
    requests = {
        "full": lambda: tk.full((2**19,), 7.0, backend=lazy).tolist(),
        "new": lambda: tk.tensor(np.zeros(2**19, np.float32), backend=lazy),
        "exp": lambda: tk.exp(x.broadcast_to((2**19,)) + 1.0).tolist(),
    }
    for op, request in requests.items():
        with pytest.raises(
            BackendError,
            match=r"tensor of 2097152 bytes, but .* at most 1048576 \(max-buffer-size\); split it",
        ) as found:
            request()
        (note,) = found.value.__notes__
        assert op in note.splitlines()[0]
        assert __file__ in note


@pytest.mark.parametrize("value", [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-45, -3e-39, 1.0, -2.5, 1e39])
def test_literals_keep_their_bits(lazy: Any, value: float) -> None:
    x = tk.zeros((2,), backend=lazy) + tk.tensor([1.0, 2.0], backend=lazy)
    y = tk.where(x > 0, value, x)
    with np.errstate(over="ignore"):
        want = np.array([value] * 2, np.float32)
    if math.isnan(value):
        assert np.isnan(np.asarray(y)).all()
    else:
        np.testing.assert_array_equal(np.asarray(y).view(np.int32), want.view(np.int32))


def test_large_tensors_are_bound_in_windows(raw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw, "target", replace(raw.target, binding_size=1024))
    monkeypatch.setattr(raw, "_single_ops", {})
    lazy = tk.Lazy(raw)
    x = drawn(50, 24)  # 4800 bytes: 5 windows
    ours = tk.tensor(x, backend=lazy)
    close(ours.T[::-1] + 1.0, x.T[::-1] + 1.0)
    close(ours.sum(0) @ ours.T, x.sum(0) @ x.T)
    close(tk.softmax(ours, -1), tk.softmax(tk.tensor(x, backend="numpy"), -1))
    wide = tk.tensor(np.tile(x, (20, 1)), backend=lazy)  # 96 000 bytes: 94 windows
    with pytest.raises(
        BackendError, match=r"needs 1.. bindings, as its tensors are larger than 1024 bytes"
    ) as found:
        (wide + 1.0).tolist()
    assert any("computing add" in note and __file__ in note for note in found.value.__notes__)


def test_tensors_beyond_the_binding_limit(lazy: Any, device: Any) -> None:
    count = device.limits["max-storage-buffer-binding-size"] // 4 + 1000
    if count > 2**27:
        pytest.skip(f"{device.name} binds {4 * count} bytes at once: a test of that size takes too long")
    x = tk.tensor(np.arange(count, dtype=np.int32), backend=lazy)
    y = x + 1
    assert y[count - 1].item() == count
    assert y[7].item() == 8
    assert (x < 10).sum().item() == 10
