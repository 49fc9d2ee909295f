"""The scoreboard: what the conformance kit finds in libraries for which `examples/backends/` has a backend.

`python -m tools.scoreboard [NAME ...]` makes an environment for each backend, or for those named, runs the kit and the
scripts in `bugs/`, records the results in docs/scoreboard.json, and writes docs/scoreboard.md from all recorded ones.

A backend is a package NAME_backend with

* `__init__.py`, whose function `load()` returns the interpreter that users get;
* `requirements.txt`: what pip installs besides Tensorken, and a line `# apt: PACKAGE` for each package of Debian;
* `conformance.txt`: the failures that are expected, with a script in `bugs/` or an address of each;
* `bugs/`: scripts of at most five statements, besides imports, that use the library alone and fail while it has it.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import venv
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tensorken_conformance.levels import Level
from tools.architecture import code_lines
from tools.workspace import ROOT

BACKENDS = ROOT / "examples" / "backends"
RECORDED = ROOT / "docs" / "scoreboard.json"
PAGE = ROOT / "docs" / "scoreboard.md"

NEEDED = (
    "core",
    "backends/numpy",
    "backends/reference",
    "backends/string",
    "plugins/tensorken",
    "conformance",
)
"""The distributions without which the kit does not run."""

GROUPS = ("values", "derivatives", "programs", "lifetime", "errors", "declarations", "host", "performance")
"""The groups of laws, in the order of the columns."""

SHOWN, FIXED = "shown", "fixed"

LIMIT = 60
"""Seconds for the script of a bug."""


@dataclass(frozen=True, slots=True)
class Bug:
    """A script that shows a bug of a library.

    Args:
        name: the file, without its suffix.
        says: the sentence in its docstring.
        code: the lines below its docstring.
        outcome: `shown`, or `fixed` if the script succeeds.
        how: the last line that it printed, or the signal that ended it; empty if there is none.
    """

    name: str
    says: str
    code: str
    outcome: str
    how: str


@dataclass(frozen=True, slots=True)
class Score:
    """The results of a library.

    Args:
        backend: the name of the package.
        says: the first sentence of its docstring.
        lines: the number of lines of code of the backend.
        versions: the versions of the packages that it requires.
        level: the number of the level; None without one.
        depth: of the run: `smoke`, `default` or `deep`.
        partial: whether the run was interrupted, so that cases are missing.
        counts: the number of cases by status.
        groups: the same for each group of laws.
        dtypes: the declared dtypes.
        expected: the failures that are expected: pattern, reason, and script or address.
        bugs: the scripts in `bugs/`.
        date: the day of the run.
        kit: the version of the kit.
    """

    backend: str
    says: str
    lines: int
    versions: dict[str, str]
    level: int | None
    depth: str
    partial: bool
    counts: dict[str, int]
    groups: dict[str, dict[str, int]]
    dtypes: tuple[str, ...]
    expected: tuple[tuple[str, str, str], ...]
    bugs: tuple[Bug, ...]
    date: str
    kit: str

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> Score:
        """The inverse of `asdict`, from JSON."""
        expected = tuple((str(a), str(b), str(c)) for a, b, c in data["expected"])
        bugs = tuple(Bug(**bug) for bug in data["bugs"])
        return Score(**{**data, "dtypes": tuple(data["dtypes"]), "expected": expected, "bugs": bugs})

    @property
    def library(self) -> str:
        """The name in tables."""
        return self.backend.removesuffix("_backend")

    @property
    def short(self) -> str:
        """Such as `L5`; `no level` if there is none."""
        return "no level" if self.level is None else Level(self.level, False).short


# ---- measuring -------------------------------------------------------------------------------------------------


def backends() -> list[str]:
    """The names of the packages in examples/backends, in order."""
    return sorted([file.parent.name for file in BACKENDS.glob("*_backend/requirements.txt")])


def environment(name: str, folder: Path) -> Path:
    """The Python of an environment with the library and the kit, which is made if it does not exist."""
    place = folder / name
    python = place / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not python.exists():
        venv.create(place, with_pip=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "-r", str(BACKENDS / name / "requirements.txt")]
    subprocess.run([*pip, *[part for need in NEEDED for part in ("-e", str(ROOT / need))]], check=True)
    return python


def examined(python: Path, name: str, options: Iterable[str], report: Path, seconds: float | None) -> None:
    """Run the kit on a backend; the report goes into a file. After these seconds no case begins."""
    variables = {"TENSORKEN_COMPILERS": "none", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    main = "import sys; from tensorken_cli.command import main; sys.exit(main())"
    command = [str(python), "-c", main, "conformance", "run", f"{name}:load", *options, "--brief"]
    subprocess.run(
        [*command, "--budget", str(seconds or 0), "--json", str(report)],
        cwd=BACKENDS,
        env={**os.environ, **variables, "PYTHONPATH": str(BACKENDS)},
        check=False,  # the report says what failed
    )


def bug(python: Path, script: Path) -> Bug:
    """The result of a script in `bugs/`."""
    source = script.read_text(encoding="utf-8")
    says = ast.get_docstring(ast.parse(source)) or ""
    try:
        done = subprocess.run(
            [str(python), str(script)], capture_output=True, text=True, timeout=LIMIT, check=False
        )
        how = (
            f"signal {-done.returncode}"
            if done.returncode < 0
            else (done.stderr.strip() or "\n").splitlines()[-1]
        )
        outcome = SHOWN if done.returncode else FIXED
    except subprocess.TimeoutExpired:
        outcome, how = SHOWN, f"no end within {LIMIT} s"
    return Bug(script.stem, " ".join(says.split()), code_of(source), outcome, how if outcome == SHOWN else "")


def code_of(source: str) -> str:
    """The lines of a script below its docstring, without the empty ones.

    >>> print(code_of("'Says.'" + chr(10) + chr(10) + "import math" + chr(10) * 2 + "assert math.pi"))
    import math
    assert math.pi
    """
    end = ast.parse(source).body[0].end_lineno
    return "\n".join([line for line in source.splitlines()[end:] if line.strip()])


def versions(python: Path, name: str) -> dict[str, str]:
    """The versions of the packages in requirements.txt, and of Python."""
    text = (BACKENDS / name / "requirements.txt").read_text(encoding="utf-8")
    wanted = re.findall(r"^[\w.-]+", text, flags=re.MULTILINE)
    code = "import sys, platform; from importlib.metadata import version\n"
    code += "print(*[version(name) for name in sys.argv[1:]], platform.python_version())"
    done = subprocess.run([str(python), "-c", code, *wanted], capture_output=True, text=True, check=True)
    return dict(zip([*wanted, "Python"], done.stdout.split(), strict=True))


def score(name: str, report: Mapping[str, Any], found: dict[str, str], bugs: tuple[Bug, ...]) -> Score:
    """The results of a report of the kit and of the scripts."""
    file = BACKENDS / name / "__init__.py"
    source = file.read_text(encoding="utf-8")
    header = report["header"]
    groups: dict[str, Counter[str]] = {}
    for law in report["laws"]:
        groups.setdefault(law["id"].partition(".")[0], Counter()).update(law["counts"])
    return Score(
        backend=name,
        says=" ".join((ast.get_docstring(ast.parse(source)) or "").partition("\n\n")[0].split()),
        lines=code_lines(file),
        versions=found,
        level=header["level"],
        depth=header["depth"],
        partial=bool(header["partial"]),
        counts=dict(report["counts"]),
        groups={group: dict(counts) for group, counts in groups.items()},
        dtypes=tuple(report["capabilities"]["dtypes"]),
        expected=tuple(expected(BACKENDS / name / "conformance.txt")),
        bugs=bugs,
        date=header["date"].partition("T")[0],
        kit=header["kit"],
    )


def expected(file: Path) -> list[tuple[str, str, str]]:
    """The pattern, the reason, and the script or address of each expected failure."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    rows = [[part.strip() for part in line.split("|")] for line in lines if line.strip() and line[0] != "#"]
    return [(pattern, reason, place) for pattern, reason, place, _ in rows]


# ---- the page --------------------------------------------------------------------------------------------------


def cell(counts: Mapping[str, int]) -> str:
    """The result of a group of laws.

    >>> cell({"cases": 9, "passed": 9, "failed": 0, "expected": 0, "unsupported": 0, "crashed": 0})
    '● 9'
    >>> cell({"cases": 9, "passed": 6, "failed": 2, "expected": 1, "unsupported": 0, "crashed": 0})
    '○ 6 of 9'
    >>> cell({})
    ''
    """
    cases = counts.get("cases", 0) - counts.get("unsupported", 0)
    if not cases:
        return ""
    if counts["passed"] == cases:
        return f"● {cases}"
    return f"{'○' if counts['failed'] + counts['crashed'] else '◐'} {counts['passed']} of {cases}"


def page(scores: Iterable[Score]) -> str:
    """The text of docs/scoreboard.md."""
    ordered = sorted(scores, key=lambda row: (-(-1 if row.level is None else row.level), row.backend))
    head = "| library | level | lines | dtypes | cases | bad | expected | bugs | versions | run |"
    rows = [_row(row) for row in ordered]
    laws = [f"| | {' | '.join(GROUPS)} |", f"|---|{'---:|' * len(GROUPS)}"]
    laws += [
        f"| {row.library} | {' | '.join(cell(row.groups.get(group, {})) for group in GROUPS)} |"
        for row in ordered
    ]
    parts = [INTRODUCTION, "\n".join([head, "|---|---|---:|---:|---:|---:|---:|---:|---|---|", *rows])]
    parts += [LEGEND, "\n".join(laws), *[_section(row) for row in ordered]]
    return "\n\n".join(parts) + "\n"


INTRODUCTION = """# The scoreboard

The [conformance kit](conformance.md) examines array libraries through small backends in
`examples/backends/`: each is one file of at most 250 lines of code. A level is that of the library with its backend,
which may work around bugs of the library. The scripts on this page show these bugs without Tensorken. One command
writes the page, and `nox -s "nightly(scoreboard)"` runs it:

```sh
$ python -m tools.scoreboard
```"""

LEGEND = """The groups of laws: ● all cases passed, ◐ some failed as expected, ○ some failed; with the number of cases
that are not declared unsupported."""


def _row(row: Score) -> str:
    run = f"{row.date}, {row.depth}{', not all cases' if row.partial else ''}"
    texts = (
        f"[{row.library}](#{row.library})",
        row.short,
        row.lines,
        len(row.dtypes),
        row.counts["cases"],
        row.counts["failed"] + row.counts["crashed"],
        row.counts["expected"],
        sum([bug.outcome == SHOWN for bug in row.bugs]),
        ", ".join([f"{name} {version}" for name, version in row.versions.items()]),
        run,
    )
    return f"| {' | '.join(map(str, texts))} |"


def _section(row: Score) -> str:
    parts = [f"## {row.library}", row.says]
    parts.append(
        f"`examples/backends/{row.backend}`, with {', '.join([f'`{name}`' for name in row.dtypes])}:\n\n"
        f"```sh\n$ cd examples/backends\n$ tensorken conformance run {row.backend}:load"
        f"{'' if row.depth == 'default' else f' --{row.depth}'}\n```"
    )
    if row.expected:
        lines = [f"| `{pattern}` | {reason} | {_place(place)} |" for pattern, reason, place in row.expected]
        parts.append("\n".join(["| expected failures | reason | shown by |", "|---|---|---|", *lines]))
    for each in row.bugs:
        how = "fixed in the examined version" if each.outcome == FIXED else f"`{each.how}`"
        parts.append(f"### {row.library}: {each.name}\n\n{each.says} Result: {how}.")
        parts.append(f"```python elsewhere\n{each.code}\n```")
    return "\n\n".join(parts)


def _place(place: str) -> str:
    return f"<{place}>" if place.startswith("http") else f"`{place}`"


# ---- the command -----------------------------------------------------------------------------------------------


def recorded() -> dict[str, Score]:
    """The recorded results by backend."""
    rows = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.is_file() else []
    return {row["backend"]: Score.from_data(row) for row in rows}


def record(scores: Mapping[str, Score]) -> None:
    """Write docs/scoreboard.json and docs/scoreboard.md."""
    rows = [json.dumps(asdict(scores[name]), ensure_ascii=False) for name in sorted(scores)]
    RECORDED.write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8", newline="\n")
    PAGE.write_text(page(scores.values()), encoding="utf-8", newline="\n")


def main(arguments: list[str] | None = None) -> int:
    """Examine backends, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m tools.scoreboard", description="examine array libraries")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="packages in examples/backends; default: all"
    )
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "reports" / "scoreboard", help="of environments and reports"
    )
    parser.add_argument(
        "--python", type=Path, help="a Python that has the library and the kit; needs one NAME"
    )
    parser.add_argument("--seconds", type=float, help="begin no case of the kit after these seconds")
    parser.add_argument("--depth", choices=("smoke", "default", "deep"), default="smoke")
    parser.add_argument("--page", action="store_true", help="only write the page again")
    options = parser.parse_args(arguments)
    unknown = sorted({*options.names} - {*backends()})
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(backends())}")
    if options.python and len(options.names) != 1:
        parser.error("--python needs one NAME")
    scores = {name: row for name, row in recorded().items() if name in backends()}
    failed = []
    for name in [] if options.page else options.names or backends():
        options.folder.mkdir(parents=True, exist_ok=True)
        report = options.folder.resolve() / f"{name}.json"
        report.unlink(missing_ok=True)
        try:
            python = options.python or environment(name, options.folder.resolve())
            depth = [] if options.depth == "default" else [f"--{options.depth}"]
            examined(python, name, depth, report, options.seconds)
            bugs = tuple([bug(python, script) for script in sorted((BACKENDS / name / "bugs").glob("*.py"))])
            scores[name] = score(
                name, json.loads(report.read_text(encoding="utf-8")), versions(python, name), bugs
            )
        except (subprocess.CalledProcessError, OSError) as error:  # one library must not end the others
            print(f"{name}: {error}", file=sys.stderr)
            failed.append(name)
        record(scores)
    record(scores)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
