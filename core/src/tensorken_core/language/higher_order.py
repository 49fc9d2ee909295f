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
        slices: pairs of an input's index and the axis of its operand along which a step takes a slice.
        stacks: pairs of an output's index and the axis of the result along which its values are stacked.
        length: the number of steps; None if a condition decides it.
        reverse: whether the steps take the slices from the last to the first.
    """

    programs: tuple[Any, ...]
    fixed: tuple[bool, ...]
    predicates: int = 0
    selects_branch: bool = False
    carries: tuple[tuple[int, int], ...] = ()
    is_loop: bool = False
    slices: tuple[tuple[int, int], ...] = ()
    stacks: tuple[tuple[int, int], ...] = ()
    length: int | None = None
    reverse: bool = False

    @property
    def loop(self) -> Loop | None:
        """The loop; None if the op is none."""
        if not self.is_loop:
            return None
        *conditions, body = self.programs
        return Loop(
            body,
            conditions[0] if conditions else None,
            tuple([i for i, same in enumerate(self.fixed) if same]),
            self.carries,
            self.slices,
            self.stacks,
            self.length,
            self.reverse,
        )

    @property
    def branches(self) -> tuple[Any, Any] | None:
        """The programs that run if the first operand is True and if it is False; None if the op does not branch."""
        return (self.programs[0], self.programs[1]) if self.selects_branch else None


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop as data, for compilers: how its operands enter the steps, and how its results leave them.

    A step runs `body` on one input for each operand, in their order, and its outputs become the results, in their
    order.

    Attributes:
        body: the program of a step.
        condition: the program whose only output says, from the inputs of a step, whether the step is taken; None if
            `length` is the number of steps.
        constants: the indices of the operands that are the same at each step.
        carried: pairs of indices: an operand, which is the initial value, and the result, which is the last; the output
            of a step at that index is the input of the next.
        sliced: pairs of an operand's index and an axis: each step takes the slice at its number, without the axis.
        stacked: pairs of a result's index and an axis, along which the outputs of all steps are stacked.
        length: the number of steps; None if the condition decides it.
        reverse: whether the steps run from the last slice to the first.
    """

    body: Any
    condition: Any
    constants: tuple[int, ...]
    carried: tuple[tuple[int, int], ...]
    sliced: tuple[tuple[int, int], ...]
    stacked: tuple[tuple[int, int], ...]
    length: int | None
    reverse: bool


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
        self, axis: Any, batched: tuple[bool, ...], params: tuple[Any, ...]
    ) -> tuple[OpT, Any, tuple[bool, ...], tuple[bool, ...]]:
        """The op that runs on a batch, its params, and flags of operands and of results: which have the batch axis.

        The axis is a `tensorken_core.levels.batch.Axis`.  Operands without the batch axis may be flagged too; their
        values are repeated for each example.
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
