"""Loops and branches as those of `lax`: their programs become its bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from tensorken.programs.passes.inlining import inline
from tensorken_core.language.higher_order import Loop
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Program


def run_branch(backend: Any, programs: tuple[Program, Program], operands: Sequence[Any]) -> tuple[Any, ...]:
    """The results of the first program if the first operand is True, else those of the second."""
    if_true, if_false = (_function(backend, program) for program in programs)
    predicate, *xs = operands
    return tuple(lax.cond(predicate, if_true, if_false, *xs))


def run_loop(backend: Any, loop: Loop, operands: Sequence[Any]) -> tuple[Any, ...]:
    """The results of a loop, as `lax.while_loop` or `lax.scan`."""
    return _while(backend, loop, operands) if loop.length is None else _scan(backend, loop, operands)


def compute_constants(params: Sequence[Any]) -> None:
    """Compute the delayed constants of programs among an op's params: one computed while JAX traces is a tracer."""
    for program in params:
        if isinstance(program, Program):
            for x in program.constants.values():
                if isinstance(x.interpreter, RawTensor):
                    x.interpreter.realize(x.representation)
            for equation in program.equations:
                compute_constants(equation.params)


def _function(backend: Any, program: Program) -> Any:
    inlined = inline(program)
    return lambda *xs: tuple(inlined.replay(backend, xs))


def _while(backend: Any, loop: Loop, operands: Sequence[Any]) -> tuple[Any, ...]:
    condition, body = _function(backend, loop.condition), _function(backend, loop.body)

    def inputs(carry: Sequence[Any]) -> list[Any]:
        return _with(operands, loop.carried, carry)

    carry = lax.while_loop(
        lambda carry: condition(*inputs(carry))[0],
        lambda carry: _carry_after(loop, body(*inputs(carry))),
        [operands[i] for i, _ in loop.carried],
    )
    return _results(loop, carry, ())


def _scan(backend: Any, loop: Loop, operands: Sequence[Any]) -> tuple[Any, ...]:
    body = _function(backend, loop.body)

    def step(carry: Sequence[Any], slices: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        ys = body(*_with(operands, (*loop.carried, *loop.sliced), (*carry, *slices)))
        return _carry_after(loop, ys), [ys[i] for i, _ in loop.stacked]

    slices = [jnp.moveaxis(operands[i], axis, 0) for i, axis in loop.sliced]
    start = [operands[i] for i, _ in loop.carried]
    carry, stacks = lax.scan(step, start, slices, loop.length, loop.reverse)
    return _results(loop, carry, stacks)


def _with(operands: Sequence[Any], places: Sequence[tuple[int, int]], values: Sequence[Any]) -> list[Any]:
    """The inputs of a step: the operands, with the values at the first index of each pair."""
    inputs = [*operands]
    for (i, _), x in zip(places, values, strict=True):
        inputs[i] = x
    return inputs


def _carry_after(loop: Loop, ys: Sequence[Any]) -> list[Any]:
    return [ys[i] for _, i in loop.carried]


def _results(loop: Loop, carry: Sequence[Any], stacks: Sequence[Any]) -> tuple[Any, ...]:
    results = {i: y for (_, i), y in zip(loop.carried, carry, strict=True)}
    results |= {i: jnp.moveaxis(y, 0, axis) for (i, axis), y in zip(loop.stacked, stacks, strict=True)}
    return tuple([results[i] for i in range(len(results))])
