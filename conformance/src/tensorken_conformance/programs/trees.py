"""Trees: a program as a symbolic backend received it, and the program that its text means.

The text is a Python expression: `x.op(operands, params)`, an operator where Python has one, `new(shape, values)` or
`new(shape, count)`, a number for a tensor of equal elements, `[i]` for one of several results, and names. A negative
number and the negation of a number have the same text, and count as equal.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from typing import Any

from tensorken_core.language.dtypes import DType
from tensorken_core.language.op import OPS, Op, run
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.rewriting.wrapper import Wrapper

Tree = tuple[Any, ...]
"""`(op, operands, params)`, `("name", name)`, `("full", number)`, `("new", shape, values)`, `("result", i, tree)`."""

_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.Pow: "pow",
    ast.Eq: "eq",
    ast.Lt: "lt",
    ast.USub: "neg",
}


def applied(op: str, operands: Sequence[Tree], params: tuple[Any, ...]) -> Tree:
    """An op on trees; the negation of a number is the number."""
    if op == "neg" and operands[0][0] == "full":
        return full(operator.neg(float(operands[0][1])))
    return op, tuple(operands), params


def full(value: Any) -> Tree:
    """A tensor of equal numbers, as text, since 0.0, -0.0 and nan differ as text."""
    return "full", str(float(value))


def plain(param: Any) -> Any:
    """A param as `read` returns it."""
    if isinstance(param, tuple | list):
        return tuple([plain(part) for part in param])
    return str(param) if isinstance(param, DType | str) or param is None else param


class Recorder(Wrapper[tuple[Any, Tree]]):
    """A backend whose values carry the trees of the ops that made them.

    >>> from tensorken_core.language.dtypes import float32
    >>> from tensorken_string.backend import String
    >>> recorder = Recorder(String())
    >>> expression, tree = recorder.exp(recorder.named("x", (2,), float32))
    >>> str(expression), tree
    ('x.exp()', ('exp', (('name', 'x'),), ()))
    """

    def __init__(self, backend: RawTensor[Any]) -> None:
        super().__init__(backend)
        below = getattr(backend, "raw", backend)  # the call counter has no symbols; its backend does
        self._symbol: Callable[..., Any] | None = getattr(below, "symbol", None)

    def value(self, x: tuple[Any, Tree]) -> Any:
        return x[0]

    def named(self, name: str, shape: Shape, dtype: DType) -> tuple[Any, Tree]:
        """A symbol, if the backend has symbols; else a tensor of one number, which depends on the name."""
        if self._symbol is None:
            return self.full(shape, sum(map(ord, name)) % (2 if dtype.kind == "bool" else 127), dtype)
        return self._symbol(name, shape, dtype), ("name", name)

    def new(self, shape: Shape, data: Any, dtype: DType) -> tuple[Any, Tree]:
        values = [float(value) for value in data]
        return self.raw.new(shape, data, dtype), ("new", shape, tuple(map(str, values)))

    def full(self, shape: Shape, value: bool | int | float, dtype: DType) -> tuple[Any, Tree]:
        return self.raw.full(shape, value, dtype), full(value)

    def shape(self, x: tuple[Any, Tree]) -> Shape:
        return self.raw.shape(x[0])

    def dtype(self, x: tuple[Any, Tree]) -> DType:
        return self.raw.dtype(x[0])

    def interpret(self, op: Op, operands: Sequence[tuple[Any, Tree]], params: tuple[Any, ...]) -> Any:
        if op.per_example or (not self.raw.has(op) and op.body is not None):
            return super().interpret(op, operands, params)
        result = run(self.raw, op, [x for x, _ in operands], params)
        tree = applied(op.name, [known for _, known in operands], plain(params))
        if op.results == 1:
            return result, tree
        return tuple([(part, ("result", i, tree)) for i, part in enumerate(result)])


def read(text: str) -> Tree:
    """The tree of a text.

    Raises:
        ValueError: if it is not an expression of the language.

    >>> read("(x + -2.0).sum([0])")
    ('sum', (('add', (('name', 'x'), ('full', '-2.0')), ()),), ((0,),))
    """
    try:
        parsed = ast.parse(text, mode="eval").body
    except (SyntaxError, RecursionError) as error:
        raise ValueError(f"it is no Python expression: {error.args[0]}") from None
    return _tree(parsed)


def _tree(node: ast.expr) -> Tree:
    match node:
        case ast.Constant(value=bool() | int() | float() as value):
            return full(value)
        case ast.Name(id="nan" | "inf" as name):
            return full(float(name))
        case ast.Name(id=name):
            return "name", name
        case ast.UnaryOp(op=ast.USub(), operand=x):
            return applied("neg", [_tree(x)], ())
        case ast.BinOp(left=a, op=kind, right=b) if type(kind) in _OPERATORS:
            return applied(_OPERATORS[type(kind)], [_tree(a), _tree(b)], ())
        case ast.Compare(left=a, ops=[kind], comparators=[b]) if type(kind) in _OPERATORS:
            return applied(_OPERATORS[type(kind)], [_tree(a), _tree(b)], ())
        case ast.Subscript(value=x, slice=ast.Constant(value=int(i))):
            return "result", i, _tree(x)
        case ast.Call(func=ast.Name(id="new"), args=[shape, values], keywords=[]):
            return _constant(_param(shape), _param(values))
        case ast.Call(func=ast.Attribute(value=x, attr=name), args=rest, keywords=[]) if name in OPS:
            op = OPS[name]
            count = (len(rest) - len(op.params) if op.arity is None else op.arity - 1) if op.params else None
            operands, params = (rest, []) if count is None else (rest[:count], rest[count:])
            return applied(name, [_tree(x), *map(_tree, operands)], tuple(map(_param, params)))
    raise ValueError(f"{ast.unparse(node)!r} is nothing that the language has")


def _constant(shape: Any, values: Any) -> Tree:
    return "new", shape, tuple([str(float(v)) for v in values]) if isinstance(values, tuple) else values


def _param(node: ast.expr) -> Any:
    match node:
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return tuple([_param(part) for part in parts])
        case ast.Name(id="nan" | "inf" as name):
            return float(name)
        case ast.Name(id=name):
            return name
        case ast.Constant(value=value):
            return plain(value)
        case ast.UnaryOp(op=ast.USub(), operand=x):
            return operator.neg(_param(x))
    raise ValueError(f"{ast.unparse(node)!r} is no param")


def difference(expected: Tree, actual: Tree) -> str:
    """The first difference of two trees, in words; empty if there is none.  A `new` may have a count for its values.

    >>> difference(("exp", (("name", "x"),), ()), ("exp", (("name", "y"),), ()))
    "expected name 'x', it reads name 'y'"
    """
    if expected[0] == actual[0] == "new":
        values = actual[2] if isinstance(actual[2], tuple) else len(expected[2])
        counted = expected[2] if isinstance(actual[2], tuple) else actual[2]
        return "" if (expected[1], counted) == (actual[1], values) else _differ(expected, actual)
    if expected[0] == actual[0] == "result" and expected[1] == actual[1]:
        return difference(expected[2], actual[2])
    if expected[0] != actual[0] or expected[0] in ("name", "full", "result"):
        return "" if expected == actual else _differ(expected, actual)
    (_, xs, params), (_, ys, others) = expected, actual
    if len(xs) != len(ys) or params != others:
        return _differ(expected, actual)
    return next(filter(None, (difference(x, y) for x, y in zip(xs, ys, strict=True))), "")


def _differ(expected: Tree, actual: Tree) -> str:
    return f"expected {_shown(expected)}, it reads {_shown(actual)}"


def _shown(tree: Tree) -> str:
    if tree[0] in ("name", "full"):
        return f"{tree[0]} {tree[1]!r}"
    if tree[0] in ("new", "result"):
        return f"{tree[0]} {tree[1]}"
    return f"{tree[0]} of {len(tree[1])} with {tree[2]}"
