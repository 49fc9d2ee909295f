"""The pool of threads: each part of a loop runs once, and results do not depend on who runs it."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from tensorken_core.errors import SettingError
from tensorken_llvm import cache, machine, threads

COUNTS = (1, 2, 5)

Part = tuple[int, int, int]
"""The first iteration, the one after the last, and the thread."""


def parts_of(count: int, grain: int, seconds: float = 0.0) -> list[Part]:
    """The parts that the pool divides a loop into."""
    found: list[Part] = []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    def note(frame: Any, begin: int, end: int) -> None:
        time.sleep(seconds)
        found.append((begin, end, threading.get_ident()))

    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
        threads.start()
    )
    run(ctypes.cast(note, ctypes.c_void_p), None, count, grain)
    return sorted(found)


def cover(parts: list[Part], count: int, grain: int) -> bool:
    """Whether parts have each iteration once, and end at multiples of the grain."""
    ends = [0, *[end for _, end, _ in parts]]
    is_whole = [begin for begin, _, _ in parts] == ends[:-1] and ends[-1] == count
    return is_whole and all([end % grain == 0 for end in ends[:-1]])


def at_once(f: Callable[[], Any], count: int) -> list[Any]:
    """The results of a function in several Python threads."""
    found: list[Any] = []
    callers = [threading.Thread(target=lambda: found.append(f())) for _ in range(count)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    return found


def programs() -> dict[str, tuple[Callable[..., Any], list[Any]]]:
    """Programs whose loops are divided: over elements, rows, blocks of columns, and products of matrices."""
    random = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return tk.tensor(random.normal(size=shape).astype("float32"))

    def cross_entropy(x: Any, y: Any) -> Any:
        return -(tk.log_softmax(x, -1) * y).mean()

    return {
        "elements": (lambda x: tk.tanh(x * 1.5) * tk.exp(-x * x), [normal(1_000_003)]),
        "columns": (lambda x: (x * 2.0).sum(0), [normal(700, 1500)]),
        "blocks": (lambda x: (x * 2.0 - x.max(0)).sum(0), [normal(300, 5003)]),
        "rows": (lambda x: (x * 2.0).sum(1), [normal(700, 1501)]),
        "softmax": (tk.grad(cross_entropy), [normal(1000, 513), normal(1000, 513)]),
        "transposed": (lambda x: x + x.T, [normal(1100, 1100)]),
        "batch": (lambda a, b: a @ b, [normal(24, 64, 64), normal(24, 64, 64)]),
        "product": (lambda a, b: a @ b, [normal(512, 256), normal(256, 512)]),
        "images": (tk.convolution, [normal(16, 8, 30, 30), normal(16, 8, 3, 3)]),
        "one image": (tk.convolution, [normal(1, 8, 70, 71), normal(24, 8, 3, 3)]),
        "copied product": (lambda a, b: a.T @ b.T, [normal(700, 384), normal(513, 700)]),
    }


def digests() -> dict[str, str]:
    """The results of the programs."""
    found = {}
    for name, (f, arguments) in programs().items():
        compiled = tk.jit(f)
        results = [hashlib.sha256(np.asarray(compiled(*arguments))).hexdigest() for _ in range(3)]
        assert len(set(results)) == 1, name
        found[name] = results[0]
    return found


def report() -> dict[str, Any]:
    """What a process with some threads computes."""
    first = digests()
    sizes = [(n, grain) for n in (1, 7, 64, 1000) for grain in (1, 3, 64)]
    slow = parts_of(40, 1, 0.01)
    found = {
        "digests": first,
        "covered": all([cover(parts_of(n, grain), n, grain) for n, grain in sizes]),
        "helpers": len({thread for _, _, thread in slow}),
        "at_once": all([cover(parts, 1000, 3) for parts in at_once(lambda: parts_of(1000, 3), 8)]),
        "same_at_once": all([found == first for found in at_once(digests, 3)]),
    }
    if hasattr(os, "fork"):
        child = os.fork()
        if child == 0:
            os._exit(0 if digests() == first and cover(parts_of(1000, 3), 1000, 3) else 1)
        found["child"] = os.waitpid(child, 0)[1]
    return found


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[str, Any]]:
    """By the number of threads, what a process computes; the machine code is that of the first process."""
    settings = {
        "TENSORKEN_COMPILERS": "llvm",
        "TENSORKEN_BACKEND": "numpy",
        cache.VARIABLE: str(tmp_path_factory.mktemp("cache")),
    }
    found: dict[int, dict[str, Any]] = {}
    for counts in (COUNTS[:1], COUNTS[1:]):
        processes = {
            count: subprocess.Popen(
                [sys.executable, "-m", __name__],
                env={**os.environ, **settings, threads.VARIABLE: str(count)},
                stdout=subprocess.PIPE,
                text=True,
            )
            for count in counts
        }
        texts = {count: process.communicate()[0] for count, process in processes.items()}
        assert {process.returncode for process in processes.values()} == {0}
        found.update({count: json.loads(text) for count, text in texts.items()})
    return found


def test_each_part_runs_once(reports: dict[int, dict[str, Any]]) -> None:
    for report in reports.values():
        assert report["covered"]
        assert report["at_once"]


@pytest.mark.nightly
def test_all_threads_take_parts(reports: dict[int, dict[str, Any]]) -> None:
    assert {count: report["helpers"] for count, report in reports.items()} == {n: n for n in COUNTS}


def test_results_do_not_depend_on_the_number_of_threads(reports: dict[int, dict[str, Any]]) -> None:
    one, *others = [report["digests"] for report in reports.values()]
    assert others == [others[0]] * len(others)
    assert {name for name in one if one[name] != others[0][name]} <= {"product"}
    assert all([report["same_at_once"] for report in reports.values()])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork processes")
def test_a_forked_process_has_a_pool_of_its_own(reports: dict[int, dict[str, Any]]) -> None:
    assert [report["child"] for report in reports.values()] == [0] * len(COUNTS)


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5"])
def test_a_wrong_number_of_threads_is_an_error(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(threads.VARIABLE, text)
    with pytest.raises(SettingError, match=f"TENSORKEN_LLVM_THREADS='{text}': expected an integer of at"):
        threads.thread_count()


def test_the_number_of_threads_is_chosen_by_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(threads.VARIABLE, "3")
    assert threads.thread_count() == 3
    monkeypatch.setenv(threads.VARIABLE, "")
    assert threads.thread_count() >= 1


CALLER = """
declare i64 @tensorken_slow()
define i64 @caller() {
  %found = call i64 @tensorken_slow()
  ret i64 %found
}
"""


def load_caller() -> Any:
    """Load code that refers to a symbol whose address takes long to find."""
    return machine.load_text(CALLER, ["caller"])


def test_an_address_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []

    @functools.cache
    def find() -> int:
        time.sleep(0.1)
        found.append(threads.start())
        return found[0]

    monkeypatch.setitem(machine._symbols, "tensorken_slow", find)
    assert len(at_once(load_caller, 4)) == 4
    assert len(found) == 1


FORKS = """
import os, signal, threading, time
from plugins.llvm.tests.test_threads import load_caller
from tensorken_llvm import machine, threads

machine.define_symbol("tensorken_slow", threads.start())
is_locked = threading.Event()

def compile():
    with machine._lock:
        is_locked.set()
        time.sleep(0.2)

compiling = threading.Thread(target=compile)
compiling.start()
is_locked.wait()
child = os.fork()
if child == 0:
    signal.alarm(10)
    load_caller()
    os._exit(0)
compiling.join()
raise SystemExit(os.waitpid(child, 0)[1] != 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork processes")
def test_a_process_forked_while_a_thread_compiles_can_compile() -> None:
    path = os.pathsep.join(sys.path)
    done = subprocess.run([sys.executable, "-c", FORKS], env={**os.environ, "PYTHONPATH": path}, check=False)
    assert done.returncode == 0


SMALL_STACK = """
import threading
import numpy as np
import tensorken as tk

x, y = [tk.tensor(np.random.default_rng(1).standard_normal((700, 700)).astype("float32")) for _ in range(2)]
image, kernel = x[None, None], y[:160, :160].reshape(64, 1, 20, 20)
product, convolution = tk.jit(lambda x, y: x @ y), tk.jit(lambda x, y: tk.convolution(x, y).sum())
product(x, y)
expected = float(convolution(image, kernel))

def work():
    np.testing.assert_allclose(np.asarray(product(x, y)), np.asarray(x) @ np.asarray(y), rtol=1e-3, atol=1e-3)
    assert float(convolution(image, kernel)) == expected
    print("done")

threading.stack_size(2**17)
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


@pytest.mark.nightly
def test_threads_with_small_stacks() -> None:
    """Copies of matrices take more memory than such a thread has for all its variables."""
    environment = {**os.environ, "TENSORKEN_COMPILERS": "llvm"}
    done = subprocess.run(
        [sys.executable, "-c", SMALL_STACK], env=environment, capture_output=True, check=False
    )
    assert done.stdout == b"done\n", done.stderr.decode()


if __name__ == "__main__":
    print(json.dumps(report()))
