"""lifetime.global-state: settings of Python and of libraries that change are found, named and restored."""

from __future__ import annotations

import random
import sys
import types
import warnings
from typing import Any

import numpy as np
import pytest

from conformance.tests.examining import failed_cases, faulty_backend, run_law
from tensorken_conformance.laws.lifetime import global_state
from tensorken_conformance.laws.lifetime.global_state import STATES, changes, present
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference

LAW = "lifetime.global-state"


def test_correct_backends_change_nothing() -> None:
    results = run_law(Reference(), LAW)
    assert {result.status for result in results} == {"passed"}
    assert {result.case.op for result in results} >= {"add", "svd", *global_state.USES}


CHANGES: dict[str, Any] = {
    "numpy's error state": lambda: np.seterr(divide="raise"),
    "numpy's print options": lambda: np.set_printoptions(precision=3),
    "the state of numpy.random": lambda: np.random.rand(),
    "the state of random": random.random,
    "the filters of warnings": lambda: warnings.simplefilter("always"),
    "the context of decimal": lambda: setattr(__import__("decimal").getcontext(), "prec", 7),
    "the environment": lambda: __import__("os").environ.update(OF_A_TEST="1"),
    "the current folder": lambda: __import__("os").chdir("/"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_found_and_restored(name: str) -> None:
    before = present()
    CHANGES[name]()
    [found] = changes(before)
    assert found.startswith(f"{name}: expected ")
    assert changes(before) == []
    assert present() == before


SAME: dict[str, Any] = {  # a second call changes nothing more
    **{name: change for name, change in CHANGES.items() if "random" not in name},
    "the state of numpy.random": lambda: np.random.seed(1),
    "the state of random": lambda: random.seed(1),
}


@pytest.mark.parametrize("name", SAME)
def test_a_change_that_an_earlier_call_has_made_is_found(name: str) -> None:
    class Changes(Numpy):
        def sqrt(self, x: Any) -> Any:
            SAME[name]()
            return np.sqrt(x)

    before = present()
    try:
        SAME[name]()
        now = present()
        [result] = run_law(Changes(), LAW, where=lambda case: case.op == "sqrt" and case.dtype == "float32")
        assert result.status == "failed" and name in result.says
        assert present() == now  # the law keeps the settings of its process
    finally:
        changes(before)


def test_every_setting_of_this_process_is_restored_to_itself() -> None:
    def restore() -> dict[str, Any]:
        before = present()
        for name, value in before.items():
            STATES[name].write(value)
        return before

    restore()  # the first time, a library may load modules that change other settings
    before = restore()
    assert present() == before


def test_the_messages_name_only_the_entries_that_differ() -> None:
    before = present()
    np.seterr(over="raise", under="raise")
    [found] = changes(before)
    old = before["numpy's error state"]
    assert f"{ {'over': old['over'], 'under': old['under']}!r}" in found
    assert "'invalid'" not in found


class Torch(types.ModuleType):
    """A stand-in for torch, with one setting."""

    enabled = True

    def is_grad_enabled(self) -> bool:
        return self.enabled

    def set_grad_enabled(self, enabled: bool) -> None:
        self.enabled = enabled


def test_settings_of_libraries_are_read_if_these_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "torch's gradient mode"
    monkeypatch.setattr(global_state, "STATES", {name: STATES[name]})
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert present() == {}
    torch = Torch("torch")
    monkeypatch.setitem(sys.modules, "torch", torch)
    before = present()
    assert before == {name: True}
    torch.set_grad_enabled(False)
    assert changes(before) == [f"{name}: expected True, got False"]
    assert torch.enabled


def test_an_op_that_changes_a_setting_fails_in_its_cases_alone() -> None:
    def noisy(original: Any, x: Any) -> Any:
        np.seterr(all="ignore")
        return original(x)

    failed = failed_cases(faulty_backend("exp", noisy), LAW)
    assert {f"{LAW}/exp/{dtype}" for dtype in ("float16", "float32", "float64")} <= failed
    assert not any(id.startswith(f"{LAW}/add/") for id in failed)
    assert np.geterr()["over"] != "ignore"
