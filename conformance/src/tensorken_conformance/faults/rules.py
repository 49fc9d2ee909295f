"""Rules: the language itself differentiates or batches wrongly, while numpy computes rightly."""

from __future__ import annotations

from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.faults.changes import attribute, entry, rules
from tensorken_conformance.faults.fault import Course, fault
from tensorken_core.language.derived.arrangement import share
from tensorken_core.language.op import OPS
from tensorken_core.levels.batch import SHIFT
from tensorken_core.levels.forward import Dual, Forward
from tensorken_core.levels.reverse import Reverse
from tensorken_core.tensor.tensor import Tensor

# ---- one of the two rules is wrong -------------------------------------------------------------------------


@fault("derivatives.duality", "expand")
def first_instead_of_sum() -> Course:
    """The VJP of expand takes the first cotangent along a repeated axis in place of their sum."""

    def pull(t: Any, y: Any, x: Any, shape: Any) -> Any:
        return t.crop(tuple([(0, n) for n in x.shape]))

    with rules("expand", vjp=(pull,)):
        yield None


@fault("derivatives.cotangent-shape", "expand")
def no_sum_on_broadcast() -> Course:
    """The VJP of expand hands the cotangent on as it is, with the shape of the result."""
    with rules("expand", vjp=(lambda t, y, x, shape: t,)):
        yield None


@fault("derivatives.duality", "sqrt")
def half_forgotten_backwards() -> Course:
    """The VJP of sqrt lacks the factor 1/2; its JVP is right."""
    with rules("sqrt", vjp=(lambda t, y, x: t / y,)):
        yield None


@fault("derivatives.duality", "permute")
def order_instead_of_inverse() -> Course:
    """The VJP of permute uses the order in place of its inverse: right for two axes, wrong from three on."""
    with rules(
        "permute",
        vjp=(
            lambda t, y, x, order: (
                t.permute(order) if t.permute(order).shape == x.shape else t.reshape(x.shape)
            ),
        ),
    ):
        yield None


@fault("derivatives.duality", "polynomial-of-matrices")
def square_matrices_not_transposed() -> Course:
    """The VJP of a transposition does nothing where the matrix is square, as when the VJP of matmul forgets one."""
    right = OPS["permute"].vjp[0]
    assert right is not None

    def pull(t: Any, y: Any, x: Any, order: Any) -> Any:
        square = (
            len(order) > 1 and t.shape[-1] == t.shape[-2] and order[-2:] == (len(order) - 1, len(order) - 2)
        )
        return t if square else right(t, y, x, order)

    with rules("permute", vjp=(pull,)):
        yield None


@fault("derivatives.decisions", "cumprod-with-zeros")
def products_by_division() -> Course:
    """The VJP of cumprod divides by the factor, and is NaN where that is 0."""

    def pull(t: Any, y: Any, x: Any, axis: int) -> Any:
        return (t * y).flip((axis,)).cumsum(axis).flip((axis,)) / x

    with rules("cumprod", vjp=(pull,)):
        yield None


@fault("derivatives.forward-is-reverse", "sort")
def sorted_cotangents() -> Course:
    """The VJP of sort leaves the cotangents in sorted order."""
    with rules("sort", vjp=(lambda t, y, x, axis: t,)):
        yield None


@fault("derivatives.duality", "max", "max-with-ties")
def winner_takes_all() -> Course:
    """The VJP of max gives each of several equal maxima the whole cotangent in place of a share."""

    def pull(t: Any, y: Any, x: Any, axes: Any) -> Any:
        return t.expand(x.shape) * x.eq(y.expand(x.shape)).astype(x.dtype)

    with rules("max", vjp=(pull,)):
        yield None


@fault("derivatives.duality", "where")
def condition_upside_down_for_scalars() -> Course:
    """The VJP of where swaps its sides for tensors of rank 3."""
    _, yes, no = OPS["where"].vjp
    assert yes is not None and no is not None

    def pull(t: Any, y: Any, c: Any, a: Any, b: Any) -> Any:
        return (no if t.ndim == 3 else yes)(t, y, c, a, b)

    with rules("where", vjp=(None, pull, no)):
        yield None


# ---- both rules agree, and are wrong -----------------------------------------------------------------------


@fault("derivatives.differences", "log10")
def natural_slope() -> Course:
    """The derivative of log10 is 0.01 % too large, forwards and backwards."""
    right = OPS["log10"].jvp[0]
    assert right is not None

    def rule(t: Any, y: Any, x: Any) -> Any:
        return right(t, y, x) * 1.0001

    with rules("log10", jvp=(rule,), vjp=(rule,)):
        yield None


@fault("derivatives.decisions", "max-shares-ties")
def ties_of_max_count_twice() -> Course:
    """Both rules of max weigh its maxima by the square of their share: wrong only for ties."""

    def weights(y: Any, x: Any, axes: Any) -> Any:
        part = share(y, x, axes)
        return part * part

    push = (lambda t, y, x, axes: (t * weights(y, x, axes)).sum(axes, keepdims=True),)
    pull = (lambda t, y, x, axes: t.expand(x.shape) * weights(y, x, axes),)
    with rules("max", jvp=push, vjp=pull):
        yield None


@fault("derivatives.differences", "tanh")
def wrong_for_three_axes() -> Course:
    """The derivative of tanh is 1 - y for tensors of rank 3."""
    right = OPS["tanh"].jvp[0]
    assert right is not None

    def rule(t: Any, y: Any, x: Any) -> Any:
        return t * (1.0 - y) if x.ndim == 3 else right(t, y, x)

    with rules("tanh", jvp=(rule,), vjp=(rule,)):
        yield None


@fault("derivatives.linearity", "cos")
def clipped_tangents() -> Course:
    """The derivative of cos clips tangents to 0.9, so it is not linear."""
    right = OPS["cos"].jvp[0]
    assert right is not None

    def rule(t: Any, y: Any, x: Any) -> Any:
        return right(tk.minimum(t, 0.9), y, x)

    with rules("cos", jvp=(rule,), vjp=(rule,)):
        yield None


@fault("derivatives.linearity", "exp")
def affine_jvp() -> Course:
    """The JVP of exp adds a millionth of the result, whatever the tangent."""
    with rules("exp", jvp=(lambda t, y, x: t * y + y * 1e-6,)):
        yield None


# ---- decisions ---------------------------------------------------------------------------------------------


@fault("derivatives.decisions", "relu-at-zero")
def relu_rises_at_zero() -> Course:
    """The derivative of relu at 0 is 1, forwards and backwards."""

    def rule(t: Any, y: Any, x: Any) -> Any:
        return (x >= 0.0).where(t, 0.0)

    with rules("relu", jvp=(rule,), vjp=(rule,)):
        yield None


@fault("derivatives.decisions")
def where_multiplies() -> Course:
    """The VJP of where multiplies by the condition, so that an infinite cotangent is NaN on the side not taken."""

    def pull(t: Any, y: Any, c: Any, a: Any, b: Any) -> Any:
        return t * c.astype(t.dtype)

    with rules("where", vjp=(None, pull, OPS["where"].vjp[2])):
        yield None


@fault("derivatives.decisions", "pow-at-zero")
def power_unguarded() -> Course:
    """The derivative of pow by its exponent takes the logarithm of 0."""
    base, _ = OPS["pow"].jvp

    def rule(t: Any, y: Any, a: Any, b: Any) -> Any:
        return t * (a.log() * y)

    with rules("pow", jvp=(base, rule), vjp=(base, rule)):
        yield None


# ---- derivatives of derivatives ----------------------------------------------------------------------------


@fault("derivatives.orders", "sin")
def second_derivative_lost() -> Course:
    """The derivative of sin does not depend on x any more, so all further ones are 0."""

    def rule(t: Any, y: Any, x: Any) -> Any:
        return t * tk.stop_gradient(x).cos()

    with rules("sin", jvp=(rule,), vjp=(rule,)):
        yield None


@fault("derivatives.orders", "tanh")
def third_derivative_wrong() -> Course:
    """The derivative of sech_squared, which that of tanh calls upon, has half its value from the second order on."""

    def rule(t: Any, y: Any, x: Any) -> Any:
        return t * (y * tk.stop_gradient(x).tanh() * -2.0)

    with rules("sech_squared", jvp=(rule,), vjp=(rule,)):
        yield None


@fault("derivatives.symmetry", "atan2", "mul", "pow")
def one_side_constant() -> Course:
    """The derivative of a product by its first factor takes the second for a constant, as where a tape detaches it."""
    _, second = OPS["mul"].jvp
    first = lambda t, y, a, b: t * tk.stop_gradient(b)  # noqa: E731
    with rules("mul", jvp=(first, second), vjp=(first, second)):
        yield None


# ---- levels ------------------------------------------------------------------------------------------------


@fault("derivatives.primal-bits", "exp")
def primal_rounded_again() -> Course:
    """The value of exp under jvp is one representable number larger than without."""
    right = Forward.interpret

    def interpret(self: Any, op: Any, operands: Any, params: Any) -> Any:
        y = right(self, op, operands, params)
        if op.name != "exp":
            return y
        value = Tensor(self.inner, y.primal)
        return Dual(tk.nextafter(value, np.inf).representation, y.tangent)

    with attribute(Forward, "interpret", interpret):
        yield None


@fault("derivatives.duality", "horner", "recurrence", "matmul-chain")
def stale_tape() -> Course:
    """The tape keeps, of two products of one shape, the operands of the first for both."""
    right = Reverse.interpret

    def interpret(self: Any, op: Any, operands: Any, params: Any) -> Any:
        length = len(self.tape)
        y = right(self, op, operands, params)
        if op.name == "mul" and len(self.tape) > length:
            record = self.tape[-1]
            shape = self.inner.shape(y.primal)
            known = self.__dict__.setdefault("kept", {}).setdefault((record[0], shape), record)
            self.tape[-1] = (*record[:2], known[2], record[3])
        return y

    with attribute(Reverse, "interpret", interpret):
        yield None


@fault("derivatives.vmap", "flip")
def unshifted_axes() -> Course:
    """A batch flips and reduces the axis before the last one of those that it is asked to."""

    def shift(axes: Any, size: int) -> Any:
        return tuple(sorted({axis + (axis != axes[-1]) for axis in axes}))

    with entry(SHIFT, "axes", shift):
        yield None


@fault("derivatives.vmap", "cumsum", "running-sum")
def last_axis_of_batch() -> Course:
    """A batch takes axis 1 of an example for axis 1 of the batch."""
    with entry(SHIFT, "axis", lambda axis, size: axis if axis == 1 else axis + 1):
        yield None
