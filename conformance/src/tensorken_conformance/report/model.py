"""Model: a report as data: its header, what became of each case, and what that comes to by op, dtype and law."""

from __future__ import annotations

import datetime
import functools
import platform
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from tensorken_conformance import expectations, levels
from tensorken_conformance.case import STATUSES, Result, Status
from tensorken_conformance.compilers import totals
from tensorken_conformance.expectations import Expectation
from tensorken_conformance.levels import Account, Level
from tensorken_conformance.running.options import Run
from tensorken_conformance.selftest.detection import rate
from tensorken_core.host.plugin import SPEC_VERSION, Capabilities
from tensorken_core.language.op import OPS

BLOCKED = expectations.BLOCKED

WORST_FIRST: tuple[Status, ...] = ("crashed", "failed", "expected failure", "passed", "unsupported")
"""What a cell is, if several cases of it became different things: the first of these."""

DISTRIBUTION = "tensorken-conformance"


@dataclass(frozen=True, slots=True)
class Header:
    """What a report is about, and how it was made.

    Attributes:
        kit: the version of the kit.
        language: the version of the language.
        core: the version of tensorken-core.
        backend: the name by which the backend was selected.
        distribution: the one that it comes from.
        version: of that.
        interpreter: its class.
        stack: the interpreters that users compute with.
        device: the name of the device.
        notes: what loaded plugins say of themselves, an adapter's name, say.
        options: what was passed to the factory of the backend.
        python: the version of Python.
        platform: the operating system and the machine.
        numpy: the version of numpy.
        seed: of all numbers that were drawn.
        depth: `smoke`, `default` or `deep`.
        select: the laws and cases that were chosen; none: all.
        date: when the run ended, in UTC, ISO 8601.
        seconds: how long it took.
        partial: why cases are missing; empty if none are.
        caught: how many faulty backends a selftest with these ops and laws finds, of how many `faults`.
        faults: how many there are; 0 if that was not measured.
        level: the level that was reached; None if there is none.
        symbolic: whether it is a level of the profile of backends that have no values.
        compilers: the compiler plugins that compiled programs.
    """

    kit: str
    language: str
    core: str
    backend: str
    distribution: str
    version: str
    interpreter: str
    stack: str
    device: str
    python: str
    platform: str
    numpy: str
    seed: int
    depth: str
    date: str
    seconds: float
    notes: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    select: tuple[str, ...] = ()
    partial: str = ""
    caught: int = 0
    faults: int = 0
    level: int | None = None
    symbolic: bool = False
    compilers: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether all laws were examined; only such a run gives a level."""
        return not self.select and not self.partial

    @property
    def name(self) -> str:
        """The backend and the compilers, such as `numpy+llvm`."""
        return "+".join((self.backend, *self.compilers))

    @property
    def level_name(self) -> str:
        """Such as `L4`; `no level`."""
        return "no level" if self.level is None else Level(self.level, self.symbolic).short

    @property
    def detection(self) -> str:
        """Such as `detection 78/78`."""
        return f"detection {self.caught}/{self.faults}" if self.faults else "detection not measured"

    @property
    def title(self) -> str:
        """The name, with the backend's version and device as far as they tell something."""
        device = "" if self.device in ("", "cpu", "default") else f" on {self.device}"
        return " ".join(filter(None, (self.name, self.version))) + device


@dataclass(frozen=True, slots=True)
class Cell:
    """What became of all cases of an op in a dtype.

    Attributes:
        op: the op.
        dtype: the dtype.
        counts: how many cases became what.
        ulp: the largest error, in representable numbers; None if none was measured.
        worst: the operands where it was reached.
        limit: the largest error that the backend declares; None if it declares none.
        laws: the same by law.
        seconds: how long it took.
    """

    op: str
    dtype: str
    counts: Account
    ulp: float | None
    worst: str
    limit: float | None
    laws: Mapping[str, tuple[Account, float | None]]
    seconds: float

    @property
    def status(self) -> Status:
        """The worst that became of a case."""
        return worst_of(self.counts)

    @property
    def bad(self) -> int:
        """How many cases failed or crashed."""
        return self.counts.failed + self.counts.crashed

    @property
    def run(self) -> int:
        """How many cases were not declared unsupported."""
        return self.counts.cases - self.counts.unsupported


@dataclass(frozen=True, slots=True)
class LawSummary:
    """What became of the cases of a law.

    Attributes:
        id: of the law.
        says: the law in a sentence.
        counts: how many cases became what.
        blocked: how many of those that failed only wait for another case.
        seconds: how long they took, in all processes together.
    """

    id: str
    says: str
    counts: Account
    blocked: int
    seconds: float


@dataclass(frozen=True)
class Report:
    """All that a run has found.

    Attributes:
        header: what it is about.
        capabilities: what the backend declares.
        laws: the id of each law that was examined, and what it says.
        results: what became of the cases, in the order of the laws.
        ops: the ops of the language among what the cases are about, in the order of the laws.
        problems: what else is wrong, such as an expected failure that is about no case.
        remarks: what is not wrong, but to be known, such as an expected failure that was not examined.
        timed: the ids of the cases whose times mean something, since what they time is right.
    """

    header: Header
    capabilities: Capabilities
    laws: Mapping[str, str]
    results: Sequence[Result]
    ops: Sequence[str]
    problems: Sequence[str] = ()
    timed: Sequence[str] = ()
    remarks: Sequence[str] = ()

    @functools.cached_property
    def counts(self) -> Account:
        """How many cases became what."""
        return levels.account(self.results)

    @property
    def level(self) -> Level | None:
        """The level that was reached."""
        number = self.header.level
        return None if number is None else Level(number, self.header.symbolic)

    @property
    def status(self) -> int:
        """The exit status: 0 if nothing failed but as expected, and there is a level, or something passed."""
        passes = self.counts.passed and self.capabilities.dtypes
        level = self.level if self.header.complete else Level(0) if passes else None
        return levels.exit_status(self.counts, level, self.problems)

    @property
    def claim(self) -> str:
        """What one may say of the backend, such as `language 1.0 - L4 - float32, int32, bool - detection 78/78`."""
        header = self.header
        how = {"smoke": "a smoke run only", "deep": "a deep run"}.get(header.depth, "")
        if not header.complete:
            how = "a part of the laws only"
        dtypes = ", ".join(self.capabilities.dtypes) or "no dtypes"
        parts = (f"language {header.language}", header.level_name, dtypes, how, header.detection)
        return " - ".join(filter(None, parts))

    @functools.cached_property
    def failures(self) -> list[Result]:
        """The cases that failed or crashed by themselves, and do not only wait for another."""
        return [r for r in self.results if r.status in ("failed", "crashed") and not is_blocked(r)]

    @functools.cached_property
    def blocked(self) -> Counter[str]:
        """How many cases wait for which one, the most first."""
        fates = {r.case.id: r.says for r in self.results if is_blocked(r)}
        found: Counter[str] = Counter()
        for says in fates.values():
            blocker = says.removeprefix(BLOCKED)
            for _ in range(len(fates)):
                if blocker not in fates:
                    break
                blocker = fates[blocker].removeprefix(BLOCKED)
            found[blocker] += 1
        return Counter(dict(found.most_common()))

    @functools.cached_property
    def cells(self) -> dict[tuple[str, str], Cell]:
        """What became of each op in each dtype."""
        ops = {op: place for place, op in enumerate(self.ops)}
        groups: dict[tuple[str, str], list[Result]] = {}
        for result in self.results:
            if result.case.dtype and result.case.op in ops:
                groups.setdefault((result.case.op, result.case.dtype), []).append(result)
        ordered = sorted(groups.items(), key=lambda group: ops[group[0][0]])
        return {place: self._cell(*place, results) for place, results in ordered}

    def _cell(self, op: str, dtype: str, results: Sequence[Result]) -> Cell:
        by_law: dict[str, list[Result]] = {}
        for result in results:
            by_law.setdefault(result.case.law, []).append(result)
        ulp, worst = largest(results)
        return Cell(
            op,
            dtype,
            levels.account(results),
            ulp,
            worst,
            self.capabilities.largest_error(op, dtype),
            {law: (levels.account(found), largest(found)[0]) for law, found in by_law.items()},
            sum(result.seconds for result in results),
        )

    @property
    def dtypes(self) -> list[str]:
        """The dtypes of the cells, in the order in which the backend declares them."""
        found = list(dict.fromkeys(dtype for _, dtype in self.cells))
        declared = list(self.capabilities.dtypes)
        return sorted(found, key=lambda dtype: declared.index(dtype) if dtype in declared else len(declared))

    @functools.cached_property
    def by_law(self) -> list[LawSummary]:
        """What became of the cases of each law."""
        groups: dict[str, list[Result]] = {id: [] for id in self.laws}
        for result in self.results:
            groups.setdefault(result.case.law, []).append(result)
        return [
            LawSummary(
                id,
                self.laws.get(id, ""),
                levels.account(found),
                sum(map(is_blocked, found)),
                sum(result.seconds for result in found),
            )
            for id, found in groups.items()
        ]

    @property
    def obstacles(self) -> list[Result]:
        """The cases that keep the backend from the next level."""
        return levels.obstacles(self.results, self.level)


def make(run: Run, now: datetime.datetime | None = None) -> Report:
    """The report of a run.

    >>> from tensorken_conformance.running.run import run
    >>> from tensorken_conformance.running.options import Options
    >>> report = make(run(Options("reference", select=("values.read-back/full",), in_process=True)))
    >>> report.header.level_name, report.status, report.cells["full", "float32"].status
    ('no level', 0, 'passed')
    """
    options = run.options
    capabilities = Capabilities(**run.capabilities)
    complete = not options.select and not run.partial
    expected = [
        Expectation(
            line["id"],
            line["reason"],
            line["url"],
            datetime.date.fromisoformat(line["expires"]),
            line["place"],
        )
        for line in run.expectations
    ]
    all_of_them = complete and options.depth != "smoke"
    results, problems = expectations.apply(expected, run.results, complete=all_of_them)
    ids = [result.case.id for result in run.results]
    remarks = () if all_of_them else tuple(expectations.unexamined(expected, ids))
    level = levels.level_of(results, capabilities) if complete else None
    about = dict(run.about)
    caught, faults = rate(about.pop("fingerprint", ""))
    header = Header(
        kit=installed(DISTRIBUTION),
        language=SPEC_VERSION,
        core=installed("tensorken-core"),
        backend=options.backend,
        python=platform.python_version(),
        platform=platform.platform(),
        numpy=installed("numpy"),
        seed=options.seed,
        depth=options.depth,
        date=(now or datetime.datetime.now(datetime.UTC)).isoformat(timespec="seconds"),
        seconds=round(run.seconds, 3),
        options=dict(options.options),
        select=tuple(options.select),
        partial=run.partial,
        caught=caught,
        faults=faults,
        level=None if level is None else level.number,
        symbolic=capabilities.symbolic,
        compilers=tuple([name for name, one in totals(results).items() if one.compiled]),
        **{**dict.fromkeys(_ORIGIN, ""), **about, "notes": tuple(about.get("notes", ()))},
    )
    named = dict.fromkeys(result.case.op for result in results)
    ops = tuple(op for op in named if op in levels.CREATIONS or (op in OPS and OPS[op].higher_order is None))
    laws = {law["id"]: law["says"] for law in run.laws}
    told = (*run.problems, *problems)
    return Report(header, capabilities, laws, results, ops, told, _timed(results), remarks)


_ORIGIN = ("distribution", "version", "interpreter", "stack", "device")


def installed(distribution: str) -> str:
    """The version of a distribution; empty if it is not installed, but runs from a folder.

    >>> installed("no-such-distribution")
    ''
    """
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def is_blocked(result: Result) -> bool:
    """Whether a case failed only since another one did."""
    return result.status == "failed" and result.says.startswith(BLOCKED)


def largest(results: Iterable[Result]) -> tuple[float | None, str]:
    """The largest error among the results, and the operands where it was reached; None if none was measured."""
    measured = [result for result in results if result.ulp is not None]
    if not measured:
        return None, ""
    found = max(measured, key=lambda result: result.ulp or 0.0)
    return found.ulp, found.worst


def worst_of(counts: Account) -> Status:
    """The worst that became of any of the cases; `unsupported` if there are none."""
    numbers = dict(zip(STATUSES, _numbers(counts), strict=True))
    return next((status for status in WORST_FIRST if numbers[status]), "unsupported")


def _numbers(counts: Account) -> tuple[int, ...]:
    return counts.passed, counts.failed, counts.expected, counts.unsupported, counts.crashed


def written(ulp: float | None) -> str:
    """An error in a few characters; empty if none was measured.

    >>> written(0.0), written(0.512), written(3.0), written(123456.0), written(None)
    ('0', '0.51', '3', '1.2e+05', '')
    """
    if ulp is None:
        return ""
    return f"{ulp:.2g}" if ulp < 10 or ulp >= 10_000 else f"{ulp:.0f}"


def cases_in_order(results: Iterable[Result]) -> dict[str, list[Result]]:
    """The results by law, in their order."""
    found: dict[str, list[Result]] = {}
    for result in results:
        found.setdefault(result.case.law, []).append(result)
    return found


def stale(report: Report, kit: str | None = None) -> str:
    """Why a report should be made anew: it is of a kit more than two minor versions older; empty if it is not.

    Args:
        report: the report.
        kit: the version of the kit that judges; by default the installed one.
    """
    now = _minor(installed(DISTRIBUTION) if kit is None else kit)
    then = _minor(report.header.kit)
    if now is None or then is None or (then[0] == now[0] and now[1] - then[1] <= 2) or then > now:
        return ""
    return f"stale: made by kit {report.header.kit}, this is {now[0]}.{now[1]}"


def _minor(version: str) -> tuple[int, int] | None:
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else None


def titles(reports: Sequence[Report]) -> list[str]:
    """A short name for each of several reports: the backend's, with what tells it from the others."""
    names = [report.header.name for report in reports]
    for more in ("version", "device", "date"):
        names = [
            name if names.count(name) == 1 else f"{name} {getattr(report.header, more)}".strip()
            for name, report in zip(names, reports, strict=True)
        ]
    return [name if names.count(name) == 1 else f"{name} #{i + 1}" for i, name in enumerate(names)]


@dataclass(frozen=True, slots=True)
class Timing:
    """How long something took.

    Attributes:
        name: of what was timed: the op, the dtype, and the size.
        microseconds: on the backend.
        ratio: how many times as long as numpy the backend took.
        rate: what it moved or computed in a second, with its unit.
    """

    name: str
    microseconds: float
    ratio: float
    rate: str


RATES = {"gigabytes per second": "GB/s", "gigaflops per second": "GFLOP/s"}
"""The figures that are rates, and their units."""


def timings(report: Report) -> list[Timing]:
    """The times that mean something, in the order of the laws."""
    trusted = set(report.timed)
    found = []
    for result in report.results:
        if result.case.id in trusted:
            figures = result.figures
            rates = [f"{figures[name]:.3g} {unit}" for name, unit in RATES.items() if name in figures]
            name = result.case.id.partition("/")[2]
            found.append(Timing(name, figures["microseconds"], figures["ratio"], ", ".join(rates)))
    return found


def _timed(results: Sequence[Result]) -> tuple[str, ...]:
    if not any(result.figures for result in results):
        return ()
    from tensorken_conformance.laws.performance import trusted

    return tuple(result.case.id for result in trusted(results))
