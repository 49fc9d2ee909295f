"""Serial: write reports as JSON that conforms to schema.json, and read them."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from importlib import resources
from pathlib import Path
from typing import Any

from tensorken_conformance.case import Result
from tensorken_conformance.levels import Account
from tensorken_conformance.report.model import Cell, Header, LawSummary, Report, timings
from tensorken_conformance.report.types import faults_of
from tensorken_conformance.running.options import RunError, as_tuples
from tensorken_core.host.plugin import Capabilities
from tensorken_core.text import printable

SCHEMA = 1
"""The version of the format; it increases when older readers cannot read the new one."""


class ReportError(RunError, ValueError):
    """A file is not a report that this kit can read."""


@functools.cache
def schema() -> dict[str, Any]:
    """The JSON Schema of reports.

    >>> schema()["$schema"]
    'https://json-schema.org/draft/2020-12/schema'
    """
    text = resources.files(__package__).joinpath("schema.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def to_json(report: Report) -> str:
    """A report as JSON, in ASCII; each cell and each case has its own line, for tools that compare lines."""
    data = as_data(report)
    parts = []
    for name, value in data.items():
        if isinstance(value, list) and value:
            text = "[\n" + ",\n".join(f"  {_compact(item)}" for item in value) + "\n ]"
        elif name == "header":
            text = "{\n" + ",\n".join(f'  "{k}": {_compact(v)}' for k, v in value.items()) + "\n }"
        else:
            text = _compact(value)
        parts.append(f' "{name}": {text}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _compact(value: Any) -> str:
    return json.dumps(value, allow_nan=False)


def as_data(report: Report) -> dict[str, Any]:
    """A report as lists, dictionaries, numbers and strings."""
    return {
        "schema": SCHEMA,
        "header": plain(asdict(report.header)),
        "claim": report.claim,
        "status": report.status,
        "capabilities": plain(asdict(report.capabilities)),
        "counts": _counts(report.counts),
        "laws": [_law(law) for law in report.by_law],
        "ops": list(report.ops),
        "cells": [_cell(cell) for cell in report.cells.values()],
        "problems": list(report.problems),
        "remarks": list(report.remarks),
        "timed": list(report.timed),
        "results": [_result(result) for result in report.results],
    }


def _counts(counts: Account) -> dict[str, int]:
    return {"cases": counts.cases, **asdict(counts)}


def _law(law: LawSummary) -> dict[str, Any]:
    seconds, counts = round(law.seconds, 6), _counts(law.counts)
    return {"id": law.id, "says": law.says, "seconds": seconds, "counts": counts}


def _cell(cell: Cell) -> dict[str, Any]:
    data = {
        "op": cell.op,
        "dtype": cell.dtype,
        "status": cell.counts.worst,
        "counts": _counts(cell.counts),
        "ulp": plain(cell.ulp),
        "worst": cell.worst,
        "limit": cell.limit,
        "seconds": round(cell.seconds, 6),
    }
    return {name: value for name, value in data.items() if value not in (None, "")}


def _result(result: Result) -> dict[str, Any]:
    data: dict[str, Any] = plain(result.as_data())
    data["seconds"] = round(data["seconds"], 6)
    return data


def plain(value: Any) -> Any:
    """The value as JSON has it; infinities and NaN become strings."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return value if isinstance(value, (bool, int, float, str, type(None))) else repr(value)


# ---- reading -----------------------------------------------------------------------------------------------


def text_of(path: str | Path) -> str:
    """The text of a file.

    Raises:
        ReportError: if it cannot be read.
    """
    try:
        return Path(path).read_text("utf-8")
    except FileNotFoundError as error:
        raise ReportError(
            f"{path}: there is no such file; `tensorken conformance run --json FILE` writes a report"
        ) from error
    except OSError as error:
        raise ReportError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ReportError(f"{path}: not a report of `tensorken conformance run --json FILE`") from error


def from_json(text: str, name: str = "report") -> Report:
    """The inverse of `to_json`.

    Raises:
        ReportError: if the text is not a report, or that of a newer kit.

    >>> from_json("[]")
    Traceback (most recent call last):
    tensorken_conformance.report.serial.ReportError: report: not a report of `tensorken conformance run --json FILE`
    """
    try:
        data = json.loads(text)
        version = data["schema"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ReportError(f"{name}: not a report of `tensorken conformance run --json FILE`") from error
    if type(version) is not int or not 1 <= version <= SCHEMA:
        raise ReportError(
            f"{name}: a report of form {version!r:.40}, this kit reads {SCHEMA}; pip install -U tensorken-conformance"
        )
    check_types(name, data, schema())
    try:
        report = _from_data(data)
        timings(report)  # the figures that a comparison needs
        return report
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ReportError(f"{name}: not a whole report: {type(error).__name__}: {error}") from error


def check_types(name: str, data: Any, part: Mapping[str, Any]) -> None:
    """Check the types of all values.

    Args:
        name: of the file, for errors.
        data: from JSON.
        part: the part of the schema for the data.

    Raises:
        ReportError: for the first value of another type.
    """
    fault = next(faults_of(data, part, schema()), None)
    if fault is not None:
        raise ReportError(f"{name}: not a whole report: {printable(fault, 200)}")


def _from_data(data: Mapping[str, Any]) -> Report:
    header = {**data["header"], "notes": tuple(data["header"]["notes"])}
    header["select"] = tuple(header["select"])
    header["compilers"] = tuple(header.get("compilers", ()))
    return Report(
        Header(**_known(Header, header)),
        Capabilities(**_known(Capabilities, as_tuples(data["capabilities"]))),
        {law["id"]: law["says"] for law in data["laws"]},
        [result_from(result) for result in data["results"]],
        tuple(data["ops"]),
        tuple(data["problems"]),
        tuple(data["timed"]),
        tuple(data.get("remarks", ())),
    )


def result_from(data: Mapping[str, Any]) -> Result:
    """A result of a report, or of a line of a journal."""
    return Result.from_data(_known(Result, _numbers(data)))


def _known(kind: Any, data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that this kit knows; a later kit may add fields without a new version of the format."""
    names = {f.name for f in fields(kind)}
    return {name: value for name, value in data.items() if name in names}


def _numbers(result: Mapping[str, Any]) -> dict[str, Any]:
    figures = {name: float(value) for name, value in result.get("figures", {}).items()}
    ulp = result.get("ulp")
    return {**result, "figures": figures, "ulp": None if ulp is None else float(ulp)}
