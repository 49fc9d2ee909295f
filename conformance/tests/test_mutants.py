"""The mutants of the reference backend: each is a change, is put back, and is found or listed as no change at all."""

from __future__ import annotations

import inspect
import random
import time
from collections.abc import Callable
from typing import Any

import pytest

import tensorken_conformance.laws  # noqa: F401, entering the laws is what it does
import tensorken_reference
from tensorken_conformance.case import Case
from tensorken_conformance.selftest import mutants, proof, recording, trials
from tensorken_conformance.selftest.right import RIGHT
from tensorken_conformance.subject import Subject
from tensorken_core.language.dtypes import float16, float32
from tensorken_reference import rounding, rows
from tensorken_reference.backend import Reference

ALL = mutants.mutants()


def code() -> dict[str, Any]:
    """The code of every function that may be mutated, and the values of the modules."""
    found: dict[str, Any] = {}
    for mutant in ALL.values():
        found[mutant.place] = mutants.code_of(mutant.module, mutant.function) or repr(
            vars(__import__(f"{mutants.PACKAGE}.{mutant.module}", fromlist=["x"]))[mutant.function]
        )
    return found


BEFORE = code()


def test_the_language_of_changes_covers_the_modules() -> None:
    assert len(ALL) > 350
    assert {mutant.module for mutant in ALL.values()} == set(mutants.MODULES)
    changes = " ".join(ALL)
    for change in ("Add-to-Sub", "Lt-to-LtE", "Or-to-And", "no-USub", "0-to-1", "mul-to-add", "all-to-any"):
        assert f":{change}-" in changes, change


def test_every_mutant_is_another_program_and_is_put_back() -> None:
    for mutant in ALL.values():
        with mutants.mutated(mutant):
            now = mutants.code_of(mutant.module, mutant.function)
            assert now is None or now.co_code != BEFORE[mutant.place].co_code or now != BEFORE[mutant.place]
        assert mutants.code_of(mutant.module, mutant.function) is None or (
            mutants.code_of(mutant.module, mutant.function) is BEFORE[mutant.place]
        )
    assert code() == BEFORE


def _the(place: str, change: str) -> mutants.Mutant:
    return ALL[f"{place}:{change}"]


def test_a_mutant_computes_otherwise_only_in_its_block() -> None:
    assert rows.largest((1.0, 2.0)) == 2.0
    with mutants.mutated(_the("rows.largest", "max-to-min-1")):
        assert rows.largest((1.0, 2.0)) == 1.0
    assert rows.largest((1.0, 2.0)) == 2.0


def test_a_mutant_of_a_method_and_one_of_a_value() -> None:
    reference = Reference()
    x = reference.new((2,), [3.0, 5.0], float32)
    with mutants.mutated(_the("backend.Reference.mul", "mul-to-add-1")):
        assert reference.ravel(reference.mul(x, x)) == [6.0, 10.0]
    assert reference.ravel(reference.mul(x, x)) == [9.0, 25.0]
    with mutants.mutated(_the("rounding.FORMATS", "11-to-12-1")):
        assert rounding.FORMATS[float16].precision == 12
    assert rounding.FORMATS[float16].precision == 11


def test_a_mutant_is_put_back_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), mutants.mutated(_the("rows.largest", "max-to-min-1")):
        raise ZeroDivisionError
    assert rows.largest((1.0, 2.0)) == 2.0


def test_every_mutant_was_found_or_is_listed_and_none_is_both() -> None:
    found, listed = set(proof.finders()) & set(ALL), set(mutants.equivalents())
    assert found | listed == set(ALL)
    assert not found & listed


@pytest.fixture
def try_on() -> Callable[[str, list[str]], trials.Finding]:
    subject = Subject(RIGHT["reference"](), "reference")

    def attempt(id: str, cases: list[str]) -> trials.Finding:
        return trials.try_mutant(ALL[id], subject, list(map(Case.parse, cases)), lambda case: None)

    return attempt


@pytest.mark.feature(203)
def test_mutants_are_found_by_the_cases_that_are_recorded(try_on: Any) -> None:
    known = proof.finders()
    for id in random.Random(1).sample(sorted(set(ALL) & set(known)), 40):
        assert try_on(id, [known[id]]).case == known[id], id


def test_time_of_others_does_not_make_a_mutant_hang(try_on: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "PATIENCE", 0.5)
    right = trials.examine
    monkeypatch.setattr(trials, "examine", lambda *given: (time.sleep(1.0), right(*given))[1])
    assert try_on("rows.largest:max-to-min-1", ["values.sums/sum/float32/small/normals/0"]).case == ""


def test_listed_mutants_are_not_found_by_what_finds_their_like(try_on: Any) -> None:
    known = proof.finders()
    for id in random.Random(2).sample(sorted(mutants.equivalents()), 5):
        like = [case for other, case in known.items() if other in ALL and ALL[other].place == ALL[id].place]
        assert try_on(id, like).case == "", id


def test_cases_that_come_by_a_mutant_are_tried_first_and_groups_take_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = [
        "values.sums/sum/float32/small/normals/0",
        "values.sums/sum/float32/small/normals/1",
        "values.sums/sum/float64/small/normals/0",
        "values.arrangement/sort/float32/small/ordinary",
        "values.extrema/max/float32/small/ordinary",
    ]
    monkeypatch.setattr(recording, "_CASES", list(map(Case.parse, texts)))
    monkeypatch.setattr(recording, "_REACHED", {"rows.largest": {("values.extrema", "max")}})
    found = recording.candidates("rows.largest:max-to-min-1", lambda case: None)
    assert found == [texts[4], texts[0], texts[2], texts[1]]


@pytest.mark.parametrize(
    ("text", "says"),
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
def test_a_wrong_line_of_the_list_is_an_error(
    text: str, says: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    (tmp_path / mutants.EQUIVALENTS).write_text(text, "utf-8")
    monkeypatch.setattr("tensorken_conformance.selftest.mutants.resources.files", lambda package: tmp_path)
    with pytest.raises(ValueError, match=says):
        mutants.equivalents()


def test_modules_that_are_named_are_those_of_the_package() -> None:
    folder = inspect.getfile(tensorken_reference).replace("__init__.py", "")
    codes = [mutants.code_of(mutant.module, mutant.function) for mutant in ALL.values()]
    assert all(code is None or folder in code.co_filename for code in codes)
