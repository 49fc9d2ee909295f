"""The charts of the performance page: tables are read, and each becomes a figure with a description."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import charts
from tools.workspace import ROOT

TABLE = """<!-- figures: eager -->

| workload |    ours | / JAX | / numpy |  bound |
| -------- | ------: | ----: | ------: | -----: |
| sum      | 3.78 µs |  0.80 |       — | 1.00 JAX |
| product  |    2 ms |  1.00 |    0.00 |        |

<!-- end of eager -->
"""


def test_a_table_is_read() -> None:
    table = charts.table_of(f"# Title\n\n{TABLE}\nmore", "eager")
    assert table == charts.Table(["sum", "product"], {"JAX": [0.8, 1.0], "numpy": [None, 0.0]})
    assert table.summary() == "Tensorken is faster than JAX in 1 of 2, than numpy in 1 of 1 workloads."
    with pytest.raises(ValueError, match="chart traced: the page has no table <!-- figures: traced -->"):
        charts.table_of(TABLE, "traced")


def test_every_chart_of_the_page_has_a_table_and_known_libraries() -> None:
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    names = charts.marked(page)
    assert names
    for name in names:
        table = charts.table_of(page, name)
        assert table.ratios.keys() <= charts.MARKERS.keys(), name
        assert any(ratio is not None for ratios in table.ratios.values() for ratio in ratios), name


def test_marks_become_figures_and_tables_scroll(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[Path, charts.Table] = {}
    monkeypatch.setattr(charts, "draw", lambda table, file: drawn.update({file: table}))
    page = charts.with_charts(f"<!-- chart: eager -->\n\n{TABLE}", tmp_path)
    assert "```{figure} performance-eager.svg\n:alt: The ratios of 2 workloads" in page
    assert "```{table}\n:class: figures\n\n| workload |" in page
    assert drawn == {tmp_path / "performance-eager.svg": charts.table_of(TABLE, "eager")}
