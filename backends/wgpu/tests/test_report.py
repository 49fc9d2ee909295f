"""The subcommand `gpu-report`: it measures a device, and writes the numbers and the errors to files."""

from __future__ import annotations

import json
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import tensorken as tk
from tensorken_wgpu.report import laws, products, sections, trainings
from tensorken_wgpu.report.bench import Bench, Row, attempt
from tensorken_wgpu.report.cli import main
from tensorken_wgpu.report.page import to_page
from tensorken_wgpu.report.sections import SECTIONS, Section

WITH_RATES = {"copies": "B", "products": "FLOP", "attention": "FLOP", "memory": "B"}


class Tags(HTMLParser):
    """The tags of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_report_has_all_sections_and_goes_on_after_errors(
    raw: Any, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(bench: Bench) -> Any:
        yield Row("first", seconds=1.0)
        raise ValueError("no <more> numbers\nsecond line")

    monkeypatch.setitem(sections.SECTIONS, "host", ("Time of the host", broken))
    monkeypatch.setattr(trainings, "other_backends", lambda: [("numpy", "cpu")])
    data, page = tmp_path / "report.json", tmp_path / "report.html"
    assert main(["--tiny", "--json", str(data), "--html", str(page)]) == 0
    printed = capsys.readouterr().out
    report = json.loads(data.read_text())
    assert [*report["sections"]] == [*SECTIONS]
    rows = {name: section["rows"] for name, section in report["sections"].items()}
    (first, failed) = rows.pop("host")
    assert first["seconds"] == 1.0
    assert failed["error"] == "ValueError: no <more> numbers"
    for name, found in rows.items():
        assert found, name
        assert not [row for row in found if row["error"]], name
        if name in WITH_RATES:
            assert {row["unit"] for row in found} == {WITH_RATES[name]}
            assert all([row["seconds"] > 0 and row["rate"] > 0 for row in found])
    (device,) = [row["facts"] for row in rows["adapter"] if row["name"] == "device"]
    assert device["device"] in report["title"]
    assert all([row["share"] > 0 for row in rows["memory"]])
    assert max([row["facts"]["error"] for row in rows["products"] if "error" in row["facts"]]) < 1e-3
    ours, others = rows["trainings"][::2], rows["trainings"][1::2]
    assert all([row["facts"]["kernels"] > 1 for row in ours])
    for row, other in zip(ours, others, strict=True):
        assert other["name"] == f"{row['name']}, by numpy on cpu"
        assert other["facts"]["loss at first"] == pytest.approx(row["facts"]["loss at first"], rel=1e-4)
    for row in rows["trainings"]:
        assert row["facts"]["loss at last"] < row["facts"]["loss at first"]
    (examined,) = rows["laws"]
    assert examined["facts"]["passed"] == examined["facts"]["cases"] > 100
    tags = Tags(page.read_text())
    assert not {"script", "img", "link", "iframe"} & {tag for tag, _ in tags.tags}
    assert not [a for _, attributes in tags.tags for a in attributes if a in ("src", "href")]
    for section in report["sections"].values():
        assert section["title"] in tags.texts
        assert section["title"] in printed
        for row in section["rows"]:
            assert row["name"] in tags.texts
            assert row["name"] in printed
    assert "error: ValueError: no <more> numbers" in tags.texts
    assert f"attach {data}" in printed


def test_errors_of_single_measurements_are_rows(raw: Any) -> None:
    def fail() -> Row:
        raise MemoryError

    assert attempt("sum", fail) == Row("sum", error="MemoryError: ")
    page = to_page("GPU report: <x>", [Section("a & b", [Row("sum", 1e-3, 2e9, "B", 1.5)], 1.0)])
    tags = Tags(page)
    assert {"GPU report: <x>", "a & b", "sum", "1 ms", "2 GB/s", "150 %"} <= {*tags.texts}
    assert [attributes["value"] for tag, attributes in tags.tags if tag == "meter"] == ["1.000"]


def test_errors_of_products_are_found(raw: Any) -> None:
    """A wrong element in the last row of the last product of a batch, and a right product in each layout."""
    lazy = tk.Lazy(raw)
    for batch, transposed in ((None, (True, False)), (2, (False, True))):
        product = products.Product("", (4, 5, 6), transposed, batch)
        a, b = [tk.random.normal(tk.random.key(i), shape).to(lazy) for i, shape in enumerate(product.shapes)]
        result = product.compute(a, b)
        assert products.largest_error(product, a, b, result) < 1e-6
        assert products.largest_error(product, a, b, result.at[..., 3, 0].add(0.1)) > 1e-3


def test_an_unknown_device_is_one_line(raw: Any, capsys: Any) -> None:
    assert main(["no such GPU"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "there is no device 'no such GPU'" in line


@pytest.mark.parametrize("option", ["--json", "--html"])
def test_a_file_that_cannot_be_written_is_refused_before_the_measurements(
    option: str, tmp_path: Path, capsys: Any
) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file" / "x", tmp_path / "none" / "x"):
        assert main([option, str(path)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert f"cannot write {path}" in line


def test_it_is_a_subcommand() -> None:
    command = [sys.executable, "-m", "tensorken", "gpu-report", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "--quick" in done.stdout
    assert "--tiny" not in done.stdout


def test_the_groups_of_laws_exist() -> None:
    pytest.importorskip("tensorken_conformance.laws")  # registers them
    from tensorken_conformance.law import LAWS

    assert [group for group in laws.GROUPS if not any(law.startswith(group) for law in LAWS)] == []
