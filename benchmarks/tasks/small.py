"""Small tasks, dominated by call overhead: derivatives of scalars, a gradient of three numbers, a logistic
regression.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tasks.case import BOTH, Task, normal, task


def _nested(order: int) -> Task:
    def make(lib: Any) -> Any:
        f = lib.xp.tanh
        for _ in range(order):
            f = lib.grad(f)
        return f, (np.float32(0.5),)

    return make


for _order in (1, 2, 3):
    task(f"tanh_gradient_{_order}", suites=BOTH)(_nested(_order))


@task("gradient_of_three", suites=("eager",))
def gradient_of_three(lib: Any) -> Any:
    """The gradient of sum(sin(x) * x) on three elements."""
    return lib.grad(lambda x: (lib.xp.sin(x) * x).sum()), (np.array([0.1, 0.2, 0.3], np.float32),)


def logistic_loss(lib: Any, weights: Any, bias: Any, x: Any, targets: Any) -> Any:
    """The mean cross-entropy of a logistic regression."""
    z = x @ weights + bias
    return -(targets * lib.log_sigmoid(z) + (1.0 - targets) * lib.log_sigmoid(-z)).mean()


def logistic_arguments(rows: int, columns: int) -> tuple[Any, ...]:
    """Weights, bias, examples and targets."""
    targets = (normal(rows, seed=1) > 0).astype(np.float32)
    return normal(columns, seed=2, scale=0.1), np.float32(0.1), normal(rows, columns), targets


def _logistic(rows: int, columns: int) -> Task:
    def make(lib: Any) -> Any:
        return lib.value_and_grad(functools.partial(logistic_loss, lib), (0, 1)), logistic_arguments(
            rows, columns
        )

    return make


task("logistic_4x3", suites=BOTH)(_logistic(4, 3))
task("logistic_10000x100")(_logistic(10000, 100))
