"""The certificates of our backends: the results of the conformance kit, as the site shows them.

`python -m tools.certificates reports` records the results of the reports in that folder, in
docs/conformance/certificates.json. The site shows those, or the reports of `nox -s conformance` where there are any.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path

from tensorken_conformance.levels import Level
from tools.workspace import ROOT

RECORDED = ROOT / "docs" / "conformance" / "certificates.json"


@dataclass(frozen=True, slots=True)
class Certificate:
    """The result of the kit on a backend.

    Args:
        backend: its name.
        level: the number of its level, None if it has none.
        symbolic: whether it is a backend without values.
        depth: of the run: `smoke`, `default` or `deep`.
        cases: the number of all cases; `bad` ones failed or crashed, `expected` ones are known to fail,
            `unsupported` ones are declared.
        device: the device that computed.
        date: the day of the run.
        kit: the version of the kit.
        dtypes: the dtypes of the backend.
    """

    backend: str
    level: int | None
    symbolic: bool
    depth: str
    cases: int
    bad: int
    expected: int
    unsupported: int
    device: str
    date: str
    kit: str
    dtypes: tuple[str, ...]

    @property
    def short(self) -> str:
        """Such as `L5`; `no level` if it has none or if a case is bad."""
        return "no level" if self.level is None or self.bad else Level(self.level, self.symbolic).short


def read(report: Path) -> Certificate | None:
    """The certificate of a report in JSON; None if cases are missing, or if a compiler ran its programs."""
    data = json.loads(report.read_text(encoding="utf-8"))
    header, counts = data["header"], data["counts"]
    if header["partial"] or header["select"] or header["compilers"]:
        return None
    return Certificate(
        header["backend"],
        header["level"],
        header["symbolic"],
        header["depth"],
        counts["cases"],
        counts["failed"] + counts["crashed"],
        counts["expected"],
        counts["unsupported"],
        header["device"],
        header["date"].partition("T")[0],
        header["kit"],
        tuple(data["capabilities"]["dtypes"]),
    )


def certificates(reports: Path, recorded: Path = RECORDED) -> dict[str, Certificate]:
    """The certificates by backend: those of the reports in a folder, and the recorded ones of other backends."""
    data = json.loads(recorded.read_text(encoding="utf-8"))
    found = {row["backend"]: Certificate(**row | {"dtypes": tuple(row["dtypes"])}) for row in data}
    new = [certificate for file in sorted(reports.glob("*.json")) if (certificate := read(file))]
    return found | {certificate.backend: certificate for certificate in new}


def badge(certificate: Certificate, address: str) -> str:
    """A badge as HTML, with a link to the page of the backend."""
    level = "none" if certificate.short == "no level" else str(certificate.level)
    smoke = ", by a smoke run" if certificate.depth == "smoke" else ""
    return (
        f'<a class="certificate" href="{escape(address)}" title="{escape(_result(certificate) + smoke)}">'
        f'<span>{escape(certificate.backend)}</span><span class="level-{level}">{certificate.short}</span></a>'
    )


def badges(found: dict[str, Certificate], folder: str) -> str:
    """The badges of all backends in a paragraph of HTML; `folder` has their pages."""
    rows = [badge(certificate, f"{folder}/{name}.html") for name, certificate in found.items()]
    return '<p class="certificates">\n' + "\n".join(rows) + "\n</p>"


def facts(certificate: Certificate, report: str = "") -> str:
    """The table at the top of a backend's page, in Markdown; `report` is the address of the full report."""
    depth = {"smoke": "a smoke run, with a case for each op", "default": "a run at default depth"}
    level = "no level"
    if certificate.short != "no level" and certificate.level is not None:
        level = str(Level(certificate.level, certificate.symbolic))
    by = depth.get(certificate.depth, f"a {certificate.depth} run")
    address = "../conformance.html#reading-the-output"
    rows = [
        ("certificate", f"{badge(certificate, address)} {level}: {_result(certificate)}"),
        ("examined", f"{certificate.date}, on {certificate.device}, by {by}, kit {certificate.kit}"),
        ("dtypes", ", ".join(f"`{name}`" for name in certificate.dtypes)),
    ]
    rows += [("report", f'<a href="{report}">in full</a>')] if report else []
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {text} |" for name, text in rows)])


def _result(certificate: Certificate) -> str:
    """The cases in words."""
    counts = {
        "failed": certificate.bad,
        "failed as expected": certificate.expected,
        "declared unsupported": certificate.unsupported,
    }
    parts = [f"{number} {what}" for what, number in counts.items() if number]
    return f"{certificate.cases} cases, {', '.join(parts) or 'all passed'}"


def main(arguments: list[str] | None = None) -> int:
    """Record the certificates of reports."""
    parser = argparse.ArgumentParser(prog="python -m tools.certificates", description="record certificates")
    parser.add_argument("folder", type=Path, help="the folder with reports of the kit in JSON")
    found = certificates(parser.parse_args(arguments).folder)
    lines = [f"  {json.dumps(asdict(certificate))}" for certificate in found.values()]
    RECORDED.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
