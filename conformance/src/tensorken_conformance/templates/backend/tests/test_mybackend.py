"""The backend computes derivatives, and conforms to the laws: one test for each law and op."""

from __future__ import annotations

from typing import Any

import tensorken as tk


def test_derivatives() -> None:
    x = tk.tensor([[1.0, 2.0], [3.0, 4.0]], backend="mybackend")
    gradient = tk.grad(lambda x: (x @ x.T).max(1).sum())(x)
    assert (gradient.backend, gradient.tolist()) == ("mybackend", [[3.0, 4.0], [7.0, 10.0]])


def test_conformance(tensorken_law: Any) -> None:
    tensorken_law.check()
