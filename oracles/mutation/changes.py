"""Changes: further changes of a node of a syntax tree, beside those that the selftest of the kit makes."""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Iterator
from typing import Any

from tensorken_conformance.selftest.source_changes import EXTREMES, Change, with_fields

_ORDERED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift, ast.MatMult)
"""The operators whose operands cannot be swapped."""

_NEIGHBOURS = {
    **EXTREMES,
    "maximum": "minimum",
    "minimum": "maximum",
    "fmax": "maximum",
    "fmin": "minimum",
    "floor": "ceil",
    "ceil": "floor",
    "rint": "trunc",
    "trunc": "floor",
    "zeros": "ones",
    "ones": "zeros",
    "argmax": "argmin",
    "argmin": "argmax",
    "less": "less_equal",
    "less_equal": "less",
    "greater": "greater_equal",
    "equal": "not_equal",
    "not_equal": "equal",
    "isnan": "isinf",
    "isinf": "isnan",
    "left_shift": "right_shift",
    "right_shift": "left_shift",
    "bitwise_and": "bitwise_or",
    "bitwise_or": "bitwise_xor",
    "bitwise_xor": "bitwise_or",
    "logical_and": "logical_or",
    "logical_or": "logical_and",
    "real": "imag",
    "imag": "real",
    "float64": "float32",
    "int64": "int32",
    "complex128": "complex64",
    "expm1": "exp",
    "log1p": "log",
}
"""Attributes in place of which another one of the same object often makes sense."""

_CASTS = ("astype", "copy", "view", "conj", "conjugate", "copysign", "transpose", "ravel", "squeeze")
"""Methods whose result takes the place of their object."""

_CONVERSIONS = (
    "abs",
    "asarray",
    "ascontiguousarray",
    "array",
    "float32",
    "float64",
    "int32",
    "int64",
    "ldexp",
)
_CONVERTING = ("abs", "bool", "float", "int", "list", "sorted")
"""Functions, of numpy or built in, whose result takes the place of their first argument."""

_ASSERTED = ("strict",)
"""Keyword arguments that are assertions."""


def further_changes(node: ast.AST) -> Iterator[Change]:
    """Swapped arguments, dropped statements, casts and keywords, moved bounds, fixed conditions, lost digits."""
    copy: Any = node
    match node:
        case ast.BinOp(left=left, op=operator, right=right) if isinstance(operator, _ORDERED):
            if ast.dump(left) != ast.dump(right):
                yield "swap-operands", lambda: with_fields(copy, left=right, right=left)
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() as whole):
            yield f"{whole}-to-{whole - 1}", lambda: ast.Constant(whole - 1)
        case ast.Constant(value=float() as real) if float(f"{real:.5g}") != real:
            yield "five-digits", lambda: ast.Constant(float(f"{real:.5g}"))
        case ast.Attribute(attr=name, ctx=ast.Load()) if name in _NEIGHBOURS:
            yield f"{name}-to-{_NEIGHBOURS[name]}", lambda: with_fields(copy, attr=_NEIGHBOURS[name])
        case ast.Call():
            yield from _changes_of_call(node)
        case ast.Slice(lower=lower, upper=upper):
            if lower is not None and not isinstance(lower, ast.Constant):
                yield "lower-plus-1", lambda: with_fields(copy, lower=_moved(lower, ast.Add()))
            if upper is not None and not isinstance(upper, ast.Constant):
                yield "upper-minus-1", lambda: with_fields(copy, upper=_moved(upper, ast.Sub()))
        case ast.If(body=body):
            yield "condition-to-False", lambda: with_fields(copy, test=ast.Constant(False))
            if not isinstance(body[0], ast.Raise):
                yield "condition-to-True", lambda: with_fields(copy, test=ast.Constant(True))
        case ast.IfExp():
            yield "condition-to-False", lambda: with_fields(copy, test=ast.Constant(False))
            yield "condition-to-True", lambda: with_fields(copy, test=ast.Constant(True))
        case ast.With(body=body):
            yield "drop-with", lambda: ast.If(ast.Constant(True), body, [])
        case ast.Expr(value=ast.Constant() | ast.Yield() | ast.YieldFrom()):
            pass
        case ast.Expr() | ast.AugAssign():
            yield "drop-statement", ast.Pass
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
            yield "drop-statement", ast.Pass
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if _mentions(value, name):
            yield "drop-statement", ast.Pass


def _changes_of_call(call: ast.Call) -> Iterator[Change]:
    arguments = call.args
    for i, (first, second) in enumerate(itertools.pairwise(arguments)):
        is_plain = not isinstance(first, ast.Starred) and not isinstance(second, ast.Starred)
        if is_plain and ast.dump(first) != ast.dump(second):
            swapped = [*arguments[:i], second, first, *arguments[i + 2 :]]
            yield f"swap-arguments-{i}-{i + 1}", functools.partial(with_fields, call, args=swapped)
    for keyword in call.keywords:
        if keyword.arg is not None and keyword.arg not in _ASSERTED:
            others = [other for other in call.keywords if other is not keyword]
            yield f"drop-{keyword.arg}", functools.partial(with_fields, call, keywords=others)
    match call:
        case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in _CASTS:
            yield f"drop-{name}", lambda: value
        case ast.Call(func=ast.Attribute(attr=name), args=[first, *_]) if name in _CONVERSIONS:
            yield f"drop-{name}", lambda: first
        case ast.Call(func=ast.Name(id=name), args=[ast.expr() as first], keywords=[]) if name in _CONVERTING:
            yield f"drop-{name}", lambda: first
        case ast.Call(func=ast.Name(id="range"), args=[*before, last]) if len(before) < 2:
            if not isinstance(last, ast.Constant | ast.Starred):
                yield (
                    "last-minus-1",
                    functools.partial(with_fields, call, args=[*before, _moved(last, ast.Sub())]),
                )


def _moved(bound: ast.expr, operator: ast.operator) -> ast.expr:
    return ast.BinOp(bound, operator, ast.Constant(1))


def _mentions(value: ast.expr, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(value))
