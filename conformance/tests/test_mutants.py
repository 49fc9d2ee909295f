"""The mutants of the reference backend: each changes code, is undone, and is detected or listed as equivalent."""

from __future__ import annotations

import inspect
import random
import time
from collections.abc import Callable
from typing import Any

import pytest

import tensorken_conformance.laws  # noqa: F401, importing it registers the laws
import tensorken_reference
from tensorken_conformance.backends.correct import CORRECT
from tensorken_conformance.case import Case
from tensorken_conformance.selftest import hunting, mutants, proof, trials
from tensorken_conformance.subject import Subject
from tensorken_core.language.dtypes import float32
from tensorken_reference import rounding, rows
from tensorken_reference.backend import Reference

ALL = mutants.mutants()


def code() -> dict[str, Any]:
    """The code of every mutated function, and the repr of every mutated value of a module."""
    codes: dict[str, Any] = {}
    for mutant in ALL.values():
        codes[mutant.place] = mutants.code_of(mutant.module, mutant.function) or repr(
            vars(__import__(f"{mutants.PACKAGE}.{mutant.module}", fromlist=["x"]))[mutant.function]
        )
    return codes


BEFORE = code()


def test_there_are_mutants_of_every_module_and_kind_of_change() -> None:
    assert len(ALL) > 350
    assert {mutant.module for mutant in ALL.values()} == set(mutants.MODULES)
    changes = " ".join(ALL)
    for change in ("Add-to-Sub", "Lt-to-LtE", "Or-to-And", "no-USub", "0-to-1", "mul-to-add", "all-to-any"):
        assert f":{change}-" in changes, change


def test_every_mutant_changes_code_and_is_undone() -> None:
    for mutant in ALL.values():
        with mutants.mutated(mutant):
            now = mutants.code_of(mutant.module, mutant.function)
            assert now is None or now.co_code != BEFORE[mutant.place].co_code or now != BEFORE[mutant.place]
        assert mutants.code_of(mutant.module, mutant.function) is None or (
            mutants.code_of(mutant.module, mutant.function) is BEFORE[mutant.place]
        )
    assert code() == BEFORE


def mutant_of(place: str, change: str) -> mutants.Mutant:
    return ALL[f"{place}:{change}"]


def test_a_mutant_is_active_only_in_its_with_block() -> None:
    assert rows.largest((1.0, 2.0)) == 2.0
    with mutants.mutated(mutant_of("rows.largest", "max-to-min-1")):
        assert rows.largest((1.0, 2.0)) == 1.0
    assert rows.largest((1.0, 2.0)) == 2.0


def test_mutants_of_a_method_and_of_a_module_value() -> None:
    reference = Reference()
    x = reference.new((2,), [3.0, 5.0], float32)
    with mutants.mutated(mutant_of("backend.Reference.mul", "mul-to-add-1")):
        assert reference.ravel(reference.mul(x, x)) == [6.0, 10.0]
    assert reference.ravel(reference.mul(x, x)) == [9.0, 25.0]
    with mutants.mutated(mutant_of("rounding._BELOW", "48-to-49-1")):
        assert rounding._BELOW == 1.0 - 2.0**-49
    assert rounding._BELOW == 1.0 - 2.0**-48


def test_a_mutant_is_undone_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), mutants.mutated(mutant_of("rows.largest", "max-to-min-1")):
        raise ZeroDivisionError
    assert rows.largest((1.0, 2.0)) == 2.0


def test_every_mutant_is_either_detected_or_listed_as_equivalent() -> None:
    detected, equivalent = set(proof.finders()) & set(ALL), set(mutants.equivalents())
    assert detected | equivalent == set(ALL)
    assert not detected & equivalent


@pytest.fixture
def try_mutant() -> Callable[[str, list[str]], trials.Finding]:
    """A function that returns the finding of a mutant on cases."""
    subject = Subject(CORRECT["reference"](), "reference")

    def attempt(id: str, cases: list[str]) -> trials.Finding:
        return trials.try_mutant(ALL[id], subject, list(map(Case.parse, cases)), lambda case: None)

    return attempt


@pytest.mark.nightly
@pytest.mark.feature(203)
def test_the_recorded_cases_detect_mutants(try_mutant: Any) -> None:
    finders = proof.finders()
    for id in random.Random(1).sample(sorted(set(ALL) & set(finders)), 40):
        assert try_mutant(id, [finders[id]]).case == finders[id], id


def test_wall_time_does_not_make_a_mutant_hang(try_mutant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "PATIENCE", 0.5)
    examine = trials.examine
    monkeypatch.setattr(trials, "examine", lambda *args: (time.sleep(1.0), examine(*args))[1])
    assert try_mutant("rows.largest:max-to-min-1", ["values.sums/sum/float32/small/normals/0"]).case == ""


def test_cases_that_detect_similar_mutants_do_not_detect_equivalent_ones(try_mutant: Any) -> None:
    finders = proof.finders()
    for id in random.Random(2).sample(sorted(mutants.equivalents()), 5):
        cases = [
            case for other, case in finders.items() if other in ALL and ALL[other].place == ALL[id].place
        ]
        assert try_mutant(id, cases).case == "", id


def test_candidates_start_with_cases_that_reach_the_mutant_and_alternate_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = [
        "values.sums/sum/float32/small/normals/0",
        "values.sums/sum/float32/small/normals/1",
        "values.sums/sum/float64/small/normals/0",
        "values.arrangement/sort/float32/small/ordinary",
        "values.extrema/max/float32/small/ordinary",
    ]
    monkeypatch.setattr(hunting, "_CASES", list(map(Case.parse, texts)))
    monkeypatch.setattr(hunting, "_REACHED", {"rows.largest": {("values.extrema", "max")}})
    candidates = hunting.candidates("rows.largest:max-to-min-1", lambda case: None)
    assert candidates == [texts[4], texts[0], texts[2], texts[1]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rows.largest:max-to-min-1\n", "no new line of the form"),
        ("rows.largest:max-to-min-1 | \n", "no new line of the form"),
        (
            "rows.largest:max-to-min-9 | because\n",
            "there is no mutant 'rows.largest:max-to-min-9'; take the line out",
        ),
        ("rows.largest:max-to-min-1 | so\nrows.largest:max-to-min-1 | so\n", "no new line of the form"),
    ],
)
def test_invalid_lines_of_the_list_of_equivalents_are_rejected(
    text: str, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    (tmp_path / mutants.EQUIVALENTS).write_text(text, "utf-8")
    monkeypatch.setattr("tensorken_conformance.selftest.mutants.resources.files", lambda package: tmp_path)
    with pytest.raises(ValueError, match=message):
        mutants.equivalents()


def test_mutated_code_belongs_to_the_reference_backend() -> None:
    folder = inspect.getfile(tensorken_reference).replace("__init__.py", "")
    codes = [mutants.code_of(mutant.module, mutant.function) for mutant in ALL.values()]
    assert all(code is None or folder in code.co_filename for code in codes)
