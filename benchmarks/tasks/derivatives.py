"""Matrices of derivatives: Jacobians of a network of 64 inputs and outputs, the Hessian of a function of 100."""

from __future__ import annotations

from typing import Any

from tasks.case import BOTH, Task, normal, task


def _jacobian(which: str) -> Task:
    def make(lib: Any) -> Any:
        first, second = normal(64, 64, scale=0.1), normal(64, 64, seed=1, scale=0.1)
        xp = lib.xp

        def net(x: Any, first: Any, second: Any) -> Any:
            return xp.tanh(xp.tanh(x @ first) @ second)

        return getattr(lib, which)(net), (normal(64, seed=2), first, second)

    return make


task("jacfwd_64", suites=BOTH)(_jacobian("jacfwd"))
task("jacrev_64", suites=BOTH)(_jacobian("jacrev"))


@task("hessian_100", suites=BOTH)
def hessian(lib: Any) -> Any:
    """The Hessian of the squares of a hidden layer plus a coupling of neighbours."""
    xp = lib.xp

    def f(x: Any, weights: Any) -> Any:
        return (xp.tanh(x @ weights) ** 2).sum() + (xp.sin(x[1:]) * x[:-1]).sum()

    return lib.hessian(f), (normal(100), normal(100, 100, seed=1, scale=0.1))
