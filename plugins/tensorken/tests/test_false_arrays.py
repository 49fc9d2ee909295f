"""Objects that describe themselves falsely: each is refused in one line, and no memory outside of them is read."""

from __future__ import annotations

import array
import ctypes
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from tensorken.interchange import dlpack
from tensorken_core.errors import ArgumentError, ExchangeError, ShapeError, TensorkenError

FLOATS = array.array("f", [1.0, 2.0, 3.0, 4.0])


def interface(**changes: Any) -> Any:
    """An object with an `__array_interface__` of four floats, changed in some parts; None removes a part."""
    parts = {"typestr": "<f4", "shape": (4,), "data": FLOATS, "version": 3, **changes}
    return SimpleNamespace(__array_interface__={key: part for key, part in parts.items() if part is not None})


INTERFACES: dict[str, dict[str, Any]] = {
    "data shorter than the shape": {"shape": (5,)},
    "data shorter than the strides": {"strides": (8,)},
    "a stride before the data": {"strides": (-4,)},
    "an offset behind the data": {"offset": 4},
    "an offset before the data": {"offset": -4},
    "an offset that is no int": {"offset": "4"},
    "an enormous shape": {"shape": (2**62, 4)},
    "an enormous empty shape": {"shape": (2**62, 2**62, 0)},
    "an enormous stride": {"strides": (2**70,)},
    "a negative size": {"shape": (-4,)},
    "a size that is no int": {"shape": (4.0,)},
    "a size that is a bool": {"shape": (True,)},
    "a million axes": {"shape": (1,) * 10**6},
    "no shape": {"shape": None},
    "a shape that is no tuple": {"shape": 4},
    "too few strides": {"strides": ()},
    "too many strides": {"strides": (4, 4)},
    "strides that are no ints": {"strides": ("4",)},
    "no typestr": {"typestr": None},
    "an empty typestr": {"typestr": ""},
    "a typestr that is no text": {"typestr": 4},
    "an unknown byte order": {"typestr": "?f4"},
    "a null address": {"data": (0, False)},
    "a negative address": {"data": (-8, False)},
    "an enormous address": {"data": (2**64, False)},
    "an address that is no int": {"data": ("0", False)},
    "no address": {"data": ()},
    "data that is no memory": {"data": 3.5},
}
"""Parts of `__array_interface__` that contradict each other."""


@each_of("name", INTERFACES)
def test_false_array_interfaces_are_refused(name: str) -> None:
    with pytest.raises(ExchangeError, match=r"^__array_interface__: ") as caught:
        tk.tensor(interface(**INTERFACES[name]))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_true_array_interfaces_are_read() -> None:
    assert tk.tensor(interface()).tolist() == [1.0, 2.0, 3.0, 4.0]
    assert tk.tensor(interface(shape=(2,), strides=(-8,), offset=8)).tolist() == [3.0, 1.0]
    assert tk.tensor(interface(shape=(3, 2), strides=(0, 4))).shape == (3, 2)
    assert tk.tensor(interface(shape=(0, 7), strides=(2**40, -1))).shape == (0, 7)


class Exported:
    """An array with a DLPack capsule that a function has changed."""

    def __init__(self, change: Callable[[Any], object], device: Any = (1, 0)) -> None:
        self.change, self.device = change, device

    def __dlpack_device__(self) -> Any:
        return self.device

    def __dlpack__(self, **options: Any) -> Any:
        capsule = np.arange(6, dtype=np.float32).reshape(2, 3).__dlpack__()
        managed = dlpack._Managed.from_address(dlpack._pointer(capsule, b"dltensor"))
        self.change(managed.tensor)
        return capsule


def _sizes(*values: int) -> Callable[[Any], None]:
    def change(tensor: Any) -> None:
        (ctypes.c_int64 * 2).from_address(tensor.shape)[:] = values

    return change


def _strides(*values: int) -> Callable[[Any], None]:
    def change(tensor: Any) -> None:
        (ctypes.c_int64 * 2).from_address(tensor.strides)[:] = values

    return change


def _field(name: str, value: Any) -> Callable[[Any], None]:
    return lambda tensor: setattr(tensor, name, value)


CAPSULES: dict[str, Callable[[Any], object]] = {
    "a million axes": _field("ndim", 10**6),
    "a negative number of axes": _field("ndim", -1),
    "65 axes": _field("ndim", 65),
    "a null shape": _field("shape", None),
    "null data": _field("data", None),
    "a negative size": _sizes(2, -3),
    "an enormous shape": _sizes(2**62, 2**62),
    "an enormous empty shape": _sizes(2**62, 0),
    "an enormous stride": _strides(2**62, 1),
    "a stride before all memory": _strides(-(2**60), 1),
    "an enormous offset": _field("byte_offset", 2**63),
}


@each_of("name", CAPSULES)
def test_false_capsules_are_refused(name: str) -> None:
    for call in (tk.tensor, tk.from_dlpack, lambda x: tk.asarray(x, copy=False), tk.asarray):
        with pytest.raises(
            ExchangeError, match=r"from_dlpack: .*(the array says|has no shape|reach outside)"
        ):
            call(Exported(CAPSULES[name]))
    right = Exported(lambda tensor: None)
    for call in (tk.tensor, tk.from_dlpack):
        assert call(right).tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


@each_of("device", [None, 1, (1,), (1, 2, 3), ("cpu", 0), ()])
def test_false_devices_are_refused(device: Any) -> None:
    with pytest.raises(ExchangeError, match="from_dlpack: __dlpack_device__ of Exported must"):
        tk.from_dlpack(Exported(lambda tensor: None, device))


class Claimed(Sequence[float]):
    """A sequence whose length is another one than that of its elements."""

    def __init__(self, length: Any, elements: Sequence[float]) -> None:
        self.length, self.elements = length, elements

    def __len__(self) -> int:
        return self.length  # type: ignore[no-any-return]

    def __getitem__(self, index: Any) -> Any:
        return self.elements[index]


class Short(list[float]):
    """A list with a false length."""

    def __len__(self) -> int:
        return 7


@each_of(("length", "message"), [
    (0, "says that it has 0 elements, and has more"),
    (2, "says that it has 2 elements, and has more"),
    (4, "says that it has 4 elements, and has 3"),
    (2**62, "says that it has 4611686018427387904 elements, and has 3"),
    (-1, "length of this Claimed is wrong"),
    (2**70, "length of this Claimed is wrong"),
    ("3", "length of this Claimed is wrong"),
])  # fmt: skip
def test_false_sequences_are_refused(length: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        tk.tensor(Claimed(length, [1.0, 2.0, 3.0]))
    with pytest.raises(ArgumentError, match=message):
        tk.tensor([Claimed(length, [1.0, 2.0, 3.0])])
    assert tk.tensor(Claimed(3, [1.0, 2.0, 3.0])).tolist() == [1.0, 2.0, 3.0]


def test_a_list_has_the_elements_that_it_gives() -> None:
    assert tk.tensor(Short([1.0, 2.0])).tolist() == [1.0, 2.0]
    assert tk.tensor([Short([1.0, 2.0]), Short([3.0, 4.0])]).tolist() == [[1.0, 2.0], [3.0, 4.0]]


def _in_itself() -> Iterator[Any]:
    inner: list[Any] = []
    inner.append(inner)
    yield inner
    pair: list[Any] = [1.0]
    pair.append((pair,))
    yield pair
    yield [tk.ones(()), inner]
    deep: Any = 1.0
    for _ in range(100_000):
        deep = [deep]
    yield deep


@each_of("number", range(4))
def test_sequences_in_themselves_are_refused(number: int) -> None:
    data = [*_in_itself()][number]
    for call in (tk.tensor, tk.sin, lambda x: tk.ones(()) + x, lambda x: tk.stack([x, x])):
        with pytest.raises(TensorkenError) as caught:
            call(data)
        assert isinstance(caught.value, (ShapeError, ArgumentError))
        assert "nested more than" in str(caught.value)


def test_an_array_of_an_array_is_refused() -> None:
    class Endless:
        def __array__(self) -> Any:
            return Endless()

    with pytest.raises(ExchangeError, match="__array__ of Endless returns another Endless"):
        tk.tensor(Endless())


def test_bools_of_others_are_true_or_false() -> None:
    for x in (
        tk.frombuffer(bytes([0, 2, 255]), "bool"),
        tk.tensor(interface(typestr="|b1", data=bytes([0, 2, 255, 1]), shape=(3,))),
    ):
        assert x.astype("int32").tolist() == [0, 1, 1]
        assert (x == tk.tensor([False, True, True])).tolist() == [True, True, True]
