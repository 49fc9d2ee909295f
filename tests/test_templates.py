"""The projects of `tensorken new`: generated, installed and checked as their authors would do it, without a network."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tensorken_conformance.running.examine import examine, laws_for
from tensorken_conformance.subject import Subject
from tensorken_conformance.template import KINDS, OURS, create
from tools.first_steps import commands
from tools.pages import blocks
from tools.workspace import ROOT, distributions, version

pytestmark = pytest.mark.slow

PROJECTS = {  # name: kind and start; the names sort otherwise than those of the templates
    "abacus": ("backend", "python"),
    "arrays": ("backend", "array-api"),
    "elementwise": ("compiler", ""),
    "pair-distances": ("ops", ""),
    "a_circle": ("task", ""),
}
TENSORKEN = [
    "-c",
    "import sys; from importlib.metadata import entry_points; "
    "(script,) = entry_points(group='console_scripts', name='tensorken'); sys.exit(script.load()())",
]
"""The arguments of Python that run the command `tensorken`."""
BACKENDS = [name for name, (kind, _) in PROJECTS.items() if kind == "backend"]
OTHERS = [name for name in PROJECTS if name not in BACKENDS]


@dataclass(frozen=True, slots=True)
class Projects:
    """The generated projects, installed into a folder."""

    folder: Path
    site: Path

    def of(self, name: str) -> Path:
        """The folder of a project."""
        return self.folder / f"tensorken-{name}"

    def python(self, name: str, *arguments: str, **variables: str) -> str:
        """Run Python in the folder of a project; returns the output, and fails if it fails."""
        path = os.pathsep.join([str(self.site), str(ROOT)])
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.of(name),
            env={**os.environ, "TENSORKEN_COMPILERS": "none", **variables, "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        assert done.returncode == 0, f"{' '.join(arguments)}\n{done.stdout}"
        return done.stdout


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Projects:
    """All projects, built and installed by one call of pip."""
    folder = tmp_path_factory.mktemp("projects")
    found = Projects(folder, folder / "site")
    for name, (kind, start) in PROJECTS.items():
        create(kind, name, found.of(name), start)
    options = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--no-compile"]
    folders = [str(found.of(name)) for name in PROJECTS]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(found.site), *folders]
    subprocess.run(command, check=True, capture_output=True)
    return found


@pytest.fixture
def installed(projects: Projects, monkeypatch: pytest.MonkeyPatch) -> Projects:
    """The projects, on the path of this process."""
    monkeypatch.syspath_prepend(str(projects.site))
    return projects


def test_all_kinds_and_starts_are_tried() -> None:
    assert set(PROJECTS.values()) == {
        (kind, start) for kind, facts in KINDS.items() for start in facts.starts or [""]
    }


def test_style_and_types(projects: Projects) -> None:
    """By the settings of each project: ruff finds the nearest ones, mypy is strict in all."""
    folders = [str(projects.of(name)) for name in PROJECTS]
    ruff = [sys.executable, "-m", "ruff"]
    for command in (["check", "--quiet"], ["format", "--check", "--quiet"]):
        done = subprocess.run([*ruff, *command, *folders], capture_output=True, text=True, check=False)
        assert not (done.stdout or done.stderr)
    cache = ["--cache-dir", str(projects.folder / "cache")]
    sources = [str(projects.of(name) / part) for name in PROJECTS for part in ("src", "tests")]
    settings = ["--config-file", str(projects.of("arrays") / "pyproject.toml")]
    assert "no issues" in projects.python("arrays", "-m", "mypy", *settings, *cache, *sources)


@pytest.mark.feature(201)
@pytest.mark.parametrize("name", OTHERS)
def test_its_own_tests_pass(projects: Projects, name: str) -> None:
    assert " passed" in projects.python(name, "-m", "pytest", "-q", "-p", "no:cacheprovider")


@pytest.mark.feature(2, 203)
@pytest.mark.parametrize("name", BACKENDS)
def test_the_tests_of_a_backend_run_the_laws(projects: Projects, name: str) -> None:
    select = [f"--tensorken-select={law}" for law in ("host", "values.movement")]
    printed = projects.python(name, "-m", "pytest", "-q", "-p", "no:cacheprovider", *select)
    passed = re.search(r"^(\d+) passed", printed, re.MULTILINE)
    assert passed and int(passed[1]) > 10, printed


@pytest.mark.parametrize("name", ["elementwise", "pair-distances"])
def test_its_readme_is_correct(projects: Projects, name: str) -> None:
    page = blocks((projects.of(name) / "README.md").read_text(encoding="utf-8"))
    (place,) = [i for i, block in enumerate(page) if block.language == "python"]
    printed = projects.python(name, "-c", page[place].text, TENSORKEN_COMPILERS=name)
    assert printed.strip() == page[place + 1].text.strip()


def test_the_kit_examines_a_new_op(projects: Projects) -> None:
    run = [*TENSORKEN, "conformance", "run", "numpy", "--smoke", "--budget=0", "--brief", "--in-process"]
    select = ["--select=derivatives/squared_distances", "--select=errors/squared_distances"]
    printed = projects.python("pair-distances", *run, *select)
    assert "2 cases = 2 passed" in printed
    assert "detection not measured" in printed


LISTS = """
import tensorken_core.host.registry as host
print({record.name: record.status for record in host.load_plugins()})
print([(record.name, record.status) for record in host.backends()])
"""


def test_the_host_lists_the_plugins_and_the_command_the_job(projects: Projects) -> None:
    printed = projects.python("elementwise", "-c", LISTS)
    for name in ("elementwise", "pair-distances"):
        assert f"'{name}': 'available'" in printed
    for name in BACKENDS:
        assert f"('{name}', 'available')" in printed
    jobs = projects.python("a_circle", *TENSORKEN, "train", "--help")
    assert re.search("^  a_circle +classify points within a circle$", jobs, re.MULTILINE)


@pytest.mark.parametrize("name", PROJECTS)
def test_the_workflow_has_our_actions_and_the_checks_of_the_readme(projects: Projects, name: str) -> None:
    ours = "".join([file.read_text("utf-8") for file in (ROOT / ".github" / "workflows").glob("*.yml")])
    workflow = (projects.of(name) / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    actions = re.findall(r"uses: (.*)$", workflow, re.MULTILINE)
    assert len(actions) == 3
    for action in actions:
        assert f"uses: {action}\n" in ours, f"{action} is not the version in .github/workflows"
    readme = (projects.of(name) / "README.md").read_text("utf-8")
    checks = [command for command in commands(workflow) if command.startswith(("pytest", "tensorken"))]
    assert len(checks) == len(KINDS[PROJECTS[name][0]].checks)
    for check in checks:
        assert f"\n{check}\n" in readme


def test_the_names_of_our_distributions_are_reserved() -> None:
    assert {folder.name for folder in distributions(optional=True)} - {"tensorken"} == OURS


def test_the_projects_need_this_version(projects: Projects) -> None:
    major, minor, _ = map(int, version().split("."))
    for name in PROJECTS:
        text = (projects.of(name) / "pyproject.toml").read_text("utf-8")
        needs = re.findall(r'"tensorken[\w-]*(>=.*?)"', text)
        assert needs
        assert set(needs) == {f">={major}.{minor},<{major}.{minor + 1}"}


def test_the_backends_are_short(projects: Projects) -> None:
    lines = {
        name: len(
            (projects.of(name) / "src" / f"tensorken_{name}" / "backend.py").read_text("utf-8").splitlines()
        )
        for name in BACKENDS
    }
    assert lines["abacus"] <= 150
    assert lines["arrays"] <= 60


def test_the_compiler_is_short(projects: Projects) -> None:
    files = (projects.of("elementwise") / "src").rglob("*.py")
    assert sum([len(file.read_text("utf-8").splitlines()) for file in files]) <= 100


# ---- the page docs/conformance/array-api-strict.md -----------------------------------------------------------

LAWS_OF_THE_PAGE = (
    "values.elementwise",
    "values.cast",
    "values.arrangement",
    "values.extrema",
    "values.sums",
)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, when sums overflow
def test_array_api_strict_differs_in_the_ops_that_the_page_names(
    installed: Projects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "backends"))
    direct = importlib.import_module("array_api_direct").Direct
    subject = Subject(direct(), "direct")
    failed: dict[str, set[str]] = {}
    for law in laws_for(subject, LAWS_OF_THE_PAGE):
        for case in law.cases(subject):
            if case.shape in ("small", "257") and examine(subject, law, case).status == "failed":
                failed.setdefault(case.op, set()).add(case.dtype)
    ordered = ("lt", "max", "min", "argmax", "argmin", "sort", "argsort")
    assert failed == {
        **{op: {"bool"} for op in ordered},
        **{op: {"int8", "int16", "int32", "int64"} for op in ("shift_left", "shift_right")},
        **{op: {"float32", "float64"} for op in ("cast", "sum")},
    }
    for function in ("less", *ordered[1:], "Shifts", "Casts", "no axes"):
        assert function in (ROOT / "docs" / "conformance" / "array-api-strict.md").read_text("utf-8")
