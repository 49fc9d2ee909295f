"""The text of an expression is valid Python and determines its program."""

from __future__ import annotations

import ast
from typing import Any

import pytest

import tensorken as tk
from tensorken_string.backend import String

STRING = String()
A = tk.symbol("A", (2,), backend=STRING)
B = tk.symbol("B", (2,), backend=STRING)
ONE = tk.full((), 1, "int32", backend=STRING)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (lambda: (-A).exp(), "(-A).exp()"),
        (lambda: -A.exp(), "-A.exp()"),
        (lambda: (-A) ** B, "((-A) ** B)"),
        (lambda: -(A**B), "-(A ** B)"),
        (lambda: A**-B, "(A ** -B)"),
        (lambda: -A + B, "(-A + B)"),
        (lambda: A - -B, "(A - -B)"),
        (lambda: tk.negative(-A), "--A"),
        (lambda: tk.maximum(-A, -B), "(-A).maximum(-B)"),
        (lambda: tk.sqrt(tk.full((), -2.0, backend=STRING)), "(-2.0).sqrt()"),
        (lambda: tk.sqrt(tk.full((), 2.0, backend=STRING)), "2.0.sqrt()"),
        (lambda: ONE.reshape(1), "(1).reshape([1])"),
    ],
)
def test_signs_and_numbers_are_parenthesised(expression: Any, text: str):
    assert str(expression()) == text
    ast.parse(text, mode="eval")


def test_different_programs_have_different_texts():
    assert str((-A).exp()) != str(-A.exp())
    assert str((-A) ** B) != str(-(A**B))
