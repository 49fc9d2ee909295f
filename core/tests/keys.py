"""Keys of every kind for a shape, for the tests of indexing; and numpy's results for keys that numpy lacks."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

import tensorken as tk

DTYPES = ("bool", "int32", "int64", "float32", "float64")


@st.composite
def shapes(draw: Any, most: int = 4) -> tuple[int, ...]:
    """Shapes of few small sizes, 0 and 1 among them."""
    return tuple(draw(st.lists(st.integers(0, 4), max_size=most)))


@st.composite
def keys(draw: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """A tuple whose entries index the axes of the shape from the front; index arrays other than masks broadcast."""
    common = draw(st.lists(st.integers(0, 3), max_size=2))
    entries: list[Any] = []
    axis, has_gap = 0, False
    while len(entries) < 7:
        kinds = ["none", "bool", "stop"]
        kinds += ["gap"] * (not has_gap)
        if axis < len(shape):
            kinds += ["slice", "mask", "indices", "indices", "indices"] + ["int"] * (shape[axis] > 0)
        kind = draw(st.sampled_from(kinds))
        if kind == "stop":
            break
        if kind == "none":
            entries.append(None)
        elif kind == "bool":
            entries.append(draw(st.sampled_from([True, False, np.True_, np.array(True)])))
        elif kind == "gap":
            has_gap = True
            axis += draw(st.integers(0, len(shape) - axis))
            entries.append(...)
        elif kind == "slice":
            entries.append(draw(st.slices(shape[axis])))
            axis += 1
        elif kind == "int":
            entries.append(draw(st.integers(-shape[axis], shape[axis] - 1)))
            axis += 1
        elif kind == "mask":
            span = draw(st.integers(1, len(shape) - axis))
            bits = draw(st.integers(0, 2**32))
            entries.append(np.random.default_rng(bits).random(shape[axis : axis + span]) < 0.5)
            axis += span
        else:
            entries.append(draw(index_arrays(shape[axis], common)))
            axis += 1
    if has_gap:  # it would also index the axes that are left out at the end
        entries += [slice(None)] * (len(shape) - axis)
    return tuple(entries)


@st.composite
def index_arrays(draw: Any, size: int, common: list[int]) -> Any:
    """Indices in range, as an array or a list, of a shape that broadcasts to the common one."""
    own = common[draw(st.integers(0, len(common))) :]
    own = [draw(st.sampled_from([1, n])) for n in own]
    if size == 0:
        own = [0, *own[1:]]
    values = np.random.default_rng(draw(st.integers(0, 2**32))).integers(-size, max(size, 1 - size), own)
    return draw(st.sampled_from([values.astype(np.int32), values.astype(np.int64), values.tolist()]))


def on(backend: Any, key: Any) -> Any:
    """The key with its arrays as tensors on a backend."""
    if isinstance(key, tuple):
        return tuple([on(backend, entry) for entry in key])
    return tk.tensor(key, backend=backend) if isinstance(key, np.ndarray) else key


def outer(values: np.ndarray[Any, Any], key: tuple[Any, ...]) -> np.ndarray[Any, Any]:
    """`values.oindex[key]` by NEP 21: one entry after the other, each along its own axes."""
    return _one_by_one(values, key, [])


def vectorized(values: np.ndarray[Any, Any], key: tuple[Any, ...]) -> np.ndarray[Any, Any]:
    """`values.vindex[key]` by NEP 21: the axes of the integer arrays first, broadcast together."""
    places: list[tuple[int, Any]] = []
    rest = _one_by_one(values, key, places, wait=True)
    axes = [axis for axis, _ in places]
    return np.moveaxis(rest, axes, range(len(axes)))[tuple([indices for _, indices in places])]


def _one_by_one(
    values: np.ndarray[Any, Any], key: tuple[Any, ...], places: list[tuple[int, Any]], wait: bool = False
) -> np.ndarray[Any, Any]:
    spans = [np.ndim(e) if is_mask(e) else 0 if e is None or e is ... else 1 for e in key]
    gap, axis = values.ndim - sum(spans), 0
    for entry, span in zip(key, spans, strict=True):
        if entry is ...:
            axis += gap
        elif entry is None:
            values = np.expand_dims(values, axis)
            axis += 1
        elif isinstance(entry, slice):
            values = values[(slice(None),) * axis + (entry,)]
            axis += 1
        elif is_mask(entry):
            sizes = values.shape
            flat = values.reshape(*sizes[:axis], np.size(entry), *sizes[axis + span :])
            values = np.compress(np.ravel(entry), flat, axis)
            axis += 1
        elif isinstance(entry, int):
            values = np.take(values, entry, axis)
        elif wait:
            places.append((axis, np.asarray(entry, dtype=np.int64)))
            axis += 1
        else:
            values = np.take(values, np.asarray(entry, dtype=np.int64), axis)
            axis += np.ndim(entry)
    return values


def is_mask(entry: Any) -> bool:
    """Whether an entry is a bool or an array of them."""
    return isinstance(entry, bool | np.bool_) or (isinstance(entry, np.ndarray) and entry.dtype == bool)
