"""errors.silent: it captures all output and warnings of an op, and backends that print or warn fail."""

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

OUTPUTS: dict[str, Callable[[], object]] = {
    "print": lambda: print("so"),
    "stderr": lambda: print("so", file=sys.stderr),
    "sys.__stdout__": lambda: print("so", file=sys.__stdout__),
    "file descriptor 1": lambda: os.write(1, b"so"),
    "file descriptor 2": lambda: os.write(2, b"so"),
    "a child process": lambda: subprocess.run([sys.executable, "-c", "print('so')"], check=True),
    "invalid UTF-8": lambda: os.write(1, b"so \xff\xfe"),
    "a surrogate": lambda: print("so \ud800"),
    "more than a pipe holds": lambda: os.write(1, b"so" * 100_000),
    "a warning": lambda: warnings.warn("so", RuntimeWarning, stacklevel=1),
    "a warning that Python ignores": lambda: warnings.warn("so", DeprecationWarning, stacklevel=1),
}


@pytest.mark.parametrize("output", OUTPUTS)
def test_listening_captures_every_output(output: str, capfd: pytest.CaptureFixture[str]) -> None:
    with listening() as captured:
        pass
    assert str(captured) == ""
    with listening() as captured:
        OUTPUTS[output]()
    assert "so" in str(captured)
    assert len(str(captured)) < 250
    print("after")
    assert capfd.readouterr() == ("after\n", "")


def test_listening_restores_the_console_after_an_exception(capfd: pytest.CaptureFixture[str]) -> None:
    def failing() -> None:
        print("so")
        raise OSError("no device")

    with pytest.raises(OSError, match="no device"), listening() as captured:
        failing()
    assert captured.printed == "so\n"
    os.write(1, b"here")
    assert capfd.readouterr() == ("here", "")


@pytest.mark.parametrize("backend", [Numpy(), Reference()], ids=repr)
def test_correct_backends_pass(backend: Any) -> None:
    assert {result.status for result in run_law(backend, LAW)} == {"passed"}


@pytest.mark.parametrize("output", OUTPUTS)
def test_an_op_that_prints_or_warns_fails(output: str, capfd: pytest.CaptureFixture[str]) -> None:
    def printing(original: Callable[..., Any], *args: Any) -> Any:
        OUTPUTS[output]()
        return original(*args)

    failed = failed_cases(
        faulty_backend("exp", printing),
        LAW,
        where=lambda case: case.op in ("exp", "sin") and case.dtype == "float32",
    )
    assert failed == {"errors.silent/exp/float32"}
    assert capfd.readouterr() == ("", "")
