"""Effects: an effect of a program is lost, repeated, moved, or occurs while the program is traced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorken.ops import callbacks
from tensorken.ops.callbacks import DEBUG_CALLBACK, IO_CALLBACK, Callback
from tensorken.programs import execution
from tensorken_conformance.faults.changes import rules
from tensorken_conformance.faults.fault import Place, fault, fault_in_function
from tensorken_core.program.program import Equation, Program

LAW = "programs.effects"


@fault(LAW)
def unused_effects_are_dropped() -> Place:
    """A callback with an effect is dropped from a program if its results are not used."""
    return rules(IO_CALLBACK, opaque="pure")


@fault_in_function(LAW, execution, "optimised")
def equal_effects_are_merged(original: Any, program: Program, backend: Any) -> Any:
    """Calls of one callback on the same operands are merged in a compiled program."""
    found = original(program, backend)
    kept: dict[Any, Equation] = {}
    for i, e in enumerate(found.equations):
        kept.setdefault((e.op, e.operands, e.params) if e.op.opaque and not e.results else i, e)
    return found.changed(equations=tuple(kept.values()))


@fault_in_function(LAW, callbacks, "interpreter_below")
def effects_on_constants_occur_while_tracing(original: Any, interpreters: Sequence[Any], name: str) -> Any:
    """A callback on tensors from outside of a program runs while the program is traced, and never again."""
    return interpreters[0] if interpreters else original(interpreters, name)


@fault_in_function(LAW, execution, "optimised")
def later_effects_occur_first(original: Any, program: Program, backend: Any) -> Any:
    """A compiled program runs the second one of two callbacks in a row first."""
    found = original(program, backend)
    equations: list[Equation] = list(found.equations)
    for i in range(len(equations) - 1):
        if equations[i].op is IO_CALLBACK and equations[i + 1].op is DEBUG_CALLBACK:
            equations[i : i + 2] = equations[i + 1], equations[i]
    return found.changed(equations=tuple(equations))


@fault_in_function(LAW, Callback, "_for_each")
def effects_of_a_batch_occur_backwards(original: Any, self: Any, size: int, flags: Sequence[bool]) -> Any:
    """The effects of the examples of a batch occur from the last to the first."""
    if self.results:
        return original(self, size, flags)
    run = original(self, size, flags)
    return lambda *xs: run(*[np.flip(x, 0) if flag else x for x, flag in zip(xs, flags, strict=True)])


@fault(LAW)
def effects_occur_again_under_jvp() -> Place:
    """A debug callback runs twice where its operands have tangents."""
    right = DEBUG_CALLBACK.jvp_with_primals
    assert right is not None

    def twice(tangents: Any, xs: Any, params: Any) -> Any:
        right(tangents, xs, params)
        return right(tangents, xs, params)

    return rules(DEBUG_CALLBACK, jvp_with_primals=twice)


@fault(LAW)
def effects_on_equal_numbers_occur_once() -> Place:
    """A callback on a number does not run again on an equal one."""
    body = IO_CALLBACK.body
    assert body is not None
    seen: dict[Any, Any] = {}

    def once(backend: Any, *args: Any) -> Any:
        *xs, callback = args
        key = callback, tuple([x.item() for x in xs if not x.shape])
        if not xs or callback.results or any([x.shape for x in xs]):
            return body(backend, *args)
        if key not in seen:
            seen[key] = body(backend, *args)
        return seen[key]

    return rules(IO_CALLBACK, body=once)
