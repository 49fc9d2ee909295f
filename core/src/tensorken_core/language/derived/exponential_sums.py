# mypy: disable-error-code="empty-body"
"""The derived ops softmax, log_softmax and logsumexp.

Equal maxima have equal weights in softmax, also if they are infinite.
"""

from __future__ import annotations

from typing import Any

from tensorken_core.language.bodies import exponential_sums
from tensorken_core.language.declare import primitive
from tensorken_core.language.dtype_rules import of_kinds
from tensorken_core.language.interpreter import Interpreter, R
from tensorken_core.language.op import OPS
from tensorken_core.language.shapes import Axes, Shape, check_axes, reduced

_AXES: Any = {
    "dtype": of_kinds("float", params=1),
    "samples": ((((2, 3),), ((1,),)), (((2, 3),), ((0, 1),)), (((2, 3),), ((),))),
}


def _same(x: Shape, axes: Axes) -> Shape:
    check_axes(x, axes)
    return x


def _softmax(x: Any, axes: Axes) -> Any:
    return x.apply(OPS["softmax"], axes)


def _softmax_rule(t: Any, y: Any, x: Any, axes: Axes) -> Any:
    """y * (t - sum(y * t)): the Jacobian is symmetric, so this is both JVP and VJP."""
    return y * (t - (y * t).sum(axes, keepdims=True))


class ExponentialSums(Interpreter[R]):
    """softmax, log_softmax and logsumexp."""

    @primitive(
        **_AXES,
        shape=_same,
        body=exponential_sums.softmax,
        jvp=(_softmax_rule,),
        vjp=(_softmax_rule,),
    )
    def softmax(self, x: R, axes: Axes) -> R:
        """exp(x) / sum(exp(x), axes), without overflow."""

    @primitive(
        **_AXES,
        shape=_same,
        body=exponential_sums.log_softmax,
        jvp=(lambda t, y, x, axes: t - (_softmax(x, axes) * t).sum(axes, keepdims=True),),
        vjp=(lambda t, y, x, axes: t - _softmax(x, axes) * t.sum(axes, keepdims=True),),
    )
    def log_softmax(self, x: R, axes: Axes) -> R:
        """x - log(sum(exp(x), axes)), without overflow."""

    @primitive(
        **_AXES,
        shape=reduced,
        body=exponential_sums.logsumexp,
        jvp=(lambda t, y, x, axes: (_softmax(x, axes) * t).sum(axes, keepdims=True),),
        vjp=(lambda t, y, x, axes: _softmax(x, axes) * t.expand(x.shape),),
    )
    def logsumexp(self, x: R, axes: Axes) -> R:
        """log(sum(exp(x), axes)), without overflow; the axes are kept with size 1; -inf for no elements."""
