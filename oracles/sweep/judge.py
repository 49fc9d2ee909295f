"""Verdicts: whether a result is right, a refusal in one line that names the function, or wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from oracles.sweep.operands import DTYPES, limits, numpy_dtype
from tensorken_core.errors import TensorkenError

Array = Any

SPELLINGS = {
    "add": ("add",),
    "subtract": ("sub",),
    "multiply": ("mul",),
    "divide": ("div",),
    "true_divide": ("div",),
    "negative": ("neg",),
    "power": ("pow",),
    **dict.fromkeys(DTYPES, ("tensor",)),  # `tk.float32(x)` is `tk.tensor(x, tk.float32)`
    "associative_scan": ("maximum",),  # the function that the row passes
}
"""The functions whose refusals name the operator's op."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a cell: `right`, `refused` or `wrong`, with the reason."""

    kind: str
    reason: str = ""


RIGHT = Verdict("right")


def of_error(error: BaseException, names: set[str]) -> Verdict:
    """A refusal if the error is one of ours, in one line, and names the user's function; else a fault."""
    text = str(error)
    if not isinstance(error, TensorkenError):
        return Verdict("wrong", f"raises {type(error).__name__}: {text[:150]}")
    named = text.partition(":")[0].strip()
    if "\n" in text.strip():
        return Verdict("wrong", f"message of several lines: {text[:150]!r}")
    if named.split("(")[0].split(" ")[0].rpartition(".")[2] not in names:
        return Verdict("wrong", f"names another function: {text[:150]}")
    return Verdict("refused", text.partition(":")[2].strip())


def of_values(
    got: Array,
    exact: Array,
    dtype: str | None,
    ulp: float,
    scale: str | float = "result",
    operands: Any = (),
    skip: Any = None,
) -> Verdict:
    """Compare an array with the exact result, of the same shape, for a result of this dtype.

    Errors are compared with each result, or with the largest (`largest`), with 1 if that is larger (`one`), or with
    the largest product of operands (`terms`).
    """
    got, exact = np.asarray(got), np.asarray(exact)
    if got.shape != exact.shape:
        return Verdict("wrong", f"shape {got.shape}, not {exact.shape}")
    if dtype is None:
        dtype = got.dtype.name
    elif got.dtype != numpy_dtype(dtype):
        return Verdict("wrong", f"dtype {got.dtype}, not {dtype}")
    if got.dtype.kind in "biu":
        bad = np.asarray(got != exact)
    else:
        scale = _terms(operands, got) if scale == "terms" else scale
        bad = (_bad_complex if got.dtype.kind == "c" else _bad_real)(got, exact, dtype, ulp, scale)
    if skip is not None:
        bad &= ~np.broadcast_to(skip, bad.shape)
    if not bad.any():
        return RIGHT
    count = int(bad.sum())
    k = tuple(np.argwhere(bad)[0]) if bad.ndim else ()
    at = ", ".join(str(x[k]) if getattr(x, "shape", None) == got.shape else _short(x) for x in operands)
    return Verdict("wrong", f"{count} of {bad.size}: at ({at}) is {got[k]}, not {exact[k]}")


def _terms(operands: Any, got: Array) -> float:
    """The largest product of a number from each operand, times their number, at most the largest number."""
    size, count = 1.0, 1
    with np.errstate(all="ignore"):
        for x in operands:
            if isinstance(x, np.ndarray) and x.size and x.dtype.kind != "b":
                wide = np.abs(x.astype("complex128" if x.dtype.kind == "c" else "float64"))
                size *= float(np.max(wide[np.isfinite(wide)], initial=1.0))
                count = max(count, x.size)
    return min(size * count, float(limits(got.dtype.name).max))


def _short(x: Any) -> str:
    text = str(x.tolist()) if isinstance(x, np.ndarray | np.generic) else str(x)
    return text if len(text) < 60 else f"{text[:57]}..."


def _compared_with(size: Array, finite: Array, scale: str | float) -> Array:
    """What each error is compared with: the size of the element, of the largest finite one, or a number if larger."""
    if scale == "largest":
        return np.full_like(size, np.max(size[finite], initial=0.0))
    return size if scale == "result" else np.maximum(size, 1 if scale == "one" else scale)


def _bad_real(got: Array, exact: Array, dtype: str, ulp: float, scale: str | float) -> Array:
    limit = limits(dtype)
    wide = "longdouble" if dtype == "float64" else "float64"
    g, e = got.astype(wide), exact.astype(wide)
    largest = e.dtype.type(limit.max)
    eps = e.dtype.type(float(limit.eps))
    with np.errstate(all="ignore"):
        finite = np.isfinite(e)
        size = _compared_with(np.abs(e), finite, scale)
        unit = np.maximum(
            2.0 ** np.floor(np.log2(np.where(size > 0, size, 1))) * eps, float(limit.smallest_subnormal)
        )
        close = np.abs(g - e) <= ulp * unit
        overflow = finite & np.isinf(g) & (np.sign(g) == np.sign(e)) & (size + ulp * unit >= largest)
        beyond = (
            finite
            & (size > largest)
            & (np.abs(g) >= largest * (1 - 2 * eps * ulp))
            & (np.sign(g) == np.sign(e))
        )
    return ~np.where(finite, close | overflow | beyond, (g == e) | (np.isnan(g) & np.isnan(e)))


def _bad_complex(got: Array, exact: Array, dtype: str, ulp: float, scale: str | float) -> Array:
    limit = limits(dtype)
    wide = "clongdouble" if dtype == "complex128" else "complex128"
    g, e = got.astype(wide), exact.astype(wide)
    with np.errstate(all="ignore"):
        finite = np.isfinite(e)
        size = _compared_with(np.maximum(np.abs(e), float(limit.smallest_normal)), finite, scale)
        close = np.abs(g - e) <= ulp * size * float(limit.eps)
        overflow = finite & ~np.isfinite(g) & (size >= float(limit.max) / 4)
        # an infinity is one whatever its other part is; NaN parts of NaN results are free
        isinf = lambda z: np.isinf(z.real) | np.isinf(z.imag)  # noqa: E731
        alike = (isinf(g) & isinf(e)) | (np.isnan(g) & np.isnan(e))
    return ~np.where(finite, close | overflow, alike)
