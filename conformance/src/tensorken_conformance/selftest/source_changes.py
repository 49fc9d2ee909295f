"""Source changes: the nodes of a syntax tree that a mutant changes, and what it puts in their places."""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

Change = tuple[str, Callable[[], ast.AST]]
"""The kind of a change, such as `Add-to-Sub`, and a function that makes the changed node."""

_PAIRS: list[tuple[type[ast.AST], type[ast.AST]]] = [
    (ast.Add, ast.Sub),
    (ast.LShift, ast.RShift),
    (ast.BitAnd, ast.BitOr),
    (ast.And, ast.Or),
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.Is, ast.IsNot),
    (ast.In, ast.NotIn),
]
_OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    **dict(_PAIRS),
    **{second: first for first, second in _PAIRS},
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitXor: ast.BitAnd,
    ast.MatMult: ast.Mult,
}
_ORDERED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift, ast.MatMult)
"""The operators whose operands cannot be swapped."""

_FUNCTIONS = {
    "add": "sub",
    "sub": "add",
    "mul": "add",
    "eq": "ne",
    "ne": "eq",
    "lt": "le",
    "and_": "or_",
    "or_": "and_",
    "xor": "and_",
}
"""Of the module `operator`."""

_EXTREMES = {"any": "all", "all": "any", "min": "max", "max": "min"}

_NEIGHBOURS = {
    **_EXTREMES,
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


def changes(node: ast.AST) -> Iterator[Change]:
    """Another operator, comparison, constant or extreme, and conditions turned round."""
    copy: Any = node
    match node:
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator) | ast.BoolOp(op=operator):
            other = _OPERATORS[type(operator)]
            yield f"{_word(operator)}-to-{other.__name__}", lambda: _with(copy, op=other())
        case ast.Compare(ops=operators):
            for i, comparison in enumerate(operators):
                other = _OPERATORS[type(comparison)]
                changed = [*operators[:i], other(), *operators[i + 1 :]]
                yield f"{_word(comparison)}-to-{other.__name__}", functools.partial(_with, copy, ops=changed)
        case ast.UnaryOp(op=ast.USub() | ast.Not() | ast.Invert() as operator, operand=operand):
            yield f"no-{_word(operator)}", lambda: operand
        case ast.Constant(value=bool() as value):
            yield f"{value}-to-{not value}", lambda: ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            other_value = value + 1 if value + 1 != value else value * 1.5
            yield f"{value}-to-{other_value}", lambda: ast.Constant(other_value)
        case ast.Attribute(value=ast.Name(id="operator"), attr=name) if name in _FUNCTIONS:
            yield f"{name}-to-{_FUNCTIONS[name]}", lambda: _with(copy, attr=_FUNCTIONS[name])
        case ast.Name(id=name) if name in _EXTREMES:
            yield f"{name}-to-{_EXTREMES[name]}", lambda: _with(copy, id=_EXTREMES[name])
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) if _is_plain(test):
            yield "not-the-condition", lambda: _with(copy, test=ast.UnaryOp(ast.Not(), test))
        case ast.comprehension(ifs=[test]) if _is_plain(test):
            yield "not-the-condition", lambda: _with(copy, ifs=[ast.UnaryOp(ast.Not(), test)])


def further_changes(node: ast.AST) -> Iterator[Change]:
    """Swapped arguments, dropped statements, casts and keywords, moved bounds, fixed conditions, lost digits."""
    copy: Any = node
    match node:
        case ast.BinOp(left=left, op=operator, right=right) if isinstance(operator, _ORDERED):
            if ast.dump(left) != ast.dump(right):
                yield "swap-operands", lambda: _with(copy, left=right, right=left)
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() as whole):
            yield f"{whole}-to-{whole - 1}", lambda: ast.Constant(whole - 1)
        case ast.Constant(value=float() as real) if float(f"{real:.5g}") != real:
            yield "five-digits", lambda: ast.Constant(float(f"{real:.5g}"))
        case ast.Attribute(attr=name, ctx=ast.Load()) if name in _NEIGHBOURS:
            yield f"{name}-to-{_NEIGHBOURS[name]}", lambda: _with(copy, attr=_NEIGHBOURS[name])
        case ast.Call():
            yield from _changes_of_call(node)
        case ast.Slice(lower=lower, upper=upper):
            if lower is not None and not isinstance(lower, ast.Constant):
                yield "lower-plus-1", lambda: _with(copy, lower=_moved(lower, ast.Add()))
            if upper is not None and not isinstance(upper, ast.Constant):
                yield "upper-minus-1", lambda: _with(copy, upper=_moved(upper, ast.Sub()))
        case ast.If(body=body):
            yield "condition-to-False", lambda: _with(copy, test=ast.Constant(False))
            if not isinstance(body[0], ast.Raise):
                yield "condition-to-True", lambda: _with(copy, test=ast.Constant(True))
        case ast.IfExp():
            yield "condition-to-False", lambda: _with(copy, test=ast.Constant(False))
            yield "condition-to-True", lambda: _with(copy, test=ast.Constant(True))
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
            yield f"swap-arguments-{i}-{i + 1}", functools.partial(_with, call, args=swapped)
    for keyword in call.keywords:
        if keyword.arg is not None and keyword.arg not in _ASSERTED:
            others = [other for other in call.keywords if other is not keyword]
            yield f"drop-{keyword.arg}", functools.partial(_with, call, keywords=others)
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
                    functools.partial(_with, call, args=[*before, _moved(last, ast.Sub())]),
                )


def _moved(bound: ast.expr, operator: ast.operator) -> ast.expr:
    return ast.BinOp(bound, operator, ast.Constant(1))


def _mentions(value: ast.expr, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(value))


def _is_plain(test: ast.expr) -> bool:
    """Whether a condition has no operator that other mutants change."""
    return not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp)


def _word(operator: ast.AST) -> str:
    return type(operator).__name__


def _with(node: ast.AST, **changes: Any) -> ast.AST:
    """A copy of a node with some of its fields changed."""
    fields = {name: getattr(node, name) for name in (*node._fields, *node._attributes) if hasattr(node, name)}
    return type(node)(**{**fields, **changes})


def replaced(tree: ast.AST, old: ast.AST, new: ast.AST) -> ast.AST:
    """A tree with one node replaced; other branches are shared with the old tree."""
    if tree is old:
        return new
    fields: dict[str, Any] = {}
    for name, value in ast.iter_fields(tree):
        parts = value if isinstance(value, list) else [value]
        changed = [replaced(part, old, new) if isinstance(part, ast.AST) else part for part in parts]
        if any(a is not b for a, b in zip(parts, changed, strict=True)):
            fields[name] = changed if isinstance(value, list) else changed[0]
    return _with(tree, **fields) if fields else tree
