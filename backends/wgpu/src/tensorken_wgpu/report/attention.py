"""Attention, and its gradient."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorken as tk
from tensorken_wgpu.report.bench import Bench, Row, attempt

HEADS = 16
"""Of a measurement, in one batch axis."""


def attention(bench: Bench) -> Iterator[Row]:
    """Attention and its gradient, for several lengths and sizes of heads; the work is that of the products,
    without those that are computed again.
    """
    lengths = (
        (16,)
        if bench.tiny
        else (64,)
        if bench.is_small
        else (512, 2048)
        if bench.quick
        else (512, 2048, 8192)
    )
    for length in lengths:
        for size in (16,) if bench.is_small else (64, 128):
            heads = 1 if bench.tiny else HEADS
            given = tk.random.normal(tk.random.key(0), (3, heads, length, size)) * 0.5
            name = f"{heads} heads of {length} positions, {size} features"
            yield attempt(name, lambda: _row(bench, name, forward, given, 2))  # noqa: B023
            name = f"gradient of {name}"
            yield attempt(name, lambda: _row(bench, name, gradient, given, 6))  # noqa: B023


def forward(q: Any, k: Any, v: Any) -> Any:
    """softmax(q @ k.T) @ v."""
    return tk.softmax(q @ k.mT) @ v


def gradient(q: Any, k: Any, v: Any) -> Any:
    """The derivatives of a sum of squares of an attention."""
    return tk.grad(lambda q, k, v: (forward(q, k, v) ** 2).sum(), argnums=(0, 1, 2))(q, k, v)


def _row(bench: Bench, name: str, function: Any, given: tk.Tensor, products: int) -> Row:
    q, k, v = given
    compiled = tk.jit(function)

    def call() -> None:
        compiled(q, k, v)
        bench.device.submit()

    def of_torch(torch: Any) -> Any:
        attend = torch.nn.functional.scaled_dot_product_attention
        operands = [torch.randn(q.shape, device="cuda", requires_grad=function is gradient) for _ in range(3)]
        if function is forward:
            return lambda: attend(*operands, scale=1.0)
        return lambda: torch.autograd.grad((attend(*operands, scale=1.0) ** 2).sum(), operands)

    seconds = bench.seconds(call)
    heads, length, size = q.shape
    work = 2.0 * products * heads * length * length * size
    return Row(name, seconds, work / seconds, "FLOP", torch=bench.torch_seconds(of_torch))
