"""Loops: a loop or a branch treats a value wrongly: as carried, constant, forwarded or batched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorken.control_flow import carries, cond_op as branches, scan_op as scans, while_op as whiles
from tensorken_conformance.faults.fault import fault_in_function
from tensorken_core.tensor.tensor import Tensor

LAW = "programs.loops"


@fault_in_function(LAW, scans, "carry_fixpoint")
def carries_reached_later_have_no_derivative(
    original: Any, make: Callable[..., Any], flags: Any, inputs: Any, outputs: Any
) -> Any:
    """Reverse mode finds the carries that a scan's operands reach in one step or two, and no later ones."""

    def made(flags: Any) -> Any:
        return make(
            flags, carries.with_carries([False] * len(outputs), outputs, carries.carries(flags, inputs))
        )

    program, pattern = made(flags)
    wider = carries.with_carries(flags, inputs, carries.carries(pattern, outputs))
    same, pattern = made(wider)
    if same is not program:  # the flags are part of a program that is made for them
        return original(make, flags, inputs, outputs)
    return program, wider, carries.with_carries(pattern, outputs, carries.carries(wider, inputs))


@fault_in_function(LAW, scans, "constant_flags")
def first_carry_is_constant(original: Any, inputs: Any) -> Any:
    """Values that a step of a scan computes of its first carry alone are computed once, before the loop."""
    flags = list(original(inputs))
    if carries.CARRY in inputs:
        flags[inputs.index(carries.CARRY)] = True
    return tuple(flags)


@fault_in_function(LAW, scans, "carry_pairs")
def carries_change_places(original: Any, inputs: Any, outputs: Any) -> Any:
    """A scan of three or more carries expects the carries of a step's result in the reverse order."""
    found = original(inputs, outputs)
    going_in, coming_out = zip(*found, strict=True) if found else ((), ())
    return tuple(zip(going_in, coming_out[::-1], strict=True)) if len(found) > 2 else found


@fault_in_function(LAW, branches, "forwarded_inputs")
def exchanged_is_handed_through(original: Any, program: Any) -> Any:
    """An input that a branch returns in another position counts as forwarded in that position, in a batch."""
    return tuple([None if place is None else k for k, place in enumerate(original(program))])


@fault_in_function(LAW, branches, "select_examples")
def first_example_chooses(original: Any, each: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """All examples of a batch take the branch of the first."""
    found: Tensor = original(each[:1].broadcast_to(each.shape), a, b)
    return found


@fault_in_function(LAW, whiles, "select_examples")
def ended_examples_go_on(original: Any, each: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """An example whose while_loop has ended takes steps while another one does."""
    return a


def _forwards(op: Any, params: Any, wanted: Any, pattern: Any) -> Any:
    """The arguments of a scan rule, with the last param, `reverse`, False."""
    *rest, _ = params
    return op, (*rest, False), wanted, pattern


@fault_in_function(LAW, scans._ScanRules, "jvp")
def tangents_are_pushed_forwards(original: Any, self: Any, active: Any, params: Any) -> Any:
    """Forward mode takes the slices of a reversed scan from the first to the last."""
    return _forwards(*original(self, active, params))


@fault_in_function(LAW, scans._ScanRules, "batch")
def batches_are_scanned_forwards(original: Any, self: Any, size: int, batched: Any, params: Any) -> Any:
    """vmap takes the slices of a reversed scan from the first to the last."""
    return _forwards(*original(self, size, batched, params))
