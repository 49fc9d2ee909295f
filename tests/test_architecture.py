"""The check of the architecture finds cycles of imports, private imports and files over budget."""

from __future__ import annotations

import itertools
from pathlib import Path

from core.tests.each import each_of
from tools import architecture
from tools.workspace import ROOT

PUBLIC = {"mine": ["core.language", "core.program.program"]}


def test_a_cycle_is_found_and_named() -> None:
    imports = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set[str]()}
    found = architecture.cycle(imports)
    assert found[0] == found[-1] and set(found) == {"a", "b", "c"}
    assert all(after in imports[before] for before, after in itertools.pairwise(found))
    assert architecture.cycle({**imports, "c": {"d"}}) == []


@each_of(
    ("imported", "allowed"),
    [
        ("core.language.op", True),
        ("core.language", True),
        ("core.program.program", True),
        ("core.program.other", False),
        ("core.languages", False),
        ("core.host.registry", False),
        ("core", True),
        ("mine.other", True),
    ],
)
def test_imports_of_modules_that_are_not_public_are_found(imported: str, allowed: bool) -> None:
    found = architecture.private_imports({"mine.backend": [imported]}, PUBLIC)
    assert found == ([] if allowed else [f"mine.backend imports {imported}, which is not public to mine"])


def test_a_subpackage_may_import_more_than_its_package() -> None:
    public = {**PUBLIC, "mine.faults": ["core.levels"]}
    imports = {name: ["core.language", "core.levels"] for name in ("mine.faults.signs", "mine.faultless")}
    found = architecture.private_imports(imports, public)
    assert found == ["mine.faultless imports core.levels, which is not public to mine"]
    found = architecture.private_imports({"mine.faults": ["core.host"]}, public)
    assert found == ["mine.faults imports core.host, which is not public to mine.faults"]


def test_lines_of_code_are_counted(tmp_path: Path) -> None:
    text = '''"""A docstring,
over two lines."""

# a comment
import os


def f(x):  # counts
    """Another."""
    return """a text
    of two lines""" + x + (
        os.sep
    )
'''
    file = tmp_path / "module.py"
    file.write_text(text, encoding="utf-8")
    assert architecture.code_lines(file) == 6


def test_imports_in_functions_and_for_types_count() -> None:
    imports = architecture.imports_of(["tensorken_core", "tensorken_string"])
    assert "tensorken_core.host.plugin" in imports["tensorken_string.plugin"]
    assert "tensorken_string.backend" in imports["tensorken_string.plugin"]  # within the function `load`
    assert architecture.cycle(imports) == []


def test_there_are_budgets_for_core_and_kernel() -> None:
    budgets = architecture.settings()["architecture"]["budgets"]
    assert {name: budget["lines"] for name, budget in budgets.items()} == {"core": 8000, "kernel": 2000}
    assert len(budgets["kernel"]["paths"]) == 10
    assert all((ROOT / path).exists() for budget in budgets.values() for path in budget["paths"])
