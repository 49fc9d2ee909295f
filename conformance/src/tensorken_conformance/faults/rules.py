"""Rules: the language differentiates or batches wrongly, while the backend is correct."""

from __future__ import annotations

from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.faults.changes import entry, extreme_weights
from tensorken_conformance.faults.fault import Place, fault, fault_in_function, fault_in_rule
from tensorken_core.language.derived.arrangement import tie_weights
from tensorken_core.language.op import OPS
from tensorken_core.levels.batch import SHIFT_PARAM
from tensorken_core.levels.forward import Dual, Forward
from tensorken_core.levels.reverse import Reverse
from tensorken_core.tensor.tensor import Tensor

# ---- one of the two rules is wrong -------------------------------------------------------------------------


@fault_in_rule("derivatives.consistency", "expand", modes=("vjp",))
def first_instead_of_sum(original: Any, t: Any, y: Any, x: Any, shape: Any) -> Any:
    """The VJP of expand takes the first cotangent along a repeated axis instead of their sum."""
    return t.crop(tuple([(0, n) for n in x.shape]))


@fault_in_rule("derivatives.consistency", "expand", modes=("vjp",))
def no_sum_on_broadcast(original: Any, t: Any, y: Any, x: Any, shape: Any) -> Any:
    """The VJP of expand returns the cotangent unchanged, with the shape of the result."""
    return t


@fault_in_rule("derivatives.consistency", "sqrt", modes=("vjp",))
def half_forgotten_backwards(original: Any, t: Any, y: Any, x: Any) -> Any:
    """The VJP of sqrt lacks the factor 1/2; its JVP is right."""
    return t / y


@fault_in_rule("derivatives.consistency", "permute", modes=("vjp",))
def order_instead_of_inverse(original: Any, t: Any, y: Any, x: Any, order: Any) -> Any:
    """The VJP of permute uses the order instead of its inverse: right for two axes, wrong from three on."""
    return t.permute(order) if t.permute(order).shape == x.shape else t.reshape(x.shape)


@fault_in_rule("derivatives.consistency", "polynomial-of-matrices", op="permute", modes=("vjp",))
def square_matrices_not_transposed(original: Any, t: Any, y: Any, x: Any, order: Any) -> Any:
    """The VJP of a transposition does nothing where the matrix is square, as when the VJP of matmul forgets one."""
    last = (len(order) - 1, len(order) - 2)
    square = len(order) > 1 and t.shape[-1] == t.shape[-2] and order[-2:] == last
    return t if square else original(t, y, x, order)


@fault_in_rule("derivatives.decisions", "cumprod-with-zeros", op="cumprod", modes=("vjp",))
def products_by_division(original: Any, t: Any, y: Any, x: Any, axis: int) -> Any:
    """The VJP of cumprod divides by the factor, and is NaN where that is 0."""
    return (t * y).flip((axis,)).cumsum(axis).flip((axis,)) / x


@fault_in_rule("derivatives.consistency", "sort", modes=("vjp",))
def sorted_cotangents(original: Any, t: Any, y: Any, x: Any, axis: int) -> Any:
    """The VJP of sort leaves the cotangents in sorted order."""
    return t


@fault_in_rule("derivatives.consistency", "max", "max-with-ties", modes=("vjp",))
def winner_takes_all(original: Any, t: Any, y: Any, x: Any, axes: Any) -> Any:
    """The VJP of max gives each of several equal maxima the whole cotangent instead of a share."""
    return t.expand(x.shape) * x.eq(y.expand(x.shape)).astype(x.dtype)


@fault_in_rule("derivatives.consistency", "where", operand=1, modes=("vjp",))
def condition_upside_down_for_scalars(original: Any, t: Any, y: Any, c: Any, a: Any, b: Any) -> Any:
    """The VJP of where swaps its sides for tensors of rank 3."""
    other: Any = OPS["where"].vjp[2]
    return (other if t.ndim == 3 else original)(t, y, c, a, b)


# ---- both rules agree, and are wrong -----------------------------------------------------------------------


@fault_in_rule("derivatives.differences", "log10")
def natural_slope(original: Any, t: Any, y: Any, x: Any) -> Any:
    """The derivative of log10 is 0.01 % too large, forwards and backwards."""
    return original(t, y, x) * 1.0001


@fault("derivatives.decisions", "max")
def ties_of_max_count_twice() -> Place:
    """Both rules of max weigh its maxima by the square of their share: wrong only for ties."""

    def weights(y: Any, x: Any, axes: Any) -> Any:
        part = tie_weights(y, x, axes)
        return part * part

    return extreme_weights("max", weights)


@fault_in_rule("derivatives.differences", "tanh")
def wrong_for_three_axes(original: Any, t: Any, y: Any, x: Any) -> Any:
    """The derivative of tanh is 1 - y for tensors of rank 3."""
    return t * (1.0 - y) if x.ndim == 3 else original(t, y, x)


@fault_in_rule("derivatives.consistency", "cos")
def clipped_tangents(original: Any, t: Any, y: Any, x: Any) -> Any:
    """The derivative of cos clips tangents to 0.9, so it is not linear."""
    return original(tk.minimum(t, 0.9), y, x)


@fault_in_rule("derivatives.consistency", "exp", modes=("jvp",))
def affine_jvp(original: Any, t: Any, y: Any, x: Any) -> Any:
    """The JVP of exp adds a millionth of the result, whatever the tangent."""
    return t * y + y * 1e-6


# ---- decisions ---------------------------------------------------------------------------------------------


@fault_in_rule("derivatives.decisions", "relu-at-zero", op="relu")
def relu_rises_at_zero(original: Any, t: Any, y: Any, x: Any) -> Any:
    """The derivative of relu at 0 is 1, forwards and backwards."""
    return (x >= 0.0).where(t, 0.0)


@fault_in_rule("derivatives.decisions", op="where", operand=1, modes=("vjp",))
def where_multiplies(original: Any, t: Any, y: Any, c: Any, a: Any, b: Any) -> Any:
    """The VJP of where multiplies by the condition, so that an infinite cotangent is NaN on the side not selected."""
    return t * c.astype(t.dtype)


@fault_in_rule("derivatives.decisions", "pow-at-zero", op="pow", operand=1)
def power_unguarded(original: Any, t: Any, y: Any, a: Any, b: Any) -> Any:
    """The derivative of pow by its exponent takes the logarithm of 0."""
    return t * (a.log() * y)


# ---- derivatives of derivatives ----------------------------------------------------------------------------


@fault_in_rule("derivatives.orders", "sin")
def second_derivative_lost(original: Any, t: Any, y: Any, x: Any) -> Any:
    """The derivative of sin does not depend on x any more, so all further ones are 0."""
    return t * tk.stop_gradient(x).cos()


@fault_in_rule("derivatives.orders", "tanh", op="sech_squared")
def third_derivative_wrong(original: Any, t: Any, y: Any, x: Any) -> Any:
    """The derivative of sech_squared, which the derivative of tanh uses, is halved from the second order on."""
    return t * (y * tk.stop_gradient(x).tanh() * -2.0)


@fault_in_rule("derivatives.consistency", "atan2", "mul", "pow", op="mul")
def one_side_constant(original: Any, t: Any, y: Any, a: Any, b: Any) -> Any:
    """The derivative of a product by its first factor treats the second as a constant, as if the tape detached it."""
    return t * tk.stop_gradient(b)


# ---- levels ------------------------------------------------------------------------------------------------


@fault_in_function("derivatives.consistency", Forward, "interpret", "exp")
def primal_rounded_again(original: Any, self: Any, op: Any, operands: Any, params: Any) -> Any:
    """The value of exp under jvp is one representable number larger than without."""
    y = original(self, op, operands, params)
    if op.name != "exp":
        return y
    value = Tensor(self.inner, y.primal)
    return Dual(tk.nextafter(value, np.inf).representation, y.tangent)


@fault_in_function("derivatives.consistency", Reverse, "interpret", "horner", "recurrence", "matmul-chain")
def stale_tape(original: Any, self: Any, op: Any, operands: Any, params: Any) -> Any:
    """The tape keeps, of two products of one shape, the operands of the first for both."""
    length = len(self.tape)
    y = original(self, op, operands, params)
    if op.name == "mul" and len(self.tape) > length:
        record = self.tape[-1]
        shape = self.inner.shape(y.primal)
        known = self.__dict__.setdefault("state", {}).setdefault((record[0], shape), record)
        self.tape[-1] = (*record[:2], known[2], record[3])
    return y


@fault("derivatives.vmap", "flip")
def unshifted_axes() -> Place:
    """A batch flips and reduces the axis before each one but the last of the axes."""

    def shift(axes: Any, size: int) -> Any:
        return tuple(sorted({axis + (axis != axes[-1]) for axis in axes}))

    return entry(SHIFT_PARAM, "axes", shift)


@fault("derivatives.vmap", "cumsum", "running-sum")
def last_axis_of_batch() -> Place:
    """A batch uses axis 1 of the batch for axis 1 of an example."""
    return entry(SHIFT_PARAM, "axis", lambda axis, size: axis if axis == 1 else axis + 1)
