"""Run the commands of README.md: `nox -s readme`.

They run in a copy of the workspace with an empty home folder, as on a machine with only Python and pip; `tensorken` is
that of `python run.py dev`. `console` blocks run everywhere; `sh` blocks need a POSIX shell.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.pages import blocks
from tools.workspace import ROOT


def copy_workspace(target: Path) -> None:
    """Copy the workspace without the files ignored by git."""
    lines = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    patterns = [line.strip("/") for line in lines if line and not line.startswith("#")]
    shutil.copytree(ROOT, target, ignore=shutil.ignore_patterns(".git", *patterns))


def fresh_environment(home: Path, workspace: Path) -> dict[str, str]:
    """The environment of this process with another home, without settings of Python and Tensorken.

    The scripts of the workspace's `.venv` come last on the PATH, so that `python` is the one that made it.
    """
    prefixes = ("PYTHON", "TENSORKEN_", "NOX", "VIRTUAL_ENV", "XDG_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
    scripts = workspace / ".venv" / ("Scripts" if sys.platform == "win32" else "bin")
    path = os.pathsep.join([os.environ["PATH"], str(scripts)])
    return kept | {"HOME": str(home), "USERPROFILE": str(home), "PATH": path}


def main(arguments: list[str] | None = None) -> int:
    """Run the commands in order; the first failure ends the run with its exit status."""
    parser = argparse.ArgumentParser(prog="nox -s readme --", description="run the commands of README.md")
    parser.add_argument("--only", metavar="TEXT", default="", help="run only commands that contain TEXT")
    only: str = parser.parse_args(arguments).only
    page_blocks = blocks((ROOT / "README.md").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="tensorken-readme-", ignore_cleanup_errors=True) as folder:
        home, workspace = Path(folder, "home"), Path(folder, "tensorken")
        home.mkdir()
        copy_workspace(workspace)
        environment = fresh_environment(home, workspace)
        subprocess.run([sys.executable, "run.py", "dev"], cwd=workspace, env=environment, check=True)
        for block in page_blocks:
            for command in block.commands:
                if only not in command:
                    continue
                if block.language == "sh" and sys.platform == "win32":
                    print(f"README.md:{block.line}: needs a POSIX shell, not run: {command}", flush=True)
                    continue
                print(f"README.md:{block.line}: {command}", flush=True)
                status = subprocess.run(
                    command, shell=True, cwd=workspace, env=environment, check=False
                ).returncode
                if status:
                    print(f"README.md:{block.line}: ended with status {status}: {command}", flush=True)
                    return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
