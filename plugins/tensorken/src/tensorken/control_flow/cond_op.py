"""Branches: the op that runs one of two programs, and the branches that its derivatives and batches are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tensorken.compilation.call_op import (
    CALL,
    ForwardBackward,
    applied,
    batched_program,
    check_alike,
    forward_backward_of,
    pushed_program,
)
from tensorken.control_flow.carries import forwarded_inputs, select_examples
from tensorken.programs.execution import prepared
from tensorken_core.language.dtypes import DType, bool_
from tensorken_core.language.higher_order import SubprogramLayout
from tensorken_core.language.op import Op, register
from tensorken_core.language.shapes import Shape
from tensorken_core.levels.reverse import transposing
from tensorken_core.levels.trace import traced
from tensorken_core.program.program import Program, Variable
from tensorken_core.tensor.tensor import Tensor

Flags = tuple[bool, ...]
Branches = tuple[Program, ...]


def _cond(*args: Any) -> tuple[Tensor, ...]:
    """On a backend: run what has been prepared for the branch that the predicate tells."""
    predicate, *xs, if_true, if_false = args
    backend = predicate.interpreter
    program = if_true if bool(predicate) else if_false
    ys = prepared(program, backend)([x.representation for x in xs])
    return tuple([Tensor(backend, y, v.shape, v.dtype) for y, v in zip(ys, program.outputs, strict=True)])


class _Conds:
    """A choice goes through derivatives and batches as a choice of other programs."""

    def jvp(self, active: Flags, params: Any) -> tuple[Op, Any, Flags, Flags]:
        own = active[1:]
        union = _union([pushed_program(branch, own)[1] for branch in params])
        pushed = tuple([pushed_program(branch, own, union)[0] for branch in params])
        return COND, pushed, (False, *own), union

    def with_residuals(self, active: Flags, params: Any) -> tuple[Op, Any, int]:
        key = ("record cond", params[1], active, transposing.get())
        op, recorded = params[0].once(key, lambda: _recorded(params, active))
        return op, recorded, len(params[0].outputs)

    def batch(self, size: int, batched: Flags, params: Any) -> tuple[Op, Any, Flags, Flags]:
        own = batched[1:]
        if batched[0]:
            selection, pattern = params[0].once(
                ("select", params[1], size, own), lambda: _selection(params, size, own)
            )
            return CALL, (selection,), batched, pattern
        union = _union([batched_program(branch, size, own)[1] for branch in params])
        over = tuple([batched_program(branch, size, own, union)[0] for branch in params])
        return COND, over, batched, union

    def check(self, operands: Sequence[Any], params: Branches) -> None:
        check_alike("cond: the predicate and one bool", operands[:1], [Variable((), bool_)])
        for branch in params:
            check_alike("cond: the operands and the inputs of a branch", operands[1:], branch.inputs)
        check_alike("cond: the results of the branches", params[0].outputs, params[1].outputs)

    def layout(self, params: Branches) -> SubprogramLayout:
        return SubprogramLayout(params, (True,) * len(params[0].inputs), selects_branch=True)

    def with_programs(self, params: Any, programs: Branches, inputs: Any, outputs: Any) -> Branches:
        return programs


def _union(patterns: Sequence[Flags]) -> Flags:
    return tuple([any(ones) for ones in zip(*patterns, strict=True)])


def _selection(branches: Branches, size: int, batched: Flags) -> tuple[Program, Flags]:
    """Both branches for all examples, each of which takes from the one that its predicate tells.

    Returns:
        The program, and which of its results are batched: all but operands without examples that both branches return.
    """
    same = [
        a if a == b else None for a, b in zip(*[forwarded_inputs(branch) for branch in branches], strict=True)
    ]
    pattern = tuple([place is None or batched[place] for place in same])
    over = [batched_program(branch, size, batched, pattern)[0] for branch in branches]

    def both(predicate: Tensor, *xs: Tensor) -> list[Tensor]:
        pairs = zip(same, *[branch.on(xs) for branch in over], strict=True)
        return [select_examples(predicate, a, b) if place is None else xs[place] for place, a, b in pairs]

    like = [Variable((size,), bool_), *over[0].inputs]
    name = f"{branches[0].name} or {branches[1].name}"
    return traced(both, like, branches[0].backend, name), pattern


# ---- reverse mode ------------------------------------------------------------------------------------------


class _Slots:
    """Further results for what the branches keep: of one shape and dtype, they share a place."""

    def __init__(self) -> None:
        self.kinds: list[tuple[Shape, DType]] = []

    def places(self, kept: Sequence[Variable]) -> list[int]:
        """A place of its own for each value that one branch keeps."""
        free = list(range(len(self.kinds)))
        found = []
        for v in kept:
            place = next((i for i in free if self.kinds[i] == (v.shape, v.dtype)), len(self.kinds))
            if place == len(self.kinds):
                self.kinds.append((v.shape, v.dtype))
            else:
                free.remove(place)
            found.append(place)
        return found


def _recorded(branches: Branches, active: Flags) -> tuple[Op, Branches]:
    """Branches that also give what their derivatives need, zeros standing for what only the other one needs."""
    halves = [forward_backward_of(branch, active[1:]) for branch in branches]
    given, count = len(branches[0].inputs), len(branches[0].outputs)
    seeds = halves[0].seeds
    slots = _Slots()
    # What each branch's backward half needs: places among operands and results, the further ones by slots.
    needs: list[list[int]] = []
    for half in halves:
        own = iter(slots.places([half.forward.outputs[p - given] for p in half.kept if p >= given + count]))
        needs.append([p if p < given + count else given + count + next(own) for p in half.kept])
    shared = sorted({p for places in needs for p in places})
    reached = sorted({i for half in halves for i in half.reached})

    def forward(half: ForwardBackward, places: Sequence[int]) -> Program:
        filled = {
            slot - given - count: p - given - count
            for slot, p in zip(places, half.kept, strict=True)
            if p >= given + count
        }

        def function(*xs: Tensor) -> list[Tensor]:
            ys = half.forward.on(xs)
            further = [
                ys[count + filled[i]] if i in filled else _zeros((xs or ys)[0], kind)
                for i, kind in enumerate(slots.kinds)
            ]
            return [*ys[:count], *further]

        program = half.forward
        return traced(function, program.inputs, program.backend, program.name)

    def backward(half: ForwardBackward, places: Sequence[int]) -> Program:
        def function(*values: Tensor) -> list[Tensor]:
            cotangents, kept = values[: len(seeds)], dict(zip(shared, values[len(seeds) :], strict=True))
            pulled = half.backward.on([*cotangents, *[kept[p] for p in places]])
            found = dict(zip(half.reached, pulled, strict=True))
            return [found[i] if i in found else _zeros(values[0], kinds[i]) for i in reached]

        program = half.backward
        return traced(function, like, program.backend, program.name)

    kinds: list[tuple[Shape, DType]] = [(v.shape, v.dtype) for v in branches[0].inputs]
    kinds_of_all = [*kinds, *[(v.shape, v.dtype) for v in branches[0].outputs], *slots.kinds]
    like = [branches[0].outputs[i] for i in seeds] + [Variable(*kinds_of_all[p]) for p in shared]
    ahead = tuple([forward(half, places) for half, places in zip(halves, needs, strict=True)])
    back = tuple([backward(half, places) for half, places in zip(halves, needs, strict=True)])

    def pull_back(cotangents: Any, ys: Any, xs: Any, params: Any) -> list[Tensor | None]:
        """The cotangents of the operands."""
        found: list[Tensor | None] = [None] * len(xs)
        if reached:
            predicate, *operands = xs
            seeded = [ys[i].zeros_like() if cotangents[i] is None else cotangents[i] for i in seeds]
            values = [(*operands, *ys)[p] for p in shared]
            for i, t in zip(reached, applied(COND, [predicate, *seeded, *values], back), strict=True):
                found[i + 1] = t
        return found

    return replace(COND, vjp_all=pull_back), ahead


def _zeros(beside: Tensor, kind: tuple[Shape, DType]) -> Tensor:
    """Zeros at the level of a tensor."""
    base: Any = beside.interpreter.base
    shape, dtype = kind
    return Tensor(base, base.full(shape, 0, dtype), shape, dtype)


COND = register(
    Op(
        "cond",
        None,
        shape=lambda *args: tuple([v.shape for v in args[-1].outputs]),
        dtype=lambda *args: tuple([v.dtype for v in args[-1].outputs]),
        params=("program", "program"),
        names=("if_true", "if_false"),
        body=_cond,
        results=None,
        higher_order=_Conds(),
    )
)
"""One of two programs. Operands: a bool that tells which, and what both take."""
