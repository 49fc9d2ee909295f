"""Index expressions and element indices, against numpy's movements of an array of row-major indices."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

from tensorken_wgpu.element_indices import ElementIndex
from tensorken_wgpu.index_expressions import IndexExpression, constant_index, variable


def python(text: object) -> str:
    """The text of a kernel as Python."""
    return re.sub(r"#u(\d+)#", r"\1", str(text)).replace("/", "//")


class Kernel:
    """Names and evaluates expressions, as a kernel would."""

    def __init__(self, values: dict[str, int]) -> None:
        self.values = values

    def name(self, text: str, size: int) -> IndexExpression:
        name = f"v{len(self.values)}"
        self.values[name] = self.value(text)
        return variable(name, size)

    def value(self, text: object) -> int:
        return int(eval(python(text), {}, self.values)) % 2**32


def operand_indices(shape: tuple[int, ...], before: Any) -> Any:
    """For each element of a result the row-major index in the operand, which `before` computes."""
    found = []
    for t in range(math.prod(shape)):
        kernel = Kernel({"t": t})
        element = before(ElementIndex(shape, kernel.name, linear=variable("t", math.prod(shape))))
        found.append(kernel.value(element.linear))
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
        kernel = Kernel({"t": t})
        element = ElementIndex(padded.shape, kernel.name, linear=variable("t", padded.size))
        inner, conditions = element.before_pad((2, 3), ((1, 2), (0, 1)))
        inside = all([eval(python(c), {}, kernel.values) for c in conditions])
        inside = inside and all([kernel.value(i) < n for i, n in zip(inner.indices, (2, 3), strict=True)])
        assert (padded.flat[t] != 0) == inside
        if inside:
            assert kernel.value(inner.linear) + 1 == padded.flat[t]


def test_divisions_cancel() -> None:
    def no(text: str, size: int) -> IndexExpression:
        raise AssertionError(text)

    i, j = variable("i", 5), variable("j", 6)
    index = i.times(6) + j
    quotient, rest = index.divided(6, no)
    assert (quotient.key, rest.key) == (i.key, j.key)
    assert [p.key for p in j.divided(6, no)] == [constant_index(0).key, j.key]
    assert index.end == 30
    assert str(j.times(-1).plus(5)) == "#u5# - j"
    assert str(constant_index(-1)) == "#u4294967295#"


def test_reshapes_cancel() -> None:
    element = ElementIndex((4, 6), lambda text, size: variable("v", size), linear=variable("t", 24))
    assert str(element.before_reshape((2, 12)).before_reshape((24,)).linear) == "t"
