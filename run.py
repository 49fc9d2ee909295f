#!/usr/bin/env python3
"""Runs a nox session on a machine that has Python and pip and nothing else.

    python run.py demo             the same as `nox -s demo`
    python run.py demo --epochs 3  what follows the session's name goes to the session
    python run.py -l               an option first: all the arguments go to nox (-l lists the sessions)

nox is installed once into an environment of its own, `.nox/runner`, so that no other Python on the machine
changes. The user's own pip fills that environment: some systems ship pip without `ensurepip`, and forbid to
install into their Python.
"""

# No syntax newer than Python 3.7: one that is too old must get as far as the message that says so.
from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
RUNNER = ROOT / ".nox" / "runner"
REQUIREMENT = "nox>=2025.11.12"
OLDEST = (3, 11)


def runner_python() -> Path:
    """The Python of the runner's environment."""
    return RUNNER.joinpath(*(("Scripts", "python.exe") if sys.platform == "win32" else ("bin", "python")))


def install_runner() -> None:
    """Make the runner's environment, unless this Python has made it for this requirement before."""
    made_for = RUNNER / "made_for.txt"
    wanted = f"{REQUIREMENT}, Python {sys.version.split()[0]}, {sys.base_prefix}"
    if runner_python().exists() and made_for.exists() and made_for.read_text(encoding="utf-8") == wanted:
        return
    print(f"installing nox into {RUNNER.relative_to(ROOT)}", flush=True)
    shutil.rmtree(RUNNER, ignore_errors=True)
    venv.create(RUNNER, with_pip=False)
    pip = [sys.executable, "-m", "pip", "--python", str(runner_python()), "--disable-pip-version-check"]
    if subprocess.run([*pip, "install", "--quiet", REQUIREMENT], check=False).returncode:
        sys.exit(f"run.py: pip could not install {REQUIREMENT}; its message is above")
    made_for.write_text(wanted, encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Run nox with the arguments that the docstring above describes; returns its exit status."""
    if sys.version_info < OLDEST:
        oldest, here = ".".join(map(str, OLDEST)), sys.version.split()[0]
        sys.exit(f"run.py: needs Python {oldest} or newer, this is {here}")
    if not arguments:
        print(__doc__)
        arguments = ["-l"]
    install_runner()
    if not arguments[0].startswith("-"):
        arguments = ["-s", arguments[0], "--", *arguments[1:]]
    nox = [str(runner_python()), "-m", "nox", "-f", str(ROOT / "noxfile.py"), *arguments]
    with subprocess.Popen(nox) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:  # nox got it too, and ends in its own way
                continue


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
