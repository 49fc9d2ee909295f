"""Index expressions and element indices, against numpy's movements of an array of row-major indices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tensorken.kernels.element_indices import ElementIndex
from tensorken.kernels.index_expressions import IndexExpression, constant_index, variable


class Evaluator:
    """Computes indices, for these values of variables."""

    def __init__(self, **values: int) -> None:
        self.values = values

    def divide(self, dividend: IndexExpression, operator: str, divisor: int, size: int) -> IndexExpression:
        number = dividend.value(self.values)
        assert number >= 0
        return self._named(number // divisor if operator == "/" else number % divisor, size)

    def bounded(self, index: IndexExpression, size: int) -> IndexExpression:
        return self._named(index.value(self.values), size)

    def _named(self, value: int, size: int) -> IndexExpression:
        name = f"v{len(self.values)}"
        self.values[name] = value
        return variable(name, size)


class NoDivisions(Evaluator):
    """Fails where a division must be computed."""

    def _named(self, value: int, size: int) -> IndexExpression:
        raise AssertionError(value)


def operand_indices(shape: tuple[int, ...], before: Any) -> Any:
    """For each element of a result the row-major index in the operand, which `before` computes."""
    found = []
    for t in range(math.prod(shape)):
        target = Evaluator(t=t)
        element = before(ElementIndex(shape, target, linear=variable("t", math.prod(shape))))
        found.append(element.linear.value(target.values))
    return np.array(found).reshape(shape)


X = np.arange(24).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("result", "before"),
    [
        (X.reshape(4, 6), lambda p: p.before_reshape((2, 3, 4))),
        (X.transpose(2, 0, 1), lambda p: p.before_permute((2, 3, 4), (2, 0, 1))),
        (X[:, ::-1, ::-1], lambda p: p.before_flip((1, 2))),
        (X[:, 1:3, 2:3], lambda p: p.before_crop((2, 3, 4), ((0, 2), (1, 3), (2, 3)))),
        (
            X.transpose(2, 1, 0)[::-1].reshape(6, 4),
            lambda p: p.before_reshape((4, 3, 2)).before_flip((0,)).before_permute((2, 3, 4), (2, 1, 0)),
        ),
        (
            np.broadcast_to(np.arange(3).reshape(1, 3, 1), (2, 3, 4)),
            lambda p: p.before_expand((1, 3, 1)),
        ),
    ],
)
def test_movement_ops_read_the_elements_that_numpy_reads(result: Any, before: Any) -> None:
    np.testing.assert_array_equal(operand_indices(result.shape, before), result)


def test_pad_reads_only_inside() -> None:
    padded = np.pad(np.arange(1, 7).reshape(2, 3), ((1, 2), (0, 1)))
    for t in range(padded.size):
        target = Evaluator(t=t)
        element = ElementIndex(padded.shape, target, linear=variable("t", padded.size))
        inner, bounds = element.before_pad((2, 3), ((1, 2), (0, 1)))
        inside = all([0 <= index.value(target.values) < size for index, size in bounds])
        assert (padded.flat[t] != 0) == inside
        if inside:
            assert inner.linear.value(target.values) + 1 == padded.flat[t]


def test_divisions_cancel() -> None:
    i, j = variable("i", 5), variable("j", 6)
    index, target = i.times(6) + j, NoDivisions(i=1, j=1)
    quotient, rest = index.divided(6, target)
    assert (quotient.key, rest.key) == (i.key, j.key)
    assert [p.key for p in j.divided(6, target)] == [constant_index(0).key, j.key]
    assert index.end == 30
    assert str(j.times(-1).plus(5)) == "5 - j"
    assert index.plus(2).text(lambda n: f"{n}u") == "2u + i * 6u + j"


def test_reshapes_cancel() -> None:
    target = Evaluator(t=7)
    element = ElementIndex((4, 6), target, linear=variable("t", 24))
    assert str(element.before_reshape((2, 12)).before_reshape((24,)).linear) == "t"
    moved = element.before_permute((6, 4), (1, 0)).before_permute((4, 6), (1, 0))
    assert str(moved.linear) == "t"  # a quotient times its divisor plus the remainder
