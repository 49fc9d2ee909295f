"""Source changes: the nodes of a syntax tree that a mutant changes, and what it puts in their places."""

from __future__ import annotations

import ast
import functools
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

EXTREMES = {"any": "all", "all": "any", "min": "max", "max": "min"}


def changes(node: ast.AST) -> Iterator[Change]:
    """Another operator, comparison, constant or extreme, and conditions turned round."""
    copy: Any = node
    match node:
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator) | ast.BoolOp(op=operator):
            other = _OPERATORS[type(operator)]
            yield f"{_word(operator)}-to-{other.__name__}", lambda: with_fields(copy, op=other())
        case ast.Compare(ops=operators):
            for i, comparison in enumerate(operators):
                other = _OPERATORS[type(comparison)]
                changed = [*operators[:i], other(), *operators[i + 1 :]]
                name = f"{_word(comparison)}-to-{other.__name__}"
                yield name, functools.partial(with_fields, copy, ops=changed)
        case ast.UnaryOp(op=ast.USub() | ast.Not() | ast.Invert() as operator, operand=operand):
            yield f"no-{_word(operator)}", lambda: operand
        case ast.Constant(value=bool() as value):
            yield f"{value}-to-{not value}", lambda: ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            other_value = value + 1 if value + 1 != value else value * 1.5
            yield f"{value}-to-{other_value}", lambda: ast.Constant(other_value)
        case ast.Attribute(value=ast.Name(id="operator"), attr=name) if name in _FUNCTIONS:
            yield f"{name}-to-{_FUNCTIONS[name]}", lambda: with_fields(copy, attr=_FUNCTIONS[name])
        case ast.Name(id=name) if name in EXTREMES:
            yield f"{name}-to-{EXTREMES[name]}", lambda: with_fields(copy, id=EXTREMES[name])
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) if _is_plain(test):
            yield "not-the-condition", lambda: with_fields(copy, test=ast.UnaryOp(ast.Not(), test))
        case ast.comprehension(ifs=[test]) if _is_plain(test):
            yield "not-the-condition", lambda: with_fields(copy, ifs=[ast.UnaryOp(ast.Not(), test)])


def _is_plain(test: ast.expr) -> bool:
    """Whether a condition has no operator that other mutants change."""
    return not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp)


def _word(operator: ast.AST) -> str:
    return type(operator).__name__


def with_fields(node: ast.AST, **changes: Any) -> ast.AST:
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
    return with_fields(tree, **fields) if fields else tree
