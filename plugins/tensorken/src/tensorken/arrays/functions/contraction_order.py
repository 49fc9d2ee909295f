"""The contraction order of einsum, chosen by the costs of the pairwise products."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

from tensorken.arrays.functions.subscripts import Label, Labels
from tensorken_core.errors import ArgumentError
from tensorken_core.language.shapes import short_repr

MAX_OPTIMAL = 8
"""The greatest number of operands for which the best order is searched, in 3 ** MAX_OPTIMAL steps."""

Path = tuple[tuple[int, ...], ...]
"""The indices of the operands of each product, which becomes the last operand."""


def steps_of(
    labels: list[Labels],
    output: Labels,
    sizes: dict[Label, int],
    optimize: bool | str | Path,
    subscripts: str,
) -> list[tuple[int, int]]:
    """The path: pairs of indices into the list of remaining operands, to which each product is appended."""
    count = len(labels)
    if isinstance(optimize, tuple):
        return _followed(optimize, count, subscripts)
    if optimize not in (True, False, "optimal", "greedy"):
        raise ArgumentError(
            f"einsum: unknown optimize={optimize!r}; use 'optimal', 'greedy', True, False or a path"
        )
    if count < 3 or optimize is False:  # the partial product is always the last operand
        return [(0, 1) if k == 0 else (count - 1 - k, 0) for k in range(count - 1)]
    terms = [frozenset(term) for term in labels]
    if optimize == "greedy" or count > MAX_OPTIMAL:
        return _greedy(terms, frozenset(output), sizes)
    return _optimal(terms, frozenset(output), sizes)


Term = frozenset[Label]


def _greedy(terms: list[Term], output: Term, sizes: dict[Label, int]) -> list[tuple[int, int]]:
    """Choose at each step the pair whose product adds the fewest elements; on a tie, the cheaper pair."""
    terms, steps = list(terms), []
    while len(terms) > 1:
        best: Any = None
        for i, j in combinations(range(len(terms)), 2):
            both = terms[i] | terms[j]
            kept = both & output.union(*[term for k, term in enumerate(terms) if k not in (i, j)])
            growth = _extent(kept, sizes) - _extent(terms[i], sizes) - _extent(terms[j], sizes)
            candidate = (growth, _extent(both, sizes), i, j, kept)
            best = candidate if best is None or candidate[:2] < best[:2] else best
        *_, i, j, kept = best
        steps.append((i, j))
        terms = [term for k, term in enumerate(terms) if k not in (i, j)] + [kept]
    return steps


def _optimal(terms: list[Term], output: Term, sizes: dict[Label, int]) -> list[tuple[int, int]]:
    """Find the order with the fewest multiplications by dynamic programming over subsets of the operands."""
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
    best_part = [0] * (full + 1)
    for members in range(1, full + 1):  # subsets before supersets
        if members & (members - 1) == 0:
            cost[members] = 0
            continue
        part = (members - 1) & members
        while part > members ^ part:  # each split in two parts once
            rest = members ^ part
            new_cost = cost[part] + cost[rest]
            if new_cost < cost[members]:
                new_cost += _extent(kept[part] | kept[rest], sizes)
                if new_cost < cost[members]:
                    cost[members], best_part[members] = new_cost, part
            part = (part - 1) & members
    steps: list[tuple[int, int]] = []
    live = [1 << i for i in range(count)]

    def multiply(members: int) -> None:
        if not best_part[members]:
            return
        part, rest = best_part[members], members ^ best_part[members]
        multiply(part)
        multiply(rest)
        i, j = sorted((live.index(part), live.index(rest)))
        steps.append((i, j))
        live[:] = [m for m in live if m not in (part, rest)] + [members]

    multiply(full)
    return steps


def _extent(labels: Iterable[Label], sizes: dict[Label, int]) -> int:
    """The number of elements of a tensor with these labels."""
    return math.prod([sizes[label] for label in labels])


def path_of(path: Sequence[Any]) -> Path:
    """Convert a path of numpy's `einsum_path` to a hashable form."""
    steps = list(path)[1:] if len(path) and path[0] == "einsum_path" else list(path)
    try:
        return tuple([tuple([operator.index(i) for i in step]) for step in steps])
    except TypeError:
        raise ArgumentError(
            f"einsum: a path must be pairs of operands, as [(0, 1), ...], got {short_repr(path)}"
        ) from None


def _followed(path: Path, count: int, subscripts: str) -> list[tuple[int, int]]:
    """The steps of a path, then the remaining operands from left to right."""
    steps: list[tuple[int, int]] = []
    for step in path:
        if len(set(step)) != len(step) or not all([0 <= i < count for i in step]):
            raise ArgumentError(
                f"einsum: step {step} of the path does not fit the {count} operands of {short_repr(subscripts)} "
                f"left; each product is appended as the last operand"
            )
        count = _follow(steps, step, count)
    _follow(steps, tuple(range(count)), count)
    return steps


def _follow(steps: list[tuple[int, int]], indices: tuple[int, ...], count: int) -> int:
    """Multiply the operands at the indices in pairs; return the number of remaining operands."""
    last, *others = sorted(indices, reverse=True)
    for other in others:
        steps.append((other, last))
        count -= 1
        last = count - 1
    return count
