"""errors.refused and errors.survived: the table of mistakes, and backends and cores that handle errors wrongly."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from conformance.tests.examining import examine_all
from tensorken_conformance.case import Failure
from tensorken_conformance.laws.errors.mistakes import BUILT_IN, MISTAKES, Mistake, Operands
from tensorken_conformance.laws.errors.refused import possible, refuse
from tensorken_conformance.laws.errors.survived import SCENARIOS
from tensorken_conformance.subject import Subject
from tensorken_core import errors
from tensorken_core.host.plugin import Capabilities
from tensorken_core.host.registry import SELECTION
from tensorken_core.language.raw import RawTensor
from tensorken_core.rewriting.fuse import Fuse
from tensorken_core.tensor import level as levels
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference


def subject_of(backend: RawTensor[Any]) -> Subject:
    return Subject(backend, "examined")


def failures(backend: RawTensor[Any], law: str) -> dict[str, str]:
    return {r.case.op: r.says for r in examine_all(subject_of(backend), [law]) if r.status != "passed"}


def test_there_are_enough_mistakes():
    assert len(MISTAKES) >= 140
    assert {mistake.error for mistake in MISTAKES.values()} >= {
        errors.ShapeError, errors.AxisError, errors.DTypeError, errors.ScalarRangeError, errors.IndexingError,
        errors.ArgumentError, errors.StructureError, errors.GradientError, errors.EscapedTensorError,
        errors.ImmutableError, errors.BackendError, errors.UnknownBackendError, errors.MixedBackendError,
        errors.LinearAlgebraError, errors.ExchangeError,
    }  # fmt: skip
    for mistake in MISTAKES.values():
        assert len(mistake.words) >= 1
        assert mistake.error in BUILT_IN
    names = [name for name, mistake in MISTAKES.items() if len(mistake.words) == 1]
    assert sorted(names) == ["backend-that-nobody-knows", "summation-of-unequal-axes"]


@pytest.mark.parametrize(
    "name",
    ["numpy", pytest.param("reference", marks=pytest.mark.nightly), "tensorken_numpy.backend:Numpy"],
)
def test_correct_backends_pass(name: str):
    subject = Subject.select(name)
    assert [r for r in examine_all(subject, ["errors"]) if r.status != "passed"] == []
    installed = ":" not in name
    assert len(possible(subject)) == sum(
        m.where in ("", "installed")[: 1 + installed] for m in MISTAKES.values()
    )


class Small(Numpy):
    """Supports three dtypes."""

    capabilities = Capabilities(dtypes=("bool", "int32", "float32"))


def test_backends_with_few_dtypes_have_mistakes_with_other_dtypes():
    assert failures(Fuse(Small()), "errors.refused") == {}
    absent = [m for m in possible(subject_of(Small())) if m.where == "absent"]
    assert len(absent) == 5
    assert absent[0].group == "dtypes"


def test_without_the_required_dtypes_there_are_no_cases():
    class Tiny(Numpy):
        capabilities = Capabilities(dtypes=("float32",))

    assert list(examine_all(subject_of(Tiny()), ["errors.refused", "errors.survived"])) == []


# ---- refused -----------------------------------------------------------------------------------------------


class Loud(Numpy):
    """Has a repr of two lines, which appears in error messages."""

    def __repr__(self) -> str:
        return "Loud(\n)"


class Forgiving(Numpy):
    """Returns a Cholesky factor and an inverse for any matrix."""

    def cholesky(self, x: Any) -> Any:
        return np.ones_like(x)

    def inv(self, x: Any) -> Any:
        return np.ones_like(x)


class ClipsOnRead(Numpy):
    """Clips indices to 0 and 1 when they are read."""

    def ravel(self, x: Any) -> Any:
        return np.clip(super().ravel(x), 0, 1) if x.dtype == np.int32 else super().ravel(x)


class Raising(Numpy):
    """Raises numpy's LinAlgError for each inverse."""

    def inv(self, x: Any) -> Any:
        raise np.linalg.LinAlgError("Singular matrix")


@pytest.mark.parametrize(
    ("backend", "mistake", "message"),
    [
        (Loud, "sum-of-two-backends", "in 1 lines, got 2"),
        (Forgiving, "root-of-an-indefinite-matrix", "got a result"),
        (ClipsOnRead, "take-after-the-end", "expected IndexingError whose message begins with 'take:'"),
        (Raising, "inverse-of-a-singular-matrix", "expected LinearAlgebraError, got LinAlgError"),
    ],
)
def test_wrong_errors_of_a_backend_fail(backend: Any, mistake: str, message: str):
    assert message in failures(backend(), "errors.refused")[mistake]


def call_that_raises(error: Any) -> Any:
    """A call that raises the error, or returns a tensor if it is None."""

    def call(operands: Operands) -> Any:
        if error is None:
            return tk.ones(2, backend="numpy")
        raise error

    return call


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (None, "expected ShapeError, got a result: tensor([1., 1.])"),
        (ValueError("add: (2,)"), "got ValueError: add: (2,)"),
        (errors.AxisError("add: (2,)"), "expected ShapeError, got AxisError"),
        (errors.ShapeError("add: (2,)\nmore"), "in 1 lines, got 2"),
        (errors.ShapeError(""), "begins with 'add:'"),
        (errors.ShapeError("mul: add: (2,) on examined"), "begins with 'add:'"),
        (errors.ShapeError("add: (3,) on examined"), "says '(2,)' in its place"),
        (errors.ShapeError("add: examined (2,)"), "says 'CallCounter(Numpy())' in its place"),
        (errors.ShapeError("add: (2,) examined" + "!" * 400), "in 300 characters"),
        (errors.ShapeError("add: (2,) on examined"), ""),
        (errors.ShapeError("add: (2,) on CallCounter(Numpy())"), ""),
    ],
)
def test_errors_must_have_the_right_class_and_message(error: Any, message: str):
    mistake = Mistake("m", "g", errors.ShapeError, ("add:", "(2,)", "{backend}"), call_that_raises(error))
    operands = Operands(subject_of(Numpy()))
    if not message:
        refuse(mistake, operands)
        return
    with pytest.raises(Failure) as caught:
        refuse(mistake, operands)
    assert caught.value.says.startswith("m: expected ShapeError")
    assert message in caught.value.says


def test_error_messages_with_a_listing_may_have_eight_lines():
    lines = "\n  ".join(["add: (2,) on examined", *"abcdefg"])
    call = call_that_raises(errors.ShapeError(lines))
    refuse(Mistake("m", "g", errors.ShapeError, ("add:",), call, listing=True), Operands(subject_of(Numpy())))
    call = call_that_raises(errors.ShapeError(lines + "\n  i"))
    with pytest.raises(Failure, match="in 8 lines, got 9"):
        refuse(
            Mistake("m", "g", errors.ShapeError, ("add:",), call, listing=True), Operands(subject_of(Numpy()))
        )


def test_an_error_class_without_its_builtin_base_fails(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(BUILT_IN, errors.ShapeError, (ValueError, KeyError))
    assert "derives from KeyError" in failures(Numpy(), "errors.refused")["add-of-clashing-shapes"]


def test_mistakes_have_distinct_names_and_the_same_signature():
    assert all(inspect.signature(m.call).parameters.keys() == {"o"} for m in MISTAKES.values())
    assert len({m.name for m in MISTAKES.values()}) == len(MISTAKES)


# ---- survived ----------------------------------------------------------------------------------------------


class Spilling(Numpy):
    """Overwrites the operand of an inverse if the matrix is singular."""

    def inv(self, x: Any) -> Any:
        y = super().inv(x)
        if not np.isfinite(y).all():
            x[..., 0, 0] = -1.0
        return y


class Stale(Numpy):
    """Adds one to exp after four reshapes."""

    def __init__(self) -> None:
        self.operands: list[Any] = []

    def reshape(self, x: Any, shape: Any) -> Any:
        self.operands.append(x)
        return super().reshape(x, shape)

    def exp(self, x: Any) -> Any:
        return super().exp(x) + np.float32(len(self.operands) > 3)


class Drifting(Numpy):
    """The results of sin grow with the number of calls."""

    def __init__(self) -> None:
        self.count = 0

    def sin(self, x: Any) -> Any:
        self.count += 1
        return super().sin(x) * np.float32(1 + self.count // 2 * 1e-3)


@pytest.mark.parametrize(
    ("backend", "scenario", "message"),
    [
        (Spilling, "uses", "after inverse-of-a-singular-matrix: an operand has changed"),
        (Drifting, "accident", "the program 'gradient' gives other bits"),
        (Drifting, "shapes", "the program 'gradient' gives other bits"),
    ],
)
def test_backends_changed_by_an_error_fail(backend: Any, scenario: str, message: str):
    assert message in failures(backend(), "errors.survived")[scenario]


def test_declared_nondeterminism_passes():
    class Declared(Drifting):
        capabilities = Capabilities(dtypes=Numpy.capabilities.dtypes, nondeterministic=("sin",))

    assert failures(Declared(), "errors.survived") == {}


def test_a_transform_that_stays_active_after_an_error_fails(monkeypatch: pytest.MonkeyPatch):
    def leave(self: Any, *exception: object) -> None:
        if exception[0] is None:
            levels._running.reset(self._token)
        self._level.closed = exception[0] is None

    monkeypatch.setattr(levels.current_level, "__exit__", leave)
    token = levels._running.set(None)
    try:
        case = "errors.survived/accident-in-grad"
        [result] = examine_all(subject_of(Reference()), ["errors.survived"], [case])
    finally:
        levels._running.reset(token)
    assert "a transform goes on" in result.says


def test_a_backend_that_stays_chosen_after_an_error_fails(monkeypatch: pytest.MonkeyPatch):
    with tk.use_backend("numpy"):
        monkeypatch.setattr(SELECTION, "exit", lambda choice: None)
        failed = failures(Reference(), "errors.survived")
        monkeypatch.undo()
        while SELECTION.default_backend().name != "numpy":
            SELECTION.exit(SELECTION.default_backend())
    assert "the backend in use was numpy" in failed["accident-in-use-backend"]


def test_every_scenario_raises_its_error():
    operands = Operands(subject_of(Numpy()))
    for error, call in SCENARIOS.values():
        with pytest.raises(error):
            call(operands)
