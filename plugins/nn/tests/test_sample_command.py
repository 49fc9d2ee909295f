"""The command `tensorken sample`: its output and errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tensorken_cli.command import main

TINY = ("--steps", "2", "--evaluate-every", "2", "--evaluate-batches", "1", "--width", "8", "--layers", "1")
TINY += ("--heads", "2", "--sample", "20", "--context", "8", "--batch-size", "2")


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """Run `tensorken` in this process, in its own folder; returns exit status, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        try:
            status = main(list(arguments))
        except SystemExit as exit:
            status = exit.code if isinstance(exit.code, int) else 1
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return status, out, err

    return run


def test_names_are_drawn_that_begin_with_the_prompt(run: Any) -> None:
    assert run("train", "bigrams", "--out", "b")[0] == 0
    status, out, err = run("sample", "b", "--prompt", "em", "--count", "7")
    assert (status, err) == (0, "")
    names = out.splitlines()
    assert len(names) == 7 and all(name.startswith("em") for name in names) and len(set(names)) > 1
    assert run("sample", str(Path("b", "checkpoint.safetensors")), "--prompt", "em", "--count", "7")[1] == out
    assert run("sample", "b", "--prompt", "em", "--count", "7", "--seed", "1")[1] != out
    likeliest = run("sample", "b", "--count", "3", "--temperature", "0")[1].splitlines()
    assert likeliest == [likeliest[0]] * 3


def test_at_temperature_0_names_follow_the_largest_counts(run: Any) -> None:
    Path("words.txt").write_text("abc\nabc\nad\n", encoding="utf-8")
    assert run("train", "bigrams", "--text", "words.txt", "--out", "b")[0] == 0
    assert run("sample", "b", "--count", "1", "--temperature", "0")[1] == "abc\n"


@pytest.mark.parametrize("model", ["mlp", "transformer"])
def test_networks_draw_names_like_the_users(run: Any, model: str) -> None:
    Path("words.txt").write_text("".join([f"{a}{b}ob\n" for a in "abcdef" for b in "xyz"]), encoding="utf-8")
    arguments = ("--model", model, "--text", "words.txt", "--steps", "3", "--batch-size", "4", "--out", "n")
    assert run("train", "names", *arguments)[0] == 0
    status, out, _ = run("sample", "n", "--prompt", "a", "--count", "4")
    assert status == 0
    assert len(out.splitlines()) == 4
    assert all(name.startswith("a") and set(name) <= set("abcdefoxyz") for name in out.splitlines())
    status, _, err = run("sample", "n", "--prompt", "abababab")
    assert status == 1 and err.startswith("tensorken: names: the prompt has 8 characters")
    status, _, err = run("sample", "n", "--prompt", "A")
    assert status == 1 and "'A'" in err and err.count("\n") == 1


def test_text_continues_the_prompt(run: Any) -> None:
    Path("text.txt").write_text("to be or not to be, that is the question. " * 8, encoding="utf-8")
    status, out, _ = run("train", "shakespeare", "--text", "text.txt", *TINY, "--out", "s")
    assert status == 0
    assert "validation: loss" in out and out.splitlines()[-1].startswith("validation loss: ")
    status, out, err = run("sample", "s", "--prompt", "to ", "--count", "30")
    assert (status, err) == (0, "")
    assert out.startswith("to ") and len(out) == 3 + 30 + 1


def test_jobs_without_text_are_refused(run: Any) -> None:
    assert run("train", "digits", "--epochs", "1", "--limit", "40", "--hidden", "--out", "d")[0] == 0
    status, out, err = run("sample", "d")
    assert (status, out) == (1, "")
    assert (
        "is from the job 'digits', which has no text to draw; pass a checkpoint of bigrams, names, shakespeare"
        in err
    )


def test_files_that_are_not_checkpoints_are_refused_in_a_line(run: Any) -> None:
    Path("text.txt").write_text("no checkpoint at all", encoding="utf-8")
    for name in ("text.txt", "nowhere", "."):
        status, out, err = run("sample", name)
        assert (status, out, err.count("\n")) == (1, "", 1)


def test_a_text_that_is_too_short_is_refused(run: Any) -> None:
    Path("text.txt").write_text("short", encoding="utf-8")
    status, _, err = run("train", "shakespeare", "--text", "text.txt", "--out", "s")
    assert status == 1
    assert err.startswith(
        "tensorken: shakespeare: a text of 5 characters is too short for a context of 64; pass one of"
    )
    Path("empty.txt").write_text("\n\n", encoding="utf-8")
    status, _, err = run("train", "names", "--text", "empty.txt", "--out", "n")
    assert status == 1 and err == "tensorken: empty.txt has no lines; put one name on each line\n"
    Path("marked.txt").write_text("a.b\n", encoding="utf-8")
    status, _, err = run("train", "bigrams", "--text", "marked.txt", "--out", "n")
    assert status == 1 and "the line 'a.b' contains '.'" in err
    assert not Path("n").exists() and not Path("s").exists()
