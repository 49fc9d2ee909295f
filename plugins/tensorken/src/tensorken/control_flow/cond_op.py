"""The op of `cond`, which runs one of two programs, and its derivative and batching rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tensorken.compilation.call_op import (
    CALL,
    ForwardBackward,
    apply_higher_order,
    batched_program,
    check_alike,
    forward_backward_of,
    jvp_program,
)
from tensorken.control_flow.carries import check_repeatable, forwarded_inputs, select_examples
from tensorken.programs.execution import prepared
from tensorken_core.errors import ArgumentError
from tensorken_core.language.dtypes import DType, bool_
from tensorken_core.language.higher_order import SubprogramLayout
from tensorken_core.language.op import Op, register
from tensorken_core.language.shapes import Shape
from tensorken_core.levels.batch import Axis
from tensorken_core.levels.reverse import transposing
from tensorken_core.levels.trace import traced
from tensorken_core.program.program import Program, Variable, axes_of
from tensorken_core.tensor.tensor import Tensor

Flags = tuple[bool, ...]
Branches = tuple[Program, ...]


def _cond(*args: Any) -> tuple[Tensor, ...]:
    """On a backend: run the prepared program of the branch that is taken."""
    predicate, *xs, if_true, if_false = args
    backend = predicate.interpreter
    program = if_true if bool(predicate) else if_false
    ys = prepared(program, backend)([x.representation for x in xs])
    return tuple([Tensor(backend, y, v.shape, v.dtype) for y, v in zip(ys, program.outputs, strict=True)])


class _CondRules:
    """JVP, VJP and batching rules: each is a cond of other programs."""

    def jvp(self, active: Flags, params: Any) -> tuple[Op, Any, Flags, Flags]:
        operand_flags = active[1:]
        flags = _any_flags([jvp_program(branch, operand_flags)[1] for branch in params])
        pushed = tuple([jvp_program(branch, operand_flags, flags)[0] for branch in params])
        return COND, pushed, (False, *operand_flags), flags

    def with_residuals(self, active: Flags, params: Any) -> tuple[Op, Any, int]:
        key = ("record cond", params[1], active, transposing.get())
        op, recorded = params[0].once(key, lambda: _recorded(params, active))
        return op, recorded, len(params[0].outputs)

    def batch(self, axis: Axis, batched: Flags, params: Any) -> tuple[Op, Any, Flags, Flags]:
        operand_flags = batched[1:]
        if batched[0]:
            check_repeatable("cond", params)
            if axis in axes_of(params):
                raise ArgumentError(
                    f"cond: a branch has a collective over {axis.name!r}, and the predicate differs between its "
                    f"examples, so not all would take part; call the collective outside of cond, or choose by tk.where"
                )
            selection, pattern = params[0].once(
                ("select", params[1], axis, operand_flags),
                lambda: _select_program(params, axis, operand_flags),
            )
            return CALL, (selection,), batched, pattern
        flags = _any_flags([batched_program(branch, axis, operand_flags)[1] for branch in params])
        batched_branches = tuple(
            [batched_program(branch, axis, operand_flags, flags)[0] for branch in params]
        )
        return COND, batched_branches, batched, flags

    def check(self, operands: Sequence[Any], params: Branches) -> None:
        check_alike("cond: the predicate and one bool", operands[:1], [Variable((), bool_)])
        for branch in params:
            check_alike("cond: the operands and the inputs of a branch", operands[1:], branch.inputs)
        check_alike("cond: the results of the branches", params[0].outputs, params[1].outputs)

    def layout(self, params: Branches) -> SubprogramLayout:
        return SubprogramLayout(params, (True,) * len(params[0].inputs), selects_branch=True)

    def with_programs(self, params: Any, programs: Branches, inputs: Any, outputs: Any) -> Branches:
        return programs


def _any_flags(patterns: Sequence[Flags]) -> Flags:
    return tuple([any(flags) for flags in zip(*patterns, strict=True)])


def _select_program(branches: Branches, axis: Axis, batched: Flags) -> tuple[Program, Flags]:
    """Both branches for all examples, with the result selected by each example's predicate.

    Returns:
        The program, and which of its results are batched: all except unbatched operands that both branches return.
    """
    forwarded = [
        a if a == b else None for a, b in zip(*[forwarded_inputs(branch) for branch in branches], strict=True)
    ]
    pattern = tuple([index is None or batched[index] for index in forwarded])
    batched_branches = [batched_program(branch, axis, batched, pattern)[0] for branch in branches]

    def both(predicate: Tensor, *xs: Tensor) -> list[Tensor]:
        pairs = zip(forwarded, *[branch.on(xs) for branch in batched_branches], strict=True)
        return [select_examples(predicate, a, b) if index is None else xs[index] for index, a, b in pairs]

    like = [Variable(axis.stacked(()), bool_), *batched_branches[0].inputs]
    name = f"{branches[0].name} or {branches[1].name}"
    return traced(both, like, branches[0].backend, name), pattern


# ---- reverse mode ------------------------------------------------------------------------------------------


class _ResidualSlots:
    """Further results for residuals; residuals of both branches with the same shape and dtype share a slot."""

    def __init__(self) -> None:
        self.types: list[tuple[Shape, DType]] = []

    def slots_for(self, residuals: Sequence[Variable]) -> list[int]:
        """A slot for each residual of one branch."""
        free = list(range(len(self.types)))
        slots = []
        for v in residuals:
            slot = next((i for i in free if self.types[i] == (v.shape, v.dtype)), len(self.types))
            if slot == len(self.types):
                self.types.append((v.shape, v.dtype))
            else:
                free.remove(slot)
            slots.append(slot)
        return slots


def _recorded(branches: Branches, active: Flags) -> tuple[Op, Branches]:
    """Branches that also return the residuals of both branches, with zeros for the residuals of the other branch."""
    both = [forward_backward_of(branch, active[1:]) for branch in branches]
    inputs, outputs = len(branches[0].inputs), len(branches[0].outputs)
    seeds = both[0].seeds
    slots = _ResidualSlots()
    # For each branch the indices of its residuals among operands, results and slots.
    residual_indices: list[list[int]] = []
    for passes in both:
        extra_outputs = [
            passes.forward.outputs[p - inputs] for p in passes.residuals if p >= inputs + outputs
        ]
        own_slots = iter([inputs + outputs + slot for slot in slots.slots_for(extra_outputs)])
        residual_indices.append([p if p < inputs + outputs else next(own_slots) for p in passes.residuals])
    shared = sorted({p for indices in residual_indices for p in indices})
    with_cotangents = sorted({i for passes in both for i in passes.with_cotangents})

    def forward(passes: ForwardBackward, indices: Sequence[int]) -> Program:
        filled = {
            slot - inputs - outputs: p - inputs - outputs
            for slot, p in zip(indices, passes.residuals, strict=True)
            if p >= inputs + outputs
        }

        def function(*xs: Tensor) -> list[Tensor]:
            ys = passes.forward.on(xs)
            extra_outputs = [
                ys[outputs + filled[i]] if i in filled else _zeros((xs or ys)[0], type_)
                for i, type_ in enumerate(slots.types)
            ]
            return [*ys[:outputs], *extra_outputs]

        program = passes.forward
        return traced(function, program.inputs, program.backend, program.name)

    def backward(passes: ForwardBackward, indices: Sequence[int]) -> Program:
        def function(*values: Tensor) -> list[Tensor]:
            cotangents, residuals = values[: len(seeds)], dict(zip(shared, values[len(seeds) :], strict=True))
            pulled = passes.backward.on([*cotangents, *[residuals[p] for p in indices]])
            result = dict(zip(passes.with_cotangents, pulled, strict=True))
            return [result[i] if i in result else _zeros(values[0], types[i]) for i in with_cotangents]

        program = passes.backward
        return traced(function, like, program.backend, program.name)

    types: list[tuple[Shape, DType]] = [(v.shape, v.dtype) for v in branches[0].inputs]
    types_of_all = [*types, *[(v.shape, v.dtype) for v in branches[0].outputs], *slots.types]
    like = [branches[0].outputs[i] for i in seeds] + [Variable(*types_of_all[p]) for p in shared]
    forward_programs = tuple(
        [forward(passes, indices) for passes, indices in zip(both, residual_indices, strict=True)]
    )
    backward_programs = tuple(
        [backward(passes, indices) for passes, indices in zip(both, residual_indices, strict=True)]
    )

    def pull_back(cotangents: Any, ys: Any, xs: Any, params: Any) -> list[Tensor | None]:
        """The cotangents of the operands."""
        result: list[Tensor | None] = [None] * len(xs)
        if with_cotangents:
            predicate, *operands = xs
            seeded = [ys[i].zeros_like() if cotangents[i] is None else cotangents[i] for i in seeds]
            values = [(*operands, *ys)[p] for p in shared]
            for i, t in zip(
                with_cotangents,
                apply_higher_order(COND, [predicate, *seeded, *values], backward_programs),
                strict=True,
            ):
                result[i + 1] = t
        return result

    return replace(COND, vjp_all=pull_back), forward_programs


def _zeros(like: Tensor, type_: tuple[Shape, DType]) -> Tensor:
    """Zeros on the backend of a tensor."""
    base: Any = like.interpreter.base
    shape, dtype = type_
    return Tensor(base, base.full(shape, 0, dtype), shape, dtype)


COND = register(
    Op(
        "cond",
        None,
        shape=lambda *args: tuple([v.shape for v in args[-1].outputs]),
        dtype=lambda *args: tuple([v.dtype for v in args[-1].outputs]),
        params=("program", "program"),
        param_names=("if_true", "if_false"),
        body=_cond,
        results=None,
        higher_order=_CondRules(),
    )
)
"""One of two programs. Operands: a bool, which is True for the first program, and the operands of both programs."""
