"""Fuse: an interpreter over a backend that defers ops until it sees how their results are used.

It defers three kinds of ops:

* an `expand`: the value keeps size 1 along repeated axes, and elementwise ops, reductions, permutes and reshapes that
  only move axes of size 1 act on the small value;
* a product, or a sum or difference of up to four products;
* a `sum` of these, or of a small value; a later sum adds its axes, also after a permute or reshape that only moves
  axes of size 1.

So the sum of a product reaches the backend as one `fused_multiply_add` of the small operands, and the product itself
is never computed: neither by matmul, nor by its JVP and VJP.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import attrgetter
from typing import Any, Generic

from tensorken_core.language.dtypes import DType, wrap_integer
from tensorken_core.language.interpreter import R
from tensorken_core.language.op import OPS, Op, run
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Axes, Shape, multiplied
from tensorken_core.rewriting.wrapper import DonatableArgs, Wrapper, WriteCall

LIMIT = 4
"""The largest number of products in one deferred sum."""

SMALL = 4096
"""The largest size of a value whose sum is deferred; the value stays alive until the sum is computed."""

ProductTerm = tuple[bool, Any, Any, dict[frozenset[int], Any]]
"""Whether the product is added (or subtracted), its two operands, and the sums over axes that are already computed.

The operands are values with size 1 along repeated axes; the second is None for a value that is not a product.  All
deferred tensors of one product share its computed sums, so nothing is multiplied or summed twice.
"""


@dataclass(slots=True)  # not frozen: every product makes one, and a frozen one takes three times as long
class SumOfProducts:
    """A deferred sum over axes of a sum of products.

    Attributes:
        terms: the products.
        full: their shape.
        axes: the axes of `full` to sum over.
        order: for each axis of the result the axis of `full`; None for a new axis of size 1.
    """

    terms: tuple[ProductTerm, ...]
    full: Shape
    axes: frozenset[int]
    order: tuple[int | None, ...]


class Deferred(Generic[R]):
    """A tensor whose value may have size 1 along repeated axes, or be computed later."""

    __slots__ = ("products", "shape", "value")

    fill_value: bool | int | float | None = None
    """The value of all elements, if `full` made the tensor."""

    def __init__(self, shape: Shape, value: R | None, products: SumOfProducts | None = None) -> None:
        self.shape, self.value, self.products = shape, value, products


class Uniform(Deferred[R]):
    """A tensor of equal elements, stored with size 1 along all axes; movement ops keep the fill value."""

    __slots__ = ("fill_value",)

    def __init__(self, shape: Shape, value: R, fill_value: bool | int | float) -> None:
        self.shape, self.value = shape, value
        self.products, self.fill_value = None, fill_value


_ADD, _SUB = OPS["add"], OPS["sub"]
_NO_AXES: frozenset[int] = frozenset()
_REDUCTIONS = (OPS["max"], OPS["min"])


class _AllAxes(dict[int, Axes]):
    """All axes of each rank: 0, 1, 2, ...; made at first use."""

    def __missing__(self, rank: int) -> Axes:
        self[rank] = tuple(range(rank))
        return self[rank]


_ALL_AXES = _AllAxes()


class Fuse(Wrapper[Deferred[R]]):
    """Computes the results of the backend `raw` with fewer ops, on smaller values.

    >>> from tensorken_string.backend import String
    >>> a, b = String().symbol("A", (2, 3)), String().symbol("B", (2, 3))
    >>> fuse = Fuse(String())
    >>> print(fuse.value(fuse.sum(fuse.mul(fuse.wrap(a), fuse.wrap(b)), (0, 1))))
    A.fused_multiply_add(B, [0, 1])
    """

    raw: RawTensor[R]

    def __init__(self, raw: RawTensor[R]) -> None:
        super().__init__(raw)
        self._constants: dict[Any, R] = {}

    # ---- values ----------------------------------------------------------------------------------------------

    def wrap(self, value: R) -> Deferred[R]:
        return Deferred(self.raw.shape(value), value)

    def value(self, x: Deferred[R]) -> R:
        value = x.value
        if value is None:
            value = self.unexpanded(x)
        return value if self.raw.shape(value) == x.shape else self._expand(value, x.shape)

    def unexpanded(self, x: Deferred[R]) -> R:
        """The value with size 1 along repeated axes; a deferred sum is computed, once."""
        value = x.value
        if value is None:
            products = x.products
            if products is None:  # another thread has just computed it
                return x.value  # type: ignore[return-value]
            value = x.value = self._compute(products)
            x.products = None
        return value

    def wrap_program(self, run: Callable[[Sequence[R]], Sequence[R]], program: Any) -> Any:
        value, shape_of, new = self.value, self.raw.shape, object.__new__
        shapes, donated = [v.shape for v in program.outputs], program.donated

        # A small program takes as long as this function, so it makes tensors without a call of `__init__`, and has no
        # comprehensions, which are functions in Python 3.11.
        def run_deferred(xs: Sequence[Deferred[R]]) -> list[Deferred[R]]:
            values: list[Any] = []
            for x in xs:
                v = x.value
                values.append(value(x) if v is None or shape_of(v) != x.shape else v)
            if donated and type(xs) is DonatableArgs:
                for i in donated:
                    xs[i] = x = v = None  # type: ignore[assignment]
            results: list[Any] = [*run(values)]
            for i, y in enumerate(results):
                results[i] = result = new(Deferred)
                result.shape, result.value, result.products = shapes[i], y, None
            return results

        return run_deferred

    def write_call(
        self, code: Any, program: Any, xs: Sequence[str], write: WriteCall
    ) -> Sequence[str] | None:
        outputs = write(self.write_values(code, xs))
        if outputs is None:
            return None
        results = code.variables(len(outputs))
        new, deferred = code.constant(object.__new__), code.constant(Deferred)
        for y, v, variable in zip(results, outputs, program.outputs, strict=True):
            shape = code.constant(variable.shape)
            code.lines += [
                f"{y} = {new}({deferred})",
                f"{y}.shape, {y}.value, {y}.products = {shape}, {v}, None",
            ]
        return results  # type: ignore[no-any-return]

    shape = staticmethod(attrgetter("shape"))  # type: ignore[assignment]  # read at every op, so without a call

    def dtype(self, x: Deferred[R]) -> DType:
        products = x.products
        value: Any = x.value if products is None else products.terms[0][1]
        return self.raw.dtype(value)

    def new(self, shape: Shape, data: Any, dtype: DType) -> Deferred[R]:
        return Deferred(shape, self.raw.new(shape, data, dtype))

    def full(self, shape: Shape, value: bool | int | float, dtype: DType) -> Deferred[R]:
        """One element, not yet repeated; the common constants of programs are cached if threads can share them."""
        key = (len(shape), value, dtype)
        constant = self._constants.get(key)
        if constant is None or value == 0:  # 0.0 and -0.0 are one key
            constant = self.raw.full((1,) * len(shape), value, dtype)
            if len(self._constants) < 256 and value != 0 and not self.capabilities.thread_bound:
                self._constants[key] = constant
        return Uniform(shape, constant, value)

    def fill_value(self, x: Deferred[R]) -> bool | int | float | None:
        return x.fill_value

    def deferred_operands(self, x: Deferred[R]) -> Sequence[Deferred[R]]:
        """The operands of products that are not summed yet: each product may be computed, or only its sum."""
        if x.products is None or x.products.axes:
            return ()
        return [self.wrap(v) for _, a, b, _ in x.products.terms for v in (a, b) if v is not None]

    def settle(self, x: Deferred[R]) -> Deferred[R]:
        self.raw.settle(x.value if x.value is not None else self.unexpanded(x))
        return x

    def realize(self, x: Deferred[R]) -> Deferred[R]:
        value = x.value
        self.raw.realize(self.unexpanded(x) if value is None else value)
        return x

    # ---- ops -------------------------------------------------------------------------------------------------

    def interpret(self, op: Op, operands: Sequence[Deferred[R]], params: tuple[Any, ...]) -> Any:
        raw = self.raw
        method = raw.overrides[op]
        if method is None and op.body is not None and not raw.has(op):
            # The body runs on this interpreter, and is fused too.
            return super().interpret(op, operands, params)
        if op.elementwise:
            values = []
            for x in operands:  # Python 3.11 calls a comprehension as a function
                values.append(self.unexpanded(x) if x.value is None else x.value)
            if len(values) > 1 and not raw.broadcasts:
                values = self._matched(values)
            y = raw.interpret(op, values, params) if method is None else method(raw, *values)
            return Deferred(operands[0].shape, y)
        if op in _REDUCTIONS:
            (x,), (axes,) = operands, params
            value = self.unexpanded(x)
            sizes = raw.shape(value)
            stored = tuple([i for i in axes if sizes[i] != 1])
            return Deferred(op.shape(x.shape, axes), run(raw, op, (value,), (stored,)) if stored else value)
        result = run(raw, op, [self.value(x) for x in operands], params)
        if op.results == 1:
            return Deferred(raw.shape(result), result)
        return tuple([Deferred(raw.shape(y), y) for y in result])

    def cast(self, x: Deferred[R], dtype: DType) -> Deferred[R]:
        return Deferred(x.shape, self.raw.cast(self.unexpanded(x), dtype))

    def mul(self, a: Deferred[R], b: Deferred[R]) -> Deferred[R]:
        shape = a.shape
        small_a = a.value if a.value is not None else self.unexpanded(a)
        small_b = b.value if b.value is not None else self.unexpanded(b)
        terms: tuple[ProductTerm, ...] = ((True, small_a, small_b, {}),)
        return Deferred(shape, None, SumOfProducts(terms, shape, _NO_AXES, _ALL_AXES[len(shape)]))

    def add(self, a: Deferred[R], b: Deferred[R]) -> Deferred[R]:
        return self._combined(_ADD, a, b)

    def sub(self, a: Deferred[R], b: Deferred[R]) -> Deferred[R]:
        return self._combined(_SUB, a, b)

    def _combined(self, op: Op, a: Deferred[R], b: Deferred[R]) -> Deferred[R]:
        p, q = a.products, b.products
        if (
            p is not None
            and q is not None
            and len(q.terms) == 1  # a sum on the right is computed first, as it is written: x - x is 0
            and len(p.terms) < LIMIT
            and (p.full, p.axes, p.order) == (q.full, q.axes, q.order)
        ):
            right = q.terms if op is _ADD else tuple([(not plus, *rest) for plus, *rest in q.terms])
            return Deferred(a.shape, None, SumOfProducts(p.terms + right, p.full, p.axes, p.order))
        result: Deferred[R] = self.interpret(op, (a, b), ())
        return result

    def sum(self, x: Deferred[R], axes: Axes) -> Deferred[R]:
        sizes = list(x.shape)
        for i in axes:
            sizes[i] = 1
        shape = tuple(sizes)
        done = shape.count(1) == len(shape)  # a later sum cannot add an axis, so the operands can be freed
        products = x.products
        if products is None:
            value = x.value if x.value is not None else self.unexpanded(x)
            if done or math.prod(self.raw.shape(value)) > SMALL:
                return Deferred(shape, self._total(value, x.shape, axes))
            products = SumOfProducts(((True, value, None, {}),), x.shape, _NO_AXES, _ALL_AXES[len(shape)])
        summed = set(products.axes)
        for i in axes:
            axis = products.order[i]
            if axis is not None:
                summed.add(axis)
        products = SumOfProducts(products.terms, products.full, frozenset(summed), products.order)
        return Deferred(shape, self._compute(products)) if done else Deferred(shape, None, products)

    def fused_multiply_add(self, a: Deferred[R], b: Deferred[R], axes: Axes) -> Deferred[R]:
        full = multiplied(a.shape, b.shape, ())
        terms: tuple[ProductTerm, ...] = ((True, self.unexpanded(a), self.unexpanded(b), {}),)
        product = SumOfProducts(terms, full, frozenset(axes), _ALL_AXES[len(full)])
        return Deferred(multiplied(a.shape, b.shape, axes), None, product)

    def expand(self, x: Deferred[R], shape: Shape) -> Deferred[R]:
        value = x.value if x.value is not None else self.unexpanded(x)
        return Deferred(shape, value) if x.fill_value is None else Uniform(shape, value, x.fill_value)

    def permute(self, x: Deferred[R], order: Axes) -> Deferred[R]:
        shape = tuple(map(x.shape.__getitem__, order))
        p = x.products
        if p is None:
            value = x.value if x.value is not None else self.unexpanded(x)
            if x.fill_value is not None:
                return Uniform(shape, value, x.fill_value)
            return Deferred(shape, self.raw.permute(value, order))
        return Deferred(
            shape, None, SumOfProducts(p.terms, p.full, p.axes, tuple(map(p.order.__getitem__, order)))
        )

    def reshape(self, x: Deferred[R], shape: Shape) -> Deferred[R]:
        p = x.products
        if p is not None:
            order = _moved(p.order, x.shape, shape, None)
            if order is not None:
                return Deferred(shape, None, SumOfProducts(p.terms, p.full, p.axes, order))
        value = x.value if x.value is not None else self.unexpanded(x)
        if x.fill_value is not None:
            return Uniform(shape, self.raw.reshape(value, (1,) * len(shape)), x.fill_value)
        sizes = self.raw.shape(value)
        if sizes == x.shape:
            return Deferred(shape, self.raw.reshape(value, shape))
        moved = _moved(sizes, x.shape, shape, 1)
        if moved is not None:
            return Deferred(shape, self.raw.reshape(value, moved))
        return Deferred(shape, self.raw.reshape(self._expand(value, x.shape), shape))

    def flip(self, x: Deferred[R], axes: Axes) -> Deferred[R]:
        if x.fill_value is not None:
            return x
        value = self.unexpanded(x)
        sizes = self.raw.shape(value)
        stored = tuple([i for i in axes if sizes[i] != 1])
        return Deferred(x.shape, self.raw.flip(value, stored) if stored else value)

    # ---- computing deferred values ---------------------------------------------------------------------------

    def _compute(self, p: SumOfProducts) -> R:
        """The value of a deferred sum, with size 1 along repeated axes."""
        raw, total = self.raw, None
        for plus, a, b, sums in p.terms:
            part = sums.get(p.axes)
            if part is None:
                if b is None:
                    part = self._total(a, p.full, tuple(sorted(p.axes)))
                else:
                    part = self._contracted(a, b, p.full, p.axes) if p.axes else self._apply(raw.mul, a, b)
                sums[p.axes] = part
            if total is None:
                total = part if plus else raw.neg(part)
            else:
                total = self._apply(raw.add if plus else raw.sub, total, part)
        assert total is not None
        if p.order == _ALL_AXES[len(p.full)]:
            return total
        sizes, kept, shape = raw.shape(total), [], []
        for axis in p.order:
            shape.append(1 if axis is None else sizes[axis])
            if axis is not None:
                kept.append(axis)
        if kept != sorted(kept):  # all other axes have size 1, so a reshape moves them
            total = raw.permute(total, (*kept, *[i for i in range(len(p.full)) if i not in kept]))
        return raw.reshape(total, tuple(shape))

    def _contracted(self, a: R, b: R, full: Shape, axes: frozenset[int]) -> R:
        """sum(a * b, axes); axes of one operand are summed first; the size of an axis of neither is a factor."""
        raw = self.raw
        sizes_a, sizes_b = raw.shape(a), raw.shape(b)
        if sizes_a == sizes_b == full:
            return raw.fused_multiply_add(a, b, tuple(sorted(axes)))
        only_a, only_b, both, repeated = [], [], [], 1
        for i in sorted(axes):
            in_a, in_b = sizes_a[i] != 1, sizes_b[i] != 1
            if in_a and in_b:
                both.append(i)
            elif in_a:
                only_a.append(i)
            elif in_b:
                only_b.append(i)
            else:
                repeated *= full[i]
        dtype = raw.dtype(a)
        # With repetitions the product is not the result yet; without `both`, a sum of an operand may be larger than it.
        if repeated != 1 or not both:
            a, b = self._cast(a, dtype.wide), self._cast(b, dtype.wide)
        if only_a:
            a = raw.sum(a, tuple(only_a))
        if only_b:
            b = raw.sum(b, tuple(only_b))
        y = raw.fused_multiply_add(a, b, tuple(both)) if both else self._apply(raw.mul, a, b)
        return self._cast(y, dtype) if repeated == 1 else self._scaled(y, repeated, dtype)

    def _total(self, value: R, shape: Shape, axes: Axes) -> R:
        """The sum of a value with size 1 along repeated axes."""
        raw = self.raw
        sizes = raw.shape(value)
        if sizes == shape:
            return raw.sum(value, axes)
        stored = tuple([i for i in axes if sizes[i] != 1])
        repeated = math.prod([shape[i] for i in axes if sizes[i] == 1])
        if repeated == 1:
            return raw.sum(value, stored) if stored else value
        dtype = raw.dtype(value)
        value = self._cast(value, dtype.wide)
        return self._scaled(raw.sum(value, stored) if stored else value, repeated, dtype)

    def _scaled(self, value: R, count: int, dtype: DType) -> R:
        """The sum of `count` copies, in a dtype; the value is in the wide dtype, so that results are rounded once."""
        shape = self.raw.shape(value)
        ones = (1,) * len(shape)
        if count == 0:
            return self._expand(self.raw.full(ones, 0, dtype), shape)
        factor = wrap_integer(count, dtype) if dtype.kind == "int" else float(count)
        y = self._apply(self.raw.mul, value, self.raw.full(ones, factor, dtype.wide))
        return self._cast(y, dtype)

    def _cast(self, value: R, dtype: DType) -> R:
        return value if self.raw.dtype(value) is dtype else self.raw.cast(value, dtype)

    def _apply(self, method: Callable[[R, R], R], a: R, b: R) -> R:
        """An elementwise method of the backend on values that broadcast."""
        return method(a, b) if self.raw.broadcasts else method(*self._matched((a, b)))

    def _matched(self, values: Sequence[R]) -> list[R]:
        """Values expanded to one shape."""
        shapes = [self.raw.shape(value) for value in values]
        if all(shape == shapes[0] for shape in shapes):
            return list(values)
        common = tuple([next((n for n in sizes if n != 1), 1) for sizes in zip(*shapes, strict=True)])
        return [v if s == common else self._expand(v, common) for v, s in zip(values, shapes, strict=True)]

    def _expand(self, value: R, shape: Shape) -> R:
        return value if self.raw.shape(value) == shape else self.raw.expand(value, shape)


def _moved(labels: tuple[Any, ...], old: Shape, new: Shape, fill: Any) -> tuple[Any, ...] | None:
    """The labels of the axes after a reshape that only moves axes of size 1; None after any other reshape.

    Args:
        labels: one for each axis of the old shape.
        old: the old shape.
        new: the new shape.
        fill: the label of an axis of size 1.
    """
    remaining = compress(zip(labels, old, strict=True), map((1).__ne__, old))
    moved = []
    for n in new:
        label, size = (fill, 1) if n == 1 else next(remaining, (fill, None))
        if size != n:
            return None
        moved.append(label)
    return tuple(moved) if next(remaining, None) is None else None
