"""Keys: making them from seeds, and deriving new keys from a key."""

from __future__ import annotations

import math
import operator
from typing import Any, SupportsIndex

from tensorken.arrays.creation import tensor
from tensorken.random.bits import (
    Purpose,
    blocks,
    checked,
    counter_of,
    encipher,
    logical_right_shift,
    shape_of,
)
from tensorken_core.errors import (
    ArgumentError,
    ConcretizationError,
    DTypeError,
    EscapedTensorError,
    ScalarRangeError,
    ShapeError,
)
from tensorken_core.language.dtypes import int32, int64, wrap_integer
from tensorken_core.language.shapes import short_repr
from tensorken_core.tensor.tensor import Tensor


class Key(Tensor):
    """A key, or an array of keys: a tensor of int32 that prints as the calls of `key` that make it.

    Results of functions and transforms are plain tensors, except for the rows of an array of keys.

    >>> import tensorken as tk
    >>> tk.random.key(5)
    key(5)
    >>> print(tk.random.split(tk.random.key(0)))
    [key(7857214580345155695) key(6363071046409496484)]
    """

    __slots__ = ()

    def __new__(cls, *args: Any) -> Tensor:  # type: ignore[misc]
        """A plain tensor, since ops construct their results by the type of their operands."""
        return Tensor(*args)

    @staticmethod
    def of(x: Tensor) -> Key:
        """The same values, as keys along the last axis, which has size 2."""
        key: Key = object.__new__(Key)
        Tensor.__init__(key, x.interpreter, x.representation, x.shape, x.dtype)
        return key

    def __getitem__(self, index: Any) -> Tensor:
        result = super().__getitem__(index)
        is_row = isinstance(index, int | slice) and self.ndim > 1
        return Key.of(result) if is_row else result

    def __repr__(self) -> str:
        return self._text() or super().__repr__()

    def __str__(self) -> str:
        return self._text() or super().__str__()

    def __format__(self, spec: str) -> str:
        return super().__format__(spec) if spec else str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, super().__reduce__()

    def _text(self) -> str | None:
        """Each key as the call that makes it; of many keys only the first and last; None if the values are unknown."""
        if self.interpreter.below is not None:
            return None
        try:
            words = [int(word) % (1 << 32) for word in self.flat()]
        except (ConcretizationError, EscapedTensorError):
            return None
        rows = [f"key({high << 32 | low})" for high, low in zip(words[::2], words[1::2], strict=True)]
        for size in self.shape[-2::-1]:
            groups = [rows[i : i + size] for i in range(0, len(rows), size)] if size else []
            rows = [f"[{' '.join(_few(group))}]" for group in groups]
        return rows[0] if rows else "[]"


def _few(texts: list[str]) -> list[str]:
    return texts if len(texts) <= 6 else [*texts[:3], "...", *texts[-3:]]


def _unpickled(make: Any, args: tuple[Any, ...]) -> Key:
    return Key.of(make(*args))


def key(seed: SupportsIndex, *, backend: Any = None, device: str | None = None) -> Tensor:
    """The key of a seed: an immutable int32 tensor of shape (2,).

    Its words are the more and the less significant half of the seed, modulo 2**64.  They are int32 because the language
    has no unsigned integers; only their bits matter.  Numbers are drawn on the backend of the key.

    A function returns the same numbers each time for the same key: use each key once, and make new keys with `split` or
    `fold_in`.

    Args:
        seed: an int in [-2**63, 2**64), or an int32 or int64 tensor of shape (), as under vmap.
        backend, device: of the key; by default the seed's if it is a tensor.

    Raises:
        ArgumentError, DTypeError: if the seed is not an integer.
        ShapeError: if the seed is a tensor with axes.
        ScalarRangeError: if the seed is out of range.

    >>> import tensorken as tk
    >>> tk.random.key(5).tolist(), tk.random.key(-1).tolist()
    ([0, 5], [-1, -1])
    """
    if isinstance(seed, Tensor):
        return Key.of(_of_tensor(seed if backend is None and device is None else seed.to(backend, device)))
    try:
        value = operator.index(seed)
    except ConcretizationError as error:
        raise error.at("key") from None
    except TypeError:
        raise ArgumentError(
            f"key: the seed must be an int, got {short_repr(seed)}; give one, as key(0)"
        ) from None
    if not -(1 << 63) <= value < 1 << 64:
        what = value if abs(value) < 10**30 else f"an int of {value.bit_length()} bits"
        raise ScalarRangeError(
            f"key: the seed must be from -2**63 to 2**64 - 1, got {what}; take it modulo 2**64"
        )
    halves = divmod(value % (1 << 64), 1 << 32)
    return Key.of(
        tensor([wrap_integer(half, int32) for half in halves], int32, backend=backend, device=device)
    )


def _of_tensor(seed: Tensor) -> Tensor:
    if seed.dtype.kind != "int":
        raise DTypeError(f"key: the seed must be int32 or int64, got {seed.dtype}; cast it first (x.astype)")
    if seed.shape:
        raise ShapeError(
            f"key: the seed must have shape (), got {seed.shape}; use tk.vmap(tk.random.key) for several keys"
        )
    if seed.dtype is int64:
        high, low = logical_right_shift(seed, 32).astype(int32), seed.astype(int32)
    else:
        high, low = (seed < 0).where(seed.scalar(-1), 0), seed
    return high.reshape((1,)).concatenate(low.reshape((1,)))


def split(key: Tensor, num: Any = 2) -> Tensor:
    """New keys, independent of each other and of the numbers drawn with `key`.

    Key i is block i of `key` for this purpose, so the first m of n keys do not depend on n.

    Args:
        key: shape (2,), int32; do not use it again.
        num: the number of keys, or the shape of an array of keys.

    Returns:
        int32 of shape (num, 2), or (*num, 2): iterate or index to get single keys.

    Raises:
        ShapeError: if num is negative.
        ArgumentError: if key is not a key.

    >>> import tensorken as tk
    >>> for_weights, for_bias = tk.random.split(tk.random.key(0))
    >>> tk.random.split(tk.random.key(0), (4, 3)).shape
    (4, 3, 2)
    >>> tk.vmap(tk.random.normal)(tk.random.split(tk.random.key(0), 5)).shape
    (5,)
    """
    key, sizes = checked("split", key), shape_of("split", num)
    return Key.of(blocks(key, math.prod(sizes), Purpose.SPLIT).reshape((*sizes, 2)))


def fold_in(key: Tensor, data: SupportsIndex) -> Tensor:
    """A new key from a key and a number, such as the index of a step or a layer.

    Args:
        key: shape (2,), int32; it may be used again with other numbers, and with `split`.
        data: an int in [-2**31, 2**32), modulo 2**32, or an int32 tensor of shape ().

    Raises:
        ArgumentError: if key is not a key, or data are not an int.
        ScalarRangeError: if the number is out of range.

    >>> import tensorken as tk
    >>> key = tk.random.key(0)
    >>> [tk.random.randint(tk.random.fold_in(key, step), (), 0, 100).item() for step in range(3)]
    [96, 68, 76]
    """
    key = checked("fold_in", key)
    empty, _ = counter_of(0, Purpose.FOLD_IN)
    if isinstance(data, Tensor):
        if data.shape or data.dtype is not int32:
            raise ArgumentError(
                f"fold_in: data must be int32 of shape (), got {data.dtype} of shape {data.shape}; "
                f"cast it, or use tk.vmap for several"
            )
        counter = data.constant([empty], int32, (1,)).concatenate(data.reshape((1,)))
    else:
        try:
            value = operator.index(data)
        except ConcretizationError as error:
            raise error.at("fold_in") from None
        except TypeError:
            raise ArgumentError(
                f"fold_in: data must be an int, got {short_repr(data)}; number your data"
            ) from None
        if not -(1 << 31) <= value < 1 << 32:
            raise ScalarRangeError(
                f"fold_in: data must be from -2**31 to 2**32 - 1, got {value}; fold in its two halves in turn"
            )
        counter = key.constant([empty, wrap_integer(value, int32)], int32, (2,))
    return Key.of(encipher(key, counter.reshape((1, 2))).reshape((2,)))
