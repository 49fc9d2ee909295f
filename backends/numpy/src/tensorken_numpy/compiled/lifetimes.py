"""Lifetimes: when the memory of each value is last used, also through views, and which memory outputs share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from tensorken_numpy.compiled.schedule import FusionGroup, Unit

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Program, Variable

VIEWS = frozenset({"expand", "reshape", "permute", "flip", "crop"})
NOT_VIEWS = frozenset(
    {
        "pad", "concatenate", "gather", "scatter_add", "add_at", "sort", "argsort", "argmax", "argmin", "cumsum",
        "cumprod", "threefry2x32", "fused_multiply_add", "softmax", "log_softmax", "logsumexp",
    }
)  # fmt: skip
"""Ops besides elementwise ones whose result never shares memory with an operand."""


class Lifetimes:
    """The lifetimes of the values of a scheduled program.

    Attributes:
        last: for each owner of memory the index of the last unit that uses it.
        escaping: the owners whose memory outputs share.
        updates: by an equation of `add_at`, the operand that it may overwrite.
    """

    def __init__(self, program: Program, units: Sequence[Unit]) -> None:
        self._owner: dict[Variable, Variable] = {}
        self.last: dict[Variable, int] = {}
        self._used: dict[Variable, int] = dict.fromkeys(program.outputs, len(units))
        self.updates = updates_in_place(program)
        for index, unit in enumerate(units):
            for equation in equations_of(unit):
                shared = equation.operands if may_share(equation) else self.updates.get(equation, ())
                if shared:
                    owners = {self.owner(v): None for v in shared}
                    first = next(iter(owners))
                    for v in (*owners, *equation.results):
                        self._owner[v] = first
                for v in equation.operands:
                    self._used[v] = max(index, self._used.get(v, index))
                for v in (*equation.operands, *equation.results):
                    self.last[self.owner(v)] = index
        for v in list(self.last):
            owner = self.owner(v)
            self.last[owner] = max(self.last[owner], self.last[v])
        self.escaping = {self.owner(v) for v in program.outputs}

    def needed_after(self, v: Variable, index: int) -> bool:
        """Whether the value is an output, or a unit after this index uses it."""
        return self._used.get(v, index) > index

    def owner(self, v: Variable) -> Variable:
        """The value whose memory this one may share."""
        owner = v
        while (next_one := self._owner.get(owner, owner)) is not owner:
            owner = next_one
        if owner is not v:
            self._owner[v] = owner
        return owner


def updates_in_place(program: Program) -> Mapping[Equation, Sequence[Variable]]:
    """The equations of `add_at` that may overwrite their first operand, as it has its own memory and no other use."""
    producers = {v: equation for equation in program.equations for v in equation.results}
    uses = Counter(chain(*[equation.operands for equation in program.equations], program.outputs))
    updated: dict[Equation, Sequence[Variable]] = {}
    for equation in program.equations:
        if equation.op.name != "add_at":
            continue
        y = root = equation.operands[0]
        while uses[root] == 1 and root in producers and producers[root].op.name == "reshape":
            (root,) = producers[root].operands
        if uses[root] == 1 and root in producers and not may_share(producers[root]):
            updated[equation] = (y,)
    return updated


def equations_of(unit: Unit) -> list[Equation]:
    """The equations of a unit."""
    return [equation for _, equation in unit.members] if isinstance(unit, FusionGroup) else [unit]


def may_share(equation: Equation) -> bool:
    """Whether a result may be a view of an operand."""
    op, params = equation.op, equation.params
    if not equation.operands or op.name == "cast" or op.name in NOT_VIEWS:
        return False
    if op.elementwise:
        return not op.method or op.name in ("to_bits", "from_bits")
    if op.name in ("sum", "prod", "max", "min"):
        return params == ((),)
    return True
