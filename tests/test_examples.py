"""The walk-through examples run on every backend that computes values, and print the expected output."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.printed import check_printed, numbers

TESTS = Path(__file__).parent
EXAMPLES = TESTS.parent / "examples"

# Backends may differ in the last digits of a float32, and finite differences with a small step by hundredths.
RELATIVE, ABSOLUTE = 3e-6, 1e-6
# Differences grow over three hundred steps of training.
COARSE = {"b_grad_numerical in float32": 0.03, "step": 2e-4, "sin(": 2e-3}


def expected(example: str) -> str:
    """The expected output of an example, with the article's digits where an article has the same numbers."""
    return (TESTS / "golden" / f"{example}.txt").read_text(encoding="utf-8")


def run(example: str, backend: str, folder: Path) -> str:
    environment = {**os.environ, "TENSORKEN_BACKEND": backend, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / f"{example}.py")],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.feature(3, 49, 99, 117, 118, 120, 204)
@pytest.mark.parametrize("backend", ["numpy", "reference"])
@pytest.mark.parametrize("example", ["autodiff_cookbook", "burgers", "tour", "train", "vertex"])
def test_an_example_prints_the_expected_output(example: str, backend: str, tmp_path: Path) -> None:
    check_printed(run(example, backend, tmp_path), expected(example), RELATIVE, ABSOLUTE, COARSE)


@pytest.mark.parametrize(
    ("found", "same"),
    [
        ("loss: 10.493172", True),
        ("loss: 10.494", False),
        ("lost: 10.493175", False),
        ("loss: 10.493175 1", False),
        ("loss: 10.493175\nmore", False),
    ],
)
def test_the_comparison_can_fail(found: str, same: bool) -> None:
    with contextlib.nullcontext() if same else pytest.raises(AssertionError):
        check_printed(found, "loss: 10.493175", RELATIVE, ABSOLUTE)


@pytest.mark.feature(118)
def test_the_cookbook_prints_every_number_of_the_article() -> None:
    seeds: dict[str, Any] = json.loads((TESTS / "fixtures" / "seeds.json").read_text(encoding="utf-8"))
    printed = set(numbers(expected("autodiff_cookbook")))

    def check(name: str, published: Any) -> None:
        if isinstance(published, list):
            for part in published:
                check(name, part)
        else:
            assert published in printed, f"{name}: {published}"

    regression = seeds["s000_logreg"]
    for name, published in regression["seed"].items():
        check(name, published)
    check("b_grad_numerical", regression["b_grad_numerical"]["seed"])
    check("hessian_shape", regression["hessian_shape"])
    for name in ("df", "ddf", "dddf"):
        check(name, seeds["s000_tanh"][name])
    check("dual numbers", seeds["s000_dual_number"])
    for expression in seeds["s000_string_backend"]:
        assert expression in expected("autodiff_cookbook").splitlines()


@pytest.mark.feature(49, 50)
def test_the_tour_prints_every_step_of_the_article() -> None:
    seeds: dict[str, Any] = json.loads((TESTS / "fixtures" / "seeds.json").read_text(encoding="utf-8"))
    blocks = [" ".join(words_of(block)) for block in re.split(r"^(?:>>>.*|)\n", expected("tour"), flags=re.M)]
    steps = [step["display"] for step in seeds["s001_tour"]["steps"] if step["display"]]
    steps += [step["display"] for step in seeds["s001_eye_steps"]]
    steps += [seeds["s001_matmul_steps"][name] for name in ("display_l", "display_r")]
    for display in steps:
        assert " ".join(words_of("\n".join(display))) in blocks


def words_of(text: str) -> list[str]:
    """The words and numbers of a text, without blanks."""
    return text.replace("[", " [ ").replace("]", " ] ").split()
