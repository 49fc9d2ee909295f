"""Check one distribution quickly: `python -m tools.check core`, or `backends/numpy`, `plugins/tensorken`, ...

It runs ruff and mypy, and at the same time the quick tests and doctests of the distribution, in the environment
created by `python run.py dev`.  Options after the folder go to pytest, such as `-k matmul`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from tools.workspace import ROOT, distributions

QUICK = ["-q", "--numprocesses=auto", "-m", "not slow and not nightly", "--hypothesis-profile=few"]


def commands(folder: str, options: list[str]) -> dict[str, list[str]]:
    """The commands of the check, by name; they do not depend on each other."""
    python = [sys.executable, "-m"]
    return {
        "ruff": [*python, "ruff", "check", "."],
        "format": [*python, "ruff", "format", "--check", "."],
        "mypy": [*python, "mypy"],
        "tests": [*python, "pytest", folder, *QUICK, *options],
    }


def main(arguments: list[str] | None = None) -> int:
    """Run the check; returns the exit status."""
    folders = [path.relative_to(ROOT).as_posix() for path in distributions(optional=True)]
    parser = argparse.ArgumentParser(
        prog="python -m tools.check", description="check one distribution quickly"
    )
    parser.add_argument("folder", choices=folders, help="the folder of the distribution")
    parsed, options = parser.parse_known_args(arguments)
    start = time.monotonic()
    running = {
        name: subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        )
        for name, command in commands(parsed.folder, options).items()
    }
    failed = []
    for name, process in running.items():
        output, _ = process.communicate()
        if process.returncode:
            failed.append(name)
            print(f"---- {name}\n{output}")
    result = f"failed: {', '.join(failed)}" if failed else "passed"
    print(f"{parsed.folder}: {result}, {time.monotonic() - start:.0f} s")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
