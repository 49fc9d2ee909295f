"""Test whether a backend conforms, and test the kit itself.

This is the subcommand `tensorken conformance`: its arguments, and its commands.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tensorken_cli import Parser
from tensorken_conformance.array_api import accepted
from tensorken_conformance.output import check_files, complain, say, show, write
from tensorken_conformance.progress import Progress
from tensorken_conformance.running.options import ENDED, Options, RunError
from tensorken_core.errors import BackendError

if TYPE_CHECKING:
    from tensorken_conformance.case import Result
    from tensorken_conformance.report.journal import Journal
    from tensorken_conformance.report.model import Report
    from tensorken_conformance.running.options import Run

USAGE = 2
INTERRUPTED = 130

FORMS = {
    "json": ("write the report for machines", "serial", "to_json"),
    "html": ("write the report as a page", "page", "to_page"),
    "junit": ("write the report as JUnit XML", "junit", "to_junit"),
    "markdown": ("write a summary in Markdown", "markdown", "to_markdown"),
    "badge": ("write a badge, an .svg or else the JSON of shields.io", "badge", "to_shields"),
}
"""The formats of a report: the help of the option, and the module and function, which are imported on demand."""


def main(arguments: list[str]) -> int:
    """Run the command with these arguments.

    Returns:
        The exit status: 0 for success, 1 if something failed or there is no level, 2 if nothing was examined because
        a backend, attribute, option or law is unknown, 130 if the run was interrupted.

    >>> main(["explain", "values.readback"])
    2
    """
    parser = Parser(
        "tensorken conformance", description="Test whether a backend conforms, and test the kit itself."
    )
    add_arguments(parser)
    options = parser.parse_args(arguments)
    try:
        status: int = options.do(options)
    except (RunError, BackendError) as error:
        complain(str(error))
        return USAGE
    return status


# ---- arguments ---------------------------------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add a parser for each command."""
    commands = parser.add_subparsers(
        prog="tensorken conformance", dest="command", required=True, metavar="COMMAND", title="commands"
    )
    for name, (do, help, arguments) in _commands().items():
        command = commands.add_parser(name, help=help, description=help)
        command.set_defaults(do=do)
        depths = command.add_mutually_exclusive_group() if DEPTHS[0] in arguments else command
        for argument, settings in arguments:
            (depths if "const" in settings else command).add_argument(argument, **settings)


Argument = tuple[str, dict[str, Any]]
Command = tuple[Callable[[argparse.Namespace], int], str, list[Argument]]


def _argument(name: str, metavar: str = "", help: str | None = None, **settings: Any) -> Argument:
    """An argument for argparse; a flag has no metavar."""
    return name, {**({"metavar": metavar} if metavar else {}), "help": help, **settings}


DEPTHS = [
    _argument("--smoke", help="one case for each op", dest="depth", action="store_const", const="smoke"),
    _argument("--deep", help="as many cases as are useful", dest="depth", action="store_const", const="deep"),
]
SELECT = (
    "a law, a group of laws, the beginning of the id of cases, such as values/exp/float32, or `finders`, "
    "the cases that detected the seeded faults; may be repeated"
)


def _commands() -> dict[str, Command]:
    """The function, the help and the arguments of each command."""
    several: dict[str, Any] = {"action": "append", "default": []}
    made = "device=NAME, or an argument of the backend's factory; may be repeated"
    seed = _argument("--seed", "N", "seed of the random operands; default: 0", type=int, default=0)
    backend_option = _argument("--backend-option", "K=V", made, type=_pair, **several)
    limit = "computing time for one case; default: 120"
    budget = "time after which no case begins, 0 for no limit; default: 60 with --smoke, else 0"
    resume = "go on with the run of a JSON report or a journal: examine the cases that have not passed"
    again = "examine the failed cases of a JSON report or a journal again"
    results = "write each result at once, as a line of JSON; a killed run keeps the file"
    run = [
        _argument(
            "backend",
            "NAME",
            "any name that the host accepts, module:attribute or array-api:module",
            type=accepted,
        ),
        _argument("--seed", "N", seed[1]["help"], type=int),
        *DEPTHS,
        backend_option,
        _argument("--select", "LAW", SELECT, **several),
        _argument("--in-process", help="run without worker processes, for a debugger", action="store_true"),
        _argument("--workers", "N", "number of processes; default: processors, up to 8", type=_positive),
        _argument("--limit", "SECONDS", limit, type=_seconds, default=120.0),
        _argument("--budget", "SECONDS", budget, type=_budget),
        _argument("--resume", "REPORT", resume),
        _argument("--failed-of", "REPORT", again),
        _argument("--results", "FILE", results),
        *[_argument(f"--{form}", "FILE", f"{help}; - is stdout") for form, (help, *_) in FORMS.items()],
        _argument("--brief", help="leave out the matrix of ops and dtypes", action="store_true"),
    ]
    selftest = [
        _argument("--seeds", "N", "number of seeds; default: 1", type=_positive, default=1),
        _argument("--deep", help="examine the correct backends in full", action="store_true"),
        _argument("--select", "WHAT", "a fault, family or law", **several),
    ]
    repro = [
        _argument("case", "CASE", "the id of a case, as reports have it"),
        _argument("--backend", "NAME", "name of the backend; default: the default backend", type=accepted),
        seed,
        *DEPTHS,
        backend_option,
    ]
    diff = [
        _argument("old", "OLD"),
        _argument("new", "NEW"),
        _argument(
            "--slower",
            "FACTOR",
            "factor from which a time counts as slower; default: 2",
            type=_factor,
            default=2.0,
        ),
    ]
    matrix = [
        _argument("reports", "FILE", nargs="+"),
        _argument("--markdown", "FILE", "write Markdown; - is stdout"),
        _argument("--html", "FILE", "write a page; - is stdout"),
    ]
    worse = "compare two JSON reports; the exit status is 1 if something got worse"
    lacks = "list the dtypes and ops that a backend lacks"
    return {
        "run": (_run, "examine a backend by all laws", run),
        "selftest": (
            _selftest,
            "check that the kit detects seeded faults, and that correct backends pass",
            selftest,
        ),
        "repro": (_repro, "examine one case again, in this process", repro),
        "explain": (
            _explain,
            "describe a law, its cases and its faults, or list the laws of a group",
            [_argument("law", "LAW")],
        ),
        "missing": (_missing, lacks, [_argument("backend", "NAME", type=accepted), backend_option]),
        "diff": (_diff, worse, diff),
        "matrix": (_matrix, "show JSON reports of several backends side by side", matrix),
    }


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer of at least 1")
    return int(text)


def _seconds(text: str) -> float:
    return _above(0.0, text, "number of seconds above 0")


def _budget(text: str) -> float:
    return 0.0 if text.strip() in ("0", "0.0") else _seconds(text)


def _factor(text: str) -> float:
    return _above(1.0, text, "factor above 1")


def _above(bound: float, text: str, needed: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = bound
    if not number > bound:
        raise argparse.ArgumentTypeError(f"{text!r} is not a {needed}")
    return number


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
    settings, earlier = _settings(options)
    from tensorken_conformance.running.run import run

    with Progress(options.in_process) as progress, _interrupted_by_termination():

        def begin(outcome: Run) -> None:
            progress.begin(outcome)
            if journal is not None:
                journal.begin(outcome)
                for result in earlier:
                    journal.tell(result)

        def tell(result: Result) -> None:
            progress.tell(result)
            if journal is not None:
                journal.tell(result)

        outcome = run(settings, tell, begin, earlier)
    from tensorken_conformance.report.model import make
    from tensorken_conformance.report.terminal import blocks

    report = make(outcome)
    show(blocks(report, matrix=not options.brief), sys.stderr if "-" in files.values() else sys.stdout)
    for form, file in files.items():
        write(file, rendered(report, form, file))
    if journal is not None:
        journal.close(keep=options.results is not None)
    return INTERRUPTED if outcome.partial == ENDED else report.status


def _settings(options: argparse.Namespace) -> tuple[Options, Sequence[Result]]:
    """The settings of a run, and the results of the run that it resumes.

    Raises:
        RunError: if the report to go on with, or to repeat, is of another backend, or has nothing left to examine.
    """
    settings = Options(
        options.backend,
        options.seed or 0,
        options.depth or "default",
        tuple(options.select),
        options.workers,
        options.limit,
        dict(options.backend_option),
        options.in_process,
        options.budget,
    )
    path = options.resume or options.failed_of
    if path is None:
        return settings, ()
    name = "--resume" if options.resume else "--failed-of"
    given = (options.depth, options.seed, options.select, options.backend_option)
    if any(given) or options.seed is not None or (options.resume and options.failed_of):
        raise RunError(f"{name} takes depth, seed, cases and options from {path}; leave them out")
    from tensorken_conformance.report.journal import load_either
    from tensorken_conformance.report.model import is_failure

    report = load_either(path)
    header = report.header
    if header.backend != options.backend:
        raise RunError(f"{name}: {path} is a report on {header.backend}, not on {options.backend}")
    same: dict[str, Any] = {
        "seed": header.seed,
        "depth": header.depth,
        "select": header.select,
        "options": header.options,
    }
    if options.resume:
        if not header.partial:
            raise RunError(f"--resume: {path} lacks no case; --failed-of repeats those that failed")
        return replace(settings, **same), [r for r in report.results if r.status in ("passed", "unsupported")]
    failed = tuple(result.case.id for result in report.results if is_failure(result))
    if not failed:
        raise RunError(f"--failed-of: no case of {path} failed")
    return replace(settings, **same | {"select": failed}), ()


@contextlib.contextmanager
def _interrupted_by_termination() -> Iterator[None]:
    """Let SIGTERM end a run as Ctrl-C does, with a report of the results so far."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives signals
        return

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    former = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


def _journal(path: str | None, files: dict[str, str]) -> Journal | None:
    """The journal of the results: the file of --results, or one beside the JSON report.

    Raises:
        RunError: if this file, or that of a report, cannot be written.
    """
    from tensorken_conformance.report.journal import Journal

    beside = files.get("json", "-")
    if path == "-":
        raise RunError("--results - has no place to write to; name a file")
    path = path or (None if beside == "-" else f"{beside}l")
    check_files([*files.values(), *([path] if path else [])])
    return Journal(path) if path else None


def rendered(report: Report, form: str, file: str) -> str:
    """A report in one of the formats; a badge is an SVG image if its file has that suffix."""
    _, module, name = FORMS[form]
    name = "to_svg" if form == "badge" and file.lower().endswith(".svg") else name
    text: str = getattr(importlib.import_module(f"tensorken_conformance.report.{module}"), name)(report)
    return text


# ---- the other commands ------------------------------------------------------------------------------------


def _selftest(options: argparse.Namespace) -> int:
    from tensorken_conformance.selftest.proof import run as prove

    return prove(seeds=options.seeds, deep=options.deep, select=options.select, tell=say).status


def _repro(options: argparse.Namespace) -> int:
    from tensorken_conformance.answers import repeated

    made = dict(options.backend_option)
    status, text = repeated(options.case, options.backend, options.seed, made, options.depth)
    say(text)
    return status


def _explain(options: argparse.Namespace) -> int:
    from tensorken_conformance.answers import explained

    say(explained(options.law))
    return 0


def _missing(options: argparse.Namespace) -> int:
    from tensorken_conformance.answers import lacking

    say(lacking(options.backend, dict(options.backend_option)))
    return 0


def _diff(options: argparse.Namespace) -> int:
    from tensorken_conformance.report.diff import compare
    from tensorken_conformance.report.journal import load_either

    found = compare(load_either(options.old), load_either(options.new), slower=options.slower)
    say(found.text)
    return found.status


def _matrix(options: argparse.Namespace) -> int:
    from tensorken_conformance.report.journal import load_either
    from tensorken_conformance.report.markdown import several_to_markdown
    from tensorken_conformance.report.page import several_to_page
    from tensorken_conformance.report.terminal import blocks_of_several

    check_files([file for file in (options.markdown, options.html) if file])
    reports = [load_either(path) for path in options.reports]
    if options.markdown:
        write(options.markdown, several_to_markdown(reports))
    if options.html:
        write(options.html, several_to_page(reports))
    if "-" not in (options.markdown, options.html):
        show(blocks_of_several(reports), sys.stdout)
    return 0
