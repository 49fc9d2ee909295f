"""Steps of Adam in a program, which torch computes by one fused function, in place.

A step is m' = m * beta1 + g * (1 - beta1), v' = v * beta2 + g * g * (1 - beta2) and
p' = p - m' * a / (sqrt(v') * b + epsilon), with any numbers a and b: they hold the learning rate and the corrections of
the bias, however the program writes these.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tensorken_core.language.dtypes import float32, float64
from tensorken_core.program.program import Equation, Literal, Program, Variable

Factors = tuple[tuple[Variable, float], ...]
"""A product of powers of values with one element: each value and its exponent."""


@dataclass(frozen=True, slots=True, eq=False)
class AdamStep:
    """The equations of a step, its operands, and the numbers of the module's docstring."""

    equations: tuple[Equation, ...]
    p: Variable
    g: Variable
    m: Variable
    v: Variable
    numerator: Factors
    denominator: Factors
    beta1: float
    beta2: float
    epsilon: float

    @property
    def results(self) -> tuple[Variable, Variable, Variable]:
        """The new parameter and averages: p', m' and v'."""
        mean, square, parameter = [e.results[0] for e in self.equations[-3:]]
        return parameter, mean, square


def adam(
    p: Tensor,
    g: Tensor,
    m: Tensor,
    v: Tensor,
    numerator: Sequence[tuple[Tensor | float, float]],
    denominator: Sequence[tuple[Tensor | float, float]],
    beta1: float,
    beta2: float,
    epsilon: float,
) -> None:
    """Update p, m and v."""
    # Without weight decay and at an infinite step, where the bias is gone, torch's function computes
    # p - rate * m' / (sqrt(v') + epsilon).
    scale = _product(denominator)
    torch._fused_adam_(
        [p],
        [g],
        [m],
        [v],
        [],
        [torch.tensor(math.inf, device=p.device)],
        lr=_product(numerator) / scale,
        beta1=beta1,
        beta2=beta2,
        weight_decay=0.0,
        eps=epsilon / scale,
        amsgrad=False,
        maximize=False,
    )


def _product(factors: Sequence[tuple[Tensor | float, float]]) -> float:
    return math.prod([math.pow(float(x), exponent) for x, exponent in factors])


def adam_steps(program: Program) -> list[AdamStep]:
    """The steps of Adam in a program, of parameters in float32 or float64."""
    finder = _Finder(program)
    found = [finder.step(equation) for equation in program.equations if equation.op.name == "sub"]
    return [step for step in found if step is not None]


class _Finder:
    def __init__(self, program: Program) -> None:
        self.producers = {e.results[0]: e for e in program.equations if len(e.results) == 1}
        self.uses = Counter([v for e in program.equations for v in e.operands] + [*program.outputs])
        self.outputs = Counter(program.outputs)

    def step(self, equation: Equation) -> AdamStep | None:
        """The step whose new parameter the equation computes."""
        p, change = equation.operands
        if p.dtype not in (float32, float64) or isinstance(p, Literal):
            return None
        members: list[Equation] = []
        quotient = self._member(change, "div", members)
        if quotient is None:
            return None
        mean, numerator = self._scaled(quotient.operands[0], members)
        for root, number in self._orders(self._member(quotient.operands[1], "add", members)):
            if not isinstance(number, Literal):
                continue
            root, outer = self._scaled(root, members)
            inside = self._member(root, "sqrt", members)
            if inside is None:
                return None
            square, inner = self._scaled(inside.operands[0], members)
            denominator = (*outer, *[(x, exponent / 2) for x, exponent in inner])
            averages = self._averages(mean, square, members)
            if averages is None:
                return None
            m, v, g, beta1, beta2, ends = averages
            equations = (*members, *ends, equation)
            inner_uses = Counter([x for e in equations for x in e.operands])
            for e in equations[:-1]:
                y = e.results[0]
                if self.uses[y] != inner_uses[y] + (self.outputs[y] if e in ends else 0):
                    return None
            if len({p, m, v, g}) < 4:
                return None
            return AdamStep(equations, p, g, m, v, numerator, denominator, beta1, beta2, float(number.value))
        return None

    def _averages(self, mean: Variable, square: Variable, members: list[Equation]) -> Any:
        """m, v, g, beta1, beta2 and the equations of m' and v'."""
        ends = [self.producers.get(mean), self.producers.get(square)]
        for v_term, gg_term in self._orders(_named(ends[1], "add")):
            v, beta2 = self._times_number(v_term)
            gg, rest2 = self._times_number(gg_term)
            g = _squared(self.producers.get(gg)) if gg is not None else None
            if v is None or g is None or not _are_weights(beta2, rest2):
                continue
            for m_term, g_term in self._orders(_named(ends[0], "add")):
                m, beta1 = self._times_number(m_term)
                other, rest1 = self._times_number(g_term)
                if m is not None and other is g and _are_weights(beta1, rest1):
                    assert gg is not None
                    terms = dict.fromkeys([v_term, gg_term, m_term, g_term, gg])
                    members += [self.producers[x] for x in terms]
                    return m, v, g, beta1, beta2, ends
        return None

    def _member(self, v: Variable, name: str, members: list[Equation]) -> Equation | None:
        equation = _named(self.producers.get(v), name)
        if equation is not None:
            members.append(equation)
        return equation

    def _orders(self, equation: Equation | None) -> Iterable[tuple[Variable, ...]]:
        return () if equation is None else (equation.operands, equation.operands[::-1])

    def _times_number(self, v: Variable) -> tuple[Variable | None, float]:
        """The value and the number of which v is the product."""
        for x, number in self._orders(_named(self.producers.get(v), "mul")):
            if isinstance(number, Literal):
                return x, float(number.value)
        return None, 0.0

    def _scaled(self, v: Variable, members: list[Equation]) -> tuple[Variable, Factors]:
        """The value of which v is a multiple, and the factors."""
        factors: list[tuple[Variable, float]] = []
        while True:
            equation = self.producers.get(v)
            if _named(equation, "mul") is None and _named(equation, "div") is None:
                return v, tuple(factors)
            assert equation is not None
            x, y = equation.operands
            number = self._number(y)
            if number is not None:
                factors.append((number, 1.0 if equation.op.name == "mul" else -1.0))
            elif equation.op.name == "mul" and (number := self._number(x)) is not None:
                factors.append((number, 1.0))
                x = y
            else:
                return v, tuple(factors)
            members.append(equation)
            v = x

    def _number(self, v: Variable) -> Variable | None:
        """The value with one element that v repeats."""
        while not isinstance(v, Literal) and math.prod(v.shape) != 1:
            equation = _named(self.producers.get(v), "expand") or _named(self.producers.get(v), "reshape")
            if equation is None:
                return None
            (v,) = equation.operands
        return v


def _named(equation: Equation | None, name: str) -> Equation | None:
    return equation if equation is not None and equation.op.name == name else None


def _squared(equation: Equation | None) -> Variable | None:
    if equation is None:
        return None
    is_square = equation.op.name == "square" or (
        equation.op.name == "mul" and equation.operands[0] is equation.operands[1]
    )
    return equation.operands[0] if is_square else None


def _are_weights(beta: float, rest: float) -> bool:
    """Whether these are beta and 1 - beta, up to the rounding of float32."""
    return 0.0 < beta < 1.0 and abs(1.0 - beta - rest) < 1e-6
