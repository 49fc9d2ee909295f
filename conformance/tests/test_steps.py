"""The scripts of failures run without the kit, and show the failure."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from conformance.tests import fake_backends
from tensorken_conformance.backends.loading import load
from tensorken_conformance.case import Case, Result
from tensorken_conformance.law import LAWS
from tensorken_conformance.running.examine import SHOWN, examine
from tensorken_conformance.running.plan import law_named


def failing(backend: str, law: str, begins: str = "", depth: str = "smoke") -> Result:
    """The first failing case of a law on a backend with a fault."""
    subject = load(f"{fake_backends.MODULE}:{backend}", None, 0, depth)  # type: ignore[arg-type]
    cases = [case for case in law_named(law).cases(subject) if case.id.startswith(f"{law}/{begins}")]
    results = (examine(subject, LAWS[law], case) for case in cases)
    return next(result for result in results if result.status == "failed")


def printed(script: tuple[str, ...]) -> str:
    """What a script prints in a process of its own, whose last line is that of an exception if it raises one."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(script)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.stdout + done.stderr[-2000:] * (done.returncode != 0)


def test_a_wrong_value_is_printed_by_its_ops() -> None:
    result = failing("OffInTransforms", "values.transforms", "rfft")
    found = re.search(r"at \[\d, 1\] expected about .*, got \(([-.0-9e]+)[-+]", result.says)
    assert found
    assert "tensorken_conformance" not in "\n".join(result.script)
    numbers = [float(text) for text in printed(result.script).replace("and", "").split()]
    assert np.float32(found[1]) in np.float32(numbers)
    assert result.script[-1].partition("# ")[2] in result.says


def test_a_chain_of_ops_is_shown_in_order() -> None:
    result = failing("FlipsNothing", "values.transforms", "fft/float32/7-flip", "default")
    text = "\n".join(result.script)
    assert text.index('named("flip")') < text.index('named("fft")')
    assert printed(result.script).count("and") == 1


def test_an_op_that_raises_is_the_last_line() -> None:
    result = failing("RaisesInTransforms", "values.transforms", "rfft")
    assert "no rfft" in result.says
    assert result.script[-1].startswith('run(raw, named("rfft"), [')
    assert "KeyError: 'no rfft'" in printed(result.script)


@pytest.mark.parametrize("case", ["copy", "foreign"])
def test_exchange_has_a_script_of_its_own(case: str) -> None:
    result = failing("NeverCopies", "lifetime.exchange", case)
    expected, *got = printed(result.script).splitlines()
    assert expected != " ".join(got)
    assert "tensorken_conformance" not in "\n".join(result.script)


def test_a_failure_that_the_ops_alone_do_not_show_has_the_script_of_its_case() -> None:
    fake_backends.ForgetsSlowly.count = 0
    subject = load(f"{fake_backends.MODULE}:ForgetsSlowly", None, 0, "smoke")
    law = LAWS["values.sums"]
    case = Case("values.sums", "sum", "float32")
    assert examine(subject, law, case).script[0] == "from tensorken_conformance import check"


def test_only_a_few_cases_of_a_law_are_examined_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = load(f"{fake_backends.MODULE}:FlipsNothing", None, 0, "default")
    law, twice = LAWS["values.transforms"], []
    monkeypatch.setattr(
        "tensorken_conformance.running.examine.script_of_steps", lambda *args: twice.append(1)
    )
    results = [examine(subject, law, case) for case in law.cases(subject) if "flip" in case.shape]
    assert sum(result.status == "failed" for result in results) > len(twice) == SHOWN
