"""The command `tensorken conformance`: what can be asked of the kit, and how it answers in a terminal."""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorken_conformance.running.options import Options, RunError

if TYPE_CHECKING:
    from tensorken_conformance.case import Result
    from tensorken_conformance.report.journal import Journal
    from tensorken_conformance.report.model import Report

USAGE = 2
INTERRUPTED = 130

FORMS = ("json", "html", "junit", "markdown", "badge")


def main(arguments: list[str]) -> int:
    """Run the command with these arguments.

    Returns:
        Its exit status: 0 if all is right, 1 if something failed or there is no level, 2 if nothing could be
        examined, as there is no such backend, attribute, option or law, 130 if it was interrupted.

    >>> main(["explain", "values.readback"])
    2
    """
    options = _parser().parse_args(arguments)
    try:
        status: int = options.do(options)
    except RunError as error:
        complain(str(error))
        return USAGE
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tensorken conformance",
        description="Prove a backend right, and the proof itself.",
        allow_abbrev=False,  # so that `selftest --seed 7` is refused, and not taken for 7 seeds
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, do: Callable[[argparse.Namespace], int], help: str) -> argparse.ArgumentParser:
        own = commands.add_parser(name, help=help, description=help, allow_abbrev=False)
        own.set_defaults(do=do)
        return own

    own = command("run", _run, "examine a backend by all laws")
    own.add_argument("backend", metavar="NAME", help="anything that the host accepts, module:attribute too")
    _add_depth(own)
    _add_backend_options(own)
    own.add_argument(
        "--select",
        action="append",
        default=[],
        metavar="LAW",
        help="a law, a group of laws, the beginning of the id of cases, such as values/exp/float32, or `finders`, "
        "the cases that found the seeded faults; may be repeated",
    )
    own.add_argument("--in-process", action="store_true", help="without worker processes, for a debugger")
    own.add_argument(
        "--workers", type=_positive, metavar="N", help="how many processes; default: processors, up to 8"
    )
    own.add_argument(
        "--limit",
        type=_seconds,
        default=120.0,
        metavar="SECONDS",
        help="of computing, for one case; default: 120",
    )
    own.add_argument(
        "--results",
        metavar="FILE",
        help="write each result as it comes, a line of JSON; a killed run leaves it",
    )
    for form in FORMS:
        own.add_argument(f"--{form}", metavar="FILE", help=f"write {_WHAT[form]}; - is stdout")
    own.add_argument("--brief", action="store_true", help="leave out the matrix of ops and dtypes")

    own = command("selftest", _selftest, "prove that the kit finds the faults that it should")
    own.add_argument(
        "--seeds", type=_positive, default=1, metavar="N", help="with how many seeds; default: 1"
    )
    own.add_argument("--deep", action="store_true", help="examine the right backends in full")
    own.add_argument("--select", action="append", default=[], metavar="WHAT", help="a fault, family or law")

    own = command("repro", _repro, "examine one case again, in this process")
    own.add_argument("case", metavar="CASE", help="the id of a case, as reports have it")
    own.add_argument("--backend", metavar="NAME", help="default: the one that is used where none is named")
    _add_depth(own)
    _add_backend_options(own)

    own = command("explain", _explain, "say what a law is about")
    own.add_argument("law", metavar="LAW")

    own = command("missing", _missing, "list what a backend lacks, and what each op would need")
    own.add_argument("backend", metavar="NAME")
    _add_backend_options(own)

    own = command("diff", _diff, "compare two JSON reports; the exit status is 1 if something got worse")
    own.add_argument("old", metavar="OLD")
    own.add_argument("new", metavar="NEW")
    own.add_argument(
        "--slower", type=float, default=2.0, metavar="FACTOR", help="what counts as slower; default: 2"
    )

    own = command("matrix", _matrix, "show JSON reports of several backends side by side")
    own.add_argument("reports", nargs="+", metavar="FILE")
    own.add_argument("--markdown", metavar="FILE", help="write Markdown; - is stdout")
    own.add_argument("--html", metavar="FILE", help="write a page; - is stdout")

    own = command("new", _new, "write the project of a new backend")
    own.add_argument("name", metavar="NAME")
    own.add_argument("--folder", type=Path, metavar="FOLDER", help="default: tensorken-NAME")
    return parser


_WHAT = {
    "json": "the report for machines",
    "html": "the report as a page",
    "junit": "the report as JUnit XML",
    "markdown": "a summary in Markdown",
    "badge": "a badge, an .svg or else the JSON of shields.io",
}


def _add_depth(own: argparse.ArgumentParser) -> None:
    own.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of the numbers that are drawn; default: 0"
    )
    group = own.add_mutually_exclusive_group()
    group.add_argument(
        "--smoke", dest="depth", action="store_const", const="smoke", help="a case for each op"
    )
    group.add_argument(
        "--deep", dest="depth", action="store_const", const="deep", help="as many as make sense"
    )


def _add_backend_options(own: argparse.ArgumentParser) -> None:
    own.add_argument(
        "--backend-option",
        action="append",
        default=[],
        type=_pair,
        metavar="K=V",
        help="device=NAME, or an argument for what makes the backend; may be repeated",
    )


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds


def _pair(text: str) -> tuple[str, Any]:
    """A name and a Python literal, or else text.

    >>> _pair("device=cuda:1"), _pair("threads=4")
    (('device', 'cuda:1'), ('threads', 4))
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip().isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form K=V")
    try:
        return name.strip(), ast.literal_eval(value) if name.strip() != "device" else value
    except (ValueError, SyntaxError):
        return name.strip(), value


# ---- run ---------------------------------------------------------------------------------------------------


def _run(options: argparse.Namespace) -> int:
    files = {form: getattr(options, form) for form in FORMS if getattr(options, form) is not None}
    journal = _journal(options.results, files)
    progress = Progress()

    def tell(result: Result) -> None:
        progress.tell(result)
        if journal is not None:
            journal.tell(result)

    wanted = Options(
        options.backend,
        options.seed,
        options.depth or "default",
        tuple(options.select),
        options.workers,
        options.limit,
        dict(options.backend_option),
        options.in_process,
    )
    from tensorken_conformance.running.run import run

    with _interrupted_by_termination():
        found = run(wanted, tell, lambda found: None if journal is None else journal.begin(found))
    progress.end()
    from tensorken_conformance.report.model import make
    from tensorken_conformance.report.terminal import to_text

    report = make(found)
    to_stdout = "-" in files.values()
    out = sys.stderr if to_stdout else sys.stdout
    say(to_text(report, colours(out), matrix=not options.brief), out)
    for form, file in files.items():
        write(file, rendered(report, form, file))
    if journal is not None:
        journal.close(keep=options.results is not None)
    return INTERRUPTED if found.partial else report.status


@contextlib.contextmanager
def _interrupted_by_termination() -> Iterator[None]:
    """Let a request to terminate end a run as Ctrl-C does, with a report of what was found so far."""
    if threading.current_thread() is not threading.main_thread():
        yield  # where Python takes no signals
        return

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    former = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


def _journal(path: str | None, files: dict[str, str]) -> Journal | None:
    """Where results go as they come: into the file that is named, or beside the report for machines.

    Raises:
        RunError: if it, or another file, cannot be written.
    """
    from tensorken_conformance.report.journal import Journal

    beside = files.get("json", "-")
    if path == "-":
        raise RunError("--results - has no place to write to; name a file")
    path = path or (None if beside == "-" else f"{beside}l")
    _check_files([*files.values(), *([path] if path else [])])
    return Journal(path) if path else None


def rendered(report: Report, form: str, file: str) -> str:
    """A report in one of the forms; a badge is a picture if its file is one."""
    module, name = _MADE_BY["svg" if form == "badge" and file.lower().endswith(".svg") else form]
    text: str = getattr(importlib.import_module(f"tensorken_conformance.report.{module}"), name)(report)
    return text


_MADE_BY = {
    "json": ("serial", "to_json"),
    "html": ("page", "to_page"),
    "junit": ("junit", "to_junit"),
    "markdown": ("markdown", "to_markdown"),
    "badge": ("badge", "to_shields"),
    "svg": ("badge", "to_svg"),
}
"""The module and the function for each form, which are only loaded where one is asked for."""


class Progress:
    """Says on stderr how far the run is: in a line that changes in a terminal, elsewhere in a line now and then.

    Args:
        every: seconds between two lines where nobody looks at a terminal.
    """

    def __init__(self, every: float = 30.0) -> None:
        self._terminal = sys.stderr is not None and sys.stderr.isatty()
        self._count = self._bad = 0
        self._every, self._last = every, time.monotonic()

    def tell(self, result: Result) -> None:
        """Count a result."""
        self._count += 1
        self._bad += result.status in ("failed", "crashed")
        text = ascii_only(f"{self._count} cases, {self._bad} bad; {result.case.law}")
        if self._terminal and (self._count % 50 == 0 or self._bad):
            sys.stderr.write(f"\r{text:<78.78}")
            sys.stderr.flush()
        elif sys.stderr is not None and not self._terminal and time.monotonic() - self._last >= self._every:
            self._last = time.monotonic()
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()

    def end(self) -> None:
        """Clear the line."""
        if self._terminal:
            sys.stderr.write(f"\r{'':<78}\r")


# ---- the other commands ------------------------------------------------------------------------------------


@contextlib.contextmanager
def _refusing(*errors: type[Exception]) -> Iterator[None]:
    """Take these errors for what is wrong with the arguments."""
    try:
        yield
    except errors as error:
        raise RunError(str(error)) from error


def _selftest(options: argparse.Namespace) -> int:
    from tensorken_conformance.selftest.proof import run as prove

    with _refusing(ValueError):
        return prove(seeds=options.seeds, deep=options.deep, select=options.select, tell=say).status


def _repro(options: argparse.Namespace) -> int:
    from tensorken_conformance.answers import repeated
    from tensorken_conformance.running.plan import PlanError
    from tensorken_core.errors import BackendError

    given = options.case, options.backend, options.seed, dict(options.backend_option), options.depth
    with _refusing(PlanError, BackendError, ValueError):
        status, text = repeated(*given)
    say(text)
    return status


def _explain(options: argparse.Namespace) -> int:
    from tensorken_conformance.answers import explained
    from tensorken_conformance.running.plan import PlanError

    with _refusing(PlanError):
        say(explained(options.law))
    return 0


def _missing(options: argparse.Namespace) -> int:
    from tensorken_conformance.answers import lacking
    from tensorken_core.errors import BackendError

    with _refusing(BackendError):
        say(lacking(options.backend, dict(options.backend_option)))
    return 0


def _diff(options: argparse.Namespace) -> int:
    from tensorken_conformance.report.diff import compare
    from tensorken_conformance.report.journal import load_either
    from tensorken_conformance.report.serial import ReportError

    with _refusing(ReportError):
        found = compare(load_either(options.old), load_either(options.new), slower=options.slower)
    say(found.text)
    return found.status


def _matrix(options: argparse.Namespace) -> int:
    from tensorken_conformance.report.journal import load_either
    from tensorken_conformance.report.markdown import several_to_markdown
    from tensorken_conformance.report.page import several_to_page
    from tensorken_conformance.report.serial import ReportError
    from tensorken_conformance.report.terminal import several_to_text

    _check_files([file for file in (options.markdown, options.html) if file])
    with _refusing(ReportError):
        reports = [load_either(path) for path in options.reports]
    if options.markdown:
        write(options.markdown, several_to_markdown(reports))
    if options.html:
        write(options.html, several_to_page(reports))
    if "-" not in (options.markdown, options.html):
        say(several_to_text(reports, colours(sys.stdout)))
    return 0


def _new(options: argparse.Namespace) -> int:
    from tensorken_conformance.template import create

    with _refusing(ValueError, OSError):
        written = create(options.name, options.folder)
    for path in written:
        say(str(path))
    return 0


# ---- output ------------------------------------------------------------------------------------------------


def ascii_only(text: str) -> str:
    """The text as every console can show it."""
    return text.encode("ascii", "backslashreplace").decode("ascii")


def say(text: str, out: Any = None) -> None:
    """Print text, on stdout if nothing else is named."""
    print(ascii_only(text.rstrip("\n")), file=out or sys.stdout, flush=True)


def complain(text: str) -> None:
    """Say on stderr what is wrong."""
    print(ascii_only(f"tensorken conformance: {text}"), file=sys.stderr)


def colours(out: Any) -> bool:
    """Whether to show colours there: in a terminal, unless NO_COLOR is set or the terminal is a dumb one."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return bool(not plain and out is not None and out.isatty())


def write(file: str, text: str) -> None:
    """Write text into a file, or to stdout if it is named `-`.

    Raises:
        RunError: if it cannot be written.
    """
    if file == "-":
        print(ascii_only(text), end="", flush=True)
        return
    try:
        Path(file).write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
    except OSError as error:
        raise RunError(f"cannot write {file}: {error.strerror or error}") from error


def _check_files(files: list[str]) -> None:
    """Raise RunError if files cannot be written, before a minute's work is lost to it."""
    for file in files:
        place = Path(file).resolve()
        if file != "-" and (
            place.is_dir() or not os.access(place if place.exists() else place.parent, os.W_OK)
        ):
            raise RunError(f"cannot write {file}: no such folder, or not writable")
    if files.count("-") > 1:
        raise RunError("only one report fits on stdout")
