"""Einsum: a sum of products over labelled axes, computed by pairwise products.

The plan depends only on the subscripts and the shapes, and is cached for them: the diagonals to take, the axes to sum
beforehand, the order of the pairwise products.  Each pair is one product and one sum over axes, which the backends turn
into one contraction without storing the product.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.contraction_order import Path, path_of, steps_of
from tensorken.arrays.functions.diagonals import diagonal
from tensorken.arrays.functions.operands import promoted_tensors
from tensorken.arrays.functions.subscripts import Label, Labels, lettered, read, sizes_of
from tensorken_core.errors import ArgumentError
from tensorken_core.language.dtypes import bool_, int32
from tensorken_core.language.op import OPS
from tensorken_core.language.shapes import Axes, Shape, short_repr
from tensorken_core.tensor.dispatch import binary
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = ["einsum", "einsum_path"]

MUL = OPS["mul"]


def einsum(
    subscripts: str | ArrayLike, *operands: ArrayLike, optimize: bool | str | Sequence[Any] = "optimal"
) -> Tensor:
    """The sum of products that the subscripts denote: `einsum("ij,jk->ik", a, b)` is `a @ b`.

    The subscripts have a term for each operand, with a letter for each axis.  The letters after `->` are the axes of
    the result; the other letters are summed over.  A letter repeated in one term takes the diagonal.  `...` denotes the
    axes without a letter; they broadcast.  Without `->` the result has the axes of `...`, then the letters that occur
    once, in alphabetical order.  Axes with the same letter have the same size, or size 1, which is broadcast.

    Args:
        subscripts: the terms, and `->` with the term of the result.  Or alternating operands and lists of ints, and at
            the end a list for the result: `einsum(a, [0, 1], b, [1, 2], [0, 2])`; a list may contain `...`.
        operands: the tensors, promoted to one dtype.
        optimize: the contraction order: `"optimal"` (or True) takes the fewest multiplications, and for more than
            eight operands means `"greedy"`, which at each step chooses the smallest result; False multiplies from
            left to right; or a path of `einsum_path`.

    Raises:
        ArgumentError: if the subscripts are malformed, or do not fit the number of operands.
        ShapeError: if a term does not fit the axes of its operand, or axes with the same letter differ in size.
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
    tensors: list[Any] = promoted_tensors("einsum", operands)
    path = optimize if isinstance(optimize, bool | str) else path_of(optimize)
    plan = _planned(subscripts, tuple([x.shape for x in tensors]), path)
    of_bools = plan.adds and tensors[0].dtype is bool_
    if of_bools:  # as numpy, whether there is any product
        tensors = [x.astype(int32) for x in tensors]
    for i, preparation in plan.preparations:
        tensors[i] = preparation(tensors[i])
    for pair in plan.pairs:
        tensors.append(pair(tensors))
    result: Tensor = tensors[-1].permute(plan.order)
    return result.astype(bool_) if of_bools else result


def einsum_path(
    subscripts: str | ArrayLike, *operands: ArrayLike, optimize: bool | str | Sequence[Any] = "optimal"
) -> tuple[list[Any], str]:
    """The contraction order of `einsum` for these operands, of which only the shapes count, and a report of it.

    Args:
        subscripts: as for `einsum`.
        operands: as for `einsum`.
        optimize: as for `einsum`, where numpy's default is `"greedy"`.

    Returns:
        A list that `einsum` takes as `optimize`: `"einsum_path"`, then for each product the positions of its operands,
        which are removed from the list of operands, to which the product is appended.  And a text with a line for each
        product.

    Raises:
        ArgumentError, ShapeError: as for `einsum`.

    >>> import tensorken as tk
    >>> path, report = tk.einsum_path("ij,jk,k->i", tk.ones((8, 9)), tk.ones((9, 7)), tk.ones(7))
    >>> path
    ['einsum_path', (1, 2), (0, 1)]
    >>> print(report)
    ij,jk,k->i
    jk,k: (9, 7) and (7,)
    ij,j: (8, 9) and (9,)
    """
    if not isinstance(subscripts, str):
        subscripts, operands = lettered((subscripts, *operands))
    if not operands:
        raise ArgumentError(
            f"einsum_path: no operands for {short_repr(subscripts)}; write einsum_path('ij,jk', a, b)"
        )
    shapes = tuple([as_tensor(x).shape for x in operands])
    path = optimize if isinstance(optimize, bool | str) else path_of(optimize)
    plan = _planned(subscripts, shapes, path)
    return ["einsum_path", *(plan.path or ((0,),))], "\n".join([subscripts.replace(" ", ""), *plan.report])


# ---- plans -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Preparation:
    """Steps on a single operand: diagonals over pairs of axes, each put last, then a sum over axes."""

    diagonals: tuple[tuple[int, int], ...]
    summed: Axes

    def __call__(self, x: Tensor) -> Tensor:
        for axis1, axis2 in self.diagonals:
            x = diagonal(x, 0, axis1, axis2)
        return x.sum_in_own_dtype(self.summed) if self.summed else x


@dataclass(frozen=True, slots=True)
class Pair:
    """The product of two operands with aligned axes, summed over the last axes."""

    left: int
    right: int
    orders: tuple[Axes, Axes]
    shapes: tuple[Shape, Shape]
    summed: Axes

    def __call__(self, tensors: list[Any]) -> Tensor:
        both = tensors[self.left], tensors[self.right]
        tensors[self.left] = tensors[self.right] = None  # release the operands after use
        a, b = (
            x.permute(order).reshape(s) for x, order, s in zip(both, self.orders, self.shapes, strict=True)
        )
        product = binary(MUL, a, b)
        result: Tensor = product.sum_in_own_dtype(self.summed) if self.summed else product
        return result


@dataclass(frozen=True, slots=True)
class Plan:
    """All steps of an einsum: the result of each pair is appended to the operands, and the last result is permuted."""

    preparations: tuple[tuple[int, Preparation], ...]
    pairs: tuple[Pair, ...]
    path: Path
    report: tuple[str, ...]
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
        summed_alone = tuple([k for k, label in enumerate(term) if uses[label] == 1 and label not in output])
        if diagonals or summed_alone:
            preparations.append((i, Preparation(diagonals, summed_alone)))
        labels.append(tuple([label for k, label in enumerate(term) if k not in summed_alone]))
        extents.append(tuple([n for k, n in enumerate(shape) if k not in summed_alone]))
    pairs, report = [], []
    live = list(range(len(terms)))
    steps = steps_of(labels, output, sizes, optimize, subscripts)
    for left, right in steps:
        i, j = live[left], live[right]
        live = [k for k in live if k not in (i, j)]
        needed = set(output).union(*[labels[k] for k in live])
        report.append(f"{_written(labels[i])},{_written(labels[j])}: {extents[i]} and {extents[j]}")
        pair, joined, extent = _pair(i, j, labels, extents, output if not live else (), needed)
        pairs.append(pair)
        live.append(len(labels))
        labels.append(joined)
        extents.append(extent)
    last = labels[live[0]]
    order = tuple([last.index(label) for label in output])
    adds = bool(pairs) or any(preparation.summed for _, preparation in preparations)
    path = tuple([(min(step), max(step)) for step in steps])
    return Plan(tuple(preparations), tuple(pairs), path, tuple(report), order, adds)


def _written(labels: Labels) -> str:
    """The letters of a term, with `...` for the axes without a letter."""
    parts = [label if isinstance(label, str) else "..." for label in labels]
    return "".join([part for i, part in enumerate(parts) if part != "..." or parts[i - 1 : i] != ["..."]])


def _pair(
    i: int, j: int, labels: list[Labels], extents: list[Shape], output: Labels, needed: set[Label]
) -> tuple[Pair, Labels, Shape]:
    """The product of operands i and j, its labels (in the order of `output` if given), and its sizes."""
    all_labels = tuple(dict.fromkeys((*output, *labels[i], *labels[j])))
    present = {*labels[i], *labels[j]}
    kept = tuple([label for label in all_labels if label in present and label in needed])
    layout = kept + tuple([label for label in all_labels if label in present and label not in needed])
    orders, shapes = [], []
    for k in (i, j):
        axis_of = {label: axis for axis, label in enumerate(labels[k])}
        orders.append(tuple([axis_of[label] for label in layout if label in axis_of]))
        shapes.append(tuple([extents[k][axis_of[label]] if label in axis_of else 1 for label in layout]))
    extent = tuple([m if n == 1 else n for n, m in zip(*shapes, strict=True)])
    pair = Pair(i, j, (orders[0], orders[1]), (shapes[0], shapes[1]), tuple(range(len(kept), len(layout))))
    return pair, kept, extent[: len(kept)]


def _diagonals(term: Labels, shape: Shape) -> tuple[tuple[tuple[int, int], ...], Labels, Shape]:
    """The pairs of axes to take diagonals over, so that each label occurs once; and the resulting labels and sizes."""
    pairs = []
    while len(set(term)) != len(term):
        label = next(label for label in term if term.count(label) > 1)
        first = term.index(label)
        second = term.index(label, first + 1)
        pairs.append((first, second))
        rest = [k for k in range(len(term)) if k not in (first, second)]
        shape = (*[shape[k] for k in rest], shape[first])
        term = (*[term[k] for k in rest], label)
    return tuple(pairs), term, shape
