"""symbolic.determinism, refuses, errors: the behaviour of a symbolic backend."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.case import Case, Failure
from tensorken_conformance.law import law
from tensorken_conformance.laws.errors.mistakes import MISTAKES, Operands
from tensorken_conformance.laws.errors.refused import possible, refuse
from tensorken_conformance.laws.fresh_process import json_of
from tensorken_conformance.programs.symbolic import PROGRAMS, WRITTEN, program_text, texts
from tensorken_conformance.subject import Subject
from tensorken_core.errors import ConcretizationError
from tensorken_core.language.dtypes import float32
from tensorken_core.tensor.tensor import Tensor

TIMES = 20

HASH_SEEDS = ("0", "12345")

CHILD = """
import json, sys
from tensorken_conformance.backends.loading import load
from tensorken_conformance.programs.symbolic import texts
print(json.dumps(texts(load(sys.argv[1], seed=int(sys.argv[2])))))
"""


def _repetitions(subject: Subject) -> Iterator[Case]:
    for name in PROGRAMS:
        yield Case("symbolic.determinism", name)
    if subject.depth != "smoke" and subject.is_selectable:
        yield Case("symbolic.determinism", "hash-seeds")


@law("symbolic.determinism", _repetitions, level=4, symbolic=True)
def determinism(subject: Subject, case: Case) -> None:
    """A program has the same text each time, whatever runs between, and in every process."""
    if case.op == "hash-seeds":
        here = texts(subject)
        for seed in HASH_SEEDS:
            there = json_of(CHILD, subject.name, str(subject.seed), PYTHONHASHSEED=seed)
            if wrong := [name for name in here if here[name] != there.get(name)]:
                raise Failure(
                    f"{wrong[0]}: expected {here[wrong[0]]!r} with PYTHONHASHSEED={seed}, got {there.get(wrong[0])!r}"
                )
        return
    first = program_text(subject, case.op)
    for i in range(TIMES):
        if i % 2:
            program_text(subject, list(WRITTEN)[i % len(WRITTEN)])
        if (again := program_text(subject, case.op)) != first:
            raise Failure(f"{case.op}: expected {first!r} again, got {again!r}")


READINGS: dict[str, Callable[[Tensor], Any]] = {
    "tolist": lambda x: x.tolist(),
    "item": lambda x: x.sum().item(),
    "float": lambda x: float(x.sum()),
    "int": lambda x: int(x.sum()),
    "truth": lambda x: bool(x.sum() > 0.0),
    "branch": lambda x: 1 if x.sum() > 0.0 else 2,
    "array": np.array,
    "flat": lambda x: x.flat(),
    "mask": lambda x: x[x > 0.0],
    "move": lambda x: x.to("numpy"),
    "pickle": pickle.dumps,
    "in-grad": lambda x: tk.grad(lambda v: v.sum() * float(v.sum()))(x),
}
"""The ways to ask for a value."""


def _readings(subject: Subject) -> Iterator[Case]:
    if float32.name in subject.capabilities.dtypes:
        for name in READINGS:
            yield Case("symbolic.refuses", name)


@law("symbolic.refuses", _readings, level=1, symbolic=True)
def refuses(subject: Subject, case: Case) -> None:
    """Reading a value raises ConcretizationError, in one line that names the alternative."""
    x = subject.tensor(np.array([1.0, 2.0]), float32, subject.stack) * 2.0
    try:
        result = READINGS[case.op](x)
    except ConcretizationError as error:
        if len(str(error).splitlines()) != 1:
            raise Failure(f"{case.op}: expected one line, got {str(error)!r}") from None
    except Exception as error:  # noqa: BLE001, the class is compared
        raise Failure(
            f"{case.op}: expected ConcretizationError, got {type(error).__name__}: {error}"
        ) from None
    else:
        raise Failure(f"{case.op}: expected ConcretizationError, got {type(result).__name__}")


GROUPS = ("shapes", "axes", "dtypes", "numbers", "creation", "transforms")
"""The groups of mistakes that do not depend on values."""


def _mistakes(subject: Subject) -> Iterator[Case]:
    for mistake in possible(subject):
        if mistake.group in GROUPS:
            yield Case("symbolic.errors", mistake.name)


@law("symbolic.errors", _mistakes, level=4, symbolic=True)
def errors(subject: Subject, case: Case) -> None:
    """A mistake that does not depend on values is refused as by a backend with values."""
    operands = Operands(subject)
    operands.number  # noqa: B018, made on the backend, so that the case is about it
    refuse(MISTAKES[case.op], operands)
