"""Higher-order ops: ops with programs among their params, such as jit's call, cond, scan and while_loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

OpT = TypeVar("OpT", covariant=True)
"""`Op`, which this module does not import."""


@dataclass(frozen=True, slots=True)
class SubprogramLayout:
    """The programs among an op's params, and how they are connected with its operands and results.

    Attributes:
        programs: in the order of the params; all have the same inputs.
        predicates: the number of leading programs that only compute loop conditions; the others compute the results.
        selects_branch: whether the first operand selects one of two programs, the first if it is True.  The other
            operands are the inputs of each program; without a selection all operands are.
        fixed: for each input whether it is the same operand at every step.
        carries: pairs of indices: an input, and the output that replaces it at the next step.
        is_loop: whether the programs run once for each step of a loop.
    """

    programs: tuple[Any, ...]
    fixed: tuple[bool, ...]
    predicates: int = 0
    selects_branch: bool = False
    carries: tuple[tuple[int, int], ...] = ()
    is_loop: bool = False


class HigherOrderRules(Protocol[OpT]):
    """JVP, VJP and batching rules of an op that takes programs.

    Each rule returns another op and its params, which run in place of this op at the level below.  `active` and
    `batched` hold a flag for each operand: whether it has a derivative, or a batch axis in front.
    """

    def jvp(
        self, active: tuple[bool, ...], params: tuple[Any, ...]
    ) -> tuple[OpT, Any, tuple[bool, ...], tuple[bool, ...]]:
        """The op that computes results and tangents, its params, and flags of operands and of results.

        It takes the operands of this op, then the tangents of the flagged operands; it returns the results of this
        op, then the tangents of the flagged results.  Inactive operands may be flagged too; their tangents are zeros.
        """

    def with_residuals(self, active: tuple[bool, ...], params: tuple[Any, ...]) -> tuple[OpT, Any, int]:
        """The op that a tape records in place of this op, its params, and the number of this op's results.

        It returns the results of this op, then the residuals that its `vjp_all` needs.
        """

    def batch(
        self, size: int, batched: tuple[bool, ...], params: tuple[Any, ...]
    ) -> tuple[OpT, Any, tuple[bool, ...], tuple[bool, ...]]:
        """The op that runs on a batch, its params, and flags of operands and of results: which have the batch axis.

        Operands without the batch axis may be flagged too; their values are repeated for each example.
        """

    def check(self, operands: Sequence[Any], params: tuple[Any, ...]) -> None:
        """Raise a ProgramError unless the programs take operands of these shapes and dtypes."""

    def layout(self, params: tuple[Any, ...]) -> SubprogramLayout:
        """The programs among the params, for passes that change them."""

    def with_programs(
        self,
        params: tuple[Any, ...],
        programs: tuple[Any, ...],
        inputs: Sequence[int | None],
        outputs: Sequence[int],
    ) -> tuple[Any, ...]:
        """The params with other programs.

        Args:
            params: the old params.
            programs: the new programs.
            inputs: for each new input the index of the old input; None for a new fixed input.
            outputs: for each new output the index of the old output.
        """
