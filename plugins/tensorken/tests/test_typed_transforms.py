"""The calls whose types mypy checks, in the session `typing`, run without errors."""

from __future__ import annotations

import runpy
from pathlib import Path

FILE = Path(__file__).with_name("typed_transforms.py")


def test_the_calls_whose_types_are_checked_run() -> None:
    names = runpy.run_path(str(FILE))
    assert names["doubled"](2.0).item() == 4.0
