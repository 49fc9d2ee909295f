"""Higher-order ops: those with programs among their params, such as jit's call, cond, scan and while_loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

OpT = TypeVar("OpT", covariant=True)
"""`Op`, which this module does not import."""


@dataclass(frozen=True, slots=True)
class SubprogramLayout:
    """The programs among an op's params, and how its operands and results are connected with them.

    Attributes:
        programs: in the order of the params; all have the same inputs.
        predicates: how many of them, the first ones, only decide whether to go on; the others give the op's results.
        selects_branch: whether the first operand selects one of the two programs, the first if it is True; the other
            operands, or all, are the inputs of each program.
        fixed: for each input whether it is the operand itself, at each step.
        carries: pairs of indices: of an input, and of the output that replaces it at the next step.
        is_loop: whether the programs run step by step, rather than once.
    """

    programs: tuple[Any, ...]
    fixed: tuple[bool, ...]
    predicates: int = 0
    selects_branch: bool = False
    carries: tuple[tuple[int, int], ...] = ()
    is_loop: bool = False


class HigherOrderRules(Protocol[OpT]):
    """JVP, VJP and batching rules of an op that takes programs.

    Each rule gives another op, and its params, to run in place of this one at the level below.  `active` and `batched`
    have a flag for each operand: whether it has a derivative, or an axis of examples in front.
    """

    def push(
        self, active: tuple[bool, ...], params: tuple[Any, ...]
    ) -> tuple[OpT, Any, tuple[bool, ...], tuple[bool, ...]]:
        """The op that computes results and tangents, its params, and flags of operands and results.

        Its operands are those of this op and the tangents of the flagged operands; its results are those of this op and
        the tangents of the flagged results.  Operands that are not active may be flagged; their tangents are zeros.
        """

    def record(self, active: tuple[bool, ...], params: tuple[Any, ...]) -> tuple[OpT, Any, int]:
        """The op that runs in place of this one where a tape records it, its params, and the number of results.

        Its results are those of this op, so many, and then the residuals that its `vjp_all` needs.
        """

    def batch(
        self, size: int, batched: tuple[bool, ...], params: tuple[Any, ...]
    ) -> tuple[OpT, Any, tuple[bool, ...], tuple[bool, ...]]:
        """The op that runs on a batch, its params, and flags of operands and results: which have the axis of examples.

        Operands that are not batched may be flagged; their values are repeated for each example.
        """

    def check(self, operands: Sequence[Any], params: tuple[Any, ...]) -> None:
        """Raise a ProgramError unless the programs take these operands, which have a shape and a dtype."""

    def parts(self, params: tuple[Any, ...]) -> SubprogramLayout:
        """The programs among the params, for passes that change them."""

    def joined(
        self,
        params: tuple[Any, ...],
        programs: tuple[Any, ...],
        inputs: Sequence[int | None],
        outputs: Sequence[int],
    ) -> tuple[Any, ...]:
        """The params with other programs.

        Args:
            params: those of the op before.
            programs: the new programs.
            inputs: for each input of them its index before; None for a new fixed input.
            outputs: for each output of them its index before.
        """
