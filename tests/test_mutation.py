"""Generated faults: the sites of mutants, their code, what becomes of them, and what is held out."""

from __future__ import annotations

import ast
import builtins
import json
import marshal
import os
import random
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracles.mutation import record
from oracles.mutation.comparison import compared, results
from oracles.mutation.journal import Entry, Journal
from oracles.mutation.outcomes import MEANINGS, Outcome, Rate
from oracles.mutation.processes import HOOK, run
from oracles.mutation.sites import MARK, Mutant, code_of, difference, mutants_of
from oracles.mutation.targets import TARGETS
from tensorken_conformance.detection import generated

SOURCE = '''
"""A module."""
from __future__ import annotations

import math

WIDTH, HEIGHT = 3, 4
SCALE: float = 0.123456789

class Box:
    """A box."""

    side = max(WIDTH, HEIGHT)

    def __repr__(self) -> str:
        return "Box" + "()"

    def area(self, a: int = 2) -> int:
        return a * self.side - 1

def total(values: list[int], start: int) -> int:
    """The total of all but the last."""
    if start < 0:
        raise ValueError("start" + str(start))
    found = start
    for i in range(len(values) - 1):
        found += values[i]
    found = abs(found)
    return found if values else int(start)

def pairs(values: list[int]) -> list[tuple[int, int]]:
    return [(x, y) for x, y in zip(values, values[1:], strict=False) if x]
'''

ALL = mutants_of("box", SOURCE)


def namespace(code: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"__name__": "box"}
    exec(code, found)
    return found


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that grows when a mutated node runs."""
    found: list[int] = []
    monkeypatch.setattr(builtins, MARK, lambda: found.append(1), raising=False)
    return found


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        ("a + b", "Add-to-Sub"),
        ("a - b", "Sub-to-Add swap-operands"),
        ("a @ b", "MatMult-to-Mult swap-operands"),
        ("a < b", "Lt-to-LtE"),
        ("not a", "no-Not"),
        ("7", "7-to-8 7-to-6"),
        ("0.123456789", "0.123456789-to-1.123456789 five-digits"),
        ("0.5", "0.5-to-1.5"),
        ("True", "True-to-False"),
        ("f(a, b)", "swap-arguments-0-1"),
        ("f(a, a)", ""),
        ("f(*a, b)", ""),
        ("f(a, key=b)", "drop-key"),
        ("zip(a, b, strict=c)", "swap-arguments-0-1"),
        ("x.astype(d)", "drop-astype"),
        ("np.asarray(x)", "drop-asarray"),
        ("int(x)", "drop-int"),
        ("np.maximum", "maximum-to-minimum"),
        ("range(n)", "last-minus-1"),
        ("x[a:b]", "lower-plus-1 upper-minus-1"),
        ("a if b else c", "not-the-condition condition-to-False condition-to-True"),
        ("[x for x in y if x]", "not-the-condition"),
        ("x[i] = y", "drop-statement"),
        ("x += y", "Add-to-Sub drop-statement"),
        ("x = f(x)", "drop-statement"),
        ("x = y", ""),
        ("f(x)", "drop-statement"),
        ("with a:\n    f", "drop-with drop-statement"),
        ("if a:\n    raise b", "not-the-condition condition-to-False"),
        ("max = 3", "3-to-4 3-to-2"),
        ("assert a < 1", ""),
        ("'text'", ""),
    ],
)
def test_the_changes_of_a_node(source: str, kinds: str) -> None:
    is_statement = not _is_expression(source) or source == "f(x)"
    body = source if is_statement else f"return {source}"
    text = "def g():\n" + "\n".join(f"    {line}" for line in body.splitlines())
    mutants = mutants_of("m", text)
    assert [mutant.kind for mutant in mutants] == kinds.split()
    for mutant in mutants:
        code_of(mutant, text, "m.py")
        before, after = difference(mutant, text).split("  ->  ")
        assert before != after, mutant


def _is_expression(source: str) -> bool:
    try:
        ast.parse(source, mode="eval")
    except SyntaxError:
        return False
    return True


def test_ids_are_unique_and_do_not_depend_on_lines_or_on_other_functions() -> None:
    ids = [mutant.id for mutant in ALL]
    assert len(set(ids)) == len(ids) > 30
    moved = mutants_of(
        "box", SOURCE.replace("import math\n", "import math\n\ndef first():\n    return 1\n\n\n")
    )
    assert [mutant.id for mutant in moved if mutant.function != "first"] == ids
    functions = {mutant.function for mutant in ALL}
    assert functions == {"(WIDTH, HEIGHT)", "SCALE", "Box.side", "Box.area", "total", "pairs"}


def test_most_mutants_change_a_result_and_each_that_does_has_run(runs: list[int]) -> None:
    def outcome(code: Any) -> str:
        try:
            found = namespace(code)
            values = [[3, 1, 2], [5], [], [0, -9, 4]]
            box = found["Box"]()
            totals = [found["total"](v, s) for v in values for s in (0, 2, 7)]
            with pytest.raises(ValueError, match="start-1"):
                found["total"]([1], -1)
            return repr(
                (totals, [found["pairs"](v) for v in values], box.area(), box.area(5), found["SCALE"])
            )
        except BaseException as error:  # noqa: BLE001, whatever a mutant raises is a result
            return type(error).__name__

    original = outcome(compile(SOURCE, "box.py", "exec"))
    changed = 0
    for mutant in ALL:
        runs.clear()
        if outcome(code_of(mutant, SOURCE, "box.py")) != original:
            changed += 1
            assert runs, mutant
    assert changed > 0.7 * len(ALL)


def test_half_of_all_mutants_are_held_out_and_leave_no_trace(tmp_path: Path) -> None:
    mutants = TARGETS["numpy"].mutants()
    held = [mutant for mutant in mutants if mutant.is_held_out]
    assert 0.45 < len(held) / len(mutants) < 0.55
    journal = Journal(tmp_path / "journal")
    for mutant in random.Random(0).sample(held, 20):
        entry = Entry.of(mutant, Outcome("found", "law/op", "says", 3, 1.5), "before -> after")
        journal.add(entry)
        assert str(entry) == "held out"
        for part in (mutant.module, mutant.function, mutant.kind, "law/op", "says", "before"):
            assert not any(part in str(value) for value in asdict(entry).values() if value != "found")


def test_a_journal_goes_on(tmp_path: Path) -> None:
    shown = [mutant for mutant in ALL if not mutant.is_held_out][:5]
    entries = [Entry.of(mutant, Outcome("missed", "", "says", 7, 2.0), "change") for mutant in shown]
    for entry in entries:
        Journal(tmp_path / "journal").add(entry)
    assert list(Journal(tmp_path / "journal").entries.values()) == entries


def test_draws_depend_on_the_seed_alone() -> None:
    target = TARGETS["reference"]
    first, again, other = target.drawn(30, 1), target.drawn(30, 1), target.drawn(30, 2)
    assert first == again != other
    assert target.drawn(10, 1) == first[:10]
    assert len({mutant.id for mutant in first}) == 30


@pytest.mark.parametrize("name", [name for name in TARGETS if name != "torch"])
def test_drawn_mutants_of_every_target_compile(name: str) -> None:
    target = TARGETS[name]
    files = target.files()
    for mutant in target.drawn(25, 5):
        source = files[mutant.module].read_text("utf-8")
        code_of(mutant, source, str(files[mutant.module]))
        assert difference(mutant, source)


def test_mutants_that_the_selftest_tries_are_not_drawn_again() -> None:
    found = {(mutant.function, mutant.kind) for mutant in TARGETS["reference"].mutants()}
    assert ("_units", "Sub-to-Add") not in found
    assert any(function == "_units" for function, _ in found)


def test_the_hook_imports_the_mutant_in_place_of_the_file(tmp_path: Path) -> None:
    file, mark, package = tmp_path / "box" / "__init__.py", tmp_path / "mark", tmp_path / "box"
    package.mkdir()
    file.write_text(SOURCE, "utf-8")
    mutant = next(m for m in ALL if m.function == "Box.area" and m.kind == "Mult-to-Add")
    described = (tmp_path / "mutant", marshal.dumps(("box", code_of(mutant, SOURCE, str(file)), str(mark))))
    described[0].write_bytes(described[1])

    def printed(program: str, **variables: str) -> str:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HOOK), str(tmp_path)]), **variables}
        command = [sys.executable, "-c", program]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    program = "import box, inspect; print(box.Box().area(5), '*' in inspect.getsource(box.Box.area))"
    assert printed(program) == "19 True\n"
    assert printed("import box", MUTATION=str(described[0])) == "" and not mark.exists()
    assert printed(program, MUTATION=str(described[0])) == "8 True\n" and mark.exists()
    assert file.read_text("utf-8") == SOURCE


@pytest.mark.slow
def test_the_kit_examines_a_mutant_in_a_process_of_its_own() -> None:
    target = TARGETS["numpy"]
    mutants = {mutant.id: mutant for mutant in target.mutants()}
    mutant = next(
        m for m in mutants.values() if m.function == "dtype_of_sums" and m.kind == "condition-to-True"
    )
    ended = run(target, mutant, "examination", ["numpy", "smoke", "0", "100"], 50)
    assert ended.ran and ended.ending == "exit"
    assert ended.last["found"] and ended.last["says"], ended
    broken = Mutant(mutant.module, mutant.function, 10**6, mutant.kind, 0)
    with pytest.raises(ValueError, match="there is no mutant"):
        run(target, broken, "examination", [], 50)


@pytest.mark.parametrize(
    ("found", "wanted", "units", "verdict"),
    [
        ([np.float32(1)], [np.float32(1)], 4, "="),
        ([np.array([np.nan, -0.0])], [np.array([np.nan, -0.0])], 4, "="),
        ([np.float32(1 + 2**-22)], [np.float32(1)], 4, "~"),
        ([np.float32(1 + 2**-10)], [np.float32(1)], 4, "expected 1.0, got 1.000"),
        ([np.array([0.0])], [np.array([-0.0])], 0, "1 of 1 elements, at (0,)"),
        ([np.array([1, 2])], [np.array([1, 3])], 1e9, "1 of 2 elements, at (1,): expected 3, got 2"),
        ([np.float32(1)], [np.float64(1)], 4, "expected float64(), got float32()"),
        ([np.zeros(3)], [np.zeros((3, 1))], 4, "expected float64(3, 1), got float64(3,)"),
        ([np.array([np.inf])], [np.array([1.0])], 1e5, "1 of 1 elements"),
        ("ShapeError", "ShapeError", 4, "="),
        ("TypeError", [np.zeros(3)], 4, "expected a result, got TypeError"),
        ([np.zeros(3)], "TypeError", 4, "expected TypeError, got a result"),
    ],
)
def test_results_differ_by_rounding_or_by_more(found: Any, wanted: Any, units: float, verdict: str) -> None:
    says = compared(found, wanted, units)
    assert says == verdict if len(verdict) == 1 else says.startswith(verdict)


def test_results_are_arrays_or_the_name_of_an_error() -> None:
    def fails() -> None:
        raise ZeroDivisionError

    assert results(fails) == "ZeroDivisionError"
    assert [x.shape for x in results(lambda: (np.zeros(2), 1.0))] == [(2,), ()]  # type: ignore[union-attr]


def test_a_rate_counts_only_mutants_that_change_results() -> None:
    first, second = Rate.of(["found", "hung", "missed", "refused"]), Rate.of(["not covered", *MEANINGS])
    assert (first.found, first.faults) == (2, 3)
    assert (second.found, second.faults) == (2, 5)
    assert str(first + second).startswith(
        "found 4 of 8 mutants (50 %): 2 found, 2 hung, 2 missed, 2 not covered"
    )
    assert str(Rate.of([])) == "found 0 of 0 mutants: none drawn"


def test_the_record_of_several_targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "generated.json"
    record.write("numpy", "smoke", 1, Rate.of(["missed"]), Rate.of(["missed"]), file)
    record.write("numpy", "smoke", 2, Rate.of(["found", "missed"]), Rate.of(["found", "refused"]), file)
    record.write("reference", "smoke", 2, Rate.of(["found"]), Rate.of([]), file)
    record.write("numpy", "default", 2, Rate.of(["found"]), Rate.of(["found"]), file)
    rows = json.loads(file.read_text("utf-8"))
    monkeypatch.setattr(generated, "recorded", lambda: rows)
    digest = rows["numpy smoke"]["fingerprint"]
    assert generated.rate(digest, "smoke") == (3, 4)
    assert generated.rate(digest, "default") == (2, 2)
    assert generated.rate(digest, "deep") == generated.rate("another", "smoke") == (0, 0)
    assert rows["numpy smoke"]["held out"] == {"found": 1, "missed": 1}


def test_nodes_that_only_describe_are_not_changed() -> None:

    for text in (
        "if TYPE_CHECKING:\n    x = 1",
        "def __repr__(self):\n    return 'a' + str(1)",
        "@decorated(3)\ndef f(x: Annotated[int, 3]) -> Literal[1]:\n    pass",
        "def f():\n    raise ValueError(1 + 2) from g(3)",
        "import a",
    ):
        assert mutants_of("m", text) == [], text
