"""Parsing of einsum subscripts: the labels of the axes, and the sizes of the labels."""

from __future__ import annotations

import operator
from collections import Counter
from typing import Any

from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_core.language.shapes import Shape, short_repr

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

Label = str | int
"""A letter; or, for an axis of `...`, its index from the end of these axes: -1, -2, ..."""

Labels = tuple[Label, ...]


def read(subscripts: str, shapes: tuple[Shape, ...]) -> tuple[list[Labels], Labels]:
    """Parse the subscripts to the labels of each operand and of the result."""
    text = "".join(subscripts.split())
    before, arrow, after = text.partition("->")
    inputs = before.split(",")
    for term in (*inputs, after):
        letters = term.replace("...", "", 1)
        if letters and not (letters.isascii() and letters.isalpha()):
            character = next(c for c in letters if not (c.isascii() and c.isalpha()))
            raise ArgumentError(
                f"einsum: {character!r} in {short_repr(subscripts)} is not a letter; "
                f"write letters, ',', '->' and at most one '...' in each term"
            )
    if len(inputs) != len(shapes):
        raise ArgumentError(
            f"einsum: {short_repr(subscripts)} has {len(inputs)} terms for {len(shapes)} operands; give one for each"
        )
    terms = [
        _expanded(subscripts, i, term, shape)
        for i, (term, shape) in enumerate(zip(inputs, shapes, strict=True))
    ]
    counts = Counter(label for term in terms for label in term)
    ellipsis_labels = tuple(sorted([label for label in counts if isinstance(label, int)]))
    if not arrow:
        return terms, ellipsis_labels + tuple(
            sorted([c for c in counts if isinstance(c, str) and counts[c] == 1])
        )
    if ellipsis_labels and "..." not in after:
        raise ArgumentError(
            f"einsum: {short_repr(subscripts)} has '...' for {len(ellipsis_labels)} axes, but the result has no '...'; "
            f"write '...' after '->', or letters for axes to sum over"
        )
    output: Labels = _labels(after, ellipsis_labels)
    for label in output:
        if label not in counts:
            raise ArgumentError(
                f"einsum: the result's {label!r} in {short_repr(subscripts)} is in no operand; use an operand's"
            )
        if output.count(label) > 1:
            raise ArgumentError(
                f"einsum: the result's {label!r} in {short_repr(subscripts)} occurs twice; give it once, or use tk.diag"
            )
    return terms, output


def _expanded(subscripts: str, i: int, term: str, shape: Shape) -> Labels:
    """The labels of the axes of an operand."""
    letters = len(term.replace("...", ""))
    hidden = len(shape) - letters
    if hidden < 0 or (hidden and "..." not in term):
        raise ShapeError(
            f"einsum: term {term!r} of {short_repr(subscripts)} names {letters} axes, operand {i} of shape {shape} "
            f"has {len(shape)}; give each axis a letter, or write '...'"
        )
    return _labels(term, tuple(range(-hidden, 0)))


def _labels(term: str, hidden: tuple[int, ...]) -> Labels:
    before, _, after = term.partition("...")
    return (*before, *(hidden if "..." in term else ()), *after)


def sizes_of(subscripts: str, terms: list[Labels], shapes: tuple[Shape, ...]) -> dict[Label, int]:
    """The size of each label; size 1 broadcasts, but not between axes of the same term."""
    sizes: dict[Label, int] = {}
    for i, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        term_sizes: dict[Label, int] = {}
        for label, n in zip(term, shape, strict=True):
            if term_sizes.setdefault(label, n) != n:
                raise ShapeError(
                    f"einsum: {label!r} names sizes {term_sizes[label]} and {n} in operand {i} of shape {shape}, "
                    f"{short_repr(subscripts)}; a diagonal needs equal sizes"
                )
        for label, n in term_sizes.items():
            size = sizes.get(label, 1)
            if n != size and 1 not in (n, size):
                other = next(k for k in range(i) if (label, size) in zip(terms[k], shapes[k], strict=True))
                named = f"{label!r}" if isinstance(label, str) else f"axis {label} of '...'"
                raise ShapeError(
                    f"einsum: {named} of {short_repr(subscripts)} has size {size} in operand {other} of shape "
                    f"{shapes[other]} and {n} in operand {i} of shape {shape}; need equal sizes, or 1"
                )
            sizes[label] = size if n == 1 else n
    return sizes


def lettered(args: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """Convert alternating operands and lists of ints to subscripts and operands."""
    operands, lists = args[::2], args[1::2]
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
            f"einsum: need subscripts, or operands and lists of ints from 0 to {len(LETTERS) - 1} alternately, "
            f"got {short_repr(labels)} as a list"
        ) from None


def _checked(i: int) -> int:
    if i < 0:
        raise IndexError
    return i
