"""Loops: the role of a value in a loop or a choice is taken for another: carried, constant, handed through, batched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorken.control_flow import carries, cond_op as branches, scan_op as scans, while_op as whiles
from tensorken_conformance.faults.changes import attribute
from tensorken_conformance.faults.fault import Course, fault
from tensorken_core.tensor.tensor import Tensor

LAW = "programs.loops"


@fault(LAW)
def carries_reached_later_have_no_derivative() -> Course:
    """Reverse mode finds the carries that a scan's operands reach in one step or two, and no later ones."""
    right = carries.carry_fixpoint

    def carry_fixpoint(make: Callable[..., Any], flags: Any, inputs: Any, outputs: Any) -> Any:
        def made(flags: Any) -> Any:
            return make(
                flags, carries.with_carries([False] * len(outputs), outputs, carries.carries(flags, inputs))
            )

        program, pattern = made(flags)
        wider = carries.with_carries(flags, inputs, carries.carries(pattern, outputs))
        same, pattern = made(wider)
        if same is not program:  # the flags are part of a program that is made for them
            return right(make, flags, inputs, outputs)
        return program, wider, carries.with_carries(pattern, outputs, carries.carries(wider, inputs))

    with attribute(scans, "carry_fixpoint", carry_fixpoint):
        yield None


@fault(LAW)
def first_carry_is_constant() -> Course:
    """What a step of a scan computes of its first carry alone is computed once, before the loop."""
    right = carries.constant_flags

    def constant_flags(inputs: Any) -> Any:
        flags = list(right(inputs))
        if carries.CARRY in inputs:
            flags[inputs.index(carries.CARRY)] = True
        return tuple(flags)

    with attribute(scans, "constant_flags", constant_flags):
        yield None


@fault(LAW)
def carries_change_places() -> Course:
    """The carries of a scan of three or more are taken to come out of a step in the reverse order."""
    right = carries.carry_pairs

    def carry_pairs(inputs: Any, outputs: Any) -> Any:
        found = right(inputs, outputs)
        going_in, coming_out = zip(*found, strict=True) if found else ((), ())
        return tuple(zip(going_in, coming_out[::-1], strict=True)) if len(found) > 2 else found

    with attribute(scans, "carry_pairs", carry_pairs):
        yield None


@fault(LAW)
def exchanged_is_handed_through() -> Course:
    """An input that a branch gives back in another place counts as handed through in that place, in a batch."""
    right = carries.forwarded_inputs

    def forwarded_inputs(program: Any) -> Any:
        return tuple([None if place is None else k for k, place in enumerate(right(program))])

    with attribute(branches, "forwarded_inputs", forwarded_inputs):
        yield None


@fault(LAW)
def first_example_chooses() -> Course:
    """All examples of a batch take the branch of the first."""
    right = carries.select_examples

    def select_examples(each: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return right(each[:1].broadcast_to(each.shape), a, b)

    with attribute(branches, "select_examples", select_examples):
        yield None


@fault(LAW)
def ended_examples_go_on() -> Course:
    """An example whose while_loop has ended takes steps while another one does."""
    with attribute(whiles, "select_examples", lambda each, a, b: a):
        yield None


@fault(LAW)
def tangents_are_pushed_forwards() -> Course:
    """Forward mode takes the slices of a reversed scan from the first to the last."""
    right = scans._ScanRules.jvp

    def jvp(self: Any, active: Any, params: Any) -> Any:
        op, (*rest, _), wanted, pattern = right(self, active, params)
        return op, (*rest, False), wanted, pattern

    with attribute(scans._ScanRules, "jvp", jvp):
        yield None


@fault(LAW)
def batches_are_scanned_forwards() -> Course:
    """vmap takes the slices of a reversed scan from the first to the last."""
    right = scans._ScanRules.batch

    def batch(self: Any, size: int, batched: Any, params: Any) -> Any:
        op, (*rest, _), wanted, pattern = right(self, size, batched, params)
        return op, (*rest, False), wanted, pattern

    with attribute(scans._ScanRules, "batch", batch):
        yield None
