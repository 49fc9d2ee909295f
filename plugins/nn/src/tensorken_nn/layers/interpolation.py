"""Interpolation of signals, images and volumes to other sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError, DTypeError, ShapeError
from tensorken_nn.layers.adaptive_pooling import adapted
from tensorken_nn.layers.windows import PerAxis, sizes_for
from tensorken_nn.module import Module, static
from tensorken_nn.precision import widen

Factors = float | Sequence[float]
"""One factor for all axes, or one for each."""

Taps = list[list[tuple[int, float]]]
"""For each element of a result the indices of the elements that it is a weighted sum of, and their weights."""

MODES = {
    "nearest": "nearest",
    "nearest-exact": "nearest-exact",
    "linear": "linear",
    "bilinear": "linear",
    "trilinear": "linear",
    "cubic": "cubic",
    "bicubic": "cubic",
    "area": "area",
}
"""The modes, and the method along each axis."""

RANKS = {"bilinear": 2, "trilinear": 3, "bicubic": 2}
"""The numbers of axes of the modes that are for one number only."""


def interpolate(
    x: Tensor,
    size: PerAxis | None = None,
    scale_factor: Factors | None = None,
    mode: str = "nearest",
    align_corners: bool = False,
    antialias: bool = False,
) -> Tensor:
    """x with other sizes, whose elements are interpolated along one axis after the other.

    An element is a square, whose centre is its position: with n elements before and m after, the centre of element i
    of the result is at (i + 1/2) * n / m - 1/2. With a scale factor, n / m is 1 / scale_factor.

    Source for cubic: Keys, Cubic Convolution Interpolation for Digital Image Processing (1981), with the
    parameter -3/4, with `antialias` -1/2; as in PyTorch.

    Args:
        x: of shape `(count, channels, *sizes)`.
        size: the new sizes; one int for all axes, or one for each.
        scale_factor: by which to multiply the sizes, rounding down, instead of `size`.
        mode: "nearest", the element at floor(i * n / m); "nearest-exact", the one whose square contains the centre;
            "linear", also named "bilinear" or "trilinear" for two or three axes; "cubic", also named "bicubic";
            or "area", the mean of the elements that the new one covers, as in `adaptive_avg_pool2d`.
        align_corners: for linear and cubic: whether the centres of the outermost elements stay where they are, instead
            of the edges of their squares.
        antialias: for linear and cubic: whether an element of a smaller result is a weighted mean of all elements near
            it, instead of two or four.

    Raises:
        ArgumentError: if the mode is unknown or for another number of axes, or not exactly one of size and
            scale_factor is given.
        ShapeError: if x has no axis to interpolate along, or one without elements.
        DTypeError: if x is not of floats, except for the nearest modes.

    >>> x = tk.tensor([[[1.0, 2.0]]])
    >>> interpolate(x, 4).tolist(), interpolate(x, scale_factor=2, mode="linear").tolist()
    ([[[1.0, 1.0, 2.0, 2.0]]], [[[1.0, 1.25, 1.75, 2.0]]])
    >>> interpolate(tk.ones((8, 3, 20, 30)), (10, 45), mode="bicubic").shape
    (8, 3, 10, 45)
    """
    rank = x.ndim - 2
    if rank < 1 or not all(x.shape[2:]):
        raise ShapeError(
            f"interpolate: got shape {x.shape}, need (count, channels, *sizes) with positive sizes; reshape the input"
        )
    if mode not in MODES:
        raise ArgumentError(f"interpolate: mode must be one of {', '.join(MODES)}, got {mode!r}")
    if RANKS.get(mode, rank) != rank:
        raise ArgumentError(
            f"interpolate: mode {mode!r} is for {RANKS[mode]} axes after the channels, shape {x.shape} has {rank}; "
            f"use {MODES[mode]!r}"
        )
    method = MODES[mode]
    if not method.startswith("nearest") and x.dtype.kind != "float":
        raise DTypeError(f"interpolate: mode {mode!r} needs floats, got {x.dtype}; cast x (x.astype)")
    if (align_corners or antialias) and method not in ("linear", "cubic"):
        raise ArgumentError(
            f"interpolate: align_corners and antialias are for linear and cubic modes, got {mode!r}"
        )
    sizes, steps = _sizes_and_steps(x.shape[2:], size, scale_factor)
    if method == "area":
        return adapted("avg", rank, x, sizes)
    y = x
    for axis, (n, m, step) in enumerate(zip(x.shape[2:], sizes, steps, strict=True), 2):
        taps = _taps(method, n, m, step, align_corners, antialias)
        if taps != [[(i, 1.0)] for i in range(n)]:
            y = _weighted_sums(y if method.startswith("nearest") else widen(y), taps, axis)
    return y.astype(x.dtype)


class Upsample(Module):
    """`interpolate` as a module, with the same arguments.

    >>> Upsample(scale_factor=2, mode="bilinear")(tk.ones((8, 3, 7, 7))).shape
    (8, 3, 14, 14)
    """

    size: PerAxis | None = static()
    scale_factor: Factors | None = static()
    mode: str = static()
    align_corners: bool = static()

    def __init__(
        self,
        size: PerAxis | None = None,
        scale_factor: Factors | None = None,
        mode: str = "nearest",
        align_corners: bool = False,
    ) -> None:
        self.size = tuple(size) if isinstance(size, Sequence) else size
        self.scale_factor = tuple(scale_factor) if isinstance(scale_factor, Sequence) else scale_factor
        self.mode = mode
        self.align_corners = align_corners

    def __call__(self, x: Tensor) -> Tensor:
        """Map shape `(count, channels, *sizes)` to `(count, channels, *new sizes)`."""
        return interpolate(x, self.size, self.scale_factor, self.mode, self.align_corners)


def _sizes_and_steps(
    sizes: Sequence[int], size: PerAxis | None, scale_factor: Factors | None
) -> tuple[tuple[int, ...], list[Fraction]]:
    """The new sizes, and the distances between new elements, in old ones."""
    rank = len(sizes)
    if (size is None) == (scale_factor is None):
        raise ArgumentError("interpolate: give either size or scale_factor")
    if scale_factor is None:
        found = sizes_for("interpolate", "size", rank, size)  # type: ignore[arg-type]  # it is not None
        return found, [Fraction(n, m) for n, m in zip(sizes, found, strict=True)]
    factors = tuple(scale_factor) if isinstance(scale_factor, Sequence) else (scale_factor,) * rank
    if len(factors) != rank or not all(0.0 < factor < math.inf for factor in factors):
        raise ArgumentError(
            f"interpolate: scale_factor must be a positive number, or {rank} of them, got {scale_factor}"
        )
    found = tuple([math.floor(n * factor) for n, factor in zip(sizes, factors, strict=True)])
    if not all(found):
        raise ArgumentError(
            f"interpolate: scale_factor {scale_factor} of sizes {tuple(sizes)} gives an empty axis"
        )
    return found, [1 / Fraction(factor) for factor in factors]


def _taps(method: str, n: int, m: int, step: Fraction, align_corners: bool, antialias: bool) -> Taps:
    """The weighted sums along an axis of n elements that give m elements."""
    half = Fraction(1, 2)
    if method.startswith("nearest"):
        offset = half if method == "nearest-exact" else 0
        return [[(min(math.floor((i + offset) * step), n - 1), 1.0)] for i in range(m)]
    if align_corners:
        step = Fraction(n - 1, m - 1) if m > 1 else Fraction(0)
    kernel, reach = KERNELS[method, antialias]
    if antialias:
        return [_near((i + half) * step, n, max(step, Fraction(1)), kernel, reach) for i in range(m)]
    taps = []
    for i in range(m):
        position = i * step if align_corners else (i + half) * step - half
        if method == "linear":
            position = max(position, Fraction(0))
        first = math.floor(position) - reach + 1
        taps.append(
            [(min(max(j, 0), n - 1), kernel(float(position - j))) for j in range(first, first + 2 * reach)]
        )
    return taps


def _near(
    center: Fraction, n: int, width: Fraction, kernel: Callable[[float], float], reach: int
) -> list[tuple[int, float]]:
    """The elements near a point, weighted by a kernel of the given width; the sum of the weights is 1."""
    first = max(math.floor(center - reach * width + Fraction(1, 2)), 0)
    end = min(math.floor(center + reach * width + Fraction(1, 2)), n)
    weights = [kernel(float((j - center + Fraction(1, 2)) / width)) for j in range(first, end)]
    return [(j, weight / math.fsum(weights)) for j, weight in enumerate(weights, first)]


def _weighted_sums(x: Tensor, taps: Taps, axis: int) -> Tensor:
    """The sums along an axis of the elements at the indices, times the weights."""
    total = None
    for k in range(max(map(len, taps))):
        chosen = [tap[k] if k < len(tap) else (tap[0][0], 0.0) for tap in taps]
        part = tk.take(x, [index for index, _ in chosen], axis=axis)
        weights = [weight for _, weight in chosen]
        if set(weights) != {1.0}:
            part = part * x.constant(weights, x.dtype, (len(weights), *[1] * (x.ndim - 1 - axis)))
        total = part if total is None else total + part
    assert total is not None  # an element has a tap
    return total


def _triangle(x: float) -> float:
    return max(1.0 - abs(x), 0.0)


def _keys(a: float) -> Callable[[float], float]:
    """The kernel of Keys's cubic convolution."""

    def kernel(x: float) -> float:
        x = abs(x)
        if x <= 1.0:
            return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
        return (((x - 5.0) * x + 8.0) * x - 4.0) * a if x < 2.0 else 0.0

    return kernel


KERNELS: dict[tuple[str, bool], tuple[Callable[[float], float], int]] = {
    ("linear", False): (_triangle, 1),
    ("linear", True): (_triangle, 1),
    ("cubic", False): (_keys(-0.75), 2),
    ("cubic", True): (_keys(-0.5), 2),
}
"""The kernels by method and whether there is antialiasing, and how far they reach."""
