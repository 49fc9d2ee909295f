"""values.sums: sum, cumsum and scatter_add are within the rounding bound that holds for every order of addition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tensorken_conformance.case import Case, Measured
from tensorken_conformance.law import law
from tensorken_conformance.laws import placement
from tensorken_conformance.layouts.shapes import fitted, operand
from tensorken_conformance.limits import NARROW
from tensorken_conformance.numbers.rounding import FORMATS
from tensorken_conformance.operands import reductions
from tensorken_conformance.oracles import exact, rounded, terms
from tensorken_conformance.oracles.bounds import Arithmetic, Array
from tensorken_conformance.subject import Subject
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.language.op import OPS

ID = "values.sums"

TARGETS = {"same": 1, "shared": 3, "distinct": 0, "spread": 9, "wide": 2}
"""The patterns of indices of scatter_add, and the size of the result; some add the number of slices to it.

`same`: all indices are equal; `shared`: some are; `distinct`: none are; `spread`: most elements of the result are 0;
`wide`: the indices are int64.
"""


def targets(shape: tuple[int, ...]) -> reductions.Variants:
    """An axis and a pattern of indices for scatter_add, by their text in ids."""
    last = len(shape) - 1
    found = {f"{axis}-shared": (axis, "shared") for axis in range(min(len(shape), 3))}
    return found | {f"{last}-{target}": (last, target) for target in TARGETS if 0 < len(shape) < 3}


VARIANTS = {"sum": reductions.several, "cumsum": reductions.one, "scatter_add": targets}


def longest(dtype: DType, values: str) -> int:
    """The most terms to which the bound applies, or of whole numbers the most that need no rounding."""
    if dtype.name not in NARROW:
        return 10**9
    form = FORMATS[dtype.name]
    return 2**form.precision if values == "small-integers" else form.terms


def cases(subject: Subject) -> Iterator[Case]:
    """Each op, dtype, shape and choice of axes on ordinary values; each value class on some shapes."""
    for op, variants in VARIANTS.items():
        classes, ordinary = (lambda d: terms.CLASSES[d.kind]), terms.ORDINARY[:2]
        for case in reductions.grid(subject, ID, op, variants, classes, ordinary, longest):
            if not case.detail.endswith("wide") or "int64" in subject.capabilities.dtypes:
                yield case


def level(case: Case) -> int:
    """Required ops on ordinary values are of level 1, all others of level 2."""
    return 1 if OPS[case.op].body is None and case.values in terms.ORDINARY else 2


@dataclass(frozen=True, slots=True)
class Problem:
    """The operands of a case, the params of the op, and the sums."""

    values: Array
    indices: Array | None
    params: tuple[Any, ...]
    sums: terms.Sums


def added_over(axes: tuple[int, ...], x: Array) -> Array:
    """The sums over axes, which are kept with size 1; over no axes the elements themselves, also zeros' signs."""
    return np.asarray(np.add.reduce(x, axes, keepdims=True)) if axes else x


@terms.remembered
def problem(subject: Subject, case: Case) -> Problem:
    """The operands and the exact sums of a case."""
    rng, shape = terms.generator(subject, case), reductions.class_of(case.shape).shape
    params = VARIANTS[case.op](shape)[case.detail]
    count = shape[params[0]] if case.op == "scatter_add" else reductions.length(params, shape)
    values = fitted(case.shape, terms.drawn(rng, case.values, shape, case.dtype, count))
    if case.op == "sum":
        return Problem(values, None, params, terms.sums(values, partial(added_over, params[0])))
    if case.op == "cumsum":
        return Problem(values, None, params, terms.sums(values, partial(np.add.accumulate, axis=params[0])))
    axis, target = params
    size = TARGETS[target] + (0 if target in ("same", "shared", "wide") else count)
    indices = rng.permutation(size)[:count] if target == "distinct" else rng.integers(0, size, count)
    indices = indices.astype("int64" if target == "wide" else "int32")
    sums = terms.sums(values, lambda x: placement.added(x, indices, axis, size))
    return Problem(values, indices, (axis, size), sums)


@law(ID, cases, level=level, needs=exact.needs_of)
def check_sums(subject: Subject, case: Case) -> Measured | None:
    """Sums are exact for ints, and for floats within gamma_{n-1} * sum(|x|), for every order of addition.

    They are exact for floats, too, where no partial sum in any order has more digits than the format. Sums with NaN and
    infinities follow IEEE 754; a sum that overflows only in some orders may be infinite or NaN, or within the bound. An
    empty sum is 0.0. A sum of -0.0 alone may be a zero of either sign, except in scatter_add, which begins with 0.0;
    any other zero is 0.0. Over no axes each element is its own sum. If a backend declares no error for the op, its
    result is the exact sum rounded once.
    """
    given, dtype = problem(subject, case), DTYPES[case.dtype]
    operands = [operand(subject, case.shape, given.values, dtype)]
    if given.indices is not None:
        operands.append(subject.tensor(given.indices, DTYPES[given.indices.dtype.name]))
    got = subject.read(subject.run(OPS[case.op], operands, given.params))
    says = f"{case.op}{tuple(given.params)}"
    if dtype.kind == "int":
        terms.check_ints(says, given.sums, got)
        return None
    if given.params == ((),) and dtype.name not in subject.capabilities.flushes_subnormals:
        exact.same(got, given.values, says)
    if given.indices is not None:
        negative = (got == 0) & np.signbit(got) & (given.sums.magnitude.integers == 0)
        terms.refuse(says, negative.astype(bool), "0.0, as it begins with zeros,", got)
    measured = terms.check_sums(
        says, given.sums, got, Arithmetic(subject.capabilities, case.dtype, level(case))
    )
    if rounded.declared(subject, case):
        total = given.sums.total
        rounded.require(says, case.dtype, total.integers, total.exponent, got, given.sums.special == 0)
    return measured
