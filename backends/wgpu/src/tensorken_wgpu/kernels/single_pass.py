"""Single passes: reductions that depend on each other, added in one pass over a row.

The sum of exp(x - m) over a row with the maximum m is added for the largest element so far; where a larger one is
found, the sum is multiplied by the exponential of the difference.  The sum of squares of x - mean is that of two sets
of elements, plus the square of the difference of their means times a factor.

Sources: M. Milakov and N. Gimelshein, "Online normalizer calculation for softmax", 2018; T. F. Chan, G. H. Golub and
R. J. LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from math import inf, isclose
from typing import TYPE_CHECKING, Any

from tensorken.kernels.nests import Nest
from tensorken.kernels.rows import rows_of
from tensorken_wgpu.kernels.accumulations import Accumulation, Element
from tensorken_wgpu.wgsl.reductions import accumulator_of
from tensorken_wgpu.wgsl.writer import Writer, constant

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable

_DTYPES = ("float32", "float64")
"""Sums of narrower floats are rounded once, and so are the differences that they add."""

# ---- the reductions of a pass --------------------------------------------------------------------------------

# An expression of elements x, and of m: the maximum or the mean of their row.
_DIFFERENCE = ("sub", "x", "m")
_EXPONENTIAL = ("exp", _DIFFERENCE)
_MINUS_M = ("sub", _DIFFERENCE, "x")
_LOST = ("sub", ("sub", "x", ("sub", _DIFFERENCE, _MINUS_M)), ("add", "m", _MINUS_M))
_CORRECTED = ("add", _EXPONENTIAL, ("mul", _EXPONENTIAL, ("where", ("lt", -inf, _DIFFERENCE), _LOST, 0.0)))
_IS_MAXIMUM = ("eq", "x", "m")

EXPONENTIALS: Mapping[Any, str] = {
    _EXPONENTIAL: "all, of differences",
    ("where", _IS_MAXIMUM, 1.0, _CORRECTED): "all",
    ("where", _IS_MAXIMUM, 0.0, _CORRECTED): "below",
    ("cast", _IS_MAXIMUM): "equal",
}
"""The sums that are added with a maximum; the ops softmax, log_softmax and logsumexp have the latter three."""

SQUARES: Mapping[Any, str] = {("mul", _DIFFERENCE, _DIFFERENCE): "squares"}
"""The sum that is added with the sum of the elements."""

_MAX_DEPTH = 8


def passes(
    reductions: Collection[Variable], producers: Mapping[Variable, Equation]
) -> dict[Variable, dict[Variable, str]]:
    """For maxima and sums of rows the kinds of the sums that can be added in the same pass.

    Args:
        reductions: of the same rows.
        producers: for each computed value its equation.
    """
    found: dict[Variable, dict[Variable, str]] = {}
    for v in reductions:
        e = producers[v]
        if v.dtype.name not in _DTYPES or e.op.name not in ("sum", "fused_multiply_add"):
            continue
        for source in reductions:
            s = producers[source]
            if source is v or s.op.name not in ("sum", "max") or rows_of(s) != rows_of(e):
                continue
            forms = _Forms(source, producers, SQUARES if s.op.name == "sum" else EXPONENTIALS)
            if kind := forms.kind(e):
                found.setdefault(source, {})[v] = kind
                break
    return found


def needs_one_pass(reductions: Collection[Variable], nest: Nest[Any]) -> bool:
    """Whether one pass over a row computes these reductions of a kernel."""
    later = {v for v in reductions if nest.depths[v] > 1}
    together = passes(reductions, nest.producers)
    return later <= {v for source, kinds in together.items() if nest.depths[source] == 1 for v in kinds}


class _Forms:
    """The expressions of values in the elements of a row and its maximum or mean.

    Args:
        source: the maximum or the sum.
        producers: for each computed value its equation.
        kinds: the known expressions.
    """

    def __init__(
        self, source: Variable, producers: Mapping[Variable, Equation], kinds: Mapping[Any, str]
    ) -> None:
        self._producers = producers
        self._kinds = kinds
        self._x = producers[source].operands[0]
        self._source = source
        self._known: dict[Variable, Any] = {}

    def kind(self, e: Equation) -> str | None:
        """The kind of a sum; None if it is not known."""
        forms = [self._form(x, _MAX_DEPTH) for x in e.operands]
        form = ("mul", *forms) if e.op.name == "fused_multiply_add" else forms[0]
        return None if _has_unknown(form) else self._kinds.get(form)

    def _form(self, v: Any, depth: int) -> Any:
        if v is self._x:
            return "x"
        if hasattr(v, "value"):
            return v.value
        if v not in self._known:
            self._known[v] = self._computed(v, depth)
        return self._known[v]

    def _computed(self, v: Variable, depth: int) -> Any:
        e = self._producers.get(v)
        if e is None or depth == 0:
            return None
        if e.op.name == "expand" and self._is_statistic(e.operands[0]):
            return "m"
        if e.op.name in ("expand", "sum", "max", "fused_multiply_add") or (e.params and e.op.name != "cast"):
            return None
        forms = [self._form(x, depth - 1) for x in e.operands]
        return None if any([f is None for f in forms]) else (e.op.name, *forms)

    def _is_statistic(self, v: Variable) -> bool:
        """Whether a value is the maximum, or the sum divided by the number of elements."""
        if self._producers[self._source].op.name == "max":
            return v is self._source
        e = self._producers.get(v)
        if e is None or e.op.name not in ("div", "mul") or e.operands[0] is not self._source:
            return False
        number = getattr(e.operands[1], "value", None)
        length = rows_of(self._producers[self._source]).length
        expected = length if e.op.name == "div" else 1 / length
        return number is not None and isclose(number, expected, rel_tol=1e-7)


def _has_unknown(form: Any) -> bool:
    return form is None or (isinstance(form, tuple) and None in form)


# ---- their states --------------------------------------------------------------------------------------------


class SinglePass(Accumulation):
    """Writes the pass of a reduction and of those added with it.

    Args:
        source: the maximum or the sum.
        kinds: of the sums added with it.
        producers: for each computed value its equation.
        writer: of the kernel.
    """

    def __init__(
        self,
        source: Variable,
        kinds: Mapping[Variable, str],
        producers: Mapping[Variable, Equation],
        writer: Writer,
    ) -> None:
        self.source = source
        self.results = (source, *kinds)
        self.kinds = tuple(kinds.values())
        self._accumulator = accumulator_of(producers[source])
        self._writer = writer
        self._dtype = source.dtype
        self._suffix = "" if self._accumulator.dtype == "float32" else "_f64"
        self._zero = f"zero{self._suffix}()"

    def _number(self, value: float) -> str:
        return constant(value, self._dtype)

    def _new(self, text: str) -> str:
        name = self._writer.new_name()
        self._writer.line(f"let {name} = {text};")
        return name

    @abstractmethod
    def finish(self, state: Sequence[str]) -> Sequence[str]: ...


class Exponentials(SinglePass):
    """The maximum, the number of elements equal to it, and the sum of exponentials of the differences of others."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.dtypes = (self._accumulator.dtype,) * 3
        self.starts = (self._accumulator.start, self._zero, self._zero)

    def add(self, state: Sequence[str], elements: Sequence[Element], first: str | None = None) -> None:
        # Elements that are not of the row are equal to others, and do not change the maximum.
        largest = state[0]
        for element, _ in elements:
            largest = self._accumulator.combine(largest, element)
        largest, base = self._base(largest)
        count, rest = self._rebased(state, largest, base)
        for element, condition in elements:
            below = f"exponential_below{self._suffix}({element}, {base})"
            is_largest = f"{element} == {largest}"
            others = f"!({condition}) || {is_largest}" if condition else is_largest
            count += f" + select({self._zero}, {self._number(1.0)}, {_both(condition, is_largest)})"
            rest += f" + select({below}, {self._zero}, {others})"
        self._put(state, largest, count, rest)

    def merge(self, state: Sequence[str], others: Sequence[Sequence[str]]) -> None:
        all_states = [state, *[[self._new(text) for text in other] for other in others]]
        largest = state[0]
        for other in all_states[1:]:
            largest = self._accumulator.combine(largest, other[0])
        largest, base = self._base(largest)
        rebased = [self._rebased(s, largest, base) for s in all_states]
        self._put(state, largest, *[" + ".join(parts) for parts in zip(*rebased, strict=True)])

    def finish(self, state: Sequence[str]) -> Sequence[str]:
        largest, count, rest = state
        results = {
            "all": f"{count} + {rest}",
            "below": rest,
            "equal": count,
            "all, of differences": f"select(nan{self._suffix}(), {count} + {rest}, "
            f"is_finite{self._suffix}({largest}))",
        }
        return [largest, *[results[kind] for kind in self.kinds]]

    def _base(self, largest: str) -> tuple[str, str]:
        """The names of the largest element, and of the number to subtract: 0 in place of -infinity."""
        name = self._new(largest)
        return name, self._new(f"select({name}, {self._zero}, {name} == {self._accumulator.start})")

    def _rebased(self, state: Sequence[str], largest: str, base: str) -> tuple[str, str]:
        """The count and the sum of a state for a new maximum."""
        maximum, count, rest = state
        is_largest = f"{maximum} == {largest}"
        factor = f"exponential_below{self._suffix}({maximum}, {base})"
        return (
            f"select({self._zero}, {count}, {is_largest})",
            f"select(({rest} + {count}) * {factor}, {rest}, {is_largest})",
        )

    def _put(self, state: Sequence[str], largest: str, count: str, rest: str) -> None:
        count, rest = self._new(count), self._new(rest)
        for name, text in zip(state, (largest, count, rest), strict=True):
            self._writer.line(f"{name} = {text};")


class Squares(SinglePass):
    """The sum, the number of elements, their mean, and the sum of squares of differences from it.

    The first element of the row is subtracted from the others, so that the mean is no larger than the differences.
    """

    needs_first = True

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.dtypes = (self._accumulator.dtype,) * 4
        self.starts = (self._zero,) * 4

    def add(self, state: Sequence[str], elements: Sequence[Element], first: str | None = None) -> None:
        sure = sum([condition is None for _, condition in elements])
        count, total = self._number(sure), self._zero
        counted: dict[str, int] = {}
        for element, condition in elements:
            total += f" + {self._chosen(element, condition)}"
            if condition:
                counted[condition] = counted.get(condition, 0) + 1
        for condition, number in counted.items():
            count += f" + {self._chosen(self._number(number), condition)}"
        total, count = self._new(total), self._new(count)
        shifted = [(self._new(f"{element} - {first}"), condition) for element, condition in elements]
        mean = " + ".join([self._chosen(*element) for element in shifted])
        mean = self._new(f"({mean}) / max({count}, {self._number(1.0)})")
        squares = self._zero
        for element, condition in shifted:
            difference = self._new(f"{element} - {mean}")
            squares += f" + {self._chosen(f'{difference} * {difference}', condition)}"
        self.merge(state, [[total, count, mean, squares]])

    def merge(self, state: Sequence[str], others: Sequence[Sequence[str]]) -> None:
        for other in others:
            self._merge(state, other)

    def _merge(self, state: Sequence[str], other: Sequence[str]) -> None:
        total, count, mean, squares = [self._new(text) for text in other]
        both = self._new(f"{state[1]} + {count}")
        part = self._new(f"{count} / max({both}, {self._number(1.0)})")
        difference = self._new(f"{mean} - {state[2]}")
        added = f"{difference} * ({difference} * ({state[1]} * {part}))"
        for name, text in zip(
            (state[0], state[3], state[2], state[1]),
            (
                f"{state[0]} + {total}",
                f"{state[3]} + {squares} + {added}",
                f"{state[2]} + {difference} * {part}",
                both,
            ),
            strict=True,
        ):
            self._writer.line(f"{name} = {text};")

    def finish(self, state: Sequence[str]) -> Sequence[str]:
        return [state[0], *[state[3] for _ in self.kinds]]

    def _chosen(self, text: str, condition: str | None) -> str:
        return text if condition is None else f"select({self._zero}, {text}, {condition})"


def _both(condition: str | None, other: str) -> str:
    return other if condition is None else f"{condition} && {other}"


def single_pass(
    source: Variable, kinds: Mapping[Variable, str], producers: Mapping[Variable, Equation], writer: Writer
) -> Accumulation:
    """The accumulation of a maximum or a sum, and of the sums that are added with it."""
    form = Exponentials if producers[source].op.name == "max" else Squares
    return form(source, kinds, producers, writer)
