"""HIPS autograd (2015), which has no compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import autograd
import autograd.numpy as anp

from libraries.library import Library


class Autograd(Library):
    """Autograd; it computes Jacobians only by rows."""

    name = "autograd"
    xp = anp
    jacfwd = jacrev = staticmethod(autograd.jacobian)
    hessian = staticmethod(autograd.hessian)

    def grad(self, f: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
        return autograd.grad(f, argnums)

    def value_and_grad(self, f: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
        return autograd.value_and_grad(f, argnums)

    def cross_entropy(self, logits: Any, labels: Any) -> Any:
        return -self.log_softmax(logits)[anp.arange(len(labels)), labels].mean()


adapter = Autograd
