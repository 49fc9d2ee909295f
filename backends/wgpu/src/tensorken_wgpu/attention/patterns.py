"""Attention patterns: the contractions of a program whose operand is computed from scores by way of a softmax."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from tensorken.kernels.elements import NotComputedHere
from tensorken.kernels.keeping import FREE_MOVES, Costs
from tensorken.kernels.rows import rows_of
from tensorken.programs.ops import STEP_STACK
from tensorken_wgpu.attention.indices import (
    CONTRACTION,
    FLOATS,
    Attention,
    AttentionIndices,
    Score,
    Softmax,
    Symbols,
    in_both_orders,
    length_of,
    operand_indices,
)
from tensorken_wgpu.wgsl.dtypes import size_of

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Program, Variable
    from tensorken_wgpu.wgsl.target import Target

MIN_LINES = 16
"""The fewest rows and keys of an attention kernel: fewer are a part of a block, or few elements in memory."""

MAX_WIDTH = 256
"""The most features of a score, and columns of a result, which are held in registers."""

MAX_COST_OF_PAIR = 16
MAX_COST_OF_OPERAND = 4
"""The most expensive values that are computed again for each pair, such as masks; and as operands, such as scaled
queries.  More expensive ones are kept in memory."""

MAX_FOLLOWED = 64
"""The most values among which the softmax is looked for from which weights are computed."""

MAX_EPILOGUE = 8
"""The most ops on a result in the kernel that computes it."""

_MOVES = FREE_MOVES | {"crop", "step_slice"}
_COSTS = Costs()


class Finding:
    """Finds the attentions of a program.

    Args:
        program: after the passes.
        target: the device.
    """

    def __init__(self, program: Program, target: Target) -> None:
        self.program = program
        self.target = target
        self.producers = {v: e for e in program.equations for v in e.results}
        self.outputs = frozenset(program.outputs)
        self.users: dict[Variable, list[Equation]] = {}
        for e in program.equations:
            for v in dict.fromkeys(e.operands):
                self.users.setdefault(v, []).append(e)
        self.contractions = [e for e in program.equations if e.op.name == CONTRACTION]

    def attentions(self) -> Iterator[Attention]:
        """All contractions of a softmax of scores, and of values computed from one of these and from other scores."""
        found: dict[Equation, Attention] = {}
        for e in self.contractions:
            for number, v in enumerate(e.operands):
                softmax = self._softmax(v)
                attention = self._attention(e, number, softmax) if softmax else None
                if attention:
                    found[e] = attention
        known = {a.softmax.weights: a.softmax for a in found.values() if a.softmax}
        # the first contraction of each softmax finds its maximum and its sum
        online = {a.softmax.weights: e for e, a in reversed(found.items()) if a.softmax}
        yield from [found[e] for e in online.values()]
        scores = {score.equation.results[0] for a in found.values() for score in a.scores}
        for e in self.contractions if known else ():
            for number in () if e in online.values() else (0, 1):
                # computed from weights, or from scores otherwise
                needed = self._inside([e.operands[number]], 0, {*known, *scores}) or {}
                weights = [v for v in needed if v in known]
                if needed and len(weights) < 2:
                    softmax = known[weights[0]] if weights else None
                    attention = self._attention(e, number, softmax, is_known=True)
                    if attention:
                        yield attention
                        break

    # ---- a softmax -----------------------------------------------------------------------------------------

    def _operands(self, v: Variable, *names: str) -> Sequence[Variable]:
        """The operands of a value that is computed by one of these ops; () for other values."""
        e = self.producers.get(v)
        return e.operands if e is not None and e.op.name in names else ()

    def _unreshaped(self, v: Variable) -> Variable:
        while operands := self._operands(v, "reshape"):
            (v,) = operands
        return v

    def _softmax(self, v: Variable) -> Softmax | None:
        """The softmax from which weights are computed by ops that are linear in it."""
        pending = [v]
        seen: set[Variable] = set()
        while pending and len(seen) < MAX_FOLLOWED:
            v = pending.pop()
            if v in seen:
                continue
            seen.add(v)
            if found := self._softmax_of(v):
                return found
            pending += self._operands(v, "reshape", "permute", "mul")
            pending += self._operands(v, "cast") if v.dtype.name in FLOATS else ()
            pending += self._operands(v, "div")[:1]
            if branches := self._operands(v, "where")[1:]:
                numbers = [getattr(x, "value", None) for x in branches]
                pending += [x for x, other in zip(branches, reversed(numbers), strict=True) if other == 0]
        return None

    def _softmax_of(self, v: Variable) -> Softmax | None:
        """The softmax that a value is."""
        quotient = self._operands(v, "div")
        found = self._exponential(quotient[0]) if quotient else None
        expanded = self._operands(quotient[1], "expand") if quotient else ()
        if found is None or not expanded:
            return None
        x, top, shares_infinities = found
        total = self._unreshaped(expanded[0])
        maximum = self._unreshaped(top)
        summed, compared = self._operands(total, "sum"), self._operands(maximum, "max")
        if not summed or not compared or summed[0] is not quotient[0]:
            return None
        axes = tuple(self.producers[total].params[0])
        outer = tuple([1 if axis in axes else n for axis, n in enumerate(x.shape)])
        if (
            self._unreshaped(compared[0]) is not self._unreshaped(x)
            or rows_of(self.producers[maximum]) != rows_of(self.producers[total])
            or not expanded[0].shape == top.shape == outer
            or x.dtype.name not in FLOATS
            or not self.outputs.isdisjoint((maximum, total))
        ):
            return None
        return Softmax(x, v, maximum, total, axes, shares_infinities)

    def _exponential(self, v: Variable) -> tuple[Variable, Variable, bool] | None:
        """The scores x and their maximum m of a value that is exp(x - m), and whether it is 1 where x is m."""
        chosen = self._operands(v, "where")
        if chosen and getattr(chosen[1], "value", None) != 1:
            return None
        difference = self._corrected(chosen[2]) if chosen else self._only_operand(v, "exp")
        operands = self._operands(difference, "sub") if difference else ()
        top = self._only_operand(operands[1], "expand") if operands else None
        if top is None or (chosen and {*self._operands(chosen[0], "eq")} != {*operands}):
            return None
        return operands[0], top, bool(chosen)

    def _only_operand(self, v: Variable, name: str) -> Variable | None:
        """The operand of a value that is computed by an op of one operand; None for other values."""
        operands = self._operands(v, name)
        return operands[0] if operands else None

    def _corrected(self, v: Variable) -> Variable | None:
        """The difference d of a value that is e + e * where(d > -inf, e', 0), for e = exp(d) and the rounding error e'
        of d; see the body of softmax.  The correction changes a sum of products with the exponentials by less than
        rounding does.
        """
        for e, product in in_both_orders(self._operands(v, "add")):
            for factor, correction in in_both_orders(self._operands(product, "mul")):
                exponent, chosen = self._operands(e, "exp"), self._operands(correction, "where")
                if factor is not e or not exponent or not chosen:
                    continue
                difference = exponent[0]
                is_finite, lost, zero = chosen
                compared = self._operands(is_finite, "lt")
                if (
                    getattr(zero, "value", None) == 0
                    and compared
                    and compared[1] is difference
                    and getattr(compared[0], "value", None) == float("-inf")
                    and self._is_rounding_error(lost, difference)
                ):
                    return difference
        return None

    def _is_rounding_error(self, v: Variable, difference: Variable) -> bool:
        """Whether a value is (x - (d - l)) - (m + l) for d = x - m and l = d - x."""
        operands = self._operands(difference, "sub")
        parts = self._operands(v, "sub")
        if not operands or not parts:
            return False
        x, top = operands
        first, second = self._operands(parts[0], "sub"), self._operands(parts[1], "add")
        inner = self._operands(first[1], "sub") if first else ()
        if not second or not inner or first[0] is not x or inner[0] is not difference:
            return False
        lost = self._operands(inner[1], "sub")
        return bool(lost) and (lost[0], lost[1]) == (difference, x) and {*second} == {top, inner[1]}

    # ---- its scores ----------------------------------------------------------------------------------------

    def _attention(
        self, e: Equation, number: int, softmax: Softmax | None, is_known: bool = False
    ) -> Attention | None:
        """A contraction whose operand with this number is computed from scores; None if it needs anything else."""
        attention = Attention(e, number, (), softmax, (), (), is_known, is_stored=not is_known)
        indices = AttentionIndices(attention, self.producers, Symbols())
        rows, keys, columns = [indices.size(x) for x in (indices.rows, "inner", indices.columns)]
        if e.operands[0] is e.operands[1] or min(rows, keys) < MIN_LINES or columns > MAX_WIDTH:
            return None
        if any([v.dtype.name not in FLOATS for v in (*e.operands, *e.results)]):
            return None
        pairs = indices.size("batch") * rows * keys
        known = [softmax.weights] if softmax else []
        inside = self._inside([attention.weights, *([softmax.x] if softmax else [])], pairs, known)
        if inside is None or attention.values in inside:
            return None
        if softmax and not is_known and not self._is_linear(attention.weights, softmax.weights):
            return None
        scores = [v for v in inside if self._is_score(v, pairs)]
        sources: dict[Variable, None] = {}
        of_scores = [x for v in scores for x in self.producers[v].operands]
        others = [
            x
            for v in inside
            if v not in scores and v not in known
            for x in self.producers[v].operands
            if x not in inside
        ]
        self._add_sources(others, MAX_COST_OF_PAIR, sources)
        if is_known:
            sources.update(dict.fromkeys(attention.statistics))
        self._add_sources([*of_scores, attention.values], MAX_COST_OF_OPERAND, sources)
        written = replace(
            attention,
            scores=tuple([Score(self.producers[v], 0, length_of(self.producers[v])) for v in scores]),
            inside=inside,
            sources=tuple(sources),
        )
        if not scores or not self._fits([*written.sources, *written.results]):
            return None
        try:
            return self._with_operands(written)
        except NotComputedHere:
            return None

    def _is_linear(self, v: Variable, weights: Variable) -> bool:
        """Whether there is only one way from a value back to weights: then no factor depends on them."""
        ways = {weights: 1}
        pending = [v]
        while pending:
            x = pending[-1]
            e = self.producers.get(x)
            operands = e.operands if e and x not in ways else ()
            missing = [y for y in operands if y not in ways]
            pending += missing
            if not missing:
                ways.setdefault(x, sum([ways[y] for y in operands]))
                pending.pop()
        return ways[v] == 1

    def _is_score(self, v: Variable, pairs: int) -> bool:
        """Whether a value is a contraction over features with an element for each pair."""
        e = self.producers.get(v)
        return (
            e is not None
            and e.op.name == CONTRACTION
            and prod(v.shape) == pairs
            and length_of(e) <= MAX_WIDTH
            and v.dtype.name in FLOATS
        )

    def _inside(
        self, starts: Sequence[Variable], pairs: int, known: Collection[Variable]
    ) -> dict[Variable, None] | None:
        """The values that are computed from scores with this many pairs, or from known weights, and these; None if a
        kernel cannot compute one of them.
        """
        depends = dict.fromkeys(known, True)
        pending = [*starts]
        while pending:
            v = pending[-1]
            e = self.producers.get(v)
            if v in depends:
                pending.pop()
            elif self._is_score(v, pairs):
                depends[v] = True
            elif e is None or not (e.op.elementwise or e.op.name in FREE_MOVES | {"cast"}):
                depends[v] = False
            elif missing := [x for x in e.operands if x not in depends]:
                pending += missing
            else:
                depends[v] = any([depends[x] for x in e.operands])
        inside: dict[Variable, None] = {}
        pending = [*starts]
        while pending:
            v = pending.pop()
            if v in inside or not depends[v]:
                continue
            inside[v] = None
            e = self.producers[v]
            if self._is_score(v, pairs) or v in known:
                continue
            if e.op.name in ("expand", "flip") or len(e.results) > 1:
                return None
            pending += e.operands
        return inside

    def _add_sources(self, values: Sequence[Variable], most: int, sources: dict[Variable, None]) -> None:
        """Add the values in memory from which values are computed, at most at this cost of an element."""
        pending = [*values]
        while pending:
            v = pending.pop()
            e = self.producers.get(v)
            if getattr(v, "value", None) is not None or v in sources:
                continue
            if e is not None and e.op.name in _MOVES:
                pending += e.operands
            elif e is None or not self._is_computed(e) or self._cost(v, most) > most:
                sources[v] = None
            else:
                pending += e.operands

    def _is_computed(self, e: Equation) -> bool:
        """Whether the kernel can compute an op, if its operands are known."""
        return len(e.results) == 1 and (e.op.elementwise or e.op.name in _MOVES | {"cast", "iota", "pad"})

    def _cost(self, v: Variable, most: int) -> int:
        """The cost of an element, computed from values in memory; or any number above this one."""
        cost, pending = 0, [v]
        while pending and cost <= most:
            e = self.producers.get(pending.pop())
            if e is not None and self._is_computed(e):
                pending += e.operands
                cost += _COSTS.ops.get(e.op.name, 1) if e.op.elementwise else 0
        return cost

    def _with_operands(self, attention: Attention) -> Attention:
        """The attention with the operand of each score that has rows.

        Raises:
            NotComputedHere: if an operand has both rows and keys, or the softmax is not along the keys.
        """
        walk = Symbols()
        indices = AttentionIndices(attention, self.producers, walk)
        batch, row, key = [
            walk.variable(name, indices.size(dimension))
            for name, dimension in (("batch", "batch"), ("row", indices.rows), ("key", "inner"))
        ]
        inside = indices.inside(indices.weight(batch, row, key))
        softmax = attention.softmax
        if softmax and not attention.is_known:
            along = inside[softmax.x].indices
            keys = [axis for axis in softmax.axes if softmax.x.shape[axis] > 1]
            others = [i for axis, i in enumerate(along) if axis not in keys]
            if [along[axis].key for axis in keys] != [key.key] or any(["key" in walk.of(i) for i in others]):
                raise NotComputedHere
        scores = []
        for score in attention.scores:
            feature = walk.variable("feature", score.features)
            operands = operand_indices(score.equation, inside[score.equation.results[0]], feature, walk)
            needed = [walk.of(element.linear) for element in operands]
            of_rows = [n for n in (0, 1) if "key" not in needed[n] and "row" not in needed[1 - n]]
            if not of_rows:
                raise NotComputedHere
            scores.append(replace(score, of_rows=of_rows[0]))
        return replace(attention, scores=tuple(scores))

    # ---- its results ---------------------------------------------------------------------------------------

    def with_epilogues(self, found: Sequence[Attention], kept: Collection[Variable]) -> list[Attention]:
        """The attentions with the ops on their results as their epilogues, if no other op needs what they are computed
        from; the values in `kept` are needed.
        """
        kept = {*self.outputs, *kept, *[v for a in found for v in a.sources]}
        done: dict[Variable, None] = {}  # values that no attention writes any more
        return [self._with_epilogue(a, kept, done) for a in found]

    def _with_epilogue(
        self, attention: Attention, kept: set[Variable], done: dict[Variable, None]
    ) -> Attention:
        (v,) = attention.equation.results
        chain: list[Equation] = []
        sources = dict.fromkeys(attention.sources)
        while v not in kept and len(self.users.get(v, ())) == 1 and len(chain) < MAX_EPILOGUE:
            (e,) = self.users[v]
            is_computed = e.op.elementwise or e.op.name in ("cast", "reshape")
            if not is_computed or e.op is STEP_STACK or len(e.results) > 1:
                break
            more = dict(sources)
            self._add_sources([x for x in e.operands if x is not v], MAX_COST_OF_OPERAND, more)
            if not done.keys().isdisjoint((v, *more)) or not self._fits([*more, *attention.results]):
                break
            sources = more
            chain.append(e)
            (v,) = e.results
        while chain and chain[-1].op.name == "reshape":
            chain.pop()
        if not chain:
            return attention
        kept.update(sources)
        done.update(dict.fromkeys([*attention.equation.results, *[e.results[0] for e in chain[:-1]]]))
        return replace(attention, epilogue=tuple(chain), sources=tuple(sources))

    def _fits(self, values: Sequence[Variable]) -> bool:
        """Whether a kernel may read and write these values."""
        return sum([len(self.target.windows(size_of(v))) for v in values]) <= self.target.bindings
