"""Tasks on large arrays: products, sums, elementwise chains, a cross-entropy, a convolution."""

from __future__ import annotations

from typing import Any

from tasks.case import BOTH, Task, normal, random_integers, task

# ---- products and sums -----------------------------------------------------------------------------------------


def _matmul(n: int) -> Task:
    return lambda lib: (lambda a, b: a @ b, (normal(n, n), normal(n, n, seed=1)))


for _n in (64, 128, 256, 512, 1024, 2048):
    task(f"matmul_{_n}", suites=BOTH if _n == 256 else ("traced",))(_matmul(_n))


@task("gradient_of_sum_of_matmul_1024")
def gradient_of_sum_of_matmul(lib: Any) -> Any:
    """It needs no matrix product, only sums of rows and columns."""
    return lib.grad(lambda a, b: (a @ b).sum(), (0, 1)), (normal(1024, 1024), normal(1024, 1024, seed=1))


def _sum(axis: int | None, *shape: int) -> Task:
    return lambda lib: (lambda x: x.sum() if axis is None else x.sum(axis), (normal(*shape),))


task("sum_1e7")(_sum(None, 10_000_000))
task("sum_of_columns")(_sum(0, 4096, 2048))
task("sum_of_rows")(_sum(1, 4096, 2048))


@task("transpose_add_4096")
def transpose_add(lib: Any) -> Any:
    """The sum of a matrix and its transpose."""
    return lambda x: x + x.T, (normal(4096, 4096),)


# ---- elementwise -----------------------------------------------------------------------------------------------


def chain(lib: Any) -> Any:
    """The sum of a chain of elementwise functions."""
    xp = lib.xp
    return lambda x: (xp.tanh(xp.exp(-x * x) / 2.0 + x) / (1.0 + x * x)).sum()


def _chain(n: int, gradient: bool) -> Task:
    return lambda lib: (lib.grad(chain(lib)) if gradient else chain(lib), (normal(n),))


for _exponent in (3, 6, 7):
    _suites = ("traced",) if _exponent == 7 else BOTH
    task(f"chain_1e{_exponent}")(_chain(10**_exponent, False))
    task(f"chain_gradient_1e{_exponent}", suites=_suites)(_chain(10**_exponent, True))


def _cross_entropy(gradient: bool) -> Task:
    def make(lib: Any) -> Any:
        f = lib.grad(lib.cross_entropy) if gradient else lib.cross_entropy
        return f, (normal(4096, 1000), random_integers(1000, 4096, seed=3))

    return make


task("cross_entropy_4096x1000")(_cross_entropy(False))
task("cross_entropy_gradient_4096x1000", suites=BOTH)(_cross_entropy(True))

# ---- convolution -----------------------------------------------------------------------------------------------


def _convolution(gradient: bool) -> Task:
    def make(lib: Any) -> Any:
        def loss(x: Any, kernel: Any) -> Any:
            return (lib.convolve(x, kernel) ** 2).sum() * 0.5

        arguments = (normal(32, 3, 32, 32), normal(32, 3, 3, 3, seed=1, scale=0.2))
        return (lib.grad(loss, (0, 1)) if gradient else lib.convolve), arguments

    return make


task("convolution")(_convolution(False))
task("convolution_gradient", suites=BOTH)(_convolution(True))
