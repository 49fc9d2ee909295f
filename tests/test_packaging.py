"""The distributions as a user gets them: what the wheels say of themselves, and that they install offline."""

from __future__ import annotations

import configparser
import json
import subprocess
import sys
from collections.abc import Callable
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

from tests.conftest import Environment
from tools.workspace import ROOT, distributions, version

pytestmark = pytest.mark.slow

NAMES = {
    "tensorken",
    "tensorken-core",
    "tensorken-numpy",
    "tensorken-reference",
    "tensorken-string",
    "tensorken-wgpu",
    "tensorken-nn",
    "tensorken-llvm",
    "tensorken-profile",
    "tensorken-conformance",
    "tensorken-jax",
    "tensorken-torch",
    "tensorken-mpi",
    "tensorken-dask",
}

TESTS = {
    "tensorken-conformance": {
        *[
            f"tensorken_conformance/templates/{kind}/tests/test_my{kind}.py"
            for kind in ("backend", "compiler", "ops", "task")
        ],
        "tensorken_conformance/test_conformance.py",
    }
}
"""The tests that belong into a wheel."""

MORE_PACKAGES = {"tensorken-core": ("tensorken_cli",)}
"""The packages of a wheel beside the one of its name."""

MANUAL = {
    "tensorken-core": ("tensorken",),
    "tensorken-nn": ("tensorken-sample", "tensorken-train"),
    "tensorken-conformance": ("tensorken-conformance", "tensorken-new"),
    "tensorken-wgpu": ("tensorken-gpu-report",),
}
"""The manual pages of a wheel."""


def wheel(wheelhouse: Path, name: str) -> ZipFile:
    """The wheel of one of our distributions."""
    (found,) = wheelhouse.glob(f"{name.replace('-', '_')}-{version()}-py3-none-any.whl")
    return ZipFile(found)


def read(archive: ZipFile, file: str) -> str:
    """The text of a file in the metadata folder of a wheel, or nothing."""
    texts = [
        archive.read(name).decode() for name in archive.namelist() if name.endswith(f".dist-info/{file}")
    ]
    return "".join(texts)


def metadata(wheelhouse: Path, name: str) -> Message:
    """What a wheel says of itself."""
    return HeaderParser().parsestr(read(wheel(wheelhouse, name), "METADATA"))


def requirements(wheelhouse: Path, name: str) -> list[Requirement]:
    """What a wheel asks for, extras included."""
    return [Requirement(line) for line in metadata(wheelhouse, name).get_all("Requires-Dist", [])]


def test_every_distribution_is_built(wheelhouse: Path) -> None:
    built = {path.name.split("-")[0].replace("_", "-") for path in wheelhouse.glob("tensorken*.whl")}
    assert built == NAMES
    assert len(distributions(optional=True)) == len(NAMES)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_wheel_states_its_version_licence_and_python(wheelhouse: Path, name: str) -> None:
    said = metadata(wheelhouse, name)
    assert said["Version"] == version()
    assert said["License-Expression"] == "MIT"
    assert said["Requires-Python"] == ">=3.11"
    assert said["Summary"]
    licence = read(wheel(wheelhouse, name), "licenses/LICENSE")
    assert licence == (ROOT / "LICENSE").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_wheel_holds_typed_packages(wheelhouse: Path, name: str) -> None:
    packages = {name.replace("-", "_"), *MORE_PACKAGES.get(name, ())}
    files = wheel(wheelhouse, name).namelist()
    assert {f"{package}/py.typed" for package in packages} <= set(files)
    assert {file.split("/")[0] for file in files if not file.endswith(".1")} == {
        *packages,
        f"{name.replace('-', '_')}-{version()}.dist-info",
    }
    manual = {file.partition("/data/")[2] for file in files if file.endswith(".1")}
    assert manual == {f"share/man/man1/{page}.1" for page in MANUAL.get(name, ())}
    tests = {file for file in files if "/test_" in file or "__pycache__" in file}
    assert tests == TESTS.get(name, set())


def test_core_needs_pluggy_and_nothing_else(wheelhouse: Path) -> None:
    """But for the extras of its command."""
    needed = requirements(wheelhouse, "tensorken-core")
    assert [need.name for need in needed if "extra ==" not in str(need.marker)] == ["pluggy"]


@pytest.mark.parametrize("name", sorted(NAMES - {"tensorken-core"}))
def test_distributions_ask_for_each_other_in_the_version_they_have(wheelhouse: Path, name: str) -> None:
    major, minor, _ = map(int, version().split("."))
    ours = [need for need in requirements(wheelhouse, name) if need.name in NAMES - {"tensorken"}]
    assert ours
    for need in ours:
        assert need.specifier.contains(version()), need
        assert not need.specifier.contains(f"{major}.{minor + 1}.0"), need


@pytest.mark.parametrize("name", sorted(NAMES))
def test_nothing_else_has_an_upper_bound(wheelhouse: Path, name: str) -> None:
    others = [need for need in requirements(wheelhouse, name) if need.name not in NAMES]
    assert not [need for need in others for part in need.specifier if part.operator not in (">=", "!=")]


@pytest.mark.parametrize(
    ("name", "group", "entries"),
    [
        ("tensorken-core", "console_scripts", {"tensorken": "tensorken_cli.command:main"}),
        ("tensorken-numpy", "tensorken.backends", {"numpy": "tensorken_numpy.plugin"}),
        ("tensorken-reference", "tensorken.backends", {"reference": "tensorken_reference.plugin"}),
        ("tensorken-string", "tensorken.backends", {"string": "tensorken_string.plugin"}),
        ("tensorken-jax", "tensorken.backends", {"jax": "tensorken_jax.plugin"}),
        ("tensorken-torch", "tensorken.backends", {"torch": "tensorken_torch.plugin"}),
        ("tensorken-torch", "tensorken.plugins", {"gloo": "tensorken_torch.gloo"}),
        ("tensorken-mpi", "tensorken.plugins", {"mpi": "tensorken_mpi.group"}),
        ("tensorken-wgpu", "tensorken.backends", {"wgpu": "tensorken_wgpu.plugin"}),
        ("tensorken-wgpu", "tensorken.commands", {"gpu-report": "tensorken_wgpu.report.cli:main"}),
        (
            "tensorken-nn",
            "tensorken.commands",
            {"sample": "tensorken_nn.sample:main", "train": "tensorken_nn.cli:main"},
        ),
        ("tensorken-llvm", "tensorken.plugins", {"llvm": "tensorken_llvm.plugin"}),
        ("tensorken-profile", "tensorken.namespace", {"profile": "tensorken_profile:profile"}),
        (
            "tensorken-conformance",
            "tensorken.commands",
            {"conformance": "tensorken_conformance.cli:main", "new": "tensorken_conformance.new:main"},
        ),
        (
            "tensorken-conformance",
            "pytest11",
            {"tensorken_conformance": "tensorken_conformance.pytest_plugin"},
        ),
    ],
)
@pytest.mark.feature(201, 202)
def test_entry_points(wheelhouse: Path, name: str, group: str, entries: dict[str, str]) -> None:
    said = configparser.ConfigParser()
    said.read_string(read(wheel(wheelhouse, name), "entry_points.txt"))
    assert dict(said[group]) == entries
    two = {
        "tensorken-conformance": {"tensorken.commands", "pytest11"},
        "tensorken-torch": {"tensorken.backends", "tensorken.plugins"},
        "tensorken-wgpu": {"tensorken.backends", "tensorken.commands"},
    }
    assert set(said.sections()) == two.get(name, {group})


def test_a_source_distribution_builds_without_the_workspace(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=ROOT / "core", check=True, capture_output=True)
    source = tmp_path / f"tensorken_core-{version()}.tar.gz"
    pip = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--wheel-dir", str(tmp_path), str(source)], check=True, capture_output=True)
    assert metadata(tmp_path, "tensorken-core")["Version"] == version()


def test_everything_installs_and_runs_offline(new_environment: Callable[..., Environment]) -> None:
    environment = new_environment("tensorken[all]")
    environment.run("python", "-m", "pip", "check")
    assert environment.run("tensorken", "--version").startswith(
        f"tensorken {version()}, tensorken-core {version()}"
    )
    listed = environment.run("tensorken", "backends")
    assert all(name in listed for name in ("numpy", "reference", "string"))
    assert "digits" in environment.run("tensorken", "train", "--help")
    derivative = (
        "import tensorken as tk; print(tk.grad(lambda x: (x * x).sum())(tk.tensor([1.0, 2.0])).tolist())"
    )
    assert environment.run("python", "-c", derivative).split() == ["[2.0,", "4.0]"]


def test_the_plain_distribution_computes_with_numpy_and_prints(
    new_environment: Callable[..., Environment],
) -> None:
    environment = new_environment("tensorken")
    listed = json.loads(environment.run("python", "-m", "pip", "list", "--format", "json"))
    assert {row["name"] for row in listed} - {"pip", "setuptools", "wheel"} == {
        "tensorken",
        "tensorken-core",
        "tensorken-numpy",
        "tensorken-string",
        "numpy",
        "pluggy",
    }


def test_core_alone_installs_two_distributions_and_the_command(
    new_environment: Callable[..., Environment],
) -> None:
    environment = new_environment("tensorken-core")
    listed = json.loads(environment.run("python", "-m", "pip", "list", "--format", "json"))
    assert {row["name"] for row in listed} - {"pip", "setuptools", "wheel"} == {"tensorken-core", "pluggy"}
    assert environment.run("tensorken", "--version").startswith(
        f"tensorken (not installed), tensorken-core {version()}"
    )
    assert "pip install tensorken-numpy" in environment.run("tensorken", "backends")


TRANSFORMS = """
import sys
import tensorken_core as core

def f(x):
    return (x.sin() * x).sum()

x = core.as_tensor([0.0, 1.0], core.float64)
one = core.as_tensor([1.0, 0.0], core.float64)
assert core.default_backend().name == "reference"
gradient = core.grad(f)(x).tolist()
assert gradient[0] == 0.0 and abs(gradient[1] - 1.3817732906760363) < 1e-15
assert core.jvp(f, (x,), (one,))[1].item() == gradient[0]
assert core.vjp(f, x)[1](core.as_tensor(1.0, core.float64))[0].tolist() == gradient
diagonal = core.hessian(f)(x).tolist()
assert diagonal[0][0] == 2.0 and diagonal[0][1] == 0.0
assert core.jacfwd(core.grad(f))(x).tolist() == core.jacrev(core.grad(f))(x).tolist() == diagonal
assert core.vmap(core.grad(lambda x: x * x))(x).tolist() == [0.0, 2.0]
assert core.grad(core.checkpoint(f))(x).tolist() == gradient

@core.custom_jvp
def square(x):
    return x * x

@square.defjvp
def rule(primals, tangents):
    return square(*primals), 3.0 * primals[0] * tangents[0]

assert core.grad(lambda x: square(x).sum())(x).tolist() == [0.0, 3.0]

@core.custom_vjp
def cube(x):
    return x * x * x

cube.defvjp(lambda x: (cube(x), x), lambda x, cotangent: (5.0 * x * cotangent,))
assert core.grad(lambda x: cube(x).sum())(x).tolist() == [0.0, 5.0]

def ones(shape, dtype):
    return core.as_tensor(1, dtype).broadcast_to(shape)

def results_of(op, xs, params):
    ys = xs[0].apply(op, *xs[1:], *params)
    return [y for y in (ys if isinstance(ys, tuple) else (ys,)) if y.dtype is core.float64]

differentiated = 0
for op in core.OPS.values():
    for shapes, params in op.samples:
        dtypes = {"data": core.float64, "condition": core.bool_, "indices": core.int64}
        xs = [ones(s, dtypes[k]) for s, k in zip(shapes, op.operand_kinds or ["data"] * len(shapes))]
        if not (op.jvp or op.jvp_all) or not results_of(op, xs, params):
            continue
        at = [i for i, x in enumerate(xs) if x.dtype is core.float64]

        def f(*floats):
            operands = [floats[at.index(i)] if i in at else x for i, x in enumerate(xs)]
            return results_of(op, operands, params)

        floats = tuple([xs[i] for i in at])
        ys, tangents = core.jvp(f, floats, floats)
        found, pull_back = core.vjp(f, *floats)
        assert [y.shape for y in ys] == [y.shape for y in found] == [t.shape for t in tangents]
        assert [t.shape for t in pull_back(found)] == [x.shape for x in floats]
        core.vmap(f)(*[x.reshape((1, *x.shape)) for x in floats])
        differentiated += 1
assert differentiated >= 60, differentiated
assert not [name for name in sys.modules if name.partition(".")[0] in ("tensorken", "numpy")]
"""


def test_core_and_one_backend_differentiate_and_map(new_environment: Callable[..., Environment]) -> None:
    environment = new_environment("tensorken-core", "tensorken-reference")
    listed = json.loads(environment.run("python", "-m", "pip", "list", "--format", "json"))
    ours = {"tensorken-core", "tensorken-reference", "pluggy"}
    assert {row["name"] for row in listed} - {"pip", "setuptools", "wheel"} == ours
    environment.run("python", "-c", TRANSFORMS)
    assert "reference" in environment.run("tensorken", "backends")
    assert "reference" in environment.run("tensorken", "doctor")
