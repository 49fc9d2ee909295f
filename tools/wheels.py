"""Builds every distribution into one folder, with the wheels that they need: `nox -s wheels`.

From that folder, `pip install --no-index --find-links FOLDER "tensorken[all]"` works without a network, on
the Python and the platform that made it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from tools.workspace import ROOT, distributions


def build(folder: Path, extras: str = "all") -> list[Path]:
    """Put into the folder all distributions and what `tensorken[extras]` needs; returns the wheels there.

    It needs pip and hatchling in the running environment, and a network or pip's cache for what others made.

    Raises:
        RuntimeError: if pip fails, with what it said.
    """
    chosen = {ROOT / "plugins" / "tensorken": f"[{extras}]"}
    sources = [f"{folder}{chosen.get(folder, '')}" for folder in distributions()]
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-build-isolation",
        "--wheel-dir",
        str(folder),
        *sources,
    ]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
    if done.returncode:
        raise RuntimeError(f"pip could not make the wheels:\n{done.stdout}{done.stderr}")
    return sorted(folder.glob("*.whl"))


def main(arguments: list[str] | None = None) -> int:
    """Build into the folder that the command line names, and list what is there."""
    parser = argparse.ArgumentParser(prog="nox -s wheels --", description="build all distributions")
    parser.add_argument("folder", type=Path, help="where the wheels go")
    folder: Path = parser.parse_args(arguments).folder
    for wheel in build(folder):
        print(wheel.name)
    print(f'now: pip install --no-index --find-links {folder} "tensorken[all]"')
    return 0


if __name__ == "__main__":
    sys.exit(main())
