"""Products of matrices, with each candidate kernel."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import tensorken as tk
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS
from tensorken_wgpu.execution.planning import plan
from tensorken_wgpu.execution.tuning import measure
from tensorken_wgpu.kernels.kernel import Kernel
from tensorken_wgpu.report.bench import Bench, Row, attempt
from tensorken_wgpu.wgsl.single_op import Value, single

CHECKED = 8
"""The elements of a product that are compared with their exact values."""


@dataclass(frozen=True, slots=True)
class Product:
    """A product of two matrices, or of batches of them.

    Attributes:
        name: of it.
        sizes: the rows, the elements of each sum, and the columns.
        transposed: whether each operand has its axes in the other order in memory.
        batch: the number of products; None for one without a batch.
        dtype: of the operands.
    """

    name: str
    sizes: tuple[int, int, int]
    transposed: tuple[bool, bool] = (False, False)
    batch: int | None = None
    dtype: str = "float32"

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the operands in memory."""
        m, k, n = self.sizes
        batch = () if self.batch is None else (self.batch,)
        pairs = zip(((m, k), (k, n)), self.transposed, strict=True)
        return [(*batch, *(shape[::-1] if swapped else shape)) for shape, swapped in pairs]

    @property
    def work(self) -> int:
        """The number of multiplications and additions."""
        return 2 * math.prod(self.sizes) * (self.batch or 1)

    def compute(self, a: Any, b: Any) -> Any:
        """The product, of tensors of any library."""
        a, b = [x.swapaxes(-1, -2) if t else x for x, t in zip((a, b), self.transposed, strict=True)]
        return a @ b


def sizes(bench: Bench) -> list[int]:
    """The rows of the square matrices, as far as they fit in a binding."""
    if bench.tiny:
        return [64]
    if bench.is_small:
        return [128, 256] if bench.quick else [128, 256, 512]
    wanted = [512, 2048] if bench.quick else [256, 512, 1024, 2048, 4096, 8192]
    most = bench.device.limits["max-storage-buffer-binding-size"]
    return [n for n in wanted if 4 * n * n <= most]


def others(bench: Bench) -> Iterator[Product]:
    """Products of other shapes and dtypes."""
    n, small = sizes(bench)[-1], bench.is_small
    yield Product(f"a @ b.T, {n}", (n, n, n), (False, True))
    yield Product(f"a.T @ b, {n}", (n, n, n), (True, False))
    yield Product("few rows", (8, 128, 128) if small else (8, 4096, 4096))
    yield Product("gradient of a weight", (40, 2048, 40) if small else (784, 65536, 128), (True, False))
    batch, *of_each = (4, 32, 32, 32) if small else (96, 256, 64, 256)
    m, k, columns = of_each
    yield Product(f"batch of {batch} products of {m}x{k}x{columns}", (m, k, columns), (False, True), batch)
    if "float16" in bench.backend.capabilities.dtypes:
        yield Product(f"float16 a @ b, {n}", (n, n, n), dtype="float16")


def products(bench: Bench) -> Iterator[Row]:
    """Products of square matrices with each candidate kernel, and other products."""
    for n in sizes(bench):
        yield _measured(bench, Product(f"a @ b, {n}", (n, n, n)))
        yield from candidates(bench, n)
    for product in others(bench):
        yield _measured(bench, product)


def _measured(bench: Bench, product: Product) -> Row:
    return attempt(product.name, lambda: _row(bench, product))


def _row(bench: Bench, product: Product) -> Row:
    keys = tk.random.split(tk.random.key(0), 2)
    a, b = [
        tk.random.normal(key, shape).astype(product.dtype)
        for key, shape in zip(keys, product.shapes, strict=True)
    ]
    compiled = tk.jit(product.compute)
    a.realize(), b.realize()
    bench.wait()
    start = time.perf_counter()
    result = compiled(a, b).realize()
    bench.wait()
    facts: dict[str, Any] = {"first call in s": time.perf_counter() - start}
    facts["error"] = largest_error(product, a, b, result)
    seconds = bench.seconds(lambda: compiled(a, b).realize())

    def of_torch(torch: Any) -> Any:
        dtype = getattr(torch, product.dtype)
        x, y = [torch.randn(shape, device="cuda").to(dtype) for shape in product.shapes]
        return lambda: product.compute(x, y)

    if product.dtype == "float32" and (fast := _with_tf32(bench, of_torch)) is not None:
        facts["torch with TF32 in s"] = fast
    torch = bench.torch_seconds(of_torch)
    return Row(product.name, seconds, product.work / seconds, "FLOP", torch=torch, facts=facts)


def _with_tf32(bench: Bench, make_call: Any) -> float | None:
    """The seconds of a product in torch with the digits of TF32; None without torch."""
    if bench.torch is None:
        return None
    bench.torch.backends.cuda.matmul.allow_tf32 = True
    try:
        return bench.torch_seconds(make_call)
    finally:
        bench.torch.backends.cuda.matmul.allow_tf32 = False


def largest_error(product: Product, a: tk.Tensor, b: tk.Tensor, result: tk.Tensor) -> float:
    """The largest error of some elements of a product, relative to the sum of the sizes of their terms."""
    if product.batch is not None:
        a, b, result = a[-1], b[-1], result[-1]
    m, _, n = product.sizes
    errors = []
    for number in range(CHECKED):
        i, j = (number + 1) * m // CHECKED - 1, n - 1 - number * n // CHECKED
        row = (a[:, i] if product.transposed[0] else a[i]).tolist()
        column = (b[j] if product.transposed[1] else b[:, j]).tolist()
        terms = [x * y for x, y in zip(row, column, strict=True)]
        errors.append(abs(float(result[i, j].item()) - math.fsum(terms)) / math.fsum(map(abs, terms)))
    return max(errors)


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
