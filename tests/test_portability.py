"""The check of the sources for code that works on POSIX systems only; `nox -s lint` runs it on all distributions."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from core.tests.each import each_of
from tools import portability

WRONG = {
    "import fcntl": "fcntl",
    "from resource import getrusage": "resource",
    "from os import fork": "os.fork",
    "os.killpg(1, 9)": "os.killpg",
    "os.kill(1, signal.SIGKILL)": "signal.SIGKILL",
    "signal.signal(signal.SIGUSR1, f)": "signal.SIGUSR1",
    "os.getpgid(0)": "os.getpgid",
    "try:\n  os.fork()\nexcept ValueError:\n  pass": "os.fork",
    "if ready:\n  os.fork()": "os.fork",
    "if os.name == 'nt':\n  f()\nos.fork()": "os.fork",
    "with suppress(ValueError):\n  os.fork()": "os.fork",
    "x = '/tmp/x'": "'/tmp/x'",
    "open('/proc/self/statm', 'rb')": "'/proc/self/statm'",
    "f'/dev/{name}'": "'/dev/'",
    "'/tmp'\nx = 1\ny = '/tmp'": "'/tmp'",
    "open('a')": "encoding",
    "open('a', 'w')": "encoding",
    "path.open()": "encoding",
    "path.open('w')": "encoding",
    "path.read_text()": "encoding",
    "path.write_text(text)": "encoding",
    "os.fdopen(3, 'w')": "encoding",
    "tempfile.NamedTemporaryFile('w')": "encoding",
    "subprocess.run(x, text=True)": "encoding",
    "if sys.platform == 'linux':\n  path.read_text()": "encoding",
    "ProcessPoolExecutor(2)": "mp_context",
    "multiprocessing.Process(target=f)": "spawn",
    "multiprocessing.get_context('fork')": "spawn",
    "multiprocessing.get_context()": "spawn",
    "multiprocessing.set_start_method('forkserver')": "spawn",
    "str(path).split('/')": "as_posix",
    "__file__.rpartition('/')": "as_posix",
}
"""Code with one fault, and a word of its description."""

RIGHT = [
    "if sys.platform != 'win32':\n  import fcntl\n  os.killpg(1, signal.SIGKILL)",
    "if hasattr(os, 'fork'):\n  os.fork()",
    "x = os.getuid() if hasattr(os, 'getuid') else 0",
    "hasattr(os, 'geteuid') and os.geteuid() == 0",
    "def f():\n  if sys.platform == 'win32':\n    return\n  os.killpg(1, 9)",
    "try:\n  import resource\nexcept ImportError:\n  pass",
    "try:\n  os.sysconf('x')\nexcept (AttributeError, ValueError):\n  pass",
    "with suppress(OSError):\n  open('/proc/cpuinfo', 'rb')",
    "os.kill(1, signal.SIGTERM)",
    "'''/tmp is a folder'''",
    "'a/b'.split('/')",
    "path.as_posix().split('/')",
    "x = '/temporary'",
    "open('a', 'rb')",
    "open('a', encoding='utf-8')",
    "open('a', mode)",
    "archive.open('data.npy', 'w')",
    "path.read_text('utf-8')",
    "path.write_text(text, encoding='utf-8')",
    "subprocess.run(x, encoding='utf-8')",
    "ProcessPoolExecutor(2, mp_context=context)",
    "multiprocessing.get_context('spawn')",
]
"""Code without a fault."""


@each_of(("source", "word"), WRONG.items())
def test_code_of_one_system_is_found(source: str, word: str) -> None:
    ((_, what),) = portability.faults(source)
    assert word in what


@each_of("source", RIGHT)
def test_guarded_and_portable_code_passes(source: str) -> None:
    assert portability.faults(source) == []


def test_the_tool_prints_each_fault_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "module.py"
    file.write_text(textwrap.dedent(RIGHT[0]), encoding="utf-8")
    assert portability.main([str(tmp_path)]) == 0
    file.write_text("import os\n\nos.fork()\n", encoding="utf-8")
    assert portability.main([str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"{file.as_posix()}:3: not every system has os.fork\n"
