"""The numbers of the Rust library's tests of indexing, and the shapes of numpy's NEP 21, which it follows."""

from __future__ import annotations

import math
from typing import Any

import pytest

import tensorken as tk

SMALL = [False, False, True, False, False, False, True, False]


def counted(shape: tuple[int, ...], first: int = 1) -> tk.Tensor:
    """Whole numbers in order."""
    return tk.tensor([float(first + i) for i in range(math.prod(shape))]).reshape(shape)


def indexed(x: tk.Tensor, key: str, **names: Any) -> tk.Tensor:
    """x with a key as it is written in the list of numbers, such as `oindex[:,i1,0]`."""
    result: tk.Tensor = eval(f"x.{key}", {"x": x, "newaxis": None, **names})
    return result


@pytest.mark.feature(169, 170)
def test_elements(seeds: dict[str, Any], backend: str) -> None:
    *cases, checkered = seeds["indexing"]["cases"]
    for case in cases:
        part = indexed(counted((4, 2, 3)), case["key"], mask=tk.tensor(SMALL).reshape(4, 2))
        assert part.shape == tuple(case["shape"])
        assert part.ravel().tolist() == case["out"]
    every_other = tk.tensor([i % 2 == 0 for i in range(25)]).reshape(5, 5)
    part = indexed(counted((5, 5, 2), first=0), checkered["key"], mask=every_other)
    assert part.shape == tuple(checkered["shape"])
    assert part.tolist() == checkered["out"]


@pytest.mark.feature(169, 170)
@pytest.mark.parametrize("way", ["oindex", "vindex"])
def test_shapes_of_nep_21(seeds: dict[str, Any], backend: str, way: str) -> None:
    x = tk.zeros((5, 6, 7, 8))
    one_true = tk.zeros((7, 8), "bool").at[0, 0].set(True)
    rows = seeds["indexing"][f"nep21_{way[0]}ix"]
    assert len(rows) == 8
    for key, shape in rows.items():
        part = indexed(x, f"{way}[{key}]", i1=[0], i2=[0, 1], bindx=one_true)
        assert part.shape == tuple(shape), key


@pytest.mark.feature(168)
def test_shapes_of_basic_keys(seeds: dict[str, Any], backend: str) -> None:
    x = counted((3, 2, 4), first=0)
    for key, shape in seeds["indexing"]["basic"].items():
        assert indexed(x, f"at[{key}].get()").shape == tuple(shape), key
    assert indexed(x, "at[0,...,1,1].get()").item() == 5.0


@pytest.mark.feature(168, 171)
def test_where_the_rust_library_goes_wrong(backend: str) -> None:
    x = tk.tensor([1.0, math.inf, 3.0])
    assert x.oindex[[0, 2]].tolist() == [1.0, 3.0]
    assert tk.grad(lambda x: x.oindex[[0, 2]].sum())(x).tolist() == [1.0, 0.0, 1.0]
    assert tk.tensor([1.0, 2.0, 3.0]).oindex[[-1]].tolist() == [3.0]
    with pytest.raises(IndexError, match="from -1 to 7 are out of range"):
        x.oindex[[7, -1]]
    with pytest.raises(IndexError, match="9 is out of range"):
        x[9]
    assert tk.tensor([1.0, 2.0, 3.0, 4.0])[::-1][:2].tolist() == [4.0, 3.0]
