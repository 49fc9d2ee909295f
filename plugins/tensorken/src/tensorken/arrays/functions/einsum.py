"""Einsum: any sum of products over named axes, as a few products of two operands in a good order.

What is to be done follows from the subscripts and the shapes alone, so it is planned once for each: which diagonals
to take, which axes to sum beforehand, which two operands to multiply next.  Each pair is one product and one sum over
axes, which the interpreters below turn into one contraction without building the product.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tensorken.arrays.functions.contraction_order import Path, path_of, steps_of
from tensorken.arrays.functions.diagonals import diagonal
from tensorken.arrays.functions.operands import promoted
from tensorken.arrays.functions.subscripts import Label, Labels, lettered, read, sizes_of
from tensorken_core.errors import ArgumentError, DTypeError
from tensorken_core.language.dtypes import bool_
from tensorken_core.language.op import OPS
from tensorken_core.language.shapes import Axes, Shape, short_repr
from tensorken_core.tensor.dispatch import binary
from tensorken_core.tensor.tensor import Tensor

__all__ = ["einsum"]

MUL = OPS["mul"]


def einsum(subscripts: Any, *operands: Any, optimize: bool | str | Sequence[Any] = "optimal") -> Tensor:
    """The sum of products that the subscripts name: `einsum("ij,jk->ik", a, b)` is `a @ b`.

    Each operand has a term of letters, one for each axis; axes of one letter go together, and the letters behind `->`
    are those of the result; over the others is summed.  A letter that a term has twice takes the diagonal.  `...`
    stands for the axes that have no letter; they broadcast.  Without `->` the result has the axes of `...`, and then in
    alphabetical order the letters that occur once.  Axes of one letter have one size, or size 1, which is repeated.

    Args:
        subscripts: the terms, and `->` with those of the result.  Or operands and lists of ints in turn, and at the end
            a list for the result: `einsum(a, [0, 1], b, [1, 2], [0, 2])`; `...` may stand in a list.
        operands: the tensors, promoted to one dtype.
        optimize: the order in which the operands are multiplied: `"optimal"` (or True) takes the fewest
            multiplications, and for more than eight operands is `"greedy"`, which at each step makes the smallest
            result; False goes from left to right; or a path as numpy's `einsum_path` gives it.

    Raises:
        ArgumentError: if the subscripts cannot be read, or do not fit the number of operands.
        ShapeError: if a term does not fit its operand's axes, or axes of one letter clash.
        DTypeError: if all operands are bool.

    >>> import tensorken as tk
    >>> tk.einsum("ij,j->i", [[1.0, 2.0], [3.0, 4.0]], [1.0, 10.0]).tolist()
    [21.0, 43.0]
    >>> tk.einsum("ii", [[1.0, 2.0], [3.0, 4.0]]).item()
    5.0
    """
    if not isinstance(subscripts, str):
        subscripts, operands = lettered((subscripts, *operands))
    if not operands:
        raise ArgumentError(f"einsum: no operands for {short_repr(subscripts)}; write einsum('ij,jk', a, b)")
    tensors: list[Any] = promoted("einsum", operands)
    path = optimize if isinstance(optimize, bool | str) else path_of(optimize)
    plan = _planned(subscripts, tuple([x.shape for x in tensors]), path)
    if plan.adds and tensors[0].dtype is bool_:
        raise DTypeError(f"einsum: {short_repr(subscripts)} is not defined for bool; cast first (x.astype)")
    for i, preparation in plan.preparations:
        tensors[i] = preparation(tensors[i])
    for pair in plan.pairs:
        tensors.append(pair(tensors))
    result: Tensor = tensors[-1].permute(plan.order)
    return result


# ---- plans: what is to be done -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Preparation:
    """What is done with one operand alone: diagonals, each of two axes, which come last; then a sum."""

    diagonals: tuple[tuple[int, int], ...]
    summed: Axes

    def __call__(self, x: Tensor) -> Tensor:
        for axis1, axis2 in self.diagonals:
            x = diagonal(x, 0, axis1, axis2)
        return x.sum(self.summed) if self.summed else x


@dataclass(frozen=True, slots=True)
class Pair:
    """The product of two operands, whose axes are brought side by side, summed over the last axes."""

    left: int
    right: int
    orders: tuple[Axes, Axes]
    shapes: tuple[Shape, Shape]
    summed: Axes

    def __call__(self, tensors: list[Any]) -> Tensor:
        both = tensors[self.left], tensors[self.right]
        tensors[self.left] = tensors[self.right] = None  # an operand can go when it has been used
        a, b = (
            x.permute(order).reshape(s) for x, order, s in zip(both, self.orders, self.shapes, strict=True)
        )
        product = binary(MUL, a, b)
        result: Tensor = product.sum(self.summed) if self.summed else product
        return result


@dataclass(frozen=True, slots=True)
class Plan:
    """All that einsum does, in order: each pair's result is put behind the operands, and the last one is permuted."""

    preparations: tuple[tuple[int, Preparation], ...]
    pairs: tuple[Pair, ...]
    order: Axes
    adds: bool


@functools.lru_cache(maxsize=1024)
def _planned(subscripts: str, shapes: tuple[Shape, ...], optimize: bool | str | Path) -> Plan:
    terms, output = read(subscripts, shapes)
    sizes = sizes_of(subscripts, terms, shapes)
    uses = Counter(label for term in terms for label in set(term))
    preparations, labels, extents = [], [], []
    for i, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        diagonals, term, shape = _diagonals(term, shape)
        alone = tuple([k for k, label in enumerate(term) if uses[label] == 1 and label not in output])
        if diagonals or alone:
            preparations.append((i, Preparation(diagonals, alone)))
        labels.append(tuple([label for k, label in enumerate(term) if k not in alone]))
        extents.append(tuple([n for k, n in enumerate(shape) if k not in alone]))
    pairs = []
    live = list(range(len(terms)))
    for left, right in steps_of(labels, output, sizes, optimize, subscripts):
        i, j = live[left], live[right]
        live = [k for k in live if k not in (i, j)]
        needed = set(output).union(*[labels[k] for k in live])
        pair, joined, extent = _pair(i, j, labels, extents, output if not live else (), needed)
        pairs.append(pair)
        live.append(len(labels))
        labels.append(joined)
        extents.append(extent)
    last = labels[live[0]]
    order = tuple([last.index(label) for label in output])
    adds = bool(pairs) or any(preparation.summed for _, preparation in preparations)
    return Plan(tuple(preparations), tuple(pairs), order, adds)


def _pair(
    i: int, j: int, labels: list[Labels], extents: list[Shape], output: Labels, needed: set[Label]
) -> tuple[Pair, Labels, Shape]:
    """The product of operands i and j, the labels that stay, in the order of `output` if that is known, and sizes."""
    every = tuple(dict.fromkeys((*output, *labels[i], *labels[j])))
    present = {*labels[i], *labels[j]}
    kept = tuple([label for label in every if label in present and label in needed])
    layout = kept + tuple([label for label in every if label in present and label not in needed])
    orders, shapes = [], []
    for k in (i, j):
        place = {label: axis for axis, label in enumerate(labels[k])}
        orders.append(tuple([place[label] for label in layout if label in place]))
        shapes.append(tuple([extents[k][place[label]] if label in place else 1 for label in layout]))
    extent = tuple([m if n == 1 else n for n, m in zip(*shapes, strict=True)])
    pair = Pair(i, j, (orders[0], orders[1]), (shapes[0], shapes[1]), tuple(range(len(kept), len(layout))))
    return pair, kept, extent[: len(kept)]


def _diagonals(term: Labels, shape: Shape) -> tuple[tuple[tuple[int, int], ...], Labels, Shape]:
    """The pairs of axes whose diagonals leave each label once; and labels and sizes then."""
    found = []
    while len(set(term)) != len(term):
        label = next(label for label in term if term.count(label) > 1)
        first = term.index(label)
        second = term.index(label, first + 1)
        found.append((first, second))
        rest = [k for k in range(len(term)) if k not in (first, second)]
        shape = (*[shape[k] for k in rest], shape[first])
        term = (*[term[k] for k in rest], label)
    return tuple(found), term, shape
