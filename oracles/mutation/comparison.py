"""Comparison: the results of a mutant against those of the original, for calls, chains and random programs.

`... record FILE BACKEND SEED LARGEST PROGRAMS` of this module writes the results of the original, and
`... compare FILE` prints the first results of a mutant that differ by more than rounding, else by rounding.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tensorken as tk
from core.tests.random_programs.drawing import drawn
from core.tests.random_programs.program import Program
from oracles.mutation import chains
from oracles.mutation.calls import Calls
from oracles.mutation.examination import limit
from tensorken_core.host.registry import SELECTION
from tensorken_core.language.op import OPS
from tensorken_core.tensor.dispatch import apply

Array = np.ndarray[Any, Any]
Results = list[Array] | str
"""Results, or the name of the error."""

Probe = tuple[str, float, Callable[[], Any]]
"""A description, the units of rounding that are tolerated, and what computes the results."""

ROUNDING_OF_CALL = 64.0
ROUNDING_OF_PROGRAM = 1e5
TINY = 1e-40
"""The difference of subnormal numbers that counts as rounding."""

CALLS = 6
"""The calls of each op in each dtype."""

CHAINS = 50


def probes(backend: str, seed: int, largest: int, programs: list[Program]) -> Iterator[Probe]:
    """All that is computed, in an order that the results do not change."""
    interpreter = SELECTION.resolve(backend)
    yield from aliases(backend)
    for op in OPS.values():
        for number in range(CALLS if op.samples else 0):
            rng = np.random.default_rng([seed, number, sum(op.name.encode())])
            calls = Calls(interpreter, rng, largest)
            for name, operands, params in calls.drawn(op):
                yield (
                    name,
                    ROUNDING_OF_CALL,
                    lambda op=op, operands=operands, params=params: called(op, operands, params),
                )
    for number, program in enumerate(programs):
        leaves = {leaf.name: leaf.values for leaf in program.leaves}
        names, ends = list(leaves), program.ends

        def run(*xs: Any, program: Program = program, names: Any = names, ends: Any = ends) -> list[Any]:
            found = program.run(tk, dict(zip(names, xs, strict=True)))
            return [found[end] for end in ends]

        compiled = tk.jit(run)
        yield (
            f"random program {number}",
            ROUNDING_OF_PROGRAM,
            lambda f=compiled, leaves=leaves: f(*map(given_as, leaves.values())),
        )
    for number in range(CHAINS):
        name, f, arguments, _ = chains.drawn(np.random.default_rng([seed, number]), largest)
        compiled = tk.jit(f)
        for turn in range(2):
            given = [np.roll(x, turn, 1) for x in arguments]
            yield (
                name,
                ROUNDING_OF_PROGRAM,
                lambda g=compiled, given=given: g(*map(tk.tensor, given)),
            )


def given_as(x: Any) -> Any:
    """An array as a tensor, a Python number as it is."""
    return x if isinstance(x, bool | int | float | complex) else tk.tensor(x)


def called(op: Any, operands: list[Any], params: tuple[Any, ...]) -> list[Any]:
    """The results of an op, and the operands after the call."""
    found = apply(op, operands, params)
    return [*(found if isinstance(found, tuple) else (found,)), *operands]


def aliases(backend: str) -> Iterator[Probe]:
    """Whether a tensor keeps its numbers when the array that it was made of changes, and an array those of a tensor."""

    def changed(make: Callable[[Array], Any]) -> list[Any]:
        array = np.arange(6.0)
        tensor = make(array)
        array[:] = 7.0
        return [tensor, tensor + 1.0]

    yield "tensor", 0.0, lambda: changed(tk.tensor)
    yield "asarray", 0.0, lambda: changed(lambda x: tk.asarray(x, copy=True))
    yield "from_dlpack", 0.0, lambda: changed(lambda x: tk.from_dlpack(x) + 0.0)
    yield "repr", 0.0, lambda: [np.array(repr(tk.arange(5.0)))]


def results(compute: Callable[[], Any]) -> Results:
    """The results as arrays, or the name of the error."""
    try:
        found = compute()
        return [np.array(x) for x in (found if isinstance(found, tuple | list) else [found])]
    except Exception as error:  # noqa: BLE001, an error is a result
        return type(error).__name__


def compared(found: Results, wanted: Results, units: float) -> str:
    """How results differ: `=` not at all, `~` by rounding, or a description."""
    if isinstance(found, str) or isinstance(wanted, str):
        return "=" if found == wanted else f"expected {summary(wanted)}, got {summary(found)}"
    verdict = "="
    for f, w in zip(found, wanted, strict=True):
        if (f.shape, f.dtype) != (w.shape, w.dtype):
            return f"expected {w.dtype}{w.shape}, got {f.dtype}{f.shape}"
        if f.tobytes() == w.tobytes():
            continue
        if w.dtype.kind in "biuUSO":
            return describe(f, w, np.asarray(f != w))
        wide = np.result_type(w.dtype if w.dtype.kind in "fc" else "float32", np.float64)
        a, b = f.astype(wide), w.astype(wide)
        epsilon = {2: 2.0**-10, 4: 2.0**-23}.get(w.dtype.itemsize // (1 + (w.dtype.kind == "c")), 2.0**-52)
        with np.errstate(all="ignore"):
            finite = np.abs(b[np.isfinite(b)])
            is_call = units < ROUNDING_OF_PROGRAM
            scale = np.abs(b) if is_call else finite.max(initial=1e-30)
            near = np.abs(a - b) <= units * epsilon * scale + TINY
        signs = np.signbit(a.real) == np.signbit(b.real)
        same = (a == b) & signs | (np.isnan(a) & np.isnan(b))
        near &= signs | (b != 0) | (not is_call)
        if not same.all():
            if not (same | near).all():
                return describe(f, w, ~(same | near))
            verdict = "~"
    return verdict


def summary(found: Results) -> str:
    """Results in a word."""
    return found if isinstance(found, str) else "a result"


def describe(found: Array, wanted: Array, wrong: Array) -> str:
    """The first element that differs."""
    if not wanted.ndim:
        return f"expected {wanted[()]}, got {found[()]}"
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{int(wrong.sum())} of {wanted.size} elements, at {place}: expected {wanted[place]}, got {found[place]}"


# ---- commands --------------------------------------------------------------------------------------------------


def record(file: Path, backend: str, seed: int, largest: int, count: int) -> None:
    """Draw programs, compute everything, and write the results."""
    drafts = [drawn(number, wide=number % 2 == 1) for number in range(seed * 1000, seed * 1000 + count)]
    programs = [draft.program for draft in drafts if draft.error is None and draft.program.steps]
    with tk.use_backend(backend):
        everything = [results(compute) for _, _, compute in probes(backend, seed, largest, programs)]
    file.write_bytes(pickle.dumps((backend, seed, largest, programs, everything)))


def compare(file: Path) -> dict[str, Any]:
    """The first difference of this process from the recorded results."""
    backend, seed, largest, programs, everything = pickle.loads(file.read_bytes())
    slight = ""
    with tk.use_backend(backend):
        for (name, units, compute), wanted in zip(
            probes(backend, seed, largest, programs), everything, strict=True
        ):
            verdict = compared(results(compute), wanted, units)
            if verdict == "~":
                slight = slight or name
            elif verdict != "=":
                return {"wrong": f"{name}: {verdict}"}
    return {"rounding": slight}


def main(arguments: list[str]) -> None:
    """Run one of the commands."""
    output = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    limit(600)
    command, file, *rest = arguments
    if command == "record":
        backend, *numbers = rest
        seed, largest, count = map(int, numbers)
        record(Path(file), backend, seed, largest, count)
        found: dict[str, Any] = {}
    else:
        found = compare(Path(file))
    output.write(json.dumps({**found, "seconds": time.process_time()}) + "\n")
    output.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
