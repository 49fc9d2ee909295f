"""Fresh process: run a program in a new Python process, for laws on imports and on hash seeds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from tensorken_conformance.case import Failure


def json_of(program: str, *arguments: str, **variables: str) -> Any:
    """Run a program in a new process, with the import path of this one; returns the JSON in its last line.

    Args:
        program: Python code.
        arguments: of the command line.
        variables: of the environment, besides those of this process that do not configure Tensorken.

    Raises:
        Failure: if the program fails or prints nothing.
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith("TENSORKEN_")}
    path = os.pathsep.join(part or os.curdir for part in sys.path)
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**own, **variables, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        last = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise Failure(f"a new process cannot load the backends: {last}")
    return json.loads(lines[-1])
