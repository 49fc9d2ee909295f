"""The op of `while_loop`, which runs a program while another returns True, and its derivative and batching rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

from tensorken.compilation.call_op import batched_program, check_alike, jvp_program
from tensorken.control_flow.carries import (
    CARRY,
    ArgSpecs,
    Flags,
    active_outputs,
    carries,
    carry_fixpoint,
    carry_pairs,
    check_loop,
    check_repeatable,
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
from tensorken_core.levels.batch import Axis
from tensorken_core.levels.trace import traced
from tensorken_core.program.program import Program, Variable
from tensorken_core.tensor.tensor import Tensor


def _while(*args: Any) -> tuple[Tensor, ...]:
    """On a backend: run the prepared step while the condition is True."""
    *xs, condition, body, inputs = args
    backend = xs[0].interpreter
    predicate, step = [prepared(program, backend, is_checked=True) for program in (condition, body)]
    values = [x.representation for x in xs]
    condition.check_inputs(backend, values)
    carried = carries(range(len(xs)), inputs)
    while bool(Tensor(backend, predicate(values)[0])):
        for i, y in zip(carried, step(values), strict=True):
            values[i] = backend.settle(y)
    return tuple([Tensor(backend, values[i], xs[i].shape, xs[i].dtype) for i in carried])


class _WhileRules:
    """JVP and batching rules: each is a while_loop of other programs; reverse mode raises an error."""

    def jvp(self, active: Flags, params: tuple[Any, ...]) -> tuple[Op, Any, Flags, Flags]:
        condition, body, inputs = params
        pushed, input_flags, pattern = carry_fixpoint(
            lambda flags, instantiate: jvp_program(body, flags, instantiate),
            active,
            inputs,
            _all_carries(body),
        )
        tangents = [Variable(v.shape, v.dtype) for v in compress(body.inputs, input_flags)]
        wider_condition = condition.once(
            ("wider_condition", input_flags), lambda: condition.changed(inputs=(*condition.inputs, *tangents))
        )
        return (
            WHILE,
            (wider_condition, pushed, (*inputs, *compress(inputs, input_flags))),
            input_flags,
            pattern,
        )

    def with_residuals(self, active: Flags, params: tuple[Any, ...]) -> tuple[Op, Any, int]:
        _, body, inputs = params
        _, _, pattern = carry_fixpoint(
            lambda flags, instantiate: (body, active_outputs(body, flags, instantiate)),
            active,
            inputs,
            _all_carries(body),
        )

        def pull_back(cotangents: Any, ys: Any, xs: Any, params: Any) -> list[Tensor | None]:
            """No cotangents if all cotangents of the results are zero; else an error."""
            for t, v, flag in zip(cotangents, body.outputs, pattern, strict=True):
                if t is not None and flag and v.dtype.kind == "float":
                    raise GradientError(
                        "while_loop: reverse mode (grad, vjp) needs a number of steps that is known before the loop "
                        "runs; use tk.fori_loop with ints as bounds, or tk.scan, or forward mode (jvp, jacfwd)"
                    )
            return [None] * len(xs)

        return replace(WHILE, vjp_all=pull_back), params, len(body.outputs)

    def batch(self, axis: Axis, batched: Flags, params: tuple[Any, ...]) -> tuple[Op, Any, Flags, Flags]:
        condition, body, inputs = params
        batched_body, input_flags, pattern = carry_fixpoint(
            lambda flags, instantiate: batched_program(body, axis, flags, instantiate),
            batched,
            inputs,
            _all_carries(body),
        )
        predicate, (per_example,) = batched_program(condition, axis, input_flags)
        if per_example:
            check_repeatable("while_loop", (condition, body))
            # All carries that a step changes then differ between examples
            carries_in = carries(range(len(inputs)), inputs)
            pattern = tuple(
                [
                    flag or index != carry_index
                    for flag, index, carry_index in zip(
                        pattern, forwarded_inputs(body), carries_in, strict=True
                    )
                ]
            )
            input_flags = with_carries(input_flags, inputs, pattern)
            predicate, batched_body = body.once(
                ("while", condition, axis, input_flags),
                lambda: _while_any(condition, body, inputs, axis, input_flags),
            )
        return WHILE, (predicate, batched_body, inputs), input_flags, pattern

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
    condition: Program, body: Program, inputs: ArgSpecs, axis: Axis, batched: Flags
) -> tuple[Program, Program]:
    """The condition and body of a loop that runs while the condition is True for any example; examples that
    have ended keep their values.

    A carry is not batched only if no step changes it.
    """
    pattern = carries(batched, inputs)
    step, _ = batched_program(body, axis, batched, tuple(pattern))
    predicate, _ = batched_program(condition, axis, batched, (True,))

    def any_holds(*values: Tensor) -> list[Tensor]:
        (per_example,) = predicate.on(values)
        return [axis.any(per_example)]

    def select_step(*values: Tensor) -> list[Tensor]:
        (per_example,) = predicate.on(values)
        old = carries(values, inputs)
        return [
            select_examples(per_example, y, x) if flag else x
            for y, x, flag in zip(step.on(values), old, pattern, strict=True)
        ]

    like, backend = step.inputs, body.backend
    return (
        traced(any_holds, like, backend, condition.name),
        traced(select_step, like, backend, body.name),
    )


WHILE = register(
    Op(
        "while_loop",
        None,
        shape=lambda *args: tuple([v.shape for v in args[-2].outputs]),
        dtype=lambda *args: tuple([v.dtype for v in args[-2].outputs]),
        params=("program", "program", "data"),
        param_names=("condition", "body", "inputs"),
        body=_while,
        results=None,
        higher_order=_WhileRules(),
    )
)
"""A program run while another returns True. Params: the condition and the body, which take all operands, and the
specs of the operands."""
