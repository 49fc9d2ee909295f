"""Collectives: a named axis is taken for another one, or a derivative or a shared value is reduced wrongly."""

from __future__ import annotations

from typing import Any

from tensorken import collectives
from tensorken.distributed.spread import Spread
from tensorken.ops import collectives as ops
from tensorken_conformance.faults.changes import rules
from tensorken_conformance.faults.fault import Place, fault, fault_in_function
from tensorken_core.levels.batch import Batch, Batched, named_axes

LAW = "programs.collectives"


@fault(LAW)
def cotangents_of_sums_are_not_added() -> Place:
    """The cotangent of an operand of psum is that of the example's own result alone."""
    return rules(ops.PSUM, vjp=(lambda t, y, x, axis: t,))


@fault(LAW)
def gathered_cotangents_are_of_one_result() -> Place:
    """The cotangent of an operand of all_gather is that of the result of the first example alone."""
    return rules(ops.ALL_GATHER, vjp=(lambda t, y, x, axis: t.apply(ops.ALL_TO_ALL, axis)[0],))


@fault_in_function(LAW, ops, "inverse")
def cotangents_are_permuted_forwards(original: Any, pairs: Any) -> Any:
    """The cotangents of a ppermute go where its operands went."""
    return pairs


@fault_in_function(LAW, Batch, "collective")
def shared_values_are_summed_once(original: Any, self: Any, op: Any, operands: Any, params: Any) -> Any:
    """psum of a value that all examples share is the value, not the sum of one for each example."""
    if op is ops.PSUM and not operands[0].batched:
        return operands[0]
    return original(self, op, operands, params)


@fault(LAW)
def tangents_are_summed_twice() -> Place:
    """The tangent of a psum is added up a second time, as if the first sum differed between the examples."""
    return rules(ops.PSUM, jvp=(lambda t, y, x, axis: t.apply(ops.PSUM, axis).apply(ops.PSUM, axis),))


@fault_in_function(LAW, collectives, "_axis")
def axes_are_chosen_by_place(original: Any, op_name: str, interpreter: Any, name: Any) -> Any:
    """A collective is over the innermost axis, whatever its name."""
    original(op_name, interpreter, name)
    return [*named_axes(interpreter).values()][-1]


@fault_in_function(LAW, Spread, "collective")
def members_take_results_for_shared(original: Any, self: Any, op: Any, operands: Any, params: Any) -> Any:
    """spread takes the result of a ppermute for one that all members share."""
    y = original(self, op, operands, params)
    return Batched(y.value, False) if op is ops.PPERMUTE else y
