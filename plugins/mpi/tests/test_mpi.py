"""The group "mpi": processes that mpirun starts on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import tensorken as tk


def run_members(size: int, command: Sequence[str]) -> tuple[int, str]:
    """Run a command in one process for each member; return the exit status, and what all print."""
    mpirun = shutil.which("mpirun", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert mpirun is not None, "install openmpi or mpich"
    options = ["--oversubscribe", *(["--allow-run-as-root"] if os.geteuid() == 0 else [])]
    done = subprocess.run(
        [mpirun, *options, "-n", str(size), sys.executable, *command],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_four_processes_compute_what_one_does() -> None:
    status, text = run_members(4, ["-m", "tensorken_conformance.groups", "mpi", "timeout=60"])
    assert status == 0, text
    assert text.count("results are those of one process") == 4


FAILING = """
import os, sys, tensorken as tk
group = tk.distributed.join("mpi", timeout=5)
try:
    {program}
except tk.errors.GroupError as error:
    print("GroupError:", error, flush=True)
    os._exit(0)  # mpirun then reports a process without MPI_Finalize
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            'tk.spread(lambda x: (tk.pmax if group.rank else tk.pmin)(x, "workers"), group)(1.0)',
            "the members run different programs: member 0 calls pmin",
        ),
        (
            '__import__("time").sleep(20) if group.rank else tk.spread(lambda x: tk.psum(x, "workers"), group)(1.0)',
            "psum: member 0 of 2 got no answer from all others within 5 s",
        ),
    ],
)
def test_members_that_do_not_agree_get_an_error(program: str, message: str) -> None:
    _, text = run_members(2, ["-c", FAILING.format(program=program)])
    assert message in text


def test_a_group_of_one() -> None:
    group = tk.distributed.join("mpi", timeout=30)
    assert (group.rank, group.size) == (0, 1)
    assert tk.spread(lambda x: tk.psum(x, "workers"), group)(2.0).item() == 2.0
