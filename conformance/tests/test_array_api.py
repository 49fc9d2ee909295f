"""`array-api:MODULE`: modules of the array API standard are examined by the template's backend."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tensorken_conformance.array_api import accepted, backend_on
from tensorken_conformance.running.examine import examine, laws_for
from tensorken_conformance.subject import Subject
from tensorken_core.errors import BackendError

MODULES = ("numpy", "array_api_strict")
LAWS = ("values.read-back", "values.movement", "values.sums", "values.cast", "values.indexing")


@pytest.mark.parametrize("module", MODULES)
def test_the_template_is_right_on_a_module_of_the_standard(module: str) -> None:
    pytest.importorskip(module)
    subject = Subject.select(accepted(f"array-api:{module}"), depth="smoke")
    assert {"bool", "int32", "int64", "float32", "float64"} <= set(subject.capabilities.dtypes)
    cases = [(law, case) for law in laws_for(subject, LAWS) for case in law.cases(subject)]
    failed = [case.id for law, case in cases if examine(subject, law, case).status != "passed"]
    assert len(cases) > 100
    assert not failed


@pytest.mark.parametrize(
    ("module", "says"),
    [
        ("no_such_module", "array-api:no_such_module: No module named 'no_such_module'"),
        ("math", "array-api:math: it has no asarray, full, "),
    ],
)
def test_another_module_is_refused_in_one_line(module: str, says: str) -> None:
    with pytest.raises(BackendError) as caught:
        backend_on(module)
    assert str(caught.value).startswith(says)
    assert "\n" not in str(caught.value)


def test_the_command_takes_the_name_and_says_why_a_module_is_refused() -> None:
    code = "import sys; from tensorken_conformance.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "run", "array-api:math", "--smoke"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "array-api:math: it has no asarray" in done.stderr
    assert "Traceback" not in done.stderr
