"""The group "gloo": processes on this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence

import pytest

import tensorken as tk


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port: int = server.getsockname()[1]
        return port


def run_members(size: int, command: Sequence[str], timeout: float = 120) -> list[tuple[int, str]]:
    """Run a command in one process for each member; return their exit statuses and what they print."""
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "OMP_NUM_THREADS": "1"}
    members = [
        subprocess.Popen(
            [sys.executable, *command],
            env={**os.environ, **address, "RANK": str(rank), "WORLD_SIZE": str(size)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(size)
    ]
    try:
        return [
            (member.returncode, text)
            for member in members
            for text in (member.communicate(timeout=timeout)[0],)
        ]
    finally:
        for member in members:
            member.kill()


@pytest.mark.slow
def test_four_processes_compute_what_one_does() -> None:
    for status, text in run_members(4, ["-m", "tensorken_conformance.groups", "gloo", "timeout=60"]):
        assert status == 0, text
        assert "results are those of one process" in text


FAILING = """
import os, sys, tensorken as tk
group = tk.distributed.join("gloo", timeout=float(sys.argv[1]))
def run(f, x=1.0):
    return tk.spread(f, group)(x)
run(lambda x: tk.psum(x, "workers"))
try:
    {program}
except tk.errors.GroupError as error:
    print("GroupError:", error)
    try:
        run(lambda x: tk.psum(x, "workers"))
    except tk.errors.GroupError as error:
        print("afterwards:", error)
"""

PROGRAMS = {
    "order": (
        'run(lambda x: (tk.pmax if group.rank else tk.pmin)(x, "workers"))',
        "the members run different programs: member",
    ),
    "shape": (
        'run(lambda x: tk.psum(x, "workers"), tk.ones(2 + group.rank))',
        "psum of float32 (3,) over 'workers'",
    ),
    "death": (
        'os._exit(0) if group.rank else run(lambda x: tk.psum(x, "workers"))',
        "got no answer from all others within 20 s, or one has ended",
    ),
    "absence": (
        '__import__("time").sleep(8) if group.rank else run(lambda x: tk.psum(x, "workers"))',
        "got no answer from all others within 2 s, or one has ended",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_members_that_do_not_agree_get_an_error(name: str) -> None:
    program, message = PROGRAMS[name]
    timeout = "2" if name == "absence" else "20"
    results = run_members(2, ["-c", FAILING.format(program=program), timeout])
    affected = results if name in ("order", "shape") else results[:1]
    for status, text in affected:
        assert status == 0, text
        assert message in text
        assert "afterwards: psum: the group has failed before" in text


@pytest.mark.slow
def test_members_that_expect_different_sizes_get_an_error() -> None:
    program = "import os, tensorken as tk\nrank = int(os.environ['RANK'])\n"
    program += "tk.distributed.join('gloo', size=2 + (rank == 1), timeout=5)"
    for status, text in run_members(2, ["-c", program]):
        assert status == 1
        assert "GroupError: gloo: member" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "join: rank must be an int, it is not set; pass rank=, or set RANK"),
        ({"rank": "x"}, "rank must be an int, got 'x'"),
        ({"rank": 0}, "size must be an int, it is not set"),
        ({"rank": 2, "size": 2}, "rank must be from 0 to 1, got 2"),
        ({"rank": 0, "size": 1}, "address must be host:port of the process with rank 0, got ':'"),
        ({"rank": 0, "size": 1, "address": "here"}, "got 'here'"),
    ],
)
def test_bad_options_get_one_clear_line(
    options: dict[str, object], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(tk.errors.ArgumentError) as caught:
        tk.distributed.join("gloo", **options)
    assert message in str(caught.value)


def test_a_group_of_one() -> None:
    group = tk.distributed.join("gloo", rank=0, size=1, address=f"127.0.0.1:{free_port()}", timeout=30)
    assert tk.spread(lambda x: tk.psum(x, "workers"), group)(2.0).item() == 2.0
