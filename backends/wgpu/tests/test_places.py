"""Places and points: the arithmetic of indices, against numpy's own movements of an array of places."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

from tensorken_wgpu.places import Place, fixed, variable
from tensorken_wgpu.points import Point


def python(text: object) -> str:
    """What a kernel has, in Python."""
    return re.sub(r"#u(\d+)#", r"\1", str(text)).replace("/", "//")


class Kernel:
    """Names what is computed, and computes it: what a kernel would."""

    def __init__(self, values: dict[str, int]) -> None:
        self.values = values

    def name(self, text: str, size: int) -> Place:
        name = f"v{len(self.values)}"
        self.values[name] = self.value(text)
        return variable(name, size)

    def value(self, text: object) -> int:
        return int(eval(python(text), {}, self.values)) % 2**32


def everywhere(shape: tuple[int, ...], before: Any) -> Any:
    """For each element of a result the place in its operand, which `before` finds from a point."""
    found = []
    for t in range(math.prod(shape)):
        kernel = Kernel({"t": t})
        point = before(Point(shape, kernel.name, linear=variable("t", math.prod(shape))))
        found.append(kernel.value(point.linear))
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
def test_points_are_where_numpy_finds_the_element(result: Any, before: Any) -> None:
    np.testing.assert_array_equal(everywhere(result.shape, before), result)


def test_padding_tells_what_is_outside() -> None:
    padded = np.pad(np.arange(1, 7).reshape(2, 3), ((1, 2), (0, 1)))
    for t in range(padded.size):
        kernel = Kernel({"t": t})
        point = Point(padded.shape, kernel.name, linear=variable("t", padded.size))
        inner, conditions = point.before_pad((2, 3), ((1, 2), (0, 1)))
        inside = all([eval(python(c), {}, kernel.values) for c in conditions])
        inside = inside and all([kernel.value(i) < n for i, n in zip(inner.indices, (2, 3), strict=True)])
        assert (padded.flat[t] != 0) == inside
        if inside:
            assert kernel.value(inner.linear) + 1 == padded.flat[t]


def test_divisions_cancel() -> None:
    def no(text: str, size: int) -> Place:
        raise AssertionError(text)

    i, j = variable("i", 5), variable("j", 6)
    place = i.times(6) + j
    quotient, rest = place.divided(6, no)
    assert (quotient.key, rest.key) == (i.key, j.key)
    assert [p.key for p in j.divided(6, no)] == [fixed(0).key, j.key]
    assert place.end == 30
    assert str(j.times(-1).plus(5)) == "#u5# - j"
    assert str(fixed(-1)) == "#u4294967295#"


def test_a_copy_of_an_array_reads_it_in_order() -> None:
    point = Point((4, 6), lambda text, size: variable("v", size), linear=variable("t", 24))
    assert str(point.before_reshape((2, 12)).before_reshape((24,)).linear) == "t"
