"""lifetime.global-state: a backend changes no setting of Python or of a library that the whole process shares."""

from __future__ import annotations

import contextlib
import decimal
import functools
import json
import locale
import os
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.case import Case, Failure
from tensorken_conformance.law import law
from tensorken_conformance.laws import sampled
from tensorken_conformance.laws.fresh_process import json_of
from tensorken_conformance.operands import samples
from tensorken_conformance.subject import Subject
from tensorken_core.errors import TensorkenError
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS
from tensorken_core.tensor.tensor import Tensor

ID = "lifetime.global-state"


@dataclass(frozen=True, slots=True)
class State:
    """A setting that all code of the process shares.

    Attributes:
        read: returns the setting; equal settings are equal objects.
        write: restores it.
        module: the library that has it; a library that is not loaded has none.
    """

    read: Callable[[], Any]
    write: Callable[[Any], Any]
    module: str = ""


def _read_random() -> tuple[Any, ...]:
    state: tuple[Any, ...] = np.random.get_state()  # type: ignore[assignment]
    return (state[0], state[1].tobytes(), *state[2:])


def _write_random(state: tuple[Any, ...]) -> None:
    name, words, *rest = state
    np.random.set_state((name, np.frombuffer(words, np.uint32), *rest))


def _write_filters(filters: tuple[Any, ...]) -> None:
    warnings.filters[:] = filters  # type: ignore[index]
    with warnings.catch_warnings():  # its end clears the cache of matching filters
        pass


def _write_context(state: tuple[Any, ...]) -> None:
    context = decimal.getcontext()
    context.prec, context.rounding = state


def _write_environment(variables: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(variables)


def _of(module: str, read: str, write: str) -> State:
    """A setting that two functions of a library read and write."""

    def found(path: str) -> Any:
        return functools.reduce(getattr, path.split("."), sys.modules[module])

    return State(lambda: found(read)(), lambda value: found(write)(value), module)


def _read_torch_random() -> bytes:
    return bytes(sys.modules["torch"].get_rng_state().numpy().tobytes())


def _write_torch_random(state: bytes) -> None:
    torch = sys.modules["torch"]
    torch.set_rng_state(torch.tensor(list(state), dtype=torch.uint8))


def _read_jax() -> dict[str, Any]:
    config = sys.modules["jax"].config
    return {name: getattr(config, name, None) for name in config.values}


def _write_jax(values: dict[str, Any]) -> None:
    config = sys.modules["jax"].config
    for name, value in values.items():
        if getattr(config, name, None) != value:
            config.update(name, value)


FILTERS = "the filters of warnings"

STATES: dict[str, State] = {
    "numpy's error state": State(np.geterr, lambda state: np.seterr(**state)),
    "numpy's print options": State(np.get_printoptions, lambda state: np.set_printoptions(**state)),
    "the state of numpy.random": State(_read_random, _write_random),
    "the state of random": State(random.getstate, random.setstate),
    FILTERS: State(lambda: tuple(warnings.filters), _write_filters),
    "the locale": State(
        lambda: locale.setlocale(locale.LC_ALL), lambda name: locale.setlocale(locale.LC_ALL, name)
    ),
    "the context of decimal": State(
        lambda: (decimal.getcontext().prec, decimal.getcontext().rounding), _write_context
    ),
    "the environment": State(lambda: dict(os.environ), _write_environment),
    "the current folder": State(os.getcwd, os.chdir),
    # a library compiled with fast math may set the processor to flush subnormal numbers, for all code of a thread
    "arithmetic of subnormal numbers": State(lambda: sys.float_info.min * 0.5 > 0.0, lambda kept: None),
    "torch's gradient mode": _of("torch", "is_grad_enabled", "set_grad_enabled"),
    "torch's default dtype": _of("torch", "get_default_dtype", "set_default_dtype"),
    "torch's default device": _of("torch", "get_default_device", "set_default_device"),
    "torch's number of threads": _of("torch", "get_num_threads", "set_num_threads"),
    "torch's deterministic mode": _of(
        "torch", "are_deterministic_algorithms_enabled", "use_deterministic_algorithms"
    ),
    "torch's random state": State(_read_torch_random, _write_torch_random, "torch"),
    "jax's config": State(_read_jax, _write_jax, "jax"),
}
"""The settings, by their names in messages."""


def present() -> dict[str, Any]:
    """The present settings of Python and of the libraries that are loaded."""
    return {
        name: state.read()
        for name, state in STATES.items()
        if not state.module or state.module in sys.modules
    }


class Marked(Warning):
    """A warning that nothing else filters."""


MARK = ("ignore", None, Marked, None, 0)
"""The filter of warnings that stands first, so that an op that adds the same filter in each call is found."""

AT_FIRST = present()
"""The settings before any law runs an op, which an earlier call of the op under test may have changed."""


@contextlib.contextmanager
def as_at_first() -> Iterator[None]:
    """Within the block the settings are those before any law ran an op; afterwards they are again as they were."""
    kept = present()
    try:
        for name, value in AT_FIRST.items():
            if name != FILTERS and STATES[name].read() != value:
                STATES[name].write(value)
        STATES[FILTERS].write((MARK, *kept[FILTERS]))
        yield
    finally:
        changes(kept)


def changes(before: dict[str, Any]) -> list[str]:
    """The settings that have changed, each with its old and new value; all are restored."""
    found = []
    for name, value in before.items():
        now = STATES[name].read()
        if now != value:
            found.append(f"{name}: expected {_difference(value, now)}")
            STATES[name].write(value)
    return found


def _difference(old: Any, new: Any) -> str:
    """The old and the new value; of a dict only the entries that differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
        old, new = ({name: some.get(name) for name in names} for some in (old, new))
    if isinstance(old, tuple | bytes):
        return "no change, got another one"
    return f"{old!r:.100}, got {new!r:.100}"


# ---- what may change them ----------------------------------------------------------------------------------


def _stops(x: Tensor) -> Tensor:
    raise ArithmeticError("a user's function fails")


USES: dict[str, Callable[[Tensor], Any]] = {
    "jit": lambda x: tk.jit(lambda y: tk.exp(y) * y - 1)(x).tolist(),
    "gradient": lambda x: tk.grad(lambda y: (tk.sin(y) / y).sum())(x).tolist(),
    "batch": lambda x: tk.vmap(lambda y: y - y * 2)(x).tolist(),
    "loop": lambda x: tk.fori_loop(0, 3, lambda i, y: y * y, x).tolist(),
    "copy": lambda x: np.asarray(x).tolist(),
    "refused": lambda x: x + x[:, :2],
    "exception": lambda x: tk.jit(tk.grad(lambda y: _stops(y * y)))(x),
}
"""Uses of a tensor of shape (2, 3); the last two raise an error."""

CHILD = """
import json, sys
name, imported = sys.argv[1], json.loads(sys.argv[2])
def load():
    from tensorken_conformance.backends.loading import load
    return load(name)
if imported is None:
    load()
    print(json.dumps(sorted({module.partition(".")[0] for module in sys.modules})))
else:
    import importlib, warnings
    from tensorken_conformance.laws.lifetime import global_state
    for module in imported:
        try:
            importlib.import_module(module)
        except ImportError:
            pass
    before = global_state.present()
    subject = load()
    global_state.USES["jit"](global_state.operand(subject))
    print(json.dumps(global_state.changes(before)))
"""
"""Loads a backend: first to list the libraries that it loads, then after these, whose settings it must keep."""


def operand(subject: Subject) -> Tensor:
    """A tensor for the uses."""
    dtype = next((d for d in subject.dtypes() if d.name == "float32"), subject.dtypes()[-1])
    return subject.tensor(np.arange(1.0, 7.0).reshape(2, 3).astype(dtype.name), dtype, subject.stack)


def cases(subject: Subject) -> Iterator[Case]:
    """Each op in each dtype, each use, and loading in a new process.

    A smoke run leaves out loading and the longest bodies.
    """
    yield from sampled.cases(ID, subject)
    if any(dtype.kind == "float" for dtype in subject.dtypes()):
        yield from [Case(ID, use) for use in USES]
    if subject.depth != "smoke" and subject.is_selectable:
        yield Case(ID, "loading")


@law(ID, cases, level=4)
def global_state(subject: Subject, case: Case) -> None:
    """A backend leaves settings of Python and of libraries as they are: those of its user's code are the same ones.

    They are read before and after operands are made, an op runs on them and its results are read; after a compiled
    program, a derivative, a batch and a loop; after errors; and after the backend is loaded in a new process.

    They begin as they were before any law ran an op: a change that an earlier call has made would change nothing.
    """
    if case.op == "loading":
        loaded = json_of(CHILD, subject.name, "null")
        own = ("tensorken", type(subject.backend).__module__.partition(".")[0])
        found = json_of(
            CHILD, subject.name, json.dumps([name for name in loaded if not name.startswith(own)])
        )
        _refuse(f"loading {subject.name}", found)
        operand(subject).tolist()
        return
    with as_at_first():
        _run(subject, case)


def _run(subject: Subject, case: Case) -> None:
    before = present()
    if case.op in USES:
        with contextlib.suppress(TensorkenError, ArithmeticError):
            USES[case.op](operand(subject))
        _refuse(case.op, changes(before))
        return
    op, dtype = OPS[case.op], DTYPES[case.dtype]
    for sample in samples.repeated(subject, op):
        operands = samples.tensors_of(subject, op, sample, dtype)
        for y in subject.results(op, operands, sample[1]):
            subject.read(y)
        _refuse(f"{case.op} of {case.dtype}", changes(before))


def _refuse(says: str, found: list[str]) -> None:
    if found:
        raise Failure(f"{says} changes {'; '.join(found)}")
