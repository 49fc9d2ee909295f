"""Program: a short computation as data: leaves, which are arrays, and steps, which are Python expressions."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

import tensorken
from tensorken_conformance.numbers.host_arrays import is_float
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.language.op import OPS
from tensorken_core.tensor.tensor import Tensor

Array = np.ndarray[Any, Any]

NAMES = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def name_of(number: int) -> str:
    """The name of a node in Python."""
    return NAMES[number] if number < len(NAMES) else f"x{number}"


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """An array of numbers.

    Attributes:
        values: a numpy array in the format of the dtype.
        dtype: the dtype.
    """

    values: Array
    dtype: DType

    @property
    def text(self) -> str:
        """The Python of the leaf; numbers are as short as their format allows."""
        shape = f".reshape({self.values.shape})" if 0 in self.values.shape else ""
        return f'tk.tensor({_listed(self.values)}, "{self.dtype}"){shape}'


@dataclass(frozen=True, slots=True)
class Step:
    """A Python expression of tensors.

    Attributes:
        text: the expression, with {0}, {1}, ... for its operands, and `tk` for tensorken.
        operands: the numbers of earlier nodes of the program.
        ops: the ops that it tests.
    """

    text: str
    operands: tuple[int, ...]
    ops: tuple[str, ...]

    def __call__(self, *operands: Tensor) -> Tensor:
        """The value of the expression."""
        return _function(self.text, len(operands))(*operands)  # type: ignore[no-any-return]


Node = Leaf | Step


@dataclass(frozen=True, slots=True)
class Expression:
    """A Python expression of tensors, and the same function of numpy arrays.

    Attributes:
        text: the expression, as in a step.
        model: the function of arrays; None: the expression, with numpy in place of tensorken.
        fits: whether it is defined for some arrays.

    >>> Expression("tk.flip({0}, 0) + {1}").value(np.array([1.0, 2.0]), 3.0).tolist()
    [5.0, 4.0]
    """

    text: str
    model: Callable[..., Any] | None = None
    fits: Callable[..., bool] = lambda *operands: True

    @property
    def arity(self) -> int:
        """The number of operands, one or two."""
        return 1 + ("{1}" in self.text)

    def value(self, *operands: Array) -> Array:
        """The value on arrays."""
        return np.asarray((self.model or _function(self.text, self.arity, np))(*operands))

    def __call__(self, *operands: Tensor) -> Tensor:
        """The value on tensors."""
        return self.at(range(self.arity))(*operands)

    def at(self, operands: Iterable[int]) -> Step:
        """The step of a program on the nodes with these numbers."""
        return Step(self.text, tuple(operands), ())


@dataclass(frozen=True, slots=True)
class Program:
    """Nodes in the order in which they are computed.

    >>> leaf = Leaf(np.array([1.0, 2.0], "float32"), DTYPES["float32"])
    >>> print(*Program((leaf, Step("tk.exp({0})", (0,), ("exp",)))).lines(1), sep="; ")
    a = tk.tensor([1.0, 2.0], "float32"); b = tk.exp(a)
    """

    nodes: tuple[Node, ...]

    @property
    def ops(self) -> set[str]:
        """The ops that its steps test."""
        return {op for node in self.nodes if isinstance(node, Step) for op in node.ops}

    def ops_of(self, number: int) -> tuple[str, ...]:
        """The ops of a node; a leaf has none."""
        node = self.nodes[number]
        return node.ops if isinstance(node, Step) else ()

    @property
    def ends(self) -> list[int]:
        """The numbers of the steps whose results no other step uses."""
        used = {i for node in self.nodes if isinstance(node, Step) for i in node.operands}
        return [i for i, node in enumerate(self.nodes) if isinstance(node, Step) and i not in used]

    @property
    def adds_to_scatters(self) -> bool:
        """Whether a step adds to a scatter, or subtracts: passes may then add the slices one by one."""
        scatters: set[int] = set()
        for i, node in enumerate(self.nodes):
            ops = set(self.ops_of(i))
            reads_scatter = isinstance(node, Step) and not scatters.isdisjoint(node.operands)
            if ops & {"add", "sub"} and (reads_scatter or "scatter_add" in ops):
                return True
            if "scatter_add" in ops or (reads_scatter and "reshape" in ops):
                scatters.add(i)
        return False

    def run(self, make: Callable[[Leaf], Tensor]) -> list[Tensor]:
        """The tensors of all nodes; `make` returns the tensor of a leaf."""
        tensors: list[Tensor] = []
        for node in self.nodes:
            if isinstance(node, Leaf):
                tensors.append(make(node))
            else:
                tensors.append(node(*[tensors[i] for i in node.operands]))
        return tensors

    def needed(self, number: int) -> Program:
        """The nodes that a node depends on, in their order, and the node itself as the last."""
        needed_nodes = {number}
        for i in range(number, -1, -1):
            node = self.nodes[i]
            if i in needed_nodes and isinstance(node, Step):
                needed_nodes.update(node.operands)
        return self.only(sorted(needed_nodes))

    def only(self, kept: Sequence[int]) -> Program:
        """The program with only these nodes."""
        numbers = {old: new for new, old in enumerate(kept)}

        def renumbered(node: Node) -> Node:
            if isinstance(node, Leaf):
                return node
            return Step(node.text, tuple([numbers[i] for i in node.operands]), node.ops)

        return Program(tuple([renumbered(self.nodes[i]) for i in kept]))

    def replaced(self, number: int, node: Node) -> Program:
        """The program with one node replaced."""
        return Program((*self.nodes[:number], node, *self.nodes[number + 1 :]))

    def lines(self, last: int) -> list[str]:
        """One assignment for each node up to the last one."""
        names = [name_of(i) for i in range(len(self.nodes))]
        return [
            f"{name} = {node.text if isinstance(node, Leaf) else node.text.format(*[names[i] for i in node.operands])}"
            for name, node in zip(names, self.nodes[: last + 1], strict=False)
        ]

    def text(self, kind: type[Node]) -> str:
        """The assignments of all leaves, or of all steps, in one line."""
        lines = zip(self.lines(len(self.nodes) - 1), self.nodes, strict=True)
        return "; ".join([line for line, node in lines if isinstance(node, kind)])

    def script(self, backend: str, shown: int, remark: str) -> list[str]:
        """The program as Python that runs, in at most five lines.

        Args:
            backend: the name of the backend.
            shown: the number of the node whose value is printed.
            remark: the comment on that line.
        """
        leaves, steps = self.text(Leaf), self.text(Step)
        imports = "import tensorken as tk"
        if "OPS[" in steps:
            imports += "; from tensorken_core.language.op import OPS"
        if "inf" in leaves + steps or "nan" in leaves + steps:
            imports += "; from math import inf, nan"
        parts = [
            imports,
            f"tk.use_backend({backend!r})",
            leaves,
            steps,
            f"print({name_of(shown)})  # {remark}",
        ]
        return [part for part in parts if part]


@functools.cache
def _function(text: str, count: int, library: ModuleType = tensorken) -> Callable[..., Any]:
    """The step as a function; it runs the same text that scripts show."""
    names = [f"x{i}" for i in range(count)]
    source = f"lambda {', '.join(names)}: {text.format(*names)}"
    return eval(source, {"tk": library, "OPS": OPS, "inf": math.inf, "nan": math.nan, **DTYPES})  # type: ignore[no-any-return]


def _listed(values: Array) -> str:
    """The values as nested lists, with the fewest digits that identify each."""
    if not is_float(values):
        return str(values.tolist())
    if values.ndim == 0:
        return str(values[()]) if np.isfinite(values) else repr(float(values))
    return f"[{', '.join([_listed(row) for row in values])}]"
