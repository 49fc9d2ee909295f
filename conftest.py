"""What holds for every test of the workspace, wherever it lives."""

from __future__ import annotations

import gc
import importlib.util
import os
import signal
import sys
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tools import configurations, workspace

# The machine that runs the tests may be busy, and a failure in CI must be the same on a desk.
settings.register_profile("desk", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("some", settings.get_profile("ci"), max_examples=40)
settings.register_profile("few", settings.get_profile("ci"), max_examples=20)
settings.register_profile("many", settings.get_profile("desk"), max_examples=1000)
settings.load_profile("ci" if os.environ.get("CI") else "desk")

# Tests choose their backends themselves: settings of the person who runs them do not count.
for name in [name for name in os.environ if name.startswith("TENSORKEN_")]:
    del os.environ[name]
# The executor of numpy is tested without LLVM's; TEST_COMPILERS chooses other compilers.
os.environ["TENSORKEN_COMPILERS"] = os.environ.get("TEST_COMPILERS", "-llvm")

# Ctrl-C must interrupt: a shell starts background jobs with the signal ignored, and their children inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that chooses a share of the tests."""
    help_ = "run the tests of share K of N alone; a file's path says which share it is in"
    parser.addoption("--share", metavar="K/N", help=help_)


def pytest_configure(config: pytest.Config) -> None:
    """Check the option that chooses a share of the tests."""
    number, _, count = (config.getoption("--share") or "0/1").partition("/")
    if not (number.isdecimal() and count.isdecimal() and int(number) < int(count)):
        raise pytest.UsageError(f"--share: need K/N with 0 <= K < N, got {config.getoption('--share')!r}")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the files that are not in the chosen share: their imports would take longer than the tests.

    Every share has the `__init__.py`: pytest would import a module twice whose package imports it too.
    """
    if not config.getoption("--share") or collection_path.is_dir() or collection_path.name == "__init__.py":
        return None
    number, count = map(int, config.getoption("--share").split("/"))
    path = collection_path.relative_to(config.rootpath).as_posix()
    return True if zlib.crc32(path.encode()) % count != number else None


OPTIONAL = {name: importlib.util.find_spec(f"tensorken_{name}") is not None for name in workspace.OPTIONAL}
"""The optional distributions, and whether each is installed; the tests of the others are not collected."""

collect_ignore = [workspace.OPTIONAL[name] for name, is_installed in OPTIONAL.items() if not is_installed]


def pytest_report_header() -> list[str]:
    """Say which configuration of the machine the tests run in, and which optional distributions are tested."""
    installed = [name for name, is_installed in OPTIONAL.items() if is_installed]
    return [configurations.header(), f"optional distributions: {', '.join(installed) or 'none'}"]


def pytest_collection_finish() -> None:
    """Keep the thousands of tests out of the collector's way: the tests that call it would walk them each time."""
    gc.freeze()


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Likewise what the tests of a file have left in caches, of which a worker comes to have a gigabyte."""
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


def pytest_runtest_setup() -> None:
    """Count traces of a function by the test: tests share functions, and the worker would warn of them all."""
    if compilation := sys.modules.get("tensorken.compilation.jit"):
        compilation._trace_counts.clear()


TOGETHER = ("tests/test_packaging.py", "tests/test_templates.py")
"""The files of which one worker runs all tests: these share wheels or projects, which take long to build."""


UNIT = 16  # tests


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Send a worker up to 16 tests of one file at a time, and those of the files together; the largest units first.

    The groups of pytest-xdist 3.8 are lost on pytest 9.2, where the id of a test no longer takes their names.
    """
    if config.getoption("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Units(LoadScopeScheduling):
        def __init__(self, config: pytest.Config, log: Any) -> None:
            super().__init__(config, log)
            self.units: dict[str, str] = {}  # the id of a test -> the name of its unit
            self.counts: Counter[str] = Counter()  # of tests in each file

        def _split_scope(self, nodeid: str) -> str:
            if nodeid not in self.units:
                path = nodeid.partition("::")[0]
                number, self.counts[path] = self.counts[path] // UNIT, self.counts[path] + 1
                self.units[nodeid] = path if path in TOGETHER else f"{path} {number}"
            return self.units[nodeid]

    return Units(config, log)


@pytest.fixture
def calls() -> Callable[[Callable[[], object]], int]:
    """How many functions some work calls, those in C among them: what it costs, whatever else the machine does."""

    def counted(work: Callable[[], object]) -> int:
        count = 0

        def note(frame: Any, event: str, argument: Any) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        before = sys.getprofile()
        sys.setprofile(note)
        try:
            work()
        finally:
            sys.setprofile(before)
        return count

    return counted
