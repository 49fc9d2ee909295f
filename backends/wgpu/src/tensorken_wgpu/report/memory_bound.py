"""Work that is limited by memory: its rate as a part of that of a copy on the device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isqrt
from typing import Any

import tensorken as tk
from tensorken_wgpu.report.bench import Bench, Row, attempt
from tensorken_wgpu.report.transfers import largest_memory


@dataclass(frozen=True, slots=True)
class Work:
    """A function of a matrix.

    Attributes:
        passes: how often the bytes of the matrix are read or written at least.
        function: of a tensor.
        torch: the same in torch, from the module and a tensor.
    """

    passes: int
    function: Callable[[tk.Tensor], tk.Tensor]
    torch: Callable[[Any, Any], Any]


def _layer_norm(x: Any, sqrt: Callable[[Any], Any]) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)


def _chain(x: Any, library: Any) -> Any:
    return library.sqrt(library.log(library.exp(x * 0.5) + 1.0) / (x * x + 2.0))


def _scattered(i: Any, x: Any) -> Any:
    """Indices of rows in no order, of which some are equal."""
    return i * 7919 % 16381 % (x.shape[0] * x.shape[1] // 64)


WORK = {
    "add a number": Work(2, lambda x: x + 1.0, lambda torch, x: x + 1.0),
    "chain of 8 ops": Work(2, lambda x: _chain(x, tk), lambda torch, x: _chain(x, torch)),
    "sum": Work(1, lambda x: x.sum(), lambda torch, x: x.sum()),
    "sum of each row": Work(1, lambda x: x.sum(1), lambda torch, x: x.sum(1)),
    "sum of each column": Work(1, lambda x: x.sum(0), lambda torch, x: x.sum(0)),
    "softmax of each row": Work(2, lambda x: tk.softmax(x, -1), lambda torch, x: torch.softmax(x, -1)),
    "layer norm of each row": Work(
        2, lambda x: _layer_norm(x, tk.sqrt), lambda torch, x: torch.layer_norm(x, x.shape[1:])
    ),
    "transpose": Work(2, lambda x: x.T + 1.0, lambda torch, x: (x.T + 1.0).contiguous()),
    "cumulative sum of each row": Work(2, lambda x: tk.cumsum(x, 1), lambda torch, x: x.cumsum(1)),
    "sort of each row": Work(2, lambda x: tk.sort(x, 1), lambda torch, x: x.sort(1).values),
    "sort of all elements": Work(2, lambda x: tk.sort(x, None), lambda torch, x: x.ravel().sort().values),
    "sums of rows of 64, by index": Work(
        2,
        lambda x: x.reshape(-1, 64).scatter_add(
            _scattered(tk.arange(x.size // 64, dtype="int32"), x), 0, x.size // 64
        ),
        lambda torch, x: torch.zeros_like(x.view(-1, 64)).index_add_(
            0, _scattered(torch.arange(x.numel() // 64, device="cuda"), x), x.view(-1, 64)
        ),
    ),
    "rows in another order": Work(
        2,
        lambda x: x[tk.arange(x.shape[0], dtype="int32")[::-1] % x.shape[0]],
        lambda torch, x: x[torch.arange(x.shape[0] - 1, -1, -1, device="cuda")],
    ),
}


def memory_bound(bench: Bench) -> Iterator[Row]:
    """Each work on a square matrix."""
    side = 1 << (isqrt(largest_memory(bench) // 4).bit_length() - 1)
    x = tk.random.normal(tk.random.key(0), (side, side))
    for name, work in WORK.items():

        def measure(name: str = name, work: Work = work) -> Row:
            compiled = tk.jit(work.function)
            seconds = bench.seconds(lambda: compiled(x).realize())
            rate = work.passes * 4 * side**2 / seconds
            torch = bench.torch_seconds(lambda torch: _of_torch(torch, work, side))
            share = rate / bench.copy_rate if bench.copy_rate else None
            return Row(name, seconds, rate, "B", share, torch, {"side": side})

        yield attempt(name, measure)


def _of_torch(torch: Any, work: Work, side: int) -> Callable[[], Any]:
    x = torch.randn(side, side, device="cuda")
    return lambda: work.torch(torch, x)
