"""The command `tensorken new`: the files that it writes, and the names that it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tensorken_conformance.new import main
from tensorken_conformance.template import KINDS

COMMON = {".github/workflows/ci.yml", ".gitignore", "LICENSE", "README.md", "pyproject.toml"}


@pytest.mark.parametrize("kind", KINDS)
def test_it_writes_a_project_once(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "here"
    command = [kind, "big-abacus", "--folder", str(folder)]
    assert main(command) == 0
    printed = capsys.readouterr().out
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    package = "src/tensorken_big_abacus"
    assert set(files) > COMMON | {f"{package}/__init__.py", f"{package}/py.typed", "tests/test_big_abacus.py"}
    for path in files.values():
        assert str(path) in printed
        text = path.read_text(encoding="utf-8")
        assert not [word for word in (f"my{kind}", f"My{kind}", "myproject", "CHECKS") if word in text], path
    assert 'name = "tensorken-big-abacus"' in files["pyproject.toml"].read_text("utf-8")
    assert main(command) == 2
    assert "here is not an empty folder; name another with --folder" in capsys.readouterr().err


def test_it_writes_into_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["backend", "abacus"]) == 0
    assert (tmp_path / "tensorken-abacus" / "src" / "tensorken_abacus" / "backend.py").exists()


def test_a_backend_starts_from_the_array_api(tmp_path: Path) -> None:
    assert main(["backend", "abacus", "--folder", str(tmp_path), "--from", "array-api"]) == 0
    backend = (tmp_path / "src" / "tensorken_abacus" / "backend.py").read_text("utf-8")
    assert "import array_api_strict as xp" in backend and "class Abacus(" in backend
    assert "array-api-strict" in (tmp_path / "pyproject.toml").read_text("utf-8")
    assert (tmp_path / "tests" / "test_abacus.py").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["ops", "1bad"], "'1bad' cannot be the name of a project; take lower-case letters"),
        (["ops", "Bad"], "'Bad' cannot be the name"),
        (["ops", "../up"], "'../up' cannot be the name"),
        (["ops", "class"], "'class' cannot be the name"),
        (["backend", "torch"], "there is a tensorken-torch already"),
        (["compiler", "core"], "there is a tensorken-core already"),
        (["task", "digits"], "an installed distribution has a 'digits' already"),
        (["task", "dig_its"], ""),
    ],
)
def test_names_that_are_taken_or_invalid_are_refused(
    arguments: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == (2 if says else 0)
    error = capsys.readouterr().err
    assert error.startswith(f"tensorken new: {says}") if says else not error
    assert error.count("\n") == bool(says)
    assert bool(list(tmp_path.iterdir())) == (not says)


def test_the_name_of_an_installed_plugin_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    info = tmp_path / "strange-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: strange\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[tensorken.backends]\nMy_GPU = strange\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["backend", "my-gpu", "--folder", str(tmp_path / "new")]) == 2
    assert "an installed distribution has a 'my-gpu' already" in capsys.readouterr().err
    assert main(["task", "my-gpu", "--folder", str(tmp_path / "new")]) == 0


@pytest.mark.parametrize("arguments", [["layer", "mine"], ["task", "mine", "--from", "array-api"], []])
def test_unknown_kinds_and_options_are_errors_of_usage(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 2


@pytest.mark.parametrize(
    ("kind", "page"),
    [
        ("backend", "writing-a-backend.md"),
        ("compiler", "writing-a-compiler.md"),
        ("ops", "adding-an-op.md"),
        ("task", "tutorials/training.md"),
    ],
)
def test_the_pages_show_the_output(
    kind: str,
    page: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([kind, "mine"]) == 0
    printed = capsys.readouterr().out.replace("\\", "/")
    text = (Path(__file__).parents[2] / "docs" / page).read_text(encoding="utf-8")
    assert f"```console\n$ tensorken new {kind} mine\n{printed}```\n" in text


def test_a_folder_that_cannot_be_written_is_one_line_and_nothing_remains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("nowhere")
    for folder in ("file", "file/below", "link"):
        assert main(["backend", "mine", "--folder", str(tmp_path / folder)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("tensorken new: ")
        assert line.endswith("with --folder")
    original, count = Path.write_text, 0

    def full(path: Path, *arguments: Any, **options: Any) -> int:
        nonlocal count
        count += 1
        if count > 5:
            raise OSError(28, "No space left on device")
        return original(path, *arguments, **options)

    monkeypatch.setattr(Path, "write_text", full)
    assert main(["backend", "mine", "--folder", str(tmp_path / "outer" / "mine")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "mine: No space left on device; name another" in line
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "link", "outer"]
