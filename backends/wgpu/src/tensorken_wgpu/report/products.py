"""Products of matrices, with each candidate kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorken as tk
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS
from tensorken_wgpu.kernels import Kernel
from tensorken_wgpu.planning import plan
from tensorken_wgpu.report.bench import Bench, Row, attempt
from tensorken_wgpu.single_op import Value, single
from tensorken_wgpu.tuning import measure

FORMS = {"a @ b": lambda a, b: a @ b, "a @ b.T": lambda a, b: a @ b.T, "a.T @ b": lambda a, b: a.T @ b}


def sizes(bench: Bench) -> list[int]:
    """The rows of the square matrices, as far as they fit in a binding."""
    if bench.tiny:
        return [64]
    if bench.is_small:
        return [128, 256] if bench.quick else [128, 256, 512]
    wanted = [512, 2048] if bench.quick else [256, 512, 1024, 2048, 4096, 8192]
    most = bench.device.limits["max-storage-buffer-binding-size"]
    return [n for n in wanted if 4 * n * n <= most]


def products(bench: Bench) -> Iterator[Row]:
    """Products of square matrices in each order of their axes, of batches, and in float16."""
    for n in sizes(bench):
        a, b = tk.random.normal(tk.random.key(n), (2, n, n))
        for form, product in FORMS.items():
            if form == "a @ b" or n == sizes(bench)[-1]:
                yield attempt(f"{form}, {n}", lambda: _row(bench, f"{form}, {n}", product, a, b))  # noqa: B023
        yield from candidates(bench, n)
    n = sizes(bench)[-1]
    batch = (4, 32, 32) if bench.is_small else (96, 256, 64)
    q = tk.random.normal(tk.random.key(0), batch)
    name = "batch of {} products of {}x{}".format(*batch)
    yield attempt(name, lambda: _row(bench, name, lambda a, b: a @ tk.matrix_transpose(b), q, q))
    if "float16" in bench.backend.capabilities.dtypes:
        half = tk.random.normal(tk.random.key(0), (n, n)).astype("float16")
        yield attempt("float16", lambda: _row(bench, f"float16 a @ b, {n}", FORMS["a @ b"], half, half))


def _row(bench: Bench, name: str, product: Any, a: tk.Tensor, b: tk.Tensor) -> Row:
    compiled = tk.jit(product)
    seconds = bench.seconds(lambda: compiled(a, b).realize())
    work = 2.0 * a.size * (b.shape[0] if a.ndim == 2 else a.shape[1])

    def of_torch(torch: Any) -> Any:
        dtype = getattr(torch, str(a.dtype))
        x, y = [torch.randn(v.shape, device="cuda").to(dtype) for v in (a, b)]
        if a.ndim == 2:
            return lambda: product(x, y)
        return lambda: x @ y.transpose(-1, -2)

    return Row(name, seconds, work / seconds, "FLOP", torch=bench.torch_seconds(of_torch))


def candidates(bench: Bench, n: int) -> Iterator[Row]:
    """Each candidate kernel of a product of two square matrices, as tuning measures it."""
    times = attempt("candidates", lambda: Row("", facts=dict(measure(_candidates(bench, n), bench.device))))
    if times.error:
        yield Row(f"candidates, {n}", error=times.error)
    for name, seconds in times.facts.items():
        row = f"candidate {name}, {n}"
        yield Row(row, seconds, 2.0 * n**3 / seconds, "FLOP") if seconds else Row(row, error="refused")


def _candidates(bench: Bench, n: int) -> dict[str, Kernel]:
    program: Any = single(
        OPS["fused_multiply_add"],
        [Value(shape, DTYPES["float32"]) for shape in ((n, n, 1), (1, n, n))],
        ((1,),),
    )
    kernels = [step.kernel for step in plan(program, bench.backend.target).steps]
    choice = kernels[0].choice
    if choice is not None:
        return {**choice.kernels}
    return {"kernel" if i == 0 else f"kernel {i + 1}": kernel for i, kernel in enumerate(kernels)}
