"""The documentation of the kit: each law has a clause and a fault, and the tables agree with the code."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

import tensorken_conformance.faults
import tensorken_conformance.laws  # noqa: F401, importing them registers faults and laws
from tensorken_cli import Parser
from tensorken_conformance import cli, expectations, limits
from tensorken_conformance.answers import explained
from tensorken_conformance.backends.loading import load
from tensorken_conformance.case import STATUSES, Case
from tensorken_conformance.faults.fault import FAULTS
from tensorken_conformance.law import LAWS, LEVELS, MEANINGS, Law
from tensorken_conformance.levels import CREATIONS
from tensorken_conformance.selftest.proof import WITHOUT_VERDICT
from tensorken_core.host.plugin import Capabilities
from tensorken_core.language.op import OPS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "conformance.md").read_text(encoding="utf-8")
BACKENDS = (DOCS / "conformance" / "backends.md").read_text(encoding="utf-8")

CLAUSE = re.compile(
    r"^#### (?P<law>\S+)\n\n\*(?P<levels>L\d(?:, L\d)*)\.\* (?P<text>.+?)(?=\n#|\Z)", re.M | re.S
)


def rows(page: str, head: str) -> Iterator[list[str]]:
    """The rows of the table whose header begins with `head`, as lists of cells."""
    _, _, rest = page.partition(f"| {head} |")
    assert rest, f"there is no table {head!r}"
    for line in rest.splitlines()[2:]:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


@cache
def clauses() -> dict[str, re.Match[str]]:
    """The clauses of the page, by the ids of their laws."""
    return {match["law"]: match for match in CLAUSE.finditer(PAGE)}


# ---- law, clause, fault ------------------------------------------------------------------------------------


def test_each_law_has_one_clause_and_each_clause_a_law() -> None:
    assert Counter(re.findall(r"^#### (\S+)", PAGE, re.M)) == Counter([*LAWS])
    assert clauses().keys() == LAWS.keys()


@pytest.mark.parametrize("law", LAWS)
def test_each_law_with_a_verdict_has_a_fault(law: str) -> None:
    aimed = [fault.id for fault in FAULTS.values() if fault.law == law]
    assert bool(aimed) != (LAWS[law].group in WITHOUT_VERDICT), aimed


def test_each_fault_names_a_law() -> None:
    assert {fault.law for fault in FAULTS.values()} <= LAWS.keys()


@pytest.mark.parametrize("law", LAWS.values(), ids=lambda law: law.id)
def test_explain_shows_law_clause_and_faults_and_the_clause_names_the_levels(law: Law) -> None:
    subject = load("string" if law.symbolic else "numpy")
    text = explained(law.id)
    assert f"  {law.says}" in text.splitlines()
    page, _, anchor = re.findall(r"clause +(\S+)", text)[0].partition("#")
    assert DOCS.parent.joinpath(page).read_text(encoding="utf-8") == PAGE
    assert anchor == re.sub("[^a-z0-9]+", "-", law.id)  # the id that docutils gives the heading
    for fault in FAULTS.values():
        assert (f"    {fault.id}: {fault.says}" in text.splitlines()) == (fault.law == law.id)
    cases = list(law.cases(subject)) or [Case(law.id, "exp", "float32")]  # numpy declares no op unsupported
    levels = sorted({law.level(case) for case in cases})
    assert clauses()[law.id]["levels"] == ", ".join(f"L{level}" for level in levels)


# ---- tables of the pages ----------------------------------------------------------------------------------


def test_the_tables_list_all_levels_statuses_fields_and_families() -> None:
    assert [tuple(row[1:]) for row in rows(PAGE, "level")] == list(zip(LEVELS, MEANINGS, strict=True))
    assert [row[0] for row in rows(PAGE, "status")] == list(STATUSES)
    assert [row[0].strip("`") for row in rows(PAGE, "field")] == [f.name for f in fields(Capabilities)]
    families = {row[0].strip("`") for row in rows(PAGE, "family")}
    assert families == {fault.family for fault in FAULTS.values()}


def test_the_page_has_the_limits_of_the_levels() -> None:
    listed: list[str] = []
    for ops, first, *second in rows(PAGE, "ops"):
        names = re.findall(r"`(\w+)`", ops)
        for op in names or ["of-a-plugin"]:
            usable = [limits.largest(op, dtype, 1) for dtype in ("float32", "float64", "float16")]
            text = (
                str(usable[0]) if len(set(usable)) == 1 else f"{usable[0]} (float16, bfloat16: {usable[2]})"
            )
            assert (first, usable[0]) == (text, usable[1]), op
            at_two = [limits.largest(op, dtype, 2) for dtype in ("float32", "float64", "float16")]
            assert second == [str(limit) for limit in at_two], op
        listed += names
    assert Counter(listed) == Counter([*limits.ARITHMETIC, *limits.QUOTIENTS, *limits.FUNCTIONS])


def commands() -> dict[str, argparse.ArgumentParser]:
    """The parsers of all commands."""
    parser = Parser("tensorken conformance")
    cli.add_arguments(parser)
    (commands_,) = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(commands_.choices)


def test_the_page_lists_all_commands_and_options() -> None:
    assert Counter(row[0].strip("`").split()[0] for row in rows(PAGE, "command")) == Counter([*commands()])
    options = {
        text for parser in commands().values() for action in parser._actions for text in action.option_strings
    }
    documented = set(re.findall(r"`(--[a-z][a-z-]*)", PAGE))
    pytest_options = {text for text in documented if text.startswith("--tensorken-")} | {"--pyargs"}
    assert documented - pytest_options | {"-h"} == options


def test_the_example_of_expected_failures_on_the_page_is_valid() -> None:
    (block,) = re.findall(r"```text\n(# id.*?)```", PAGE, re.S)
    (line,) = expectations.parse(block)
    assert line.matches("values.elementwise/erf/float16/small/normals")


def test_the_matrix_of_first_party_backends_lists_all_ops() -> None:
    assert {row[0].strip("`") for row in rows(BACKENDS, "op")} - set(CREATIONS) == {
        op.name for op in OPS.values() if op.higher_order is None
    }
    levels = {row[0].split()[0]: (row[1], row[4]) for row in rows(BACKENDS, "backend")}
    assert levels == {"numpy": ("L5", "0"), "reference": ("L5", "0"), "string": ("L4s", "0")}
