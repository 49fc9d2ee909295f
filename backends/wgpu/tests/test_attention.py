"""Attention in one kernel: no array over pairs of queries and keys is in memory, and the numbers are numpy's."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from tensorken.programs.passes.pipeline import optimised
from tensorken_nn import MultiHeadAttention, scaled_dot_product_attention as attention
from tensorken_wgpu.attention import rewriting
from tensorken_wgpu.attention.kernels import AttentionBlock
from tensorken_wgpu.backend import Wgpu
from tensorken_wgpu.execution.planning import Plan, plan
from tensorken_wgpu.execution.tuning import VARIABLE as TUNING

QUERIES, KEYS = 20, 36
"""Multiples of four, as for vectors, but not of a block."""

SMALL, BLOCKS = AttentionBlock(4, 2, 2), rewriting.BLOCKS

rng = np.random.default_rng(0)


@pytest.fixture
def as_gpu(raw: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A lazy backend that takes the device for a GPU, with small blocks, so that there are several."""
    monkeypatch.setenv(TUNING, "off")
    monkeypatch.setattr(rewriting, "BLOCKS", (SMALL,))
    backend = Wgpu(raw.device)
    backend.target = replace(raw.target, is_software=False)
    return tk.Lazy(backend)


def floats(*shape: int) -> Any:
    return rng.normal(size=shape).astype(np.float32)


def operands(*batch: int, queries: int = QUERIES, keys: int = KEYS, size: int = 8, width: int = 8) -> Any:
    return [floats(*batch, *shape) for shape in ((queries, size), (keys, size), (keys, width))]


def planned_for(lazy: Any, function: Any, arrays: list[Any], is_software: bool = False) -> Plan:
    program = tk.trace(function)(*[tk.tensor(x, backend=lazy) for x in arrays])
    return plan(optimised(program, lazy.raw), replace(lazy.raw.target, is_software=is_software))


def largest(found: Plan) -> int:
    """The number of elements of the largest value that a kernel writes."""
    return max([prod(v.shape) for step in found.steps for v in step.kernel.writes])


def run(backend: Any, function: Any, arrays: list[Any]) -> list[Any]:
    """The results on a backend, as arrays of float64."""
    found = tk.jit(function)(*[tk.tensor(x, backend=backend) for x in arrays])
    return [np.asarray(y).astype(np.float64) for y in (found if isinstance(found, tuple) else (found,))]


def check(
    backend: Any, function: Any, arrays: list[Any], tolerance: float = 2e-6, right: str = "numpy"
) -> None:
    """Compare with another backend in float64, relative to the largest element."""
    exact = [x.astype(np.float64) if x.dtype.kind == "f" else x for x in arrays]
    found, expected = run(backend, function, arrays), run(right, function, exact)
    for y, z in zip(found, expected, strict=True):
        np.testing.assert_allclose(y, z, rtol=0, atol=tolerance * np.nanmax(np.abs(z)))


def by_hand(q: Any, k: Any, v: Any, mask: Any = 0.0) -> Any:
    scores = q @ k.mT * 0.3 + mask
    exponentials = tk.exp(scores - scores.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True) @ v


def softmax(q: Any, k: Any, v: Any, mask: Any = 0.0) -> Any:
    return tk.softmax(q @ k.mT + mask) @ v


def with_dropout(q: Any, k: Any, v: Any, key: Any) -> Any:
    """Of heads after positions."""
    y = attention(*[x.swapaxes(1, 2) for x in (q, k, v)], dropout_p=0.3, dropout_key=key, is_causal=True)
    return y.swapaxes(1, 2)


def with_constant_maxima(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.mT
    exponentials = tk.exp(scores - tk.stop_gradient(scores.max(-1, keepdims=True)))
    return exponentials / exponentials.sum(-1, keepdims=True) @ v


def gradients(function: Callable[..., Any], count: int = 3) -> Any:
    return tk.grad(lambda *xs: (function(*xs) ** 2).sum(), argnums=tuple(range(count)))


# ---- plans ---------------------------------------------------------------------------------------------------

BATCH = 2, 3
PAIRS = prod(BATCH) * QUERIES * KEYS
MASK = floats(QUERIES, KEYS)
FORMS: dict[str, tuple[Any, list[Any], int]] = {
    "one head": (attention, operands(), 1),
    "heads": (attention, operands(*BATCH), 1),
    "causal": (lambda q, k, v: attention(q, k, v, is_causal=True), operands(*BATCH), 1),
    "a mask of floats": (softmax, [*operands(*BATCH), MASK], 1),
    "a mask of bools": (lambda q, k, v, m: attention(q, k, v, m), [*operands(*BATCH), MASK > 0.0], 2),
    "by hand": (by_hand, operands(*BATCH), 1),
    "with constant maxima": (with_constant_maxima, operands(*BATCH), 1),
    "scores with a limit": (lambda q, k, v: tk.softmax(tk.tanh(q @ k.mT) * 9.0) @ v, operands(*BATCH), 1),
    "shared heads": (
        lambda q, k, v: attention(q, k, v, enable_gqa=True),
        [floats(2, 6, QUERIES, 8), *operands(2, 3)[1:]],
        1,
    ),
    "one shared head": (softmax, [floats(2, 3, QUERIES, 8), *operands(2, 1)[1:]], 1),
    "heads after positions": (
        lambda q, k, v: attention(q.swapaxes(1, 2), k.swapaxes(1, 2), v.swapaxes(1, 2)).swapaxes(1, 2),
        [x.swapaxes(1, 2).copy() for x in operands(*BATCH)],
        1,
    ),
    "columns of keys": (lambda q, k, v: v.mT @ tk.softmax(k @ q.mT, -2), operands(*BATCH), 1),
    "einsum": (
        lambda q, k, v: tk.einsum("bhij,bhjd->bihd", tk.softmax(tk.einsum("bhid,bhjd->bhij", q, k)), v),
        operands(*BATCH),
        1,
    ),
    "one column": (lambda q, k, v: tk.softmax(q @ k.mT) @ v[:, 0], operands(), 1),
    "vmap": (tk.vmap(tk.vmap(softmax)), operands(*BATCH), 1),
    "two": (lambda q, k, v: attention(q, k, v) * 2.0 + tk.softmax(q @ k.mT) @ v, operands(), 2),
    "vmap of queries": (tk.vmap(softmax, (0, None, None)), [floats(2, QUERIES, 8), *operands()[1:]], 1),
}


GRADIENTS = {
    "heads": 5,
    "causal": 5,
    "with constant maxima": 5,
    "columns of keys": 5,
    "heads after positions": 6,
}


@each_of("name", FORMS)
def test_forms_without_pairs_in_memory(as_gpu: Any, name: str) -> None:
    function, arrays, count = FORMS[name]
    found = planned_for(as_gpu, function, arrays)
    assert len(found.steps) == count
    assert largest(found) < prod(arrays[0].shape[:-1]) * KEYS
    assert all([step.kernel.is_proved for step in found.steps])
    software = planned_for(as_gpu, function, arrays, is_software=True)
    assert largest(software) == prod(arrays[0].shape[:-1]) * KEYS


def test_gradients_without_pairs_in_memory(as_gpu: Any) -> None:
    """The forward kernel, one for each derivative, the sums of rows, and a product after a permute."""
    for name, count in GRADIENTS.items():
        function, arrays, _ = FORMS[name]
        found = planned_for(as_gpu, gradients(function), arrays)
        assert len(found.steps) == count
        assert largest(found) < PAIRS
        assert all([step.kernel.is_proved for step in found.steps])


def test_a_layer_and_its_gradient_have_no_pairs_in_memory(as_gpu: Any) -> None:
    layer = MultiHeadAttention(32, 2, key=tk.random.key(0, backend=as_gpu))
    x = tk.ones((3, 48, 32), backend=as_gpu)
    for function in (
        lambda layer, x: layer(x),
        tk.grad(lambda layer, x: (layer(x) ** 2).sum()),
    ):
        found = plan(optimised(tk.trace(function)(layer, x), as_gpu.raw), as_gpu.raw.target)
        assert not [v.shape for step in found.steps for v in step.kernel.writes if v.shape.count(48) > 1]


def test_weights_that_other_values_need_stay_in_memory(as_gpu: Any) -> None:
    """Then nothing is gained by computing them again."""
    q, k, v = given = operands(*BATCH)
    for function, arrays in (
        (lambda q, k, v: ((w := tk.softmax(q @ k.mT)) @ v, w), given),
        (lambda q, k, v: ((s := q @ k.mT).max(0), tk.softmax(s) @ v), given),
        (gradients(lambda q, k, v, m: softmax(q, k, v, m), 4), [*given, MASK]),
        (lambda q, k, v: (w := tk.softmax(q @ k.mT)) * w @ v, given),
        (lambda q, k, v: tk.where((w := tk.softmax(q @ k.mT)) < 0.1, w, 0.0) @ v, given),
        (lambda q, k, v: tk.softmax(q @ k.mT).astype(tk.int32).astype(tk.float32) @ v, given),
        (softmax, [q[..., :15, :], k, v]),
        (softmax, [q, k[..., :15, :], v[..., :15, :]]),
    ):
        found = planned_for(as_gpu, function, arrays)
        assert largest(found) >= prod(BATCH) * 15 * QUERIES
        assert not [step for step in found.steps if "shared_weights" in step.kernel.template]
    check(as_gpu, lambda q, k, v: ((w := tk.softmax(q @ k.mT)) @ v, w), given)


def test_candidates_fit_in_the_workgroup_memory(as_gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """WebGPU guarantees 16 KiB; 64 rows of many heads are the first choice where they fit."""
    monkeypatch.setattr(rewriting, "BLOCKS", BLOCKS)
    for memory, size, rows in ((2**14, 64, 16), (2**14, 128, 16), (2**15, 64, 64), (2**15, 128, 64)):
        as_gpu.raw.target = replace(as_gpu.raw.target, workgroup_memory=memory)
        found = planned_for(
            as_gpu, gradients(softmax), operands(64, queries=128, keys=128, size=size, width=size)
        )
        kernels = [step.kernel for step in found.steps if "shared_weights" in step.kernel.template]
        assert len(kernels) == 4
        for kernel in kernels:
            texts = [k.template for k in (kernel.choice.kernels.values() if kernel.choice else [kernel])]
            assert len({*texts}) == len(texts) <= 3
            for text in texts:
                assert (
                    16 * sum(map(int, re.findall(r"var<workgroup> \w+: array<vec4<f32>, (\d+)>", text)))
                    <= memory
                )
        assert kernels[0].workgroups == (64 * 128 // rows, 1, 1)


def test_equal_layers_have_equal_kernels(as_gpu: Any) -> None:
    found = planned_for(as_gpu, lambda q, k, v: softmax(softmax(q, k, v), k, v), operands())
    first, second = [step.kernel for step in found.steps]
    assert first.template == second.template
    assert second.reads[0] is first.writes[0]


# ---- numbers -------------------------------------------------------------------------------------------------


@each_of("name", ["a mask of bools", "columns of keys"])
def test_forms_compute_numpys_numbers(as_gpu: Any, name: str) -> None:
    function, arrays, _ = FORMS[name]
    check(as_gpu, function, arrays)


def test_lengths_and_sizes_of_all_kinds(as_gpu: Any) -> None:
    """Also in blocks whose rows are held, with slices of features and of values."""
    draw = np.random.default_rng(1)
    for _ in range(6):  # of odd lengths, which share one kernel
        m, n, batch = (int(draw.integers(*ends)) for ends in ((16, 50), (17, 60), (2, 5)))
        check(as_gpu, softmax, operands(batch, queries=m | 1, keys=n | 1, size=7, width=5))
    check(as_gpu, attention, operands(2, queries=16, keys=40, size=72, width=24))


@pytest.mark.nightly
@each_of("block", [*BLOCKS, AttentionBlock(8, 2, 4, holds_rows=True)])
def test_every_block(as_gpu: Any, monkeypatch: pytest.MonkeyPatch, block: AttentionBlock) -> None:
    """With odd parts of blocks, in slices; the columns of the second result are more than registers should hold."""
    monkeypatch.setattr(rewriting, "BLOCKS", (block,))
    small, large = operands(2, queries=70, keys=50, size=40, width=24), operands(2, size=128, width=130)

    def of_columns(q: Any, k: Any, v: Any) -> Any:
        return v.mT @ tk.softmax(k @ q.mT * 0.1, -2)

    check(as_gpu, gradients(lambda q, k, v: attention(q, k, v, is_causal=True)), small, 1e-5)
    check(as_gpu, gradients(of_columns), small, 1e-5)
    check(as_gpu, gradients(attention), large, 1e-5)


@each_of("function", [by_hand, softmax])
def test_infinities_and_nans(as_gpu: Any, function: Any) -> None:
    """Rows of -infinity are NaN by hand; a softmax gives equal maxima equal weights."""
    mask = np.zeros((QUERIES, KEYS), np.float32)
    mask[1] = -np.inf
    mask[2, 5] = np.inf
    mask[3, 7] = np.nan
    mask[4] = -600.0
    mask[5] = np.linspace(-90.0, 90.0, KEYS)
    mask[6] = np.linspace(90.0, -90.0, KEYS)
    mask[7, :-1] = mask[8, ::2] = mask[9, :20] = mask[10, 20:] = mask[11, 1:] = -np.inf
    mask[12, [3, 30]] = mask[13, 3] = np.inf
    mask[14, -1], mask[14, 2] = np.nan, np.inf
    mask[15, 8:], mask[16] = -1e30, 3e38
    with np.errstate(invalid="ignore", over="ignore"):
        check(as_gpu, function, [*operands(), mask], 1e-5, right="reference")


def test_gradients_compute_numpys_numbers(as_gpu: Any) -> None:
    key = np.asarray(tk.random.key(0))
    given = [x.swapaxes(1, 2).copy() for x in operands(*BATCH)]
    check(as_gpu, gradients(with_dropout), [*given, key], 1e-5)


def test_halves_are_added_in_float32(as_gpu: Any) -> None:
    if "float16" not in as_gpu.raw.capabilities.dtypes:
        pytest.skip("the device has no float16")
    given = [x.astype(np.float16) for x in operands(2)]
    assert largest(planned_for(as_gpu, gradients(attention), given)) < 2 * QUERIES * KEYS
    check(as_gpu, attention, given, 2e-3)


def test_eager_ops_are_one_kernel(as_gpu: Any) -> None:
    q, k, v = arrays = operands(2)
    before = as_gpu.raw.device.statistics["kernels"]
    given = [tk.tensor(x, backend=as_gpu) for x in arrays]
    found = np.asarray(tk.softmax(given[0] @ given[1].mT) @ given[2])
    assert as_gpu.raw.device.statistics["kernels"] - before == 1
    scores = q.astype(np.float64) @ k.swapaxes(-1, -2)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ v
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
