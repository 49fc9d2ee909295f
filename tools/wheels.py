"""Build the wheels of all distributions and their dependencies into one folder: `nox -s wheels`.

`pip install --no-index --find-links FOLDER "tensorken[all]"` then works without a network, on the same Python
version and platform.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from tools.workspace import ROOT, distributions


def build(folder: Path, extras: str = "all") -> list[Path]:
    """Build all distributions and the dependencies of `tensorken[extras]` into a folder; returns the wheels.

    Of the optional distributions it builds no dependencies.

    It needs pip and hatchling in the running environment, and a network or pip's cache for dependencies.

    Raises:
        RuntimeError: if pip fails, with its output.
    """
    extras_of = {ROOT / "plugins" / "tensorken": f"[{extras}]"}
    sources = [f"{folder}{extras_of.get(folder, '')}" for folder in distributions()]
    others = [str(path) for path in distributions(optional=True) if path not in distributions()]
    for arguments in (sources, ["--no-deps", *others]):
        command = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--wheel-dir", str(folder)]
        process = subprocess.run(
            [*command, *arguments], capture_output=True, encoding="utf-8", errors="replace", check=False
        )
        if process.returncode:
            raise RuntimeError(f"pip could not build the wheels:\n{process.stdout}{process.stderr}")
    return sorted(folder.glob("*.whl"))


def main(arguments: list[str] | None = None) -> int:
    """Build into the folder named on the command line, and list the wheels."""
    parser = argparse.ArgumentParser(prog="nox -s wheels --", description="build all distributions")
    parser.add_argument("folder", type=Path, help="folder for the wheels")
    folder: Path = parser.parse_args(arguments).folder
    for wheel in build(folder):
        print(wheel.name)
    print(f'now: pip install --no-index --find-links {folder} "tensorken[all]"')
    return 0


if __name__ == "__main__":
    sys.exit(main())
