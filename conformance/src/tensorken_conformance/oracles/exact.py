"""Exact: helpers of laws on exact results: values that identify positions, bitwise comparison, and scripts.

All NaNs are equal, and the two zeros are different.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorken_conformance.case import Case, Failure
from tensorken_conformance.layouts import chains, shapes
from tensorken_conformance.numbers.host_arrays import is_float
from tensorken_conformance.numbers.rounding import FORMATS
from tensorken_conformance.subject import Array, Subject
from tensorken_core.errors import DTypeError
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.language.op import OPS, Op
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.tensor import Tensor

VALUES = ("ordinary", "special")
"""Value classes: moderate random numbers, nearly all different; and the numbers at the edges of the format."""

LONGEST = 4096
"""The number of values of a class; an operand takes a slice of them."""

SHOWN = 70
"""The largest number of elements of an operand in a script."""


# ---- values ------------------------------------------------------------------------------------------------


def shuffled(rng: np.random.Generator, numbers: Array) -> Array:
    """The numbers repeated, each time in another order, so that any slice of ENOUGH has all of them."""
    rounds = -(-LONGEST // len(numbers))
    return np.concatenate([rng.permutation(numbers) for _ in range(rounds)])[:LONGEST]


@functools.cache
def pool(seed: int, dtype: str, values: str, subnormals: bool = True) -> Array:
    """The values of a class in a dtype, in the order in which operands take them."""
    rng = np.random.default_rng([seed, zlib.crc32(f"{dtype} {values}".encode())])
    kind = DTYPES[dtype].kind
    if kind == "bool":
        return np.asarray(rng.random(LONGEST) < (0.9 if values == "special" else 0.5))
    if values == "ties":
        few: list[float] = [-1, 0, 1] if kind == "int" else [-1.0, -0.0, 0.0, 1.0]
        return shuffled(rng, np.array(few).astype(dtype))
    if kind == "int":
        ends = np.iinfo(dtype)
        if values == "ordinary":
            return rng.integers(ends.min // 2, ends.max // 2, LONGEST, dtype)
        numbers: list[Any] = [ends.min, ends.min + 1, 0, 1, ends.max - 1, ends.max, *[-1] * (ends.min < 0)]
        return shuffled(rng, np.array(numbers, dtype))
    if values == "ordinary":
        return rng.uniform(-100.0, 100.0, LONGEST).astype(dtype)
    form = FORMATS[dtype]
    least, tiny = form.smallest, form.tiny
    numbers = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.5, form.max, -form.max, tiny, -tiny]
    return shuffled(rng, np.array(numbers + [least, -least, tiny - least] * subnormals, dtype))


ENOUGH = 28
"""A slice of so many special values has all of them."""


def draws(case: Case, shape: Shape) -> int:
    """The number of operands of a case: for special values enough to try all of them."""
    size = int(np.prod(shape, dtype=int))
    return -(-ENOUGH // size) if size and case.values not in ("", "ordinary") else 1


def drawn(
    subject: Subject, case: Case, shape: Shape, dtype: str = "", values: str = "", number: int = 0
) -> Array:
    """The values of operand `number` of a case, by default of its dtype and value class, or else ordinary.

    Subnormal numbers are special values unless the backend declares to flush them.
    """
    dtype = dtype or case.dtype
    subnormals = dtype not in subject.capabilities.flushes_subnormals
    numbers = pool(subject.seed, dtype, values or case.values or "ordinary", subnormals)
    count = int(np.prod(shape, dtype=int))
    start = zlib.crc32(f"{subject.seed} {case.id}".encode()) + number * count
    if count > LONGEST:
        return np.resize(np.roll(numbers, start % LONGEST), shape)
    start %= LONGEST - count + 1
    return numbers[start : start + count].reshape(shape)


# ---- cases -------------------------------------------------------------------------------------------------


def dtypes_for(
    subject: Subject,
    op: Op,
    params: tuple[Any, ...] = (),
    operands: int = 1,
    beside: tuple[DType, ...] = (),
    kinds: tuple[str, ...] = ("bool", "int", "float"),
) -> list[DType]:
    """The dtypes of operands that an op takes and the backend has; in the smoke run only one.

    This includes dtypes in which the backend declares the op unsupported.

    Args:
        subject: the backend under test.
        op: the op.
        params: the params of the op, which its dtype rule takes.
        operands: the number of operands of the dtype.
        beside: the dtypes of the operands that follow.
        kinds: the kinds of dtypes that the law is about.
    """
    able = [dtype for dtype in subject.dtypes() if takes(op, (dtype,) * operands + beside, params)]
    return subject.sampled([dtype for dtype in able if dtype.kind in kinds])


def takes(op: Op, dtypes: tuple[DType, ...], params: tuple[Any, ...]) -> bool:
    """Whether the language defines an op for these dtypes."""
    try:
        op.dtype(*dtypes, *params)
    except DTypeError:
        return False
    return True


def classes(subject: Subject) -> list[str]:
    """The names of the shape classes of laws on exact results, which try more than other laws."""
    if subject.depth == "smoke":
        return []
    return [*{**shapes.SHAPES, **shapes.VIEWS, **(shapes.LONG if subject.depth == "deep" else {})}]


def makes(subject: Subject, shape: str, dtype: DType) -> bool:
    """Whether the backend supports the movement that makes operands of a class."""
    movement = shapes.class_of(shape).movement
    return not movement or subject.capabilities.why_not(movement, dtype.name) is None


def level_of(case: Case) -> int:
    """Level 1 for required ops on ordinary values, else level 2."""
    return 1 if OPS[case.op].body is None and case.values in ("", "ordinary") else 2


def needs_of(case: Case) -> tuple[str, ...]:
    """The cases of the movement that makes the operand."""
    return shapes.need(case.shape, case.dtype)


# ---- comparison --------------------------------------------------------------------------------------------


def differing(got: Array, expected: Array) -> Array | None:
    """Where the bits differ, all NaNs being equal; None if they agree everywhere."""
    if got.tobytes() == expected.tobytes():
        return None
    if is_float(got):
        unsigned = f"u{got.dtype.itemsize}"
        different = np.ascontiguousarray(got).view(unsigned) != np.ascontiguousarray(expected).view(unsigned)
        different = different.reshape(got.shape) & ~(np.isnan(got) & np.isnan(expected))
    else:
        different = np.asarray(got != expected)
    return different if different.any() else None


def describe_difference(got: Array, expected: Array, different: Array) -> str:
    """A message with the first difference and the number of differences."""
    index = tuple([int(i) for i in np.argwhere(different)[0]])
    where = f" at {list(index)}" if index else ""
    count = int(different.sum())
    more = f"; {count} of {different.size} differ" if count > 1 else ""
    return f"expected {expected[index].item()!r}{where}, got {got[index].item()!r}{more}"


def agree(
    subject: Subject, result: Tensor, expected: Array, says: str, script: Callable[[], list[str]] = list
) -> None:
    """Compare a result with the expected values; see `same`.

    Raises:
        Failure: if a bit differs.
    """
    same(subject.read(result), expected, says, script)


def same(
    got: Array,
    expected: Array,
    says: str,
    script: Callable[[], list[str]] = list,
    either_zero: bool = False,
) -> None:
    """Compare values with the expected ones, also in their shape and dtype.

    Args:
        got: the values.
        expected: the expected values.
        says: the beginning of the message.
        script: returns Python that shows a failure.
        either_zero: whether zeros may have either sign.

    Raises:
        Failure: if a bit differs.
    """
    if got.shape != expected.shape or got.dtype != expected.dtype:
        raise Failure(f"{says}: expected {expected.dtype} {expected.shape}, got {got.dtype} {got.shape}")
    different = differing(got, expected)
    if different is not None and either_zero:
        different &= (got != 0) | (expected != 0)
    if different is not None and different.any():
        raise Failure(f"{says}: {describe_difference(got, expected, different)}", script=script())


# ---- scripts -----------------------------------------------------------------------------------------------


IMPORTS = (
    "from numpy import array, inf, nan; import tensorken as tk; from tensorken_core.language.op import OPS"
)


def shown(subject: Subject, values: Array, shape: str = "") -> str:
    """Python that makes an operand from its values by the movement of its class."""
    values, ops = chains.origin(shapes.chain_of(shape, values), values)
    rest = "".join([f'.apply(OPS["{op}"], {", ".join(map(repr, params))})' for op, params in ops])
    form = "" if values.ndim == 1 else f".reshape({values.shape})"
    numbers = f'array({values.reshape(-1).tolist()}, "{values.dtype.name}"){form}'
    return f'tk.tensor({numbers}, backend="{subject.name}"){rest}'


def script_of(
    subject: Subject,
    steps: Sequence[tuple[str, tuple[Any, ...]]],
    operands: Sequence[Array],
    expected: Array,
    shape: str = "",
) -> list[str]:
    """Python that runs ops in sequence and prints the result; empty if the operands are too large to show.

    Args:
        subject: the backend under test.
        steps: the ops by name, with params; the first takes all operands, each other one the result so far.
        operands: the values of the operands.
        expected: the expected values.
        shape: the shape class of the first operand; the other operands are plain.
    """
    if max([expected.size, *(values.size for values in operands)]) > SHOWN:
        return []
    first, *others = [shown(subject, x, "" if i else shape) for i, x in enumerate(operands)]
    calls = ""
    for i, (op, params) in enumerate(steps):
        arguments = [f'OPS["{op}"]', *([] if i else others), *map(repr, params)]
        calls += f".apply({', '.join(arguments)})"
    return [IMPORTS, f"x = {first}", f"print(x{calls}.tolist())", f'print("expected", {expected.tolist()})']
