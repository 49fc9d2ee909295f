"""The calls whose types mypy and pyright check, in the session `typing`, run without errors."""

from __future__ import annotations

import runpy
from pathlib import Path

HERE = Path(__file__).parent


def test_the_calls_whose_results_are_typed_run() -> None:
    names = runpy.run_path(str(HERE / "typed_transforms.py"))
    assert names["doubled"](2.0).item() == 4.0


def test_the_calls_whose_operands_are_typed_run() -> None:
    names = runpy.run_path(str(HERE / "typed_operands.py"))
    assert names["of_any_operand"](0.0).item() == 0.0
