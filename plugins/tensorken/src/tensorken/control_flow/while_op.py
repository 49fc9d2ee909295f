"""Whiles: the op that runs a program as long as another says so, and the loops that its derivatives and batches are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

from tensorken.compilation.call_op import batched_program, check_alike, pushed_program
from tensorken.control_flow.carries import (
    CARRY,
    ArgSpecs,
    Flags,
    active_outputs,
    carries,
    carry_fixpoint,
    carry_pairs,
    check_loop,
    constant_flags,
    forwarded_inputs,
    select_examples,
    specs_at,
    with_carries,
)
from tensorken.programs.execution import prepared
from tensorken_core.errors import GradientError
from tensorken_core.language.dtypes import bool_
from tensorken_core.language.higher_order import SubprogramLayout
from tensorken_core.language.op import Op, register
from tensorken_core.levels.trace import traced
from tensorken_core.program.program import Program, Variable
from tensorken_core.tensor.tensor import Tensor


def _while(*args: Any) -> tuple[Tensor, ...]:
    """On a backend: run what has been prepared for a step until the condition is False."""
    *xs, condition, body, inputs = args
    backend = xs[0].interpreter
    holds, step = prepared(condition, backend), prepared(body, backend)
    values = [x.representation for x in xs]
    carried = carries(range(len(xs)), inputs)
    while bool(Tensor(backend, holds(values)[0])):
        for i, y in zip(carried, step(values), strict=True):
            values[i] = backend.settle(y)
    return tuple([Tensor(backend, values[i], xs[i].shape, xs[i].dtype) for i in carried])


class _Whiles:
    """A while loop goes through forward mode and batches as one of other programs; reverse mode it refuses."""

    def jvp(self, active: Flags, params: tuple[Any, ...]) -> tuple[Op, Any, Flags, Flags]:
        condition, body, inputs = params
        pushed, wanted, pattern = carry_fixpoint(
            lambda flags, least: pushed_program(body, flags, least), active, inputs, _all_carries(body)
        )
        tangents = [Variable(v.shape, v.dtype) for v in compress(body.inputs, wanted)]
        beside = condition.once(
            ("beside", wanted), lambda: condition.changed(inputs=(*condition.inputs, *tangents))
        )
        return WHILE, (beside, pushed, (*inputs, *compress(inputs, wanted))), wanted, pattern

    def with_residuals(self, active: Flags, params: tuple[Any, ...]) -> tuple[Op, Any, int]:
        _, body, inputs = params
        _, _, pattern = carry_fixpoint(
            lambda flags, least: (body, active_outputs(body, flags, least)),
            active,
            inputs,
            _all_carries(body),
        )

        def pull_back(cotangents: Any, ys: Any, xs: Any, params: Any) -> list[Tensor | None]:
            """Nothing, if that is known; else an error."""
            for t, v, one in zip(cotangents, body.outputs, pattern, strict=True):
                if t is not None and one and v.dtype.kind == "float":
                    raise GradientError(
                        "while_loop: reverse mode (grad, vjp) needs a number of steps that is known before the loop "
                        "runs; use tk.fori_loop with ints as bounds, or tk.scan, or forward mode (jvp, jacfwd)"
                    )
            return [None] * len(xs)

        return replace(WHILE, vjp_all=pull_back), params, len(body.outputs)

    def batch(self, size: int, batched: Flags, params: tuple[Any, ...]) -> tuple[Op, Any, Flags, Flags]:
        condition, body, inputs = params
        over, wanted, pattern = carry_fixpoint(
            lambda flags, least: batched_program(body, size, flags, least),
            batched,
            inputs,
            _all_carries(body),
        )
        holds, (each,) = batched_program(condition, size, wanted)
        if each:  # then all carries differ between examples, but for those that no step changes
            going_in = carries(range(len(inputs)), inputs)
            pattern = tuple(
                [
                    one or place != own
                    for one, place, own in zip(pattern, forwarded_inputs(body), going_in, strict=True)
                ]
            )
            wanted = with_carries(wanted, inputs, pattern)
            holds, over = body.once(
                ("while", condition, size, wanted),
                lambda: _while_any(condition, body, inputs, size, wanted),
            )
        return WHILE, (holds, over, inputs), wanted, pattern

    def check(self, operands: Sequence[Any], params: tuple[Any, ...]) -> None:
        condition, body, inputs = params
        check_loop("while_loop", operands, inputs, body, _all_carries(body))
        check_alike("while_loop: the inputs of condition and body", condition.inputs, body.inputs)
        check_alike(
            "while_loop: the condition's results and one bool", condition.outputs, [Variable((), bool_)]
        )

    def layout(self, params: tuple[Any, ...]) -> SubprogramLayout:
        *programs, inputs = params
        carried = carry_pairs(inputs, _all_carries(programs[1]))
        return SubprogramLayout(
            tuple(programs), constant_flags(inputs), predicates=1, carries=carried, is_loop=True
        )

    def with_programs(
        self, params: Any, programs: Any, inputs: Sequence[int | None], outputs: Sequence[int]
    ) -> tuple[Any, ...]:
        return (*programs, specs_at(inputs, params[-1]))


def _all_carries(body: Program) -> ArgSpecs:
    return (CARRY,) * len(body.outputs)


def _while_any(
    condition: Program, body: Program, inputs: ArgSpecs, size: int, batched: Flags
) -> tuple[Program, Program]:
    """Condition and body of a loop that runs while it does for some example; what has ended stays as it is.

    Carries that are not batched are those that no step changes.
    """
    pattern = carries(batched, inputs)
    step, _ = batched_program(body, size, batched, tuple(pattern))
    holds, _ = batched_program(condition, size, batched, (True,))

    def any_holds(*values: Tensor) -> list[Tensor]:
        (each,) = holds.on(values)
        return [each.astype("int32").max(0) > 0] if size else [each.constant([False], bool_, ())]

    def chosen(*values: Tensor) -> list[Tensor]:
        (each,) = holds.on(values)
        old = carries(values, inputs)
        return [
            select_examples(each, y, x) if one else x
            for y, x, one in zip(step.on(values), old, pattern, strict=True)
        ]

    like, backend = step.inputs, body.backend
    return (
        traced(any_holds, like, backend, condition.name),
        traced(chosen, like, backend, body.name),
    )


WHILE = register(
    Op(
        "while_loop",
        None,
        shape=lambda *args: tuple([v.shape for v in args[-2].outputs]),
        dtype=lambda *args: tuple([v.dtype for v in args[-2].outputs]),
        params=("program", "program", "data"),
        names=("condition", "body", "inputs"),
        body=_while,
        results=None,
        higher_order=_Whiles(),
    )
)
"""A program run while another gives True. Params: the condition and the body, which take all operands; the roles of
these. The results are the carries."""
