"""Rounded: a backend that declares no error for a reduction must return the exact result, rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_conformance.case import Case, Measured
from tensorken_conformance.numbers.rounding import FORMATS, nearest
from tensorken_conformance.oracles import terms
from tensorken_conformance.oracles.bounds import Array
from tensorken_conformance.subject import Subject


def declared(subject: Subject, case: Case) -> bool:
    """Whether the backend declares no error for the op of a case; otherwise the bounds of theorems hold."""
    return (
        subject.capabilities.largest_error(case.op, case.dtype) == 0
        and not subject.capabilities.flushes_subnormals
    )


def require(
    says: str, dtype: str, integers: Array, exponents: Any, got: Array, where: Array, error: int | None = None
) -> Measured:
    """Require floats to be the numbers nearest to integers times powers of two, ties to even.

    Args:
        says: the beginning of the message.
        dtype: the dtype of the results.
        integers: Python ints in an array of objects.
        exponents: the exponents of the powers of two.
        got: the results; the sign of a zero is not compared.
        where: the results that are compared.
        error: the largest error of the integers; results that it leaves open are not compared.

    Raises:
        Failure: if a result differs.

    >>> import numpy as np
    >>> whole = np.array([2**25 + 1, 2**25 + 2], object)
    >>> require("sum", "float32", whole, 0, np.float32([2**25, 2**25]), np.array([True, True])).ulp
    0.0
    """
    form = FORMATS[dtype]
    found = np.frompyfunc(lambda n, e: nearest(int(n), int(e), form, error), 2, 1)(integers, exponents)
    expected = np.array(found, object, ndmin=0)
    known = np.asarray(np.frompyfunc(lambda value: value is not None, 1, 1)(expected), bool)
    numbers = np.where(known, expected, 0.0).astype(np.float64).reshape(got.shape)
    wrong = where & known.reshape(got.shape) & (got.astype(np.float64) != numbers)
    if wrong.any():
        index = tuple(map(int, np.argwhere(wrong)[0]))
        value = f"{numbers[index].item()!r}, the exact result rounded once as declared,"
        only = np.zeros(got.shape, bool)
        only[index] = True
        terms.refuse(says, only, value, got)
    return Measured(0.0)
