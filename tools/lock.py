"""Write `.github/constraints.txt`: one version of each package that the workspace requires, for GitHub's workflows.

`python run.py lock` takes the newest versions that fit together on all systems and versions of Python.  The workflows
install these, so that a failure there comes from a change here.  `.ci/run` does not: it must pass with any index.
PyTorch is left out: which of its builds fits depends on the machine.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

from tools.workspace import ROOT, distributions

FILE = ROOT / ".github" / "constraints.txt"
UNLOCKED = ("torch",)
HEADER = "# Made by `python run.py lock`; Dependabot raises the versions.\n"


def requirements() -> list[str]:
    """What the dependency groups and all distributions require, but for each other."""
    workspace = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found = [
        one for group in workspace["dependency-groups"].values() for one in group if isinstance(one, str)
    ]
    for folder in distributions(optional=True):
        text = (folder / "pyproject.toml").read_text(encoding="utf-8")
        project = tomllib.loads(text)["project"]
        found += project["dependencies"]
        found += [one for extra in project.get("optional-dependencies", {}).values() for one in extra]
    return sorted(
        {one for one in found if not re.match(r"tensorken\b", one) and name_of(one) not in UNLOCKED}
    )


def name_of(requirement: str) -> str:
    """The normalised name of the package that is required.

    >>> name_of("ml_dtypes>=0.5; sys_platform == 'linux'")
    'ml-dtypes'
    """
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement)[0]).lower()


def main() -> int:
    """Resolve and write; returns the exit status."""
    command = [
        sys.executable,
        "-m",
        "uv",
        "pip",
        "compile",
        "--universal",
        "--python-version=3.11",
        "--upgrade",
    ]
    options = ["--no-annotate", "--no-header", "--no-emit-index-url", "--no-emit-find-links", "--quiet", "-"]
    done = subprocess.run(
        [*command, *options],
        input="\n".join(requirements()),
        stdout=subprocess.PIPE,
        encoding="utf-8",
        check=False,
    )
    if done.returncode == 0:
        FILE.write_text(HEADER + done.stdout, encoding="utf-8", newline="\n")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
