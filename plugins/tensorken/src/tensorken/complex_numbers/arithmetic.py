"""Arithmetic of complex tensors: sums, products, quotients, magnitudes and signs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tensorken.complex_numbers.tensor import ComplexTensor
from tensorken_core.language.bodies.arrangement import slice_along, take_along
from tensorken_core.language.op import OPS, Op
from tensorken_core.tensor.dispatch import apply, binary
from tensorken_core.tensor.tensor import Tensor


def each_part(op: Op) -> Callable[..., ComplexTensor]:
    """The rule of an op that is linear in its complex operands: it runs on the real and on the imaginary parts."""

    def rule(*args: Any) -> ComplexTensor:
        operands = [x for x in args if isinstance(x, Tensor)]
        params = args[len(operands) :]
        real, imag = [
            apply(op, [getattr(x, part) if isinstance(x, ComplexTensor) else x for x in operands], params)
            for part in ("real", "imag")
        ]
        return ComplexTensor(real, imag, all([x.is_real for x in operands if isinstance(x, ComplexTensor)]))

    return rule


def bilinear(op: Op) -> Callable[..., ComplexTensor]:
    """The rule of an op that is linear in each of its two operands: four ops on the parts."""

    def rule(a: ComplexTensor, b: ComplexTensor, *params: Any) -> ComplexTensor:
        def product(x: Tensor, y: Tensor) -> Tensor:
            result: Tensor = apply(op, (x, y), params)
            return result

        if b.is_real:
            return ComplexTensor(product(a.real, b.real), product(a.imag, b.real), a.is_real)
        if a.is_real:
            return ComplexTensor(product(a.real, b.real), product(a.real, b.imag))
        return ComplexTensor(
            product(a.real, b.real) - product(a.imag, b.imag),
            product(a.real, b.imag) + product(a.imag, b.real),
        )

    return rule


def add(a: ComplexTensor, b: ComplexTensor) -> ComplexTensor:
    """a + b; a real operand leaves the imaginary parts of the other as they are, signs of zeros included."""
    if a.is_real or b.is_real:
        imag = b.imag if a.is_real else a.imag
        return ComplexTensor(a.real + b.real, imag, a.is_real and b.is_real)
    return ComplexTensor(a.real + b.real, a.imag + b.imag)


def sub(a: ComplexTensor, b: ComplexTensor) -> ComplexTensor:
    """a - b; as `add` for real operands."""
    if b.is_real:
        return ComplexTensor(a.real - b.real, a.imag, a.is_real)
    return ComplexTensor(a.real - b.real, -b.imag if a.is_real else a.imag - b.imag)


def neg(z: ComplexTensor) -> ComplexTensor:
    """-z."""
    return ComplexTensor(-z.real, -z.imag, z.is_real)


def conjugate(z: ComplexTensor) -> ComplexTensor:
    """x - iy."""
    return ComplexTensor(z.real, -z.imag, z.is_real)


def square(z: ComplexTensor) -> ComplexTensor:
    """z * z, with the real part (x - y)(x + y)."""
    product = z.real * z.imag
    return ComplexTensor((z.real - z.imag) * (z.real + z.imag), product + product, z.is_real)


def div(a: ComplexTensor, b: ComplexTensor) -> ComplexTensor:
    """a / b by R. L. Smith, "Algorithm 116: Complex division", 1962, which divides by the larger part first.

    Both parts are divided by 0.0 where b is 0.
    """
    if b.is_real:
        return ComplexTensor(a.real / b.real, a.imag / b.real, a.is_real)
    swap = b.real.abs() < b.imag.abs()
    large, small = swap.where(b.imag, b.real), swap.where(b.real, b.imag)
    ratio = small / large
    divisor = large + small * ratio
    x, y = swap.where(a.imag, a.real), swap.where(a.real, a.imag)
    real, imag = (x + y * ratio) / divisor, (y - x * ratio) / divisor
    zero = b.real.eq(0.0) & b.imag.eq(0.0)
    at_zero = zero.where(b.real.abs(), 1.0)
    return ComplexTensor(
        zero.where(a.real / at_zero, real), zero.where(a.imag / at_zero, swap.where(-imag, imag))
    )


def reciprocal(z: ComplexTensor) -> ComplexTensor:
    """1 / z."""
    return div(z.scalar(1.0), z)


def magnitude(z: ComplexTensor) -> Tensor:
    """The modulus of z; its derivative at 0 is 0."""
    result: Tensor = apply(OPS["hypot"], (z.real, z.imag))
    return result


def sign(z: ComplexTensor) -> ComplexTensor:
    """z / |z|, and 0 where z is 0, of parts scaled by the larger one, so that the modulus is a normal number.

    One infinite part gives the direction of its axis, as in numpy.
    """
    x, y = z.real, z.imag
    infinite = x.abs().eq(math.inf), y.abs().eq(math.inf)
    one = infinite[0] ^ infinite[1]
    x, y = [one.where(far.where(p.sign(), 0.0), p) for p, far in zip((x, y), infinite, strict=True)]
    large = x.abs().maximum(y.abs())
    zero = large.eq(0.0)
    scale = zero.where(1.0, large)
    x, y = x / scale, y / scale
    modulus = zero.where(1.0, (x * x + y * y)).sqrt()
    return ComplexTensor(zero.where(0.0, x / modulus), zero.where(0.0, y / modulus))


def equal(a: ComplexTensor, b: ComplexTensor) -> Tensor:
    """Whether both parts are equal."""
    return a.real.eq(b.real) & a.imag.eq(b.imag)


def select(condition: Tensor, a: ComplexTensor, b: ComplexTensor) -> ComplexTensor:
    """a where the condition holds, else b."""
    return ComplexTensor(
        condition.where(a.real, b.real), condition.where(a.imag, b.imag), a.is_real and b.is_real
    )


def round_parts(z: ComplexTensor) -> ComplexTensor:
    """Both parts rounded to integers, halves to even."""
    op = OPS["round"]
    return ComplexTensor(apply(op, (z.real,)), apply(op, (z.imag,)))


def prod(z: ComplexTensor, axes: Sequence[int]) -> ComplexTensor:
    """The products over axes, by halves: the number of multiplications after one another is logarithmic."""
    for axis in axes:
        while z.shape[axis] != 1:
            count = z.shape[axis]
            if count == 0:
                return prod(z.constant([1.0], z.dtype, ()).broadcast_to(_with_size(z.shape, axis, 1)), axes)  # type: ignore[arg-type]
            half = count // 2
            rest = slice_along(z, axis, 2 * half, count)
            z = slice_along(z, axis, 0, half) * slice_along(z, axis, half, 2 * half)
            if count % 2:
                z = z.concatenate(rest, axis=axis)  # type: ignore[assignment]
    return z


def cumprod(z: ComplexTensor, axis: int) -> ComplexTensor:
    """The products of the first elements along an axis, by doubling the number of factors."""
    count, done = z.shape[axis], 1
    while done < count:
        products = slice_along(z, axis, done, count) * slice_along(z, axis, 0, count - done)
        z = slice_along(z, axis, 0, done).concatenate(products, axis=axis)
        done *= 2
    return z


def argsort(z: ComplexTensor, axis: int) -> Tensor:
    """The indices that sort by the real part, and by the imaginary part where the real parts are equal, as in numpy.

    Numbers whose imaginary part alone is NaN come after all others, those whose real part is NaN come last.
    """
    order: Tensor = apply(OPS["argsort"], (z.imag,), (axis,))
    for key in (z.real, _nan_rank(z)):  # each sort keeps the order of the sort before among equal keys
        order = take_along(order, apply(OPS["argsort"], (take_along(key, order, axis),), (axis,)), axis)
    return order


def _nan_rank(z: ComplexTensor) -> Tensor:
    """0 for a number, 1 if the imaginary part alone is NaN, 2 if the real part is."""
    rank: Tensor = z.imag.eq(z.imag).where(z.real.scalar(0.0), 1.0)
    return z.real.eq(z.real).where(rank, 2.0)


def precedes(a: ComplexTensor, b: ComplexTensor, real_precedes: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Whether a comes before b in the order of `argsort`.

    Args:
        real_precedes: the same for real tensors.
    """
    first, second = _nan_rank(a), _nan_rank(b)
    tied = ~real_precedes(b.real, a.real) & real_precedes(a.imag, b.imag)
    return (first < second) | (first.eq(second) & (real_precedes(a.real, b.real) | tied))


def sort(z: ComplexTensor, axis: int) -> ComplexTensor:
    """The elements in the order of `argsort`."""
    order = argsort(z, axis)
    return ComplexTensor(take_along(z.real, order, axis), take_along(z.imag, order, axis))


def sum_of_products(a: Tensor, b: Tensor, axes: int | tuple[int, ...]) -> Tensor:
    """sum(a * b, axes) of tensors of one dtype that broadcast; backends never store the products.

    Of complex tensors, it is four sums of products of their parts.
    """

    def total(x: Tensor, y: Tensor) -> Tensor:
        return binary(OPS["mul"], x, y).sum_in_own_dtype(axes)

    if not (isinstance(a, ComplexTensor) and isinstance(b, ComplexTensor)):
        return total(a, b)
    return ComplexTensor(
        total(a.real, b.real) - total(a.imag, b.imag), total(a.real, b.imag) + total(a.imag, b.real)
    )


def _with_size(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    return (*shape[:axis], size, *shape[axis + 1 :])
