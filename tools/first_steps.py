"""Try the first steps of users and authors, from an empty environment and a local index: `nox -s "nightly(start)"`.

On each Python it installs `tensorken`, runs the README's example, and certifies the project of a new backend. On the
first one it then runs the workflow of each project of `tensorken new`. It prints the times of the steps; a step that
fails ends the run.
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.release import Environment, ReleaseError, build, index, timed, try_it

PROJECTS = (
    ("backend", "--from", "python"),
    ("backend", "--from", "array-api"),
    ("compiler",),
    ("ops",),
    ("task",),
)
"""The arguments of `tensorken new` for each project, the name apart."""


def commands(workflow: str) -> list[str]:
    r"""The commands of a workflow.

    >>> commands("steps:\n  - uses: actions/checkout\n  - run: pip install .\n  - run: pytest\n")
    ['pip install .', 'pytest']
    """
    return re.findall(r"^ +- run: (.*)$", workflow, re.MULTILINE)


def try_project(python: str, packages: Path, kind: str, *options: str) -> None:
    """Write a project, and run the commands of its workflow in an empty environment.

    Raises:
        ReleaseError: if a command fails.
    """
    with tempfile.TemporaryDirectory(prefix="tensorken-start-", ignore_cleanup_errors=True) as name:
        environment = Environment(Path(name, "environment"), python, packages)
        environment.install("tensorken[conformance]")
        folder = Path(name, "project")
        environment.run("tensorken", "new", kind, "mine", *options, "--folder", str(folder))
        workflow = (folder / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
        steps = commands(workflow)
        if len(steps) < 5:
            raise ReleaseError(f"the workflow of {kind} has only {len(steps)} commands")
        for command in steps:
            program, *arguments = shlex.split(command)
            with timed(f"{python}: {' '.join([kind, *options])}: {command}"):
                if program == "pip":
                    environment.install(*arguments[1:], folder=folder)  # from the index
                else:
                    environment.run(program, *arguments, folder=folder)


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the distributions, and try them on each Python that is named and installed."""
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("--files", type=Path, help="the files of a release; by default they are built")
    parser.add_argument(
        "python", nargs="*", default=[sys.executable], help="interpreters, such as python3.13"
    )
    options = parser.parse_args(arguments)
    found = [python for python in options.python if shutil.which(python)]
    for python in options.python:
        if python not in found:
            print(f"{python}: not installed, skipped", flush=True)
    try:
        if not found:
            raise ReleaseError("none of these Pythons is installed; name another one")
        with tempfile.TemporaryDirectory(prefix="tensorken-start-", ignore_cleanup_errors=True) as name:
            files = options.files or Path(name)
            if not options.files:
                with timed("the distributions") as results:
                    results.append(f"{len(build(files))} files")
            packages = index(files)
            for python in found:
                try_it(python, packages)
            for kind, *others in PROJECTS:
                try_project(found[0], packages, kind, *others)
    except ReleaseError as error:
        print(f"first steps: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
