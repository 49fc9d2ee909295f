"""Callbacks: opaque ops that call Python functions on numpy arrays when a program runs.

The only param is a `Callback`, which holds the function.  A batch is the same op, with a function that calls the first
one for each example, or once for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from tensorken.interchange.interop import to_numpy
from tensorken_core.errors import ArgumentError, DTypeError, GradientError, ShapeError
from tensorken_core.language.dtypes import DType, as_dtype, real_dtype, with_scalar
from tensorken_core.language.op import Op, Opaque, run
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.source_line import Origin
from tensorken_core.tensor.dispatch import apply
from tensorken_core.tensor.level import interpreter_below, levels_on, lifted
from tensorken_core.tensor.tensor import Tensor

VMAP_METHODS = ("sequential", "expand_dims", "broadcast_all")
_SCALARS = (bool, int, float, complex)


class ShapeDtypeStruct:
    """A shape and a dtype without values, for example of the result of a callback.

    Args:
        shape: a tuple of sizes.
        dtype: a dtype or its name.

    >>> import tensorken as tk
    >>> tk.ShapeDtypeStruct((2, 3), "float32")
    ShapeDtypeStruct((2, 3), 'float32')
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: Sequence[int], dtype: Any) -> None:
        self.shape: Shape = tuple([int(n) for n in shape])
        self.dtype: DType = as_dtype(dtype)

    @property
    def parts(self) -> tuple[ShapeDtypeStruct, ...]:
        """Those of the real and imaginary parts of complex numbers, else only this one."""
        complex_ = self.dtype.kind == "complex"
        return (ShapeDtypeStruct(self.shape, real_dtype(self.dtype)),) * 2 if complex_ else (self,)

    def __repr__(self) -> str:
        return f"ShapeDtypeStruct({self.shape}, {self.dtype.name!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ShapeDtypeStruct):
            return NotImplemented
        return (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))


@dataclass(frozen=True, eq=False, slots=True)
class Callback:
    """A function from numpy arrays to a sequence of arrays or numbers.

    Attributes:
        op_name: the public name of the op, for messages.
        function_name: the name of the user's function.
        function: the function.
        results: the shapes and dtypes of the results.
        vmap_method: how it runs for a batch; None: not at all.
        origin: the line of user code.
    """

    op_name: str
    function_name: str
    function: Callable[..., Sequence[Any]]
    results: tuple[ShapeDtypeStruct, ...]
    vmap_method: str | None
    origin: Origin | None

    def __repr__(self) -> str:
        return self.function_name

    @property
    def parts(self) -> list[ShapeDtypeStruct]:
        """The shapes and dtypes of the results of the op, which are real."""
        return [part for result in self.results for part in result.parts]

    @property
    def name(self) -> str:
        """The op and the function."""
        return f"{self.op_name} of {self.function_name}"

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """The results as numpy arrays.

        Raises:
            ShapeError, DTypeError: if the function returns other shapes or dtypes.
        """
        ys = self.function(*arrays)
        return [self._checked(i, y, v) for i, (y, v) in enumerate(zip(ys, self.results, strict=True))]

    def _checked(self, i: int, y: Any, expected: ShapeDtypeStruct) -> Any:
        numpy = import_module("numpy")
        dtype = expected.dtype
        array = numpy.asarray(
            y, dtype.name if type(y) in _SCALARS and with_scalar(dtype, y) is dtype else None
        )
        if (array.shape, array.dtype.name) == (expected.shape, dtype.name):
            return array
        error = ShapeError if array.shape != expected.shape else DTypeError
        raise error(
            f"{self.name}: result {i} is {array.dtype.name} {array.shape}, but result_shape_dtypes says "
            f"{dtype.name} {expected.shape}; make both the same (y.astype, y.reshape)"
        )

    def batched(self, size: int, flags: Sequence[bool]) -> Callback:
        """The callback for a batch: the flagged operands and all results have the batch axis.

        Raises:
            ArgumentError: if it cannot run for a batch.
        """
        if self.vmap_method is None and self.op_name == "pure_callback":
            raise ArgumentError(
                f"{self.name}: vmap needs to know how to call it for a batch; pass vmap_method=, one of "
                f"{', '.join(map(repr, VMAP_METHODS))}"
            )
        if self.vmap_method is None:
            raise ArgumentError(
                f"{self.name}: vmap cannot keep the order of ordered=True, since each op runs for all examples before "
                f"the next op; pass ordered=False"
            )
        results = tuple([ShapeDtypeStruct((size, *v.shape), v.dtype) for v in self.results])
        function = self._for_each(size, flags) if self.vmap_method == "sequential" else self.function
        return replace(self, function=function, results=results)

    def _for_each(self, size: int, flags: Sequence[bool]) -> Callable[..., Sequence[Any]]:
        """A function that calls this one for each example, in order, and stacks the results."""

        def function(*arrays: Any) -> Sequence[Any]:
            numpy = import_module("numpy")
            examples = [
                self([x[i, ...] if flag else x for x, flag in zip(arrays, flags, strict=True)])
                for i in range(size)
            ]
            if not examples:
                return [numpy.zeros((0, *v.shape), v.dtype.name) for v in self.results]
            return [numpy.stack(parts) for parts in zip(*examples, strict=True)]

        return function


def _body(backend: RawTensor[Any], *args: Any) -> tuple[Tensor, ...]:
    """Call the function outside of all transforms; an error gets a note that names the op and the line."""
    *xs, callback = args
    try:
        with levels_on(backend):
            ys = callback([to_numpy(x, copy=True) for x in xs])
    except Exception as error:
        at = "" if callback.origin is None else f", called at {callback.origin}"
        error.add_note(f"tensorken: in {callback.name}{at}")
        raise
    reals = [part for y in ys for part in ((y.real, y.imag) if y.dtype.kind == "c" else (y,))]
    values = [backend.new(v.shape, y.ravel(), v.dtype) for y, v in zip(reals, callback.parts, strict=True)]
    return tuple([Tensor(backend, y, v.shape, v.dtype) for y, v in zip(values, callback.parts, strict=True)])


def _op(name: str, opaque: Opaque) -> Op:
    """An op that calls the function of its param, on any number of operands."""

    def batch(flags: Sequence[bool], xs: Sequence[Tensor], params: tuple[Any, ...]) -> Any:
        (callback,) = params
        size = next(x.shape[0] for x, flag in zip(xs, flags, strict=True) if flag)
        batched = callback.batched(size, flags)
        operands = [*xs]
        if callback.vmap_method != "sequential":
            for i, (x, flag) in enumerate(zip(xs, flags, strict=True)):
                if not flag:
                    row = x.reshape((1, *x.shape))
                    broadcast = callback.vmap_method == "broadcast_all"
                    operands[i] = row.expand((size, *x.shape)) if broadcast else row
        return apply(op, operands, (batched,))

    def primal_rule(active: Sequence[bool], xs: Sequence[Tensor], params: tuple[Any, ...]) -> Any:
        """The results, if none of them is floating-point and may have a derivative."""
        (callback,) = params
        floats = [x for x, flag in zip(xs, active, strict=True) if flag and x.dtype.kind == "float"]
        if floats and any([v.dtype.kind == "float" for v in callback.parts]):
            raise GradientError(
                f"{callback.name}: a Python function has no derivative; define one by tk.custom_jvp or tk.custom_vjp "
                f"around the call, or pass tk.stop_gradient(x)"
            )
        return apply(op, xs, params), []

    def jvp_with_primals(tangents: Sequence[Any], xs: Sequence[Tensor], params: tuple[Any, ...]) -> Any:
        ys, _ = primal_rule([t is not None for t in tangents], xs, params)
        return ys, [None] * len(ys)

    def vjp_all(cotangents: Any, ys: Any, xs: Sequence[Tensor], params: Any) -> list[None]:
        return [None] * len(xs)  # only for results that are not floating-point

    op = Op(
        name,
        None,
        shape=lambda *args: tuple([v.shape for v in args[-1].parts]),
        dtype=lambda *args: tuple([v.dtype for v in args[-1].parts]),
        params=("callback",),
        vjp_all=None if opaque == "debug" else vjp_all,
        primal_rule=None if opaque == "debug" else primal_rule,
        jvp_with_primals=jvp_with_primals,
        body=_body,
        results=None,
        batch=batch,
        opaque=opaque,
    )
    return op


PURE_CALLBACK = _op("pure_callback", "pure")
"""A function without effects: unused results are not computed."""

IO_CALLBACK = _op("io_callback", "io")
"""A function with an effect, which occurs once."""

DEBUG_CALLBACK = _op("debug_callback", "debug")
"""A function that shows values and has no results: under derivatives it gets the primals."""


def call(op: Op, callback: Callback, operands: Sequence[Tensor]) -> list[Tensor]:
    """Run one of these ops at the running level, so that a trace records it also on values from outside of it."""
    interpreter = interpreter_below([x.interpreter for x in operands], callback.name)
    ys = run(interpreter, op, [lifted(x, interpreter) for x in operands], (callback,))
    return [Tensor(interpreter, y, v.shape, v.dtype) for y, v in zip(ys, callback.parts, strict=True)]
