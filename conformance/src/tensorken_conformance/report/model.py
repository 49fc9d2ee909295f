"""Model: a report as data: its header, its results, and their counts by op, dtype and law."""

from __future__ import annotations

import datetime
import functools
import platform
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeVar

from tensorken_conformance import expectations, levels
from tensorken_conformance.case import Result
from tensorken_conformance.compilers import totals
from tensorken_conformance.detection import generated
from tensorken_conformance.detection.counts import rate
from tensorken_conformance.expectations import BLOCKED, Expectation
from tensorken_conformance.levels import Account, Level
from tensorken_conformance.running.options import Run
from tensorken_core.host.plugin import SPEC_VERSION, Capabilities
from tensorken_core.language.op import OPS

DISTRIBUTION = "tensorken-conformance"

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Header:
    """The subject of a report, and the settings of the run.

    Attributes:
        kit, language, core, version, python, numpy: versions; `version` is that of the backend's distribution.
        backend: the name that selected the backend.
        interpreter: the class of the backend.
        stack: the interpreters that users compute with.
        notes: messages of loaded plugins, such as the name of an adapter.
        options: the arguments of the backend's factory.
        seed: the seed of all random numbers.
        depth: `smoke`, `default` or `deep`.
        select: the selected laws and cases; empty: all.
        date: the end of the run, in UTC, ISO 8601.
        partial: why cases are missing; empty if none are.
        planned: the number of cases, those that are missing included; 0 if none are, or it is unknown.
        caught: the number of `faults` that a selftest with these ops and laws finds; 0 of 0 if none was recorded.
        found: the number of `mutants`, generated faults, that a run of this depth finds; 0 of 0 if none was recorded.
        level: the number of the level that was reached; None if there is none.
        symbolic: whether it is a level of backends without values.
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
    found: int = 0
    mutants: int = 0
    level: int | None = None
    symbolic: bool = False
    compilers: tuple[str, ...] = ()
    planned: int = 0

    @property
    def complete(self) -> bool:
        """Whether all laws were examined; only such a run earns a level."""
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
        """Such as `detection 78/78`, or the share of mutants if that was measured."""
        if self.faults and self.mutants:
            return f"found {self.detected}"
        return f"detection {self.caught}/{self.faults}" if self.faults else "detection not measured"

    @property
    def detected(self) -> str:
        """The generated and the seeded faults that the kit finds, in words."""
        if not self.faults:
            return "not measured"
        if not self.mutants:
            return f"{self.caught} of {self.faults} seeded faults"
        known = f"all {self.faults}" if self.caught == self.faults else f"{self.caught} of {self.faults}"
        return f"{self.found} of {self.mutants} mutants that the laws were not written for, and {known} known faults"

    @property
    def title(self) -> str:
        """The name, with the backend's version and its device if that is a special one."""
        device = "" if self.device in ("", "cpu", "default") else f" on {self.device}"
        return " ".join(filter(None, (self.name, self.version))) + device


@dataclass(frozen=True, slots=True)
class Cell:
    """The results of all cases of an op in a dtype.

    Attributes:
        op: the name of the op.
        dtype: the name of the dtype.
        counts: the number of cases of each status.
        ulp: the largest error, in ULP; None if none was measured.
        worst: the operands of the largest error.
        limit: the largest error that the backend declares; None if it declares none.
        laws: `counts` and `ulp` of each law.
        seconds: the time of all cases.
    """

    op: str
    dtype: str
    counts: Account
    ulp: float | None
    worst: str
    limit: float | None
    laws: Mapping[str, tuple[Account, float | None]]
    seconds: float


@dataclass(frozen=True, slots=True)
class LawSummary:
    """The results of the cases of a law.

    Attributes:
        id: the id of the law.
        says: the law in a sentence.
        counts: the number of cases of each status.
        blocked: the number of failed cases that another case blocks.
        seconds: the time of all cases, in all processes together.
    """

    id: str
    says: str
    counts: Account
    blocked: int
    seconds: float


@dataclass(frozen=True)
class Report:
    """A report: the results of a run, and the facts about it.

    Attributes:
        header: the subject of the report.
        capabilities: what the backend declares.
        laws: the sentence of each examined law, by id.
        results: the results, in the order of the laws.
        ops: the ops of the language that the cases are about, in the order of the laws.
        problems: other errors, such as an expected failure that matches no case.
        timed: the ids of the cases whose times count, because what they time passed.
        remarks: facts that are no errors, such as an expected failure that was not examined.
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
        """The number of cases of each status."""
        return levels.account(self.results)

    @property
    def level(self) -> Level | None:
        """The level that was reached."""
        number = self.header.level
        return None if number is None else Level(number, self.header.symbolic)

    @property
    def so_far(self) -> str:
        """Such as `412 of 1,119 cases examined, so far L3`; empty if no cases are missing."""
        if not self.header.partial:
            return ""
        of_all = f" of {self.header.planned:,}" if self.header.planned else ""
        level = levels.level_of(self.results, self.capabilities)
        return f"{len(self.results):,}{of_all} cases examined, so far {level.short if level else 'no level'}"

    @property
    def status(self) -> int:
        """The exit status: 0 if every failure was expected, and there is a level, or in a partial run a pass."""
        passes = self.counts.passed and self.capabilities.dtypes
        level = self.level if self.header.complete else Level(0) if passes else None
        return levels.exit_status(self.counts, level, self.problems)

    @property
    def claim(self) -> str:
        """The claim that the run supports, such as `language 1.0 - L4 - float32, int32, bool - detection 78/78`."""
        header = self.header
        how = {"smoke": "a smoke run only", "deep": "a deep run"}.get(header.depth, "")
        if not header.complete:
            how = self.so_far or "a part of the laws only"
        dtypes = ", ".join(self.capabilities.dtypes) or "no dtypes"
        parts = (f"language {header.language}", header.level_name, dtypes, how, header.detection)
        return " - ".join(filter(None, parts))

    @functools.cached_property
    def failures(self) -> list[Result]:
        """The cases that failed or crashed and that no other case blocks."""
        return [result for result in self.results if is_failure(result)]

    @functools.cached_property
    def blocked(self) -> Counter[str]:
        """The number of cases that each failed case blocks, at the end of the chain; the largest first."""
        blockers = {r.case.id: r.says.removeprefix(BLOCKED) for r in self.results if is_blocked(r)}
        found: Counter[str] = Counter()
        for blocker in blockers.values():
            for _ in blockers:
                blocker = blockers.get(blocker, blocker)
            found[blocker] += 1
        return Counter(dict(found.most_common()))

    @functools.cached_property
    def cells(self) -> dict[tuple[str, str], Cell]:
        """The results of each op in each dtype."""
        places = {op: place for place, op in enumerate(self.ops)}
        about_ops = [r for r in self.results if r.case.dtype and r.case.op in places]
        groups = grouped(about_ops, lambda result: (result.case.op, result.case.dtype))
        ordered = sorted(groups.items(), key=lambda group: places[group[0][0]])
        return {place: self._cell(*place, results) for place, results in ordered}

    def _cell(self, op: str, dtype: str, results: Sequence[Result]) -> Cell:
        ulp, worst = largest(results)
        laws = {
            law: (levels.account(found), largest(found)[0]) for law, found in results_by_law(results).items()
        }
        limit, seconds = self.capabilities.largest_error(op, dtype), sum(r.seconds for r in results)
        return Cell(op, dtype, levels.account(results), ulp, worst, limit, laws, seconds)

    @property
    def dtypes(self) -> list[str]:
        """The dtypes of the cases, in the order in which the backend declares them."""
        found = dict.fromkeys(dtype for _, dtype in self.cells)
        declared = [dtype for dtype in self.capabilities.dtypes if dtype in found]
        return list(dict.fromkeys([*declared, *found]))

    @functools.cached_property
    def by_law(self) -> list[LawSummary]:
        """The results of each law."""
        groups = {**{id: [] for id in self.laws}, **results_by_law(self.results)}
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

    @functools.cached_property
    def by_group(self) -> dict[str, list[LawSummary]]:
        """The results of the laws of each group, such as `values`."""
        found: dict[str, list[LawSummary]] = {}
        for law in self.by_law:
            found.setdefault(law.id.partition(".")[0], []).append(law)
        return found

    @property
    def obstacles(self) -> list[Result]:
        """The cases that prevent the next level."""
        return levels.obstacles(self.results, self.level)


def make(run: Run, now: datetime.datetime | None = None) -> Report:
    """The report of a run.

    >>> from tensorken_conformance.running.run import run
    >>> from tensorken_conformance.running.options import Options
    >>> report = make(run(Options("reference", select=("values.read-back/full",), in_process=True)))
    >>> report.header.level_name, report.status, report.cells["full", "float32"].counts.worst
    ('no level', 0, 'passed')
    """
    options = run.options
    capabilities = Capabilities(**run.capabilities)
    complete = not options.select and not run.partial
    expected = [Expectation.from_data(line) for line in run.expectations]
    all_cases = complete and options.depth != "smoke"
    results, problems = expectations.apply(expected, run.results, complete=all_cases)
    ids = [result.case.id for result in run.results]
    remarks = () if all_cases else tuple(expectations.unexamined(expected, ids))
    level = levels.level_of(results, capabilities) if complete else None
    about = dict(run.about)
    fingerprint = about.pop("fingerprint", "")
    (caught, faults), (found, mutants) = rate(fingerprint), generated.rate(fingerprint, options.depth)
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
        planned=(run.planned or 0) if run.partial else 0,
        caught=caught,
        faults=faults,
        found=found,
        mutants=mutants,
        level=None if level is None else level.number,
        symbolic=capabilities.symbolic,
        compilers=tuple([name for name, one in totals(results).items() if one.compiled]),
        **{**dict.fromkeys(_ORIGIN, ""), **about, "notes": tuple(about.get("notes", ()))},
    )
    named = dict.fromkeys(result.case.op for result in results)
    ops = tuple(op for op in named if op in levels.CREATIONS or (op in OPS and OPS[op].higher_order is None))
    laws = {law["id"]: law["says"] for law in run.laws}
    problems = [*run.problems, *problems]
    return Report(header, capabilities, laws, results, ops, tuple(problems), _timed(results), remarks)


_ORIGIN = ("distribution", "version", "interpreter", "stack", "device")


def installed(distribution: str) -> str:
    """The version of an installed distribution; empty if it runs from a folder.

    >>> installed("no-such-distribution")
    ''
    """
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def is_blocked(result: Result) -> bool:
    """Whether a case failed only because another one did."""
    return result.status == "failed" and result.says.startswith(BLOCKED)


def is_failure(result: Result) -> bool:
    """Whether a case failed or crashed, and not because another one did."""
    return result.status in ("failed", "crashed") and not is_blocked(result)


def largest(results: Iterable[Result]) -> tuple[float | None, str]:
    """The largest error among the results and its operands; None if no error was measured."""
    measured = [result for result in results if result.ulp is not None]
    found = max(measured, key=lambda result: result.ulp or 0.0, default=None)
    return (None, "") if found is None else (found.ulp, found.worst)


def grouped(results: Iterable[Result], key: Callable[[Result], Key]) -> dict[Key, list[Result]]:
    """The results of each key, in their order."""
    found: dict[Key, list[Result]] = {}
    for result in results:
        found.setdefault(key(result), []).append(result)
    return found


def results_by_law(results: Iterable[Result]) -> dict[str, list[Result]]:
    """The results of each law."""
    return grouped(results, lambda result: result.case.law)


def written(ulp: float | None) -> str:
    """An error in a few characters; empty if it was not measured.

    >>> written(0.0), written(0.512), written(3.0), written(123456.0), written(None)
    ('0', '0.51', '3', '1.2e+05', '')
    """
    if ulp is None:
        return ""
    return f"{ulp:.2g}" if ulp < 10 or ulp >= 10_000 else f"{ulp:.0f}"


def stale(report: Report, kit: str | None = None) -> str:
    """Why a report is out of date: its kit is more than two minor versions older; empty if it is not.

    Args:
        report: the report.
        kit: the present version of the kit; by default the installed one.
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
    """A short, unique name for each of several reports: its name, if needed with version, device or date."""
    names = [report.header.name for report in reports]
    for more in ("version", "device", "date"):
        names = [
            name if names.count(name) == 1 else f"{name} {getattr(report.header, more)}".strip()
            for name, report in zip(names, reports, strict=True)
        ]
    return [name if names.count(name) == 1 else f"{name} #{i + 1}" for i, name in enumerate(names)]


@dataclass(frozen=True, slots=True)
class Timing:
    """The time of one case.

    Attributes:
        name: the op, the dtype and the size.
        microseconds: the time on the backend.
        ratio: the time relative to numpy's.
        rate: the throughput, with its unit.
    """

    name: str
    microseconds: float
    ratio: float
    rate: str


RATES = {"gigabytes per second": "GB/s", "gigaflops per second": "GFLOP/s"}
"""The figures that are rates, and their units."""


def timings(report: Report) -> list[Timing]:
    """The times that count, in the order of the laws."""
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
