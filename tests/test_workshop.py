"""Development tools: nox sessions, CI, the runner and the report on features."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import run
from core.tests.each import each_of
from tools import check, features
from tools.pages import blocks
from tools.workspace import ROOT, distributions

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TENSORKEN = tomllib.loads((ROOT / "plugins" / "tensorken" / "pyproject.toml").read_text(encoding="utf-8"))


def text(*path: str) -> str:
    """The text of a file of the workspace."""
    return ROOT.joinpath(*path).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def listed_by_nox(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The sessions listed by `nox -l`, with their descriptions."""
    elsewhere = ["--envdir", str(tmp_path_factory.mktemp("nox"))]  # the source folder may be read-only
    command = [sys.executable, "-m", "nox", "--noxfile", str(ROOT / "noxfile.py"), *elsewhere, "--list"]
    listed = subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout
    return dict(re.findall(r"^[*-] (\S+) -> (.*)$", listed, re.MULTILINE))


@pytest.fixture(scope="module")
def sessions(listed_by_nox: dict[str, str]) -> dict[str, str]:
    """The sessions, with one entry for all Python versions and all parts."""
    return {re.split(r"-3\.|\(", name)[0]: description for name, description in listed_by_nox.items()}


@pytest.mark.feature(205)
def test_contributing_lists_the_sessions_of_nox(sessions: dict[str, str]) -> None:
    table = re.findall(r"^\| `([\w-]+)` \| (.*) \|$", text("CONTRIBUTING.md"), re.MULTILINE)
    assert dict(table) == sessions
    assert [name for name, _ in table] == list(sessions)


@pytest.mark.feature(205)
def test_a_session_runs_the_tests_on_each_supported_python(listed_by_nox: dict[str, str]) -> None:
    pythons = {"3.11", "3.12", "3.13", f"{sys.version_info.major}.{sys.version_info.minor}"}
    assert {f"tests-{python}" for python in pythons} <= set(listed_by_nox)


@pytest.mark.feature(194)
def test_ci_runs_the_readme_test_command_and_the_checks(sessions: dict[str, str]) -> None:
    script = text(".ci", "run")
    loops = re.findall(r"^for session in (.*); do\n    check (.*)$", script, re.MULTILINE)
    (made,) = [{*names.split()} for names, options in loops if options.endswith("--install-only")]
    (used,) = [{*names.split()} for names, options in loops if options.endswith("-R")]
    (rest,) = [{*names.split()} for names, options in loops if options.endswith('"$session"')]
    assert made == used
    checks = {"lint", "typing", "features", "docs", "tests", "jax", "torch", "distributed"}
    checks |= {"conformance", "llvm"}
    assert checks == used | rest <= set(sessions)
    assert '"$python" run.py "$@" -s "$session"' in script
    shown = [command for block in blocks(text("README.md")) for command in block.commands]
    assert shown[-2:] == ["python run.py demo", "python run.py tests"]


@pytest.mark.feature(194)
def test_the_public_ci_covers_three_systems_with_the_same_commands(sessions: dict[str, str]) -> None:
    workflow = text(".github", "workflows", "ci.yml")
    for system in ("ubuntu-latest", "macos-latest", "windows-latest"):
        assert system in workflow
    named = re.findall(r"run: python run\.py (\w+)", workflow)
    assert set(named) <= set(sessions)
    assert {
        "tests",
        "demo",
        "lint",
        "typing",
        "features",
        "docs",
        "jax",
        "conformance",
        "wheels",
        "readme",
    } <= set(named)


def test_tests_that_need_wheels_run_in_one_worker(pytestconfig: pytest.Config) -> None:
    (hooks,) = [plugin for plugin in pytestconfig.pluginmanager.get_plugins() if hasattr(plugin, "TOGETHER")]
    needing = [
        path.relative_to(ROOT).as_posix()
        for path in sorted(ROOT.glob("tests/test_*.py"))
        if re.search(r"\b(wheelhouse|new_environment|projects): ", path.read_text(encoding="utf-8"))
    ]
    assert list(hooks.TOGETHER) == needing
    scheduler = hooks.pytest_xdist_make_scheduler(pytestconfig, None)
    assert (scheduler is None) == (pytestconfig.getoption("dist") != "loadscope")
    assert "--dist=loadscope" in text("noxfile.py")


@each_of("text", ['"\\s"', "1 is 1"])
def test_compiling_another_library_may_warn(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """uv does not compile installed packages, and Python warns of odd literals when it compiles them later."""
    for folder, refused in ((tmp_path / "site-packages", False), (tmp_path / "src", True)):
        name = f"literal_in_{folder.stem.replace('-', '_')}"
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "__init__.py").write_text(text, encoding="utf-8")
        monkeypatch.syspath_prepend(folder)
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        with pytest.raises(SyntaxError) if refused else contextlib.nullcontext():
            importlib.import_module(name)
        sys.modules.pop(name, None)


def test_the_version_of_nox_is_consistent() -> None:
    version = run.REQUIREMENTS[-1].removeprefix("nox")
    assert f"nox{version}" in PROJECT["dependency-groups"]["test"]
    assert f'nox.needs_version = "{version}"' in text("noxfile.py")


def test_every_distribution_describes_itself() -> None:
    """An index shows the README, the keywords and the classifiers."""
    tensorken = tomllib.loads(text("plugins", "tensorken", "pyproject.toml"))["project"]
    shared = [name for name in tensorken["classifiers"] if "Python" in name or name == "Typing :: Typed"]
    for folder in distributions(optional=True):
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        readme = (folder / project["readme"]).read_text(encoding="utf-8")
        assert readme.lower().startswith(f"# {project['name']}\n")
        assert "pip install" in readme, folder
        assert project["keywords"], folder
        assert set(shared) <= set(project["classifiers"]), folder


def test_every_distribution_is_tested_and_checked() -> None:
    folders = [folder.relative_to(ROOT).as_posix() for folder in distributions(optional=True)]
    for folder in folders:
        assert any(
            Path(folder).is_relative_to(path)
            for path in PROJECT["tool"]["pytest"]["ini_options"]["testpaths"]
        )
    typed = {Path(path).parent.as_posix() for path in PROJECT["tool"]["mypy"]["files"]}
    assert {folder for folder in folders if folder.startswith(("core", "backends"))} <= typed


def test_the_index_of_decisions_lists_every_page_with_its_title_and_status() -> None:
    pages = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))
    rows = []
    for page in pages:
        title, _, status, *_ = page.read_text(encoding="utf-8").splitlines()
        assert title.startswith(f"# {page.name[:4]}: "), page
        rows.append((title.removeprefix("# "), page.name, status.removeprefix("Status: ")))
    assert (
        re.findall(r"^\| \[(.*)\]\((.*)\) \| (.*) \|$", text("docs", "adr", "README.md"), re.MULTILINE)
        == rows
    )


# ---- the runner --------------------------------------------------------------------------------------------


def test_the_runner_refuses_an_old_python_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 4, "final", 0))
    with pytest.raises(SystemExit, match=r"^run\.py: needs Python 3\.11 or newer, this is \d"):
        run.main(["tests"])


def test_the_oldest_python_agrees_with_the_metadata() -> None:
    assert TENSORKEN["project"]["requires-python"] == f">={'.'.join(map(str, run.OLDEST))}"


@pytest.mark.parametrize(
    ("arguments", "passed"),
    [
        (["tests"], ["-s", "tests", "--"]),
        (["demo", "--epochs", "3"], ["-s", "demo", "--", "--epochs", "3"]),
        (["-l"], ["-l"]),
        (["-s", "lint", "typing"], ["-s", "lint", "typing"]),
    ],
)
def test_the_runner_passes_its_arguments_and_the_status(
    arguments: list[str], passed: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = tmp_path / "seen.json"
    package = tmp_path / "nox.py"  # a fake nox for the process that the runner starts
    package.write_text(
        f"import json, sys\nopen({str(seen)!r}, 'w').write(json.dumps(sys.argv[1:]))\nsys.exit(7)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(run, "install_runner", lambda: None)
    monkeypatch.setattr(run, "runner_python", lambda: Path(sys.executable))
    assert run.main(arguments) == 7
    assert json.loads(seen.read_text()) == ["-f", str(ROOT / "noxfile.py"), *passed]


# ---- the report on features --------------------------------------------------------------------------------


def report(tmp_path: Path, tests: str, planned: str = "[3]") -> features.Report:
    """The report on three rows and one test file."""
    table, file = tmp_path / "features.toml", tmp_path / "test_it.py"
    table.write_text(f'planned = {planned}\n[features]\n1 = "one"\n2 = "two"\n3 = "three"\n')
    file.write_text(tests)
    return features.report(table, features.test_files(tmp_path))


def test_rows_without_a_marker_are_missing_unless_planned(tmp_path: Path) -> None:
    found = report(tmp_path, "@pytest.mark.feature(1)\ndef test_one(): ...\n")
    assert (found.missing, found.unknown, found.early) == ([2], [], [])
    assert found.locations == {1: [f"{(tmp_path / 'test_it.py').as_posix()}:1"]}


def test_markers_count_on_classes_modules_and_parameters(tmp_path: Path) -> None:
    module = "pytestmark = [pytest.mark.slow, pytest.mark.feature(1)]\n"
    parameter = "rows = [pytest.param(1, marks=pytest.mark.feature(2, 3))]\n"
    found = report(tmp_path, module + parameter)
    assert (found.missing, found.early) == ([], [3])


def test_rows_that_do_not_exist_are_reported(tmp_path: Path) -> None:
    found = report(tmp_path, "@pytest.mark.feature(1, 2, 44)\ndef test_one(): ...\n", planned="[55]")
    assert found.unknown == [44, 55]
    assert found.missing == [3]


def test_a_row_must_be_a_number(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"test_it\.py:1: write the rows of a feature marker as numbers"):
        report(tmp_path, "@pytest.mark.feature(*ROWS)\ndef test_one(): ...\n")


def test_the_feature_list_is_numbered_without_gaps() -> None:
    rows = tomllib.loads(text("docs", "features.toml"))
    assert [int(row) for row in rows["features"]] == list(range(1, 206))
    assert sorted(set(rows["planned"])) == rows["planned"]


# ---- the README's commands ---------------------------------------------------------------------------------


def test_blocks_and_their_commands_are_found() -> None:
    found = blocks(
        "# Title\n\n```console\n$ one\noutput\n$ two --x\n```\n\ntext `code`\n\n```python\nx = 1\n```\n"
    )
    assert [(block.language, block.line) for block in found] == [("console", 4), ("python", 12)]
    assert found[0].commands == ["one", "two --x"]
    assert found[0].session == [("one", "output\n"), ("two --x", "")]
    assert found[1].commands == []


@pytest.mark.skipif(sys.platform == "win32", reason="the script is for a POSIX shell")
def test_the_ci_script_is_sound() -> None:
    subprocess.run(["bash", "-n", str(ROOT / ".ci" / "run")], check=True)


def test_shares_hold_each_file_once() -> None:
    listed = [sys.executable, "-m", "pytest", "plugins/llvm/tests", "--collect-only", "-q"]
    listed += ["-p", "no:cacheprovider"]

    def collected(*options: str) -> list[str]:
        done = subprocess.run([*listed, *options], cwd=ROOT, capture_output=True, text=True, check=False)
        return [line for line in done.stdout.splitlines() if "::" in line]

    shares = [collected(f"--share={k}/3") for k in range(3)]
    assert all(shares)
    assert sorted([test for share in shares for test in share]) == sorted(collected())
    files = [{test.partition("::")[0] for test in share} for share in shares]
    assert not any(a & b for a, b in itertools.combinations(files, 2))
    wrong = subprocess.run([*listed, "--share=3/3"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert wrong.returncode == 4 and "need K/N with 0 <= K < N, got '3/3'" in wrong.stderr


def test_the_quick_check_names_what_failed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def replaced(folder: str, options: list[str]) -> dict[str, list[str]]:
        return {
            "good": [sys.executable, "-c", ""],
            "bad": [sys.executable, "-c", "print(6 * 7); raise SystemExit(3)"],
        }

    assert {"ruff", "format", "mypy", "tests"} == set(check.commands("core", ["-k", "x"]))
    monkeypatch.setattr(check, "commands", replaced)
    assert check.main(["core"]) == 1
    printed = capsys.readouterr().out
    assert "---- bad\n42" in printed and "core: failed: bad, " in printed and "good" not in printed
    with pytest.raises(SystemExit):
        check.main(["no such folder"])
