"""What the tests of the workspace as a whole share: wheels, and environments to install them into."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tools import wheels


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment that knows no network."""

    folder: Path
    wheelhouse: Path

    def run(self, program: str, *arguments: str) -> str:
        """Run a program of the environment; returns what it printed, and fails if it failed."""
        path = self.folder / ("Scripts" if sys.platform == "win32" else "bin") / program
        done = subprocess.run(
            [path, *arguments],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        assert done.returncode == 0, f"{program} {' '.join(arguments)}\n{done.stdout}"
        return done.stdout

    def install(self, *requirements: str) -> None:
        """Install from the wheelhouse and from nowhere else, whatever pip's settings say."""
        offline = (
            "--isolated",
            "install",
            "--no-index",
            "--no-compile",
            "--find-links",
            str(self.wheelhouse),
        )
        self.run("python", "-m", "pip", *offline, "--disable-pip-version-check", *requirements)


@pytest.fixture(scope="session")
def wheelhouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all distributions of the workspace and what they need, as `nox -s wheels` makes it."""
    folder = tmp_path_factory.mktemp("wheels")
    wheels.build(folder)
    return folder


@pytest.fixture(scope="session")
def new_environment(wheelhouse: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Environment]:
    """A function that makes a fresh environment and installs the given requirements there, offline."""

    def make(*requirements: str) -> Environment:
        folder = tmp_path_factory.mktemp("environment")
        subprocess.run([sys.executable, "-m", "virtualenv", "--quiet", str(folder)], check=True)
        environment = Environment(folder, wheelhouse)
        environment.install(*requirements)
        return environment

    return make
