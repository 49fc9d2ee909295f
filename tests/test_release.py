"""The release tool: tags, the index, and the workflows' actions.  `nox -s release -- --dry-run` runs it whole."""

from __future__ import annotations

import hashlib
import re
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tools import changelog as fragments, conda, lock, release, repository, workspace
from tools.workspace import ROOT, distributions, version

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_commits(workflow: Path) -> None:
    """A tag of another repository can move."""
    used = re.findall(r"uses: (.*)$", workflow.read_text(encoding="utf-8"), re.MULTILINE)
    assert used
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action) for action in used)


def test_nothing_but_publishing_may_write() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    head, *jobs = re.split(r"^  (?=\w+:$)", text[text.index("\npermissions:") :], flags=re.MULTILINE)
    assert "contents: read" in head and "write" not in head
    writing = {job.partition(":")[0] for job in jobs if ": write" in job}
    assert writing == {"publish", "docs"}


def test_a_tag_must_be_that_of_the_version_and_of_the_changelog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(fragments, "ROOT", tmp_path)
    changelog = tmp_path / "CHANGELOG.md"
    changelog.write_text(
        f"# Changelog\n\n## {version()} (2026-11-30)\n\n## 0.0.9 (2026-01-01)\n", encoding="utf-8"
    )
    release.check_tag(f"v{version()}")
    (tmp_path / "changelog.d").mkdir()
    (tmp_path / "changelog.d" / "sums.fixed.md").write_text("Sums are exact.", encoding="utf-8")
    with pytest.raises(
        release.ReleaseError, match=r"1 changes are in changelog.d/ .* such as sums.fixed.md; run "
    ):
        release.check_tag(f"v{version()}")
    with pytest.raises(release.ReleaseError, match=rf"the tag is v9.9, and VERSION says {version()}; tag v"):
        release.check_tag("v9.9")
    changelog.write_text(f"# Changelog\n\n## {version()} (unreleased)\n", encoding="utf-8")
    with pytest.raises(
        release.ReleaseError, match=r"the first section of CHANGELOG.md is '.* \(unreleased\)'"
    ):
        release.check_tag(f"v{version()}")


def test_changes_are_files_whose_names_have_a_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not fragments.faults()
    monkeypatch.setattr(fragments, "ROOT", tmp_path)
    (tmp_path / "changelog.d").mkdir()
    wrong = [
        "sums.md",
        "sums.mended.md",
        "sums.fixed.txt",
        "Sums.fixed.md",
        "sums.fixed.1.md",
        "a b.fixed.md",
    ]
    for name in [*wrong, "fast-sums.performance.md"]:
        (tmp_path / "changelog.d" / name).write_text("Sums are exact.", encoding="utf-8")
    (tmp_path / "changelog.d" / "empty.fixed.md").write_text("\n", encoding="utf-8")
    found = [fault.removeprefix("changelog.d/") for fault in fragments.faults()]
    assert sorted(fault.split(" is ")[0] for fault in found) == sorted([*wrong, "empty.fixed.md"])


def test_the_addresses_are_copied_to_each_distribution() -> None:
    known = {"Documentation": "https://docs.example", "Repository": "https://code.example/a/b"}
    for folder in distributions(optional=True):
        text = (folder / "pyproject.toml").read_text(encoding="utf-8")
        without = repository.with_addresses("pyproject.toml", text, {})
        changed = repository.with_addresses("pyproject.toml", text, known)
        project = tomllib.loads(changed)["project"]
        assert project.pop("urls") == known
        assert project == tomllib.loads(without)["project"], folder
        assert repository.with_addresses("pyproject.toml", changed, known) == changed
        assert repository.with_addresses("pyproject.toml", changed, {}) == without
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changed = repository.with_addresses("CITATION.cff", citation, known)
    assert {"repository-code: https://code.example/a/b", "url: https://docs.example"} < set(
        changed.splitlines()
    )
    assert repository.with_addresses("CITATION.cff", changed, {}) == repository.with_addresses(
        "CITATION.cff", citation, {}
    )


def test_nothing_is_published_without_the_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {
        "tensorken": {"repository": "https://code.example/a/b/", "documentation": "https://docs.example"}
    }
    monkeypatch.setattr(workspace, "settings", lambda: known)
    release.check_addresses()
    assert repository.addresses()["Issues"] == "https://code.example/a/b/issues"
    known["tensorken"]["repository"] = ""
    with pytest.raises(
        release.ReleaseError, match=r"repository: no address in \[tool.tensorken\] of pyproject"
    ):
        release.check_addresses()


def test_the_index_lists_each_file_with_its_digest(tmp_path: Path) -> None:
    names = [f"tensorken_nn-{version()}-py3-none-any.whl", f"tensorken_nn-{version()}.tar.gz"]
    for name in names:
        (tmp_path / name).write_text(name, encoding="utf-8")
    page = (release.index(tmp_path) / "tensorken-nn" / "index.html").read_text(encoding="utf-8")
    for name in names:
        digest = hashlib.sha256(name.encode()).hexdigest()
        assert f'<a href="{(tmp_path / name).as_uri()}#sha256={digest}">{name}</a>' in page


def test_the_example_is_that_of_the_readme() -> None:
    program, output = release.example()
    assert "tk.grad(loss)" in program and output.startswith("[4.5")


def test_conda_packages_require_what_the_distributions_do() -> None:
    """`nox -s release` has rattler-build check the recipe's form."""
    text = conda.FILE.read_text(encoding="utf-8")
    assert text == conda.recipe()
    assert f'version: "{version()}"' in text
    _, *outputs = text.split("  - package:\n")
    assert len(outputs) == len(distributions(optional=True))
    for folder, output in zip(distributions(optional=True), outputs, strict=True):
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        lines = re.search(r"^      run:\n((?:        - .*\n)+)", output, re.MULTILINE)
        assert lines
        required = [Requirement(line.removeprefix("        - ")) for line in lines[1].splitlines()]
        renamed = {name: conda.NAMES.get(name, name) for name in map(lock.name_of, project["dependencies"])}
        own = {renamed[lock.name_of(one)]: Requirement(one).specifier for one in project["dependencies"]}
        assert output.startswith(f"      name: {project['name']}\n")
        assert {lock.name_of(one.name): one.specifier for one in required} == {
            **own,
            "python": SpecifierSet(project["requires-python"]),
        }


def test_the_locked_versions_satisfy_all_requirements() -> None:
    """And come from the index alone: a line is a name, a version and a marker."""
    text = lock.FILE.read_text(encoding="utf-8")
    lines = [Requirement(line) for line in text.splitlines() if not line.startswith("#")]
    assert all(len(one.specifier) == 1 and not one.url for one in lines)
    versions: dict[str, list[str]] = {}
    for one in lines:
        (specifier,) = one.specifier
        assert specifier.operator == "==" and "+" not in specifier.version, one
        versions.setdefault(one.name, []).append(specifier.version)
    for one in map(Requirement, lock.requirements()):
        locked = versions.get(lock.name_of(one.name), [])
        assert locked, f"{one} has no line in {lock.FILE.name}: run 'python run.py lock'"
        assert all(map(one.specifier.contains, locked)), (one, locked)


def test_a_failed_command_is_an_error_with_its_output() -> None:
    with pytest.raises(release.ReleaseError, match=r"(?s)ended with 3:\nbefore"):
        release._run([sys.executable, "-c", "print('before'); raise SystemExit(3)"])


def test_the_citation_has_the_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE)[1] == version()  # type: ignore[index]
