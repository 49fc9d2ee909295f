#!/usr/bin/env python3
"""Run a nox session on a machine that has only Python and pip.

    python run.py demo             the same as `nox -s demo`
    python run.py demo --epochs 3  arguments after the session's name go to the session
    python run.py -l               if an option comes first, all arguments go to nox (-l lists the sessions)

nox is installed once into its own environment, `.nox/runner`, so that no other Python environment changes. The
user's pip installs it there: some systems ship pip without `ensurepip`, and forbid installing into their Python.
uv is installed with it, where there is a wheel of uv; nox then makes environments in a fraction of the time.
"""

# No syntax newer than Python 3.7, so that a Python that is too old still prints the error message of `main`.
from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
RUNNER = ROOT / ".nox" / "runner"
REQUIREMENTS = ("nox[uv]>=2025.11.12", "nox>=2025.11.12")  # the second where there is no wheel of uv
OLDEST = (3, 11)


def runner_python() -> Path:
    """The Python of the runner's environment."""
    return RUNNER.joinpath(*(("Scripts", "python.exe") if sys.platform == "win32" else ("bin", "python")))


def install_runner() -> None:
    """Create the runner's environment, unless it exists for this requirement and this Python."""
    marker = RUNNER / "made_for.txt"
    content = f"{REQUIREMENTS[0]}, Python {sys.version.split()[0]}, {sys.base_prefix}"
    if runner_python().exists() and marker.exists() and marker.read_text(encoding="utf-8") == content:
        return
    print(f"installing nox into {RUNNER.relative_to(ROOT)}", flush=True)
    shutil.rmtree(RUNNER, ignore_errors=True)
    venv.create(RUNNER, with_pip=False)
    pip = [sys.executable, "-m", "pip", "--python", str(runner_python()), "--disable-pip-version-check"]
    install = [*pip, "install", "--quiet", "--only-binary=uv"]
    if all(subprocess.run([*install, requirement], check=False).returncode for requirement in REQUIREMENTS):
        sys.exit(f"run.py: pip could not install {REQUIREMENTS[-1]}; its message is above")
    marker.write_text(content, encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Run nox with the arguments that the docstring above describes; returns its exit status."""
    if sys.version_info < OLDEST:
        oldest, current = ".".join(map(str, OLDEST)), sys.version.split()[0]
        sys.exit(f"run.py: needs Python {oldest} or newer, this is {current}")
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
            except KeyboardInterrupt:  # nox receives Ctrl-C too, and ends by itself
                continue


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
