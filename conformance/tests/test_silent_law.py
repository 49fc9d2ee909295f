"""The law on silence: whatever is printed, by whatever way, and every warning is noticed, and reaches no console."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from conformance.tests.examining import failed_cases, faulty_backend, run_law
from tensorken_conformance.laws.errors.silent import listening
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference

LAW = "errors.silent"

WAYS: dict[str, Callable[[], object]] = {
    "print": lambda: print("so"),
    "stderr": lambda: print("so", file=sys.stderr),
    "the stream of the start": lambda: print("so", file=sys.__stdout__),
    "stdout below Python": lambda: os.write(1, b"so"),
    "stderr below Python": lambda: os.write(2, b"so"),
    "a child": lambda: subprocess.run([sys.executable, "-c", "print('so')"], check=True),
    "not text": lambda: os.write(1, b"so \xff\xfe"),
    "a surrogate": lambda: print("so \ud800"),
    "more than a pipe holds": lambda: os.write(1, b"so" * 100_000),
    "a warning": lambda: warnings.warn("so", RuntimeWarning, stacklevel=1),
    "a warning that is not shown": lambda: warnings.warn("so", DeprecationWarning, stacklevel=1),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_say_something_is_heard(way: str, capfd: pytest.CaptureFixture[str]) -> None:
    with listening() as said:
        pass
    assert str(said) == ""
    with listening() as said:
        WAYS[way]()
    assert "so" in str(said)
    assert len(str(said)) < 250
    print("after")
    assert capfd.readouterr() == ("after\n", "")


def test_an_exception_passes_and_the_console_is_back(capfd: pytest.CaptureFixture[str]) -> None:
    def failing() -> None:
        print("so")
        raise OSError("no device")

    with pytest.raises(OSError, match="no device"), listening() as said:
        failing()
    assert said.printed == "so\n"
    os.write(1, b"here")
    assert capfd.readouterr() == ("here", "")


@pytest.mark.parametrize("backend", [Numpy(), Reference()], ids=repr)
def test_right_backends_are_silent(backend: Any) -> None:
    assert {result.status for result in run_law(backend, LAW)} == {"passed"}


@pytest.mark.parametrize("way", WAYS)
def test_a_talking_op_fails_once_for_each_dtype(way: str, capfd: pytest.CaptureFixture[str]) -> None:
    def talking(right: Callable[..., Any], *args: Any) -> Any:
        WAYS[way]()
        return right(*args)

    found = failed_cases(
        faulty_backend("exp", talking),
        LAW,
        where=lambda case: case.op in ("exp", "sin") and case.dtype == "float32",
    )
    assert found == {"errors.silent/exp/float32"}
    assert capfd.readouterr() == ("", "")
