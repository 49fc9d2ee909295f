"""The changelog: `python run.py changelog` prints the changes since the last release, from the files in `changelog.d/`.

Each change is a file `changelog.d/NAME.TYPE.md`; towncrier joins the files to a section of CHANGELOG.md.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.workspace import ROOT, settings, version

START = "<!-- releases -->\n"


def types() -> list[str]:
    """The types of changes, in the order of the changelog."""
    return list(settings()["towncrier"]["fragment"])


def faults() -> list[str]:
    """The files in `changelog.d/` that towncrier would leave out, or that are empty."""
    found = []
    name = re.compile(rf"[a-z0-9]+(-[a-z0-9]+)*\.({'|'.join(types())})\.md")
    for file in fragments():
        path = f"changelog.d/{file.name}"
        if not name.fullmatch(file.name):
            found.append(
                f"{path} is not named NAME.TYPE.md, with words and dashes as NAME, and {', '.join(types())} as TYPE"
            )
        elif not file.read_text(encoding="utf-8").strip():
            found.append(f"{path} is empty; say in it what users notice")
    return found


def fragments() -> list[Path]:
    """The files of the changes since the last release."""
    return sorted((ROOT / "changelog.d").glob("*"))


def unreleased() -> str:
    """The section of the changes since the last release; empty if there are none."""
    if not fragments():
        return ""
    draft = _towncrier("--draft", f"--version={version()}", "--date=unreleased", capture=True)
    return draft.strip() + "\n"


def page() -> str:
    """CHANGELOG.md, with the section of the changes since the last release."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return text.replace(START, f"{START}\n{unreleased()}", 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the section of the unreleased changes, or write it; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python run.py changelog", description=__doc__.split("\n")[2])
    parser.add_argument("--check", action="store_true", help="only check the names of the files")
    parser.add_argument("--release", action="store_true", help="write the section, and remove the files")
    options = parser.parse_args(arguments)
    for fault in faults():
        print(f"changelog: {fault}", file=sys.stderr)
    if faults():
        return 1
    if options.release:
        _towncrier("--yes", f"--version={version()}")
    elif not options.check:
        print(unreleased() or "no changes since the last release")
    return 0


def _towncrier(*options: str, capture: bool = False) -> str:
    command = [sys.executable, "-m", "towncrier", "build", "--dir", str(ROOT), *options]
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE if capture else None,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"changelog: towncrier failed: {done.stderr}")
    return done.stdout or ""


if __name__ == "__main__":
    sys.exit(main())
