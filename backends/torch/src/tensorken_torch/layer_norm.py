"""Layer normalisations in a program, and their derivatives, which torch computes by fused functions.

With the mean of x over its last axes, t = x - mean and s = sqrt(mean(t * t) + epsilon), a normalisation is z = t / s.
Its VJP maps a cotangent g of z to u - mean(u), where u = g / s - t * sum(g * z) / (n * s**2).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from tensorken_core.language.dtypes import float32, float64
from tensorken_core.language.shapes import Axes
from tensorken_core.program.program import Equation, Literal, Program, Variable


@dataclass(slots=True, eq=False)
class LayerNorm:
    """A normalisation and its VJPs.

    Attributes:
        x: the operand.
        z: the result.
        t: the operand minus its mean.
        s: the divisor.
        axes: the last axes, over which the mean is taken.
        epsilon: the number that is added to the variance.
        members: the equations that torch's functions replace.
        gradients: for the equation of u the cotangent of z.
        totals: for the equation that adds -mean(u) its other operand.
    """

    x: Variable
    z: Variable
    t: Variable
    s: Variable
    axes: Axes
    epsilon: float
    members: dict[Equation, None]
    gradients: dict[Equation, Variable] = field(default_factory=dict)
    totals: dict[Equation, Variable] = field(default_factory=dict)


def layer_norm_gradient(g: Tensor, x: Tensor, axes: Axes, mean: Tensor, inverse: Tensor) -> Tensor:
    """The cotangent of x; `inverse` is 1 / s."""
    arguments = g, x, x.shape[axes[0] :], mean, inverse, None, None, [True, False, False]
    result: Tensor = torch.ops.aten.native_layer_norm_backward(*arguments)[0]
    return result


def layer_norms(program: Program) -> list[LayerNorm]:
    """The normalisations of a program whose other values nothing else uses."""
    if not {"sqrt", "div", "sum"} <= {op.name for op in program.ops}:
        return []
    return _Finder(program).found()


class _Finder:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.producers = {e.results[0]: e for e in program.equations if len(e.results) == 1}
        self.users: dict[Variable, list[Equation]] = {}
        for equation in program.equations:
            for v in dict.fromkeys(equation.operands):
                self.users.setdefault(v, []).append(equation)
        self.outputs = Counter(program.outputs)

    def found(self) -> list[LayerNorm]:
        norms = [self.norm(e) for e in self.program.equations if e.op.name == "div"]
        found = [norm for norm in norms if norm is not None]
        for norm in found:
            for equation in self.users.get(norm.t, ()):
                if equation.op.name == "mul":
                    self.add_gradient(norm, equation)
        return [norm for norm in found if self.is_closed(norm)]

    def is_closed(self, norm: LayerNorm) -> bool:
        """Whether nothing but members uses the values of members, except z, u and the totals."""
        ends = {norm.z, *[e.results[0] for e in (*norm.gradients, *norm.totals)]}
        return all(
            [
                e.results[0] in ends
                or (
                    e.results[0] not in self.outputs
                    and all([user in norm.members for user in self.users.get(e.results[0], ())])
                )
                for e in norm.members
            ]
        )

    def norm(self, division: Equation) -> LayerNorm | None:
        """The normalisation whose result the equation computes."""
        members: dict[Equation, None] = {division: None}
        t, divisor = division.operands
        if division.results[0].dtype not in (float32, float64):
            return None
        s = self.expanded(divisor, members)
        root = self.member(s, "sqrt", members)
        sum_ = self.member(root.operands[0], "add", members) if root else None
        centred = self.member(t, "sub", members)
        if sum_ is None or centred is None:
            return None
        for variance, epsilon in (sum_.operands, sum_.operands[::-1]):
            squares, n = self.times_number(variance, members)
            product = self.member(squares, "fused_multiply_add", members)
            if not isinstance(epsilon, Literal) or product is None or product.operands != (t, t):
                continue
            (axes,) = product.params
            x = centred.operands[0]
            total, m = self.times_number(self.expanded(centred.operands[1], members), members)
            mean = self.member(total, "sum", members)
            count = math.prod([x.shape[i] for i in axes])
            is_last = axes == tuple(range(x_rank := len(x.shape)))[x_rank - len(axes) :]
            if mean is None or mean.operands != (x,) or mean.params != (axes,) or not is_last:
                return None
            if abs(n * count - 1.0) > 1e-6 or abs(m * count - 1.0) > 1e-6 or isinstance(x, Literal):
                return None
            return LayerNorm(x, division.results[0], t, s, axes, float(epsilon.value), members)
        return None

    def add_gradient(self, norm: LayerNorm, scaled: Equation) -> None:
        """Add the VJP whose part along t the equation computes, if there is one."""
        members: dict[Equation, None] = {scaled: None}
        count = math.prod([norm.x.shape[i] for i in norm.axes])
        factor = next((v for v in scaled.operands if v is not norm.t), None)
        if factor is None:
            return
        number, power, v = 1.0, 0, self.expanded(factor, members)
        while (equation := self.producers.get(v)) is not None and equation.op.name in ("mul", "div"):
            a, b = equation.operands
            sign = 1 if equation.op.name == "mul" else -1
            if sign > 0 and isinstance(a, Literal):
                a, b = b, a
            multiple, root_power = self.multiple_of_root(b, norm.s, members)
            if multiple is None:
                return
            number, power, v = number * multiple**sign, power + sign * root_power, a
            members[equation] = None
        product = self.member(v, "fused_multiply_add", members)
        if product is None or product.params != (norm.axes,) or norm.z not in product.operands or power != -2:
            return
        g = next((x for x in product.operands if x is not norm.z), None)
        quotient, u = self._sum(norm, scaled, number * count, members)
        if g is None or u is None or quotient is None or quotient.operands[0] is not g:
            return
        if self.expanded(quotient.operands[1], members) is not norm.s:
            return
        self._add_total(norm, u, g, count, members)

    def _sum(
        self, norm: LayerNorm, scaled: Equation, number: float, members: dict[Equation, None]
    ) -> tuple[Equation | None, Equation | None]:
        """The equations of g / s and of u, which adds the scaled t to it, once or twice."""
        y, times, last = scaled.results[0], 0, scaled
        quotient: Equation | None = None
        while len(users := self.users.get(y if times == 0 else last.results[0], ())) >= 1 and times < 2:
            equation = next((e for e in users if e.op.name == "add" and e not in members), None)
            if equation is None or y not in equation.operands:
                break
            other = equation.operands[0] if equation.operands[1] is y else equation.operands[1]
            if times == 0:
                quotient = self.member(other, "div", members)
            elif other is not last.results[0]:
                break
            members[equation] = None
            last, times = equation, times + 1
            if abs(number * times + 1.0) < 1e-6:
                return quotient, last
        return None, None

    def _add_total(
        self, norm: LayerNorm, u: Equation, g: Variable, count: int, members: dict[Equation, None]
    ) -> None:
        """Add the gradient, if -mean(u) is added to u, or to a sum of u and another value."""
        v = u.results[0]
        sums = [e for e in self.users.get(v, ()) if e.op.name == "sum" and e.params == (norm.axes,)]
        for sum_ in sums:
            for scaled in self.users.get(sum_.results[0], ()):
                y, number = self.times_number(scaled.results[0], members)
                if y is not sum_.results[0] or abs(number * count + 1.0) > 1e-6:
                    continue
                for expanded in self.users.get(scaled.results[0], ()):
                    for total in self.users.get(expanded.results[0], ()):
                        others = [x for x in total.operands if x is not expanded.results[0]]
                        if expanded.op.name != "expand" or total.op.name != "add" or len(others) != 1:
                            continue
                        inner = self.producers.get(others[0])
                        is_sum = inner is not None and inner.op.name == "add" and v in inner.operands
                        users = set(self.users[v]) - {sum_}
                        if others[0] is v:
                            fits = users == {total}
                        else:
                            fits = is_sum and users == {inner} and self.users[others[0]] == [total]
                        if not fits or others[0] in self.outputs or v in self.outputs:
                            continue
                        norm.members |= members | dict.fromkeys([sum_, scaled, expanded, total])
                        norm.gradients[u], norm.totals[total] = g, others[0]
                        return

    # ---- parts of equations ----------------------------------------------------------------------------------

    def member(self, v: Variable | None, name: str, members: dict[Equation, None]) -> Equation | None:
        equation = None if v is None else self.producers.get(v)
        if equation is None or equation.op.name != name:
            return None
        members[equation] = None
        return equation

    def expanded(self, v: Variable, members: dict[Equation, None]) -> Variable:
        """The value that v repeats, or v."""
        equation = self.member(v, "expand", members)
        return v if equation is None else equation.operands[0]

    def times_number(self, v: Variable, members: dict[Equation, None]) -> tuple[Variable | None, float]:
        """The value and the number of which v is the product."""
        equation = self.producers.get(v)
        if equation is None or equation.op.name not in ("mul", "div"):
            return None, 0.0
        a, b = equation.operands
        if equation.op.name == "mul" and isinstance(a, Literal):
            a, b = b, a
        if not isinstance(b, Literal) or not b.value:
            return None, 0.0
        members[equation] = None
        return a, float(b.value) if equation.op.name == "mul" else 1.0 / b.value

    def multiple_of_root(
        self, v: Variable, s: Variable, members: dict[Equation, None]
    ) -> tuple[float | None, int]:
        """c and k, where v is c * s**k, and k is 0 or 1; None if it is no such number."""
        if isinstance(v, Literal):
            return float(v.value), 0
        if v is s:
            return 1.0, 1
        inner: Any = {}
        x, number = self.times_number(v, inner)
        if x is not s:
            return None, 0
        members |= inner
        return number, 1
