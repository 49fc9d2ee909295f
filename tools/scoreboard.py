"""The scoreboard: what the conformance kit finds in array libraries.

`python -m tools.scoreboard [NAME ...]` makes an environment for each library, or for those named, runs the kit and the
scripts in `bugs/`, records the results in docs/scoreboard.json, and writes docs/scoreboard.md from all recorded ones.

A library is a folder with

* `requirements.txt`: what pip installs besides Tensorken, and comments with facts: `# apt: PACKAGE` for each package
  of Debian, and those below;
* `bugs/`: scripts of at most five statements, besides imports, that use the library alone and fail while it has it.

In `examples/backends/` the folder is also the package NAME_backend of the backend, with

* `__init__.py`, whose function `load()` returns the interpreter that users get;
* `conformance.txt`: the failures that are expected, with a script in `bugs/` or an address of each.

In `examples/libraries/` the backend is another one, which the fact `# backend: NAME` names. If it is not that of the
array API standard, `# package: MODULE` names the Python package that has it, and `# distribution: FOLDER` the
distribution of this project with the package, if there is one.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import shutil
import subprocess
import sys
import venv
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tensorken_conformance.array_api import TEMPLATE
from tensorken_conformance.expectations import FILE, parse
from tensorken_conformance.levels import Level
from tools.architecture import code_lines
from tools.workspace import ROOT

BACKENDS = ROOT / "examples" / "backends"
LIBRARIES = ROOT / "examples" / "libraries"
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

PATTERNS = 3
"""The number of expected failures that the page lists for each reason."""

LIMIT = 60
"""Seconds for the script of a bug."""

FACT = re.compile(r"^# (apt|backend|package|distribution): (.+)$", re.MULTILINE)
"""A comment with a fact in requirements.txt."""


@dataclass(frozen=True, slots=True)
class Library:
    """A library that the kit examines.

    Args:
        name: in tables and on the command line.
        folder: has `requirements.txt` and `bugs/`.
        backend: the name of its backend for `tensorken conformance run`.
        package: the Python package that has the backend; empty for the backend of the array API standard.
        says: a sentence about the backend.
        debian: the packages of Debian that it needs.
        distribution: the folder of this project's distribution that has the package; empty if none has.
    """

    name: str
    folder: Path
    backend: str
    package: str
    says: str
    debian: tuple[str, ...] = ()
    distribution: str = ""

    @staticmethod
    def of_example(folder: Path, facts: Mapping[str, list[str]]) -> Library:
        """The library of a package in examples/backends."""
        source = (folder / "__init__.py").read_text(encoding="utf-8")
        says = (ast.get_docstring(ast.parse(source)) or "").partition("\n\n")[0]
        return Library(
            name=folder.name.removesuffix("_backend"),
            folder=folder,
            backend=f"{folder.name}:load",
            package=folder.name,
            says=f"{' '.join(says.split())} It is in `{folder.relative_to(ROOT).as_posix()}`.",
            debian=tuple(facts.get("apt", [])),
        )

    @staticmethod
    def of_other(folder: Path, facts: Mapping[str, list[str]]) -> Library:
        """The library of a folder in examples/libraries."""
        [backend] = facts["backend"]
        [package], [distribution] = facts.get("package", [""]), facts.get("distribution", [""])
        if distribution:
            says = f"Examined through a distribution of this project, in `{distribution}`, instead of an example."
        elif package:
            says = f"Examined through `{package}`, a package of the community."
        else:
            says = "Examined without a line of code: the backend is that of `tensorken new backend --from array-api`."
        return Library(
            name=folder.name,
            folder=folder,
            backend=backend,
            package=package,
            says=says,
            debian=tuple(facts.get("apt", [])),
            distribution=distribution,
        )

    @property
    def file(self) -> Path:
        """The file with the requirements."""
        return self.folder / "requirements.txt"

    @property
    def requirements(self) -> list[str]:
        """The names of the packages that pip installs."""
        names = re.findall(r"^\w[\w.-]*", self.file.read_text(encoding="utf-8"), flags=re.MULTILINE)
        return list(dict.fromkeys(names))

    @property
    def scripts(self) -> list[Path]:
        """The scripts that show bugs."""
        return sorted((self.folder / "bugs").glob("*.py"))


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
        library: its name.
        backend: the name of the backend for `tensorken conformance run`.
        says: a sentence about the backend.
        lines: the number of lines of code of the backend.
        versions: the versions of the packages that it requires.
        level: the number of the level; None without one.
        depth: of the run: `smoke`, `default` or `deep`.
        partial: whether the run was interrupted, so that cases are missing.
        counts: the number of cases by status.
        groups: the same for each group of laws.
        failed: the laws with failed or crashed cases: id, number of these cases, and their ops.
        dtypes: the declared dtypes.
        expected: the failures that are expected: pattern, reason, and script or address.
        bugs: the scripts in `bugs/`.
        date: the day of the run.
        seconds: of the run.
        kit: the version of the kit.
    """

    library: str
    backend: str
    says: str
    lines: int
    versions: dict[str, str]
    level: int | None
    depth: str
    partial: bool
    counts: dict[str, int]
    groups: dict[str, dict[str, int]]
    failed: tuple[tuple[str, int, tuple[str, ...]], ...]
    dtypes: tuple[str, ...]
    expected: tuple[tuple[str, str, str], ...]
    bugs: tuple[Bug, ...]
    date: str
    seconds: float
    kit: str

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> Score:
        """The inverse of `asdict`, from JSON."""
        return Score(
            **{
                **data,
                "dtypes": tuple(data["dtypes"]),
                "expected": tuple([(str(a), str(b), str(c)) for a, b, c in data["expected"]]),
                "failed": tuple([(str(law), int(count), tuple(ops)) for law, count, ops in data["failed"]]),
                "bugs": tuple([Bug(**bug) for bug in data["bugs"]]),
            }
        )

    @property
    def short(self) -> str:
        """Such as `L5`; `no level` if there is none."""
        return "no level" if self.level is None else Level(self.level, False).short


# ---- measuring -------------------------------------------------------------------------------------------------


def libraries() -> dict[str, Library]:
    """The libraries by name, in order."""
    found = []
    for folder, make in ((BACKENDS, Library.of_example), (LIBRARIES, Library.of_other)):
        for file in folder.glob("*/requirements.txt"):
            facts: dict[str, list[str]] = {}
            for kind, value in FACT.findall(file.read_text(encoding="utf-8")):
                facts.setdefault(kind, []).append(value)
            found.append(make(file.parent, facts))
    return {library.name: library for library in sorted(found, key=lambda library: library.name)}


def environment(library: Library, folder: Path) -> Path:
    """The Python of an environment with the library, in its newest version, and the kit; made if it does not exist."""
    lacking = absent(library.debian)
    if lacking:
        print(f"{library.name} needs: apt-get install {' '.join(lacking)}", file=sys.stderr)
    place = folder / library.name
    python = place / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not python.exists():
        venv.create(place, with_pip=True)
    folders = [*NEEDED, *filter(None, [library.distribution])]
    pip = [str(python), "-m", "pip", "install", "--quiet", "--upgrade", "-r", str(library.file)]
    subprocess.run([*pip, *[part for need in folders for part in ("-e", str(ROOT / need))]], check=True)
    return python


def absent(packages: Iterable[str]) -> list[str]:
    """Those of these packages of Debian that are not installed; none on another system."""
    query = shutil.which("dpkg-query")
    command = [query, "--show", "--showformat", "${db:Status-Status}"] if query else []
    return [
        name
        for name in packages
        if query
        and subprocess.run([*command, name], capture_output=True, text=True, check=False).stdout
        != "installed"
    ]


def examined(python: Path, backend: str, options: Iterable[str], report: Path) -> None:
    """Run the kit on a backend; the report goes into a file."""
    variables = {"TENSORKEN_COMPILERS": "none", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    main = "import sys; from tensorken_cli.command import main; sys.exit(main())"
    command = [str(python), "-c", main, "conformance", "run", backend, *options, "--brief"]
    subprocess.run(
        [*command, "--json", str(report)],
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


def versions(python: Path, library: Library) -> dict[str, str]:
    """The versions of the packages in requirements.txt, and of Python."""
    wanted = library.requirements
    code = "import sys, platform; from importlib.metadata import version\n"
    code += "print(*[version(name) for name in sys.argv[1:]], platform.python_version())"
    done = subprocess.run([str(python), "-c", code, *wanted], capture_output=True, text=True, check=True)
    return dict(zip([*wanted, "Python"], done.stdout.split(), strict=True))


def package(python: Path, library: Library) -> Path:
    """The folder of the package that has the backend."""
    if not library.package:
        return ROOT / "conformance" / "src" / "tensorken_conformance" / Path(TEMPLATE).parent
    code = "import sys; from importlib.util import find_spec; print(find_spec(sys.argv[1]).origin)"
    command = [str(python), "-c", code, library.package]
    done = subprocess.run(command, cwd=BACKENDS, capture_output=True, text=True, check=True)
    return Path(done.stdout.strip()).parent


def lines_in(folder: Path) -> int:
    """The number of lines of code in a package, without the scripts in `bugs/`."""
    return sum([code_lines(file) for file in folder.rglob("*.py") if file.parent.name != "bugs"])


def score(
    library: Library, folder: Path, report: Mapping[str, Any], found: dict[str, str], bugs: tuple[Bug, ...]
) -> Score:
    """The results of a report of the kit and of the scripts; the folder is that of the package."""
    header = report["header"]
    groups: dict[str, Counter[str]] = {}
    for law in report["laws"]:
        groups.setdefault(law["id"].partition(".")[0], Counter()).update(law["counts"])
    return Score(
        library=library.name,
        backend=library.backend,
        says=library.says,
        lines=lines_in(folder),
        versions=found,
        level=header["level"],
        depth=header["depth"],
        partial=bool(header["partial"]),
        counts=dict(report["counts"]),
        groups={group: dict(counts) for group, counts in groups.items()},
        failed=failures(report["results"]),
        dtypes=tuple(report["capabilities"]["dtypes"]),
        expected=tuple(expected(folder / FILE)),
        bugs=bugs,
        date=header["date"].partition("T")[0],
        seconds=round(header["seconds"]),
        kit=header["kit"],
    )


def failures(results: Iterable[Mapping[str, Any]]) -> tuple[tuple[str, int, tuple[str, ...]], ...]:
    """The laws with failed or crashed cases: the id, the number of these cases, and their ops.

    >>> failures([{"case": f"values.sums/sum/{name}", "status": "failed"} for name in ("int32", "float32")])
    (('values.sums', 2, ('sum',)),)
    """
    found: dict[str, list[str]] = {}
    for result in results:
        if result["status"] in ("failed", "crashed"):
            law, op, *_ = result["case"].split("/")
            found.setdefault(law, []).append(op)
    return tuple([(law, len(ops), tuple(dict.fromkeys(ops))) for law, ops in found.items()])


def expected(file: Path) -> list[tuple[str, str, str]]:
    """The pattern, the reason, and the script or address of each expected failure."""
    rows = parse(file.read_text(encoding="utf-8")) if file.is_file() else []
    return [(row.id, row.reason, row.url) for row in rows]


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
    ordered = sorted(scores, key=lambda row: (-(-1 if row.level is None else row.level), row.library))
    head = "| library | level | lines | dtypes | cases | bad | expected | bugs | seconds | versions | run |"
    rows = [_row(row) for row in ordered]
    laws = [f"| | {' | '.join(GROUPS)} |", f"|---|{'---:|' * len(GROUPS)}"]
    laws += [
        f"| {row.library} | {' | '.join(cell(row.groups.get(group, {})) for group in GROUPS)} |"
        for row in ordered
    ]
    parts = [INTRODUCTION, "\n".join([head, f"|---|---|{'---:|' * 7}---|---|", *rows])]
    parts += [LEGEND, "\n".join(laws), *[_section(row) for row in ordered]]
    return "\n\n".join(parts) + "\n"


INTRODUCTION = """# The scoreboard

The [conformance kit](conformance.md) examines array libraries through small backends. Those in `examples/backends/` are
one file of at most 250 lines of code each. Modules of the array API standard need no code. JAX and PyTorch are examined
through distributions of this project, [tensorken-jax](backends/jax.md) and [tensorken-torch](backends/torch.md), which
are larger. A [level](conformance.md#reading-the-output) is that of the library with its backend, which may work around
bugs of the library. The scripts on this page show these bugs without Tensorken.
[Backends of the community](backends-of-the-community.md) explains how to add a backend. One command writes the page, in
an environment of its own for each library, and `nox -s "nightly(scoreboard)"` runs it:

```sh
$ python -m tools.scoreboard
```"""

LEGEND = """`lines` are lines of code of the backend, without comments and docstrings; `bad` are failed and crashed
cases; `bugs` are scripts that show a bug in the examined version; `seconds` are the wall time of the run, on two
processor cores that other processes used, too.

The groups of laws: ● all cases passed, ◐ some failed as expected, ○ some failed; with the number of cases
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
        round(row.seconds),
        ", ".join([f"{name} {version}" for name, version in row.versions.items()]),
        run,
    )
    return f"| {' | '.join(map(str, texts))} |"


def _section(row: Score) -> str:
    parts = [f"## {row.library}", row.says]
    depth = "" if row.depth == "default" else f" --{row.depth}"
    parts.append(
        f"Dtypes: {', '.join([f'`{name}`' for name in row.dtypes])}.\n\n"
        f"```sh\n$ cd examples/backends\n$ tensorken conformance run {row.backend}{depth}\n```"
    )
    if row.failed:
        lines = [f"| {law} | {count} | {', '.join(ops)} |" for law, count, ops in row.failed]
        parts.append("\n".join(["| law | failed | ops |", "|---|---:|---|", *lines]))
    if row.expected:
        lines = [_expectation(*key, patterns) for key, patterns in _by_reason(row.expected).items()]
        parts.append("\n".join(["| expected failures | reason | shown by |", "|---|---|---|", *lines]))
    for each in row.bugs:
        how = "fixed in the examined version" if each.outcome == FIXED else f"`{each.how}`"
        parts.append(f"### {row.library}: {each.name}\n\n{each.says} Result: {how}.")
        parts.append(f"```python elsewhere\n{each.code}\n```")
    return "\n\n".join(parts)


def _by_reason(rows: Iterable[tuple[str, str, str]]) -> dict[tuple[str, str], list[str]]:
    """The patterns of expected failures by reason and place."""
    found: dict[tuple[str, str], list[str]] = {}
    for pattern, reason, place in rows:
        found.setdefault((reason, place), []).append(pattern)
    return found


def _expectation(reason: str, place: str, patterns: list[str]) -> str:
    shown = ", ".join([f"`{pattern}`" for pattern in patterns[:PATTERNS]])
    rest = f" and {len(patterns) - PATTERNS} more" if len(patterns) > PATTERNS else ""
    return f"| {shown}{rest} | {reason} | {f'<{place}>' if place.startswith('http') else f'`{place}`'} |"


# ---- the command -----------------------------------------------------------------------------------------------


def recorded() -> dict[str, Score]:
    """The recorded results by library."""
    rows = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.is_file() else []
    return {row["library"]: Score.from_data(row) for row in rows}


def record(scores: Mapping[str, Score]) -> None:
    """Write docs/scoreboard.json and docs/scoreboard.md."""
    rows = [json.dumps(asdict(scores[name]), ensure_ascii=False) for name in sorted(scores)]
    RECORDED.write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8", newline="\n")
    PAGE.write_text(page(scores.values()), encoding="utf-8", newline="\n")


def examine(library: Library, options: argparse.Namespace) -> Score:
    """Make the environment unless a Python is given, run the kit and the scripts, and return the results.

    Raises:
        subprocess.CalledProcessError: if the environment cannot be made.
        OSError: if the kit ended without a report.
    """
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    report = folder / f"{library.name}.json"
    python = options.python or environment(library, folder)
    settings = [] if options.depth == "default" else [f"--{options.depth}"]
    if options.resume and report.is_file():
        settings = ["--resume", str(report)]
    else:
        report.unlink(missing_ok=True)
    examined(python, library.backend, [*settings, "--budget", str(options.seconds)], report)
    bugs = tuple([bug(python, script) for script in library.scripts])
    data = json.loads(report.read_text(encoding="utf-8"))
    return score(library, package(python, library), data, versions(python, library), bugs)


def main(arguments: list[str] | None = None) -> int:
    """Examine libraries, and write the page."""
    known = libraries()
    parser = argparse.ArgumentParser(prog="python -m tools.scoreboard", description="examine array libraries")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}; default: all")
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "reports" / "scoreboard", help="of environments and reports"
    )
    parser.add_argument(
        "--python", type=Path, help="a Python that has the library and the kit; needs one NAME"
    )
    parser.add_argument(
        "--seconds", type=float, default=0, help="begin no case of the kit after these seconds"
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on with runs that ended early, in their environments"
    )
    parser.add_argument("--depth", choices=("smoke", "default", "deep"), default="smoke")
    parser.add_argument("--page", action="store_true", help="only write the page again")
    options = parser.parse_args(arguments)
    unknown = sorted({*options.names} - {*known})
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(known)}")
    if options.python and len(options.names) != 1:
        parser.error("--python needs one NAME")
    scores = {name: row for name, row in recorded().items() if name in known}
    failed = []
    for name in [] if options.page else options.names or known:
        try:
            scores[name] = examine(known[name], options)
        except (subprocess.CalledProcessError, OSError) as error:  # one library must not end the others
            print(f"{name}: {error}", file=sys.stderr)
            failed.append(name)
        record(scores)
    record(scores)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
