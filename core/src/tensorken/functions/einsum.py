"""Einsum: any sum of products over named axes, as a few products of two operands in a good order.

What is to be done follows from the subscripts and the shapes alone, so it is planned once for each: which diagonals
to take, which axes to sum beforehand, which two operands to multiply next.  Each pair is one product and one sum over
axes, which the interpreters below turn into one contraction without building the product.
"""

from __future__ import annotations

import functools
import math
import operator
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from tensorken.dispatch import binary
from tensorken.errors import ArgumentError, DTypeError, ShapeError
from tensorken.functions.diagonals import diagonal
from tensorken.functions.operands import promoted
from tensorken.levels import meet
from tensorken.spec.dtypes import bool_
from tensorken.spec.op import OPS
from tensorken.spec.shapes import Axes, Shape, shown
from tensorken.tensor import Tensor

__all__ = ["einsum"]

MUL = OPS["mul"]

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

MANY = 8
"""The most operands for which the best order is looked for, in 3 ** MANY steps."""

Label = str | int
"""A letter; or, for an axis that `...` stands for, its place from the last of them: -1, -2, ..."""

Labels = tuple[Label, ...]
Path = tuple[tuple[int, ...], ...]


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
        subscripts, operands = _lettered((subscripts, *operands))
    tensors: list[Any] = promoted("einsum", operands)
    first = tensors[0].interpreter
    if any(x.interpreter is not first for x in tensors):
        meet([x.interpreter for x in tensors], "einsum")
    path = optimize if isinstance(optimize, bool | str) else _path_of(optimize)
    plan = _planned(subscripts, tuple([x.shape for x in tensors]), path)
    if plan.adds and tensors[0].dtype is bool_:
        raise DTypeError(f"einsum: {shown(subscripts)} is not defined for bool; cast first (x.astype)")
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
        return product.sum(self.summed) if self.summed else product


@dataclass(frozen=True, slots=True)
class Plan:
    """All that einsum does, in order: each pair's result is put behind the operands, and the last one is permuted."""

    preparations: tuple[tuple[int, Preparation], ...]
    pairs: tuple[Pair, ...]
    order: Axes
    adds: bool


@functools.lru_cache(maxsize=1024)
def _planned(subscripts: str, shapes: tuple[Shape, ...], optimize: bool | str | Path) -> Plan:
    terms, output = _read(subscripts, shapes)
    sizes = _sizes_of(subscripts, terms, shapes)
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
    for left, right in _steps(labels, output, sizes, optimize, subscripts):
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


# ---- subscripts: what they say -----------------------------------------------------------------------------


def _read(subscripts: str, shapes: tuple[Shape, ...]) -> tuple[list[Labels], Labels]:
    """The labels of the operands' axes, and those of the result."""
    text = "".join(subscripts.split())
    before, arrow, after = text.partition("->")
    written = before.split(",")
    for term in (*written, after):
        letters = term.replace("...", "", 1)
        if letters and not (letters.isascii() and letters.isalpha()):
            odd = next(c for c in letters if not (c.isascii() and c.isalpha()))
            raise ArgumentError(
                f"einsum: {odd!r} in {shown(subscripts)} is no letter; write letters, ',', '->' and one '...' a term"
            )
    if len(written) != len(shapes):
        raise ArgumentError(
            f"einsum: {shown(subscripts)} has {len(written)} terms for {len(shapes)} operands; give each one"
        )
    terms = [
        _expanded(subscripts, i, term, shape)
        for i, (term, shape) in enumerate(zip(written, shapes, strict=True))
    ]
    counts = Counter(label for term in terms for label in term)
    hidden = tuple(sorted([label for label in counts if isinstance(label, int)]))
    if not arrow:
        return terms, hidden + tuple(sorted([c for c in counts if isinstance(c, str) and counts[c] == 1]))
    if hidden and "..." not in after:
        raise ArgumentError(
            f"einsum: {shown(subscripts)} has '...' for {len(hidden)} axes that the result does not name; "
            f"write '...' behind '->', or letters for what is to be summed"
        )
    output: Labels = _labels(after, hidden)
    for label in output:
        if label not in counts:
            raise ArgumentError(
                f"einsum: the result's {label!r} in {shown(subscripts)} is in no term; name an operand's axis"
            )
        if output.count(label) > 1:
            raise ArgumentError(
                f"einsum: the result's {label!r} in {shown(subscripts)} stands twice; name it once, see tk.diag"
            )
    return terms, output


def _expanded(subscripts: str, i: int, term: str, shape: Shape) -> Labels:
    """The labels of an operand's axes."""
    letters = len(term.replace("...", ""))
    hidden = len(shape) - letters
    if hidden < 0 or (hidden and "..." not in term):
        raise ShapeError(
            f"einsum: term {term!r} of {shown(subscripts)} names {letters} axes, operand {i} of shape {shape} "
            f"has {len(shape)}; give each a letter, or write '...'"
        )
    return _labels(term, tuple(range(-hidden, 0)))


def _labels(term: str, hidden: tuple[int, ...]) -> Labels:
    before, _, after = term.partition("...")
    return (*before, *(hidden if "..." in term else ()), *after)


def _sizes_of(subscripts: str, terms: list[Labels], shapes: tuple[Shape, ...]) -> dict[Label, int]:
    """The size of each label; one of size 1 is repeated, but not beside itself in one term."""
    sizes: dict[Label, int] = {}
    for i, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        own: dict[Label, int] = {}
        for label, n in zip(term, shape, strict=True):
            if own.setdefault(label, n) != n:
                raise ShapeError(
                    f"einsum: {label!r} names sizes {own[label]} and {n} in operand {i} of shape {shape}, "
                    f"{shown(subscripts)}; a diagonal needs equal sizes"
                )
        for label, n in own.items():
            known = sizes.get(label, 1)
            if n != known and 1 not in (n, known):
                other = next(k for k in range(i) if (label, known) in zip(terms[k], shapes[k], strict=True))
                named = f"{label!r}" if isinstance(label, str) else f"axis {label} of '...'"
                raise ShapeError(
                    f"einsum: {named} of {shown(subscripts)} has size {known} in operand {other} of shape "
                    f"{shapes[other]} and {n} in operand {i} of shape {shape}; need equal sizes, or 1"
                )
            sizes[label] = known if n == 1 else n
    return sizes


def _lettered(given: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """Subscripts and operands from operands and lists of ints in turn."""
    operands, lists = given[::2], given[1::2]
    result = None
    if len(operands) > len(lists):
        operands, result = operands[:-1], operands[-1]
    terms = ",".join([_term(labels) for labels in lists])
    return (terms if result is None else f"{terms}->{_term(result)}"), operands


def _term(labels: Any) -> str:
    try:
        if isinstance(labels, str):
            raise TypeError
        return "".join(["..." if i is Ellipsis else LETTERS[_checked(operator.index(i))] for i in labels])
    except (TypeError, IndexError):
        raise ArgumentError(
            f"einsum: need subscripts, or operands and lists of ints from 0 to {len(LETTERS) - 1} in turn, "
            f"got {shown(labels)} for a list"
        ) from None


def _checked(i: int) -> int:
    if i < 0:
        raise IndexError
    return i


# ---- the order of the products -----------------------------------------------------------------------------


def _steps(
    labels: list[Labels],
    output: Labels,
    sizes: dict[Label, int],
    optimize: bool | str | Path,
    subscripts: str,
) -> list[tuple[int, int]]:
    """Which two operands are multiplied next, as places among those that are left; the product becomes the last."""
    count = len(labels)
    if isinstance(optimize, tuple):
        return _followed(optimize, count, subscripts)
    if optimize not in (True, False, "optimal", "greedy"):
        raise ArgumentError(
            f"einsum: unknown optimize={optimize!r}; use 'optimal', 'greedy', True, False or a path"
        )
    if count < 3 or optimize is False:  # the product so far is the last one
        return [(0, 1) if k == 0 else (count - 1 - k, 0) for k in range(count - 1)]
    terms = [frozenset(term) for term in labels]
    if optimize == "greedy" or count > MANY:
        return _greedy(terms, frozenset(output), sizes)
    return _optimal(terms, frozenset(output), sizes)


Term = frozenset[Label]


def _greedy(terms: list[Term], output: Term, sizes: dict[Label, int]) -> list[tuple[int, int]]:
    """At each step the pair whose product is smallest beside its operands; the cheaper one if two are alike."""
    terms, steps = list(terms), []
    while len(terms) > 1:
        best: Any = None
        for i, j in combinations(range(len(terms)), 2):
            both = terms[i] | terms[j]
            kept = both & output.union(*[term for k, term in enumerate(terms) if k not in (i, j)])
            growth = _extent(kept, sizes) - _extent(terms[i], sizes) - _extent(terms[j], sizes)
            found = (growth, _extent(both, sizes), i, j, kept)
            best = found if best is None or found[:2] < best[:2] else best
        *_, i, j, kept = best
        steps.append((i, j))
        terms = [term for k, term in enumerate(terms) if k not in (i, j)] + [kept]
    return steps


def _optimal(terms: list[Term], output: Term, sizes: dict[Label, int]) -> list[tuple[int, int]]:
    """The order with the fewest multiplications: the best for each set of operands from those of smaller sets."""
    count = len(terms)
    full = (1 << count) - 1
    united = [frozenset[Label]()] * (full + 1)
    for members in range(1, full + 1):
        low = members & -members
        united[members] = united[members ^ low] | terms[low.bit_length() - 1]
    kept = [united[members] & (united[full ^ members] | output) for members in range(full + 1)]
    for i in range(count):
        kept[1 << i] = terms[i]
    cost: list[float] = [math.inf] * (full + 1)
    cut = [0] * (full + 1)
    for members in range(1, full + 1):  # each is greater than all its subsets
        if members & (members - 1) == 0:
            cost[members] = 0
            continue
        part = (members - 1) & members
        while part > members ^ part:  # each way to cut it in two, once
            rest = members ^ part
            price = cost[part] + cost[rest]
            if price < cost[members]:
                price += _extent(kept[part] | kept[rest], sizes)
                if price < cost[members]:
                    cost[members], cut[members] = price, part
            part = (part - 1) & members
    steps: list[tuple[int, int]] = []
    live = [1 << i for i in range(count)]

    def multiply(members: int) -> None:
        if not cut[members]:
            return
        part, rest = cut[members], members ^ cut[members]
        multiply(part)
        multiply(rest)
        i, j = sorted((live.index(part), live.index(rest)))
        steps.append((i, j))
        live[:] = [m for m in live if m not in (part, rest)] + [members]

    multiply(full)
    return steps


def _extent(labels: Iterable[Label], sizes: dict[Label, int]) -> int:
    """The number of elements of a tensor with these axes."""
    return math.prod([sizes[label] for label in labels])


def _path_of(path: Sequence[Any]) -> Path:
    """A path, as numpy's `einsum_path` gives it, in a form that can be remembered."""
    steps = list(path)[1:] if len(path) and path[0] == "einsum_path" else list(path)
    try:
        return tuple([tuple([operator.index(i) for i in step]) for step in steps])
    except TypeError:
        raise ArgumentError(
            f"einsum: a path names the operands to multiply next, [(0, 1), ...], got {shown(path)}"
        ) from None


def _followed(path: Path, count: int, subscripts: str) -> list[tuple[int, int]]:
    """The steps of a path, and then, one after the other, whatever it leaves undone."""
    steps: list[tuple[int, int]] = []
    for places in path:
        if len(set(places)) != len(places) or not all([0 <= i < count for i in places]):
            raise ArgumentError(
                f"einsum: step {places} of the path does not fit the {count} operands of {shown(subscripts)} "
                f"that are left; each product becomes the last operand"
            )
        count = _follow(steps, places, count)
    _follow(steps, tuple(range(count)), count)
    return steps


def _follow(steps: list[tuple[int, int]], places: tuple[int, ...], count: int) -> int:
    """Multiply the operands at some places, two at a time; how many are left then."""
    last, *others = sorted(places, reverse=True)
    for other in others:
        steps.append((other, last))
        count -= 1
        last = count - 1
    return count
