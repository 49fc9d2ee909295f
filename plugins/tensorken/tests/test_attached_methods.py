"""The methods attached to Tensor are exactly those that its stub declares for type checkers."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import tensorken as tk
from tensorken.arrays.methods import ATTACHED
from tensorken_core.tensor import tensor

REPLACED = {"__matmul__", "__repr__", "_unknown", "flip", "max", "min", "prod", "sum"}
REPLACED |= {
    "__add__",
    "__sub__",
    "__mul__",
    "__truediv__",
    "__pow__",
    "__floordiv__",
    "__mod__",
    "__and__",
    "__or__",
    "__xor__",
    "__lshift__",
    "__rshift__",
    "__eq__",
    "__ne__",
    "__lt__",
    "__gt__",
    "__le__",
    "__ge__",
    "__rand__",
    "__ror__",
    "__rxor__",
}
"""Methods that core's Tensor has in a simpler form."""


def declared() -> dict[str, ast.FunctionDef]:
    """The methods in the stub that only type checkers read."""
    stub = Path(str(tensor.__file__)).with_name("attached.pyi")
    (attached,) = [
        node
        for node in ast.parse(stub.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef) and node.name == "Attached"
    ]
    return {node.name: node for node in attached.body if isinstance(node, ast.FunctionDef)}


def test_exactly_the_declared_methods_are_attached() -> None:
    assert set(declared()) == set(ATTACHED) - REPLACED


def test_attached_methods_are_found_on_tensors() -> None:
    for name, member in ATTACHED.items():
        assert inspect.getattr_static(tk.Tensor, name) is member


def test_parameters_equal_the_declared_ones() -> None:
    """The signatures for type checkers have the names, the order and the defaults of the methods themselves."""
    for name, node in declared().items():
        member = ATTACHED[name]
        if isinstance(member, property):
            continue
        own = list(inspect.signature(member).parameters.values())[1:]
        several, keywords = ([a] if a else [] for a in (node.args.vararg, node.args.kwarg))
        given = [*node.args.posonlyargs, *node.args.args, *several, *node.args.kwonlyargs, *keywords][1:]
        assert [p.name for p in own] == [a.arg for a in given], name
        defaults = [p.default for p in own if p.default is not p.empty]
        written = [*node.args.defaults, *node.args.kw_defaults]
        assert defaults == [ast.literal_eval(d) for d in written if d is not None], name
