"""values.covering: designs have every combination, cells have what their case says, and faults of two causes fail."""

from __future__ import annotations

import itertools
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import tensorken_conformance.laws  # noqa: F401, importing them registers the laws
from conformance.tests.examining import run_law
from tensorken_conformance.case import Case
from tensorken_conformance.laws.covering import axes, placed, products, single
from tensorken_conformance.operands.designs import covering
from tensorken_conformance.running.examine import laws_for
from tensorken_conformance.subject import Subject
from tensorken_core.language.dtypes import float32
from tensorken_core.language.op import OPS
from tensorken_core.rewriting.fuse import Fuse
from tensorken_numpy.backend import Numpy

DTYPES = ("float32", "bool", "int32", "float64", "uint8", "bfloat16")

DESIGNS = {
    "single": (single.design(DTYPES, 2, 0, False), single.every(DTYPES, 2), single.fits, 2),
    "placed": (
        placed.design(DTYPES, placed.SHORT, ("ordinary", "special"), 0),
        placed.every(DTYPES, placed.SHORT, ("ordinary", "special")),
        placed.fits,
        2,
    ),
    "matrices": (
        products.design(products.MATRICES, DTYPES, 0),
        products.every(products.MATRICES, DTYPES),
        products.fits,
        2,
    ),
    "images": (
        products.design(products.IMAGES, DTYPES, 0),
        products.every(products.IMAGES, DTYPES),
        products.fits,
        2,
    ),
}


@given(st.lists(st.integers(1, 4), min_size=2, max_size=5), st.integers(2, 3), st.integers(0, 9))
def test_rows_have_every_combination(sizes: list[int], strength: int, seed: int) -> None:
    """Of any axes and strength, without more rows than there are combinations of all axes."""
    names = {f"axis-{i}": tuple(map(str, range(n))) for i, n in enumerate(sizes)}
    rows = covering(names, seed, strength)
    assert rows == covering(names, seed, strength)
    assert len(rows) <= np.prod(sizes)
    for chosen in itertools.combinations(names, min(strength, len(names))):
        found = {tuple([row[axis] for axis in chosen]) for row in rows}
        assert found == set(itertools.product(*[names[axis] for axis in chosen]))


@pytest.mark.parametrize("name", DESIGNS)
def test_designs_have_each_pair_that_is_possible(name: str) -> None:
    rows, names, fits, _ = DESIGNS[name]
    for a, b in itertools.combinations(names, 2):
        found = {(row[a], row[b]) for row in rows}
        possible = {(x, y) for x, y in itertools.product(names[a], names[b]) if fits({a: x, b: y})}
        assert found <= possible
        missing = possible - found
        assert not {pair for pair in missing if not _is_excluded_by_a_third(names, fits, a, b, pair)}


def _is_excluded_by_a_third(names: Any, fits: Any, a: str, b: str, pair: tuple[str, str]) -> bool:
    x, y = pair
    rest = [c for c in names if c not in (a, b)]
    return any(not any(fits({a: x, c: z}) and fits({b: y, c: z}) for z in names[c]) for c in rest)


@pytest.mark.parametrize("layout", [axes.NUMBER, *axes.LAYOUTS])
def test_operands_have_the_values_and_the_special_value(layout: str) -> None:
    subject = Subject(Fuse(Numpy()), "numpy")
    for form, size in itertools.product(axes.FORMS, (1, 7, 33)):
        if form == "vector" and "permute" in layout:
            continue
        drawn = np.arange(float(np.prod(axes.FORMS[form](size))), dtype="float32")
        values = axes.laid(layout, drawn.reshape(axes.FORMS[form](size)))
        for place in axes.PLACES:
            x = axes.put_at(layout, values, np.nan, place, 8)
            assert np.isnan(x).any() and (layout == axes.NUMBER or place != "first" or np.isnan(x.flat[0]))
            for interpreter in (subject.call_counter, subject.stack):
                got = subject.read(axes.operand(layout, x, float32, interpreter, subject))
                np.testing.assert_array_equal(got, x)


def test_every_op_that_a_backend_may_override_has_a_law_of_values() -> None:
    """All but the placement of a tensor, which changes no value."""
    subject = Subject(Fuse(Numpy()), "numpy")
    others = ("values.read-back", axes.ID)
    judged = {
        case.op
        for law in laws_for(subject, ["values"])
        if law.id not in others
        for case in law.cases(subject)
    }
    assert {op.name for op in OPS.values() if op.method} - judged == {"with_placement"}


def test_a_correct_backend_passes() -> None:
    """A share of the cases, which are drawn."""

    def drawn(case: Case) -> bool:
        return zlib.crc32(case.id.encode()) % 50 == 0

    results = run_law(Numpy(), axes.ID, 5, where=drawn)
    assert len(results) > 300
    assert not [result for result in results if result.status != "passed"]
