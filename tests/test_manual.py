"""The manual pages of the command: those in the repository are what the parsers say."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess

import pytest

from tensorken_cli.parsers import own_parser
from tools import manual
from tools.workspace import ROOT, distributions

PAGES = manual.pages()


def test_the_pages_in_the_repository_are_up_to_date() -> None:
    assert {file for folder in distributions(optional=True) for file in folder.glob("man/*")} == set(PAGES)
    for file, text in PAGES.items():
        assert file.read_text(encoding="ascii") == text, "write the pages anew: python -m tools.manual"


def test_the_commands_that_pages_name_exist() -> None:
    found = set()
    for page in [*(ROOT / "docs").rglob("*.md"), *[home / "README.md" for home in distributions()]]:
        text = page.read_text(encoding="utf-8")
        for match in re.finditer(r"`tensorken ((?:backends|doctor)[^`\n]*)`", text):
            command, *arguments = shlex.split(match[1])
            own_parser(command).parse_args(arguments)
            found.add(match[1])
    assert {"backends --probe torch", "doctor"} <= found


def test_hidden_arguments_are_not_in_the_pages() -> None:
    assert not [file for file, text in PAGES.items() if "SUPPRESS" in text]


def test_texts_of_any_form_are_text_in_troff() -> None:
    assert manual._text(".TH of a 'page'\n-x \\") == "\\&.TH of a 'page' \\-x \\e"


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_groff_formats_the_pages_without_warnings() -> None:
    done = subprocess.run(
        ["groff", "-man", "-Tascii", "-P-cbu", "-ww"],
        input="\n".join(PAGES.values()),
        capture_output=True,
        encoding="ascii",
        check=True,
    )
    assert done.stderr == ""
    assert "TENSORKEN-TRAIN(1)" in done.stdout and "--learning-rate" in done.stdout
