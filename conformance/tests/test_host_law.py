"""host.*: a correct plugin and plugins with one fault each, installed in a temporary folder."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.tests.examining import examine_all
from tensorken_conformance.case import Result
from tensorken_conformance.laws import host
from tensorken_conformance.levels import level_of
from tensorken_conformance.subject import Subject
from tensorken_core.host.registry import REGISTRY, SELECTION
from tensorken_core.language.raw import RawTensor
from tensorken_core.rewriting.fuse import Fuse
from tensorken_numpy.backend import Numpy

PLUGIN = """
from tensorken_core.host.plugin import BackendEntry, hookimpl

@hookimpl
def tensorken_backend():
    def load(device=None):
        from tensorken_numpy.backend import Numpy
        return Numpy()
    return BackendEntry("{name}", load, {facts})
"""

METADATA = {
    "Metadata-Version": "2.4",
    "Name": "{distribution}",
    "Version": "1.0",
    "Summary": "a backend for a test",
    "License-Expression": "MIT",
    "Requires-Dist": "tensorken-core>=0.1,<0.2\nRequires-Dist: colorsys-for-tests",
}

counter = iter(range(10**6))


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A function that installs a plugin, by default a correct one, and returns its name."""
    monkeypatch.syspath_prepend(str(tmp_path))
    modules: list[str] = []

    def install_plugin(
        facts: str = 'summary="for a test"', code: str = PLUGIN, name: str = "", **metadata: str | None
    ) -> str:
        number = next(counter)
        entry = f"hosted-{number}"
        module, distribution = f"hosted_{number}", f"hosted-dist-{number}"
        modules.append(module)
        (tmp_path / f"{module}.py").write_text(code.format(name=name or entry, facts=facts), "utf-8")
        folder = tmp_path / f"hosted_dist_{number}-1.0.dist-info"
        folder.mkdir()
        fields = METADATA | {key.replace("_", "-"): value for key, value in metadata.items()}
        lines = [f"{key}: {value}" for key, value in fields.items() if value is not None]
        text = "\n".join(lines).format(distribution=distribution) + "\n"
        (folder / "METADATA").write_text(text, "utf-8")
        (folder / "entry_points.txt").write_text(f"[tensorken.backends]\n{entry} = {module}\n", "utf-8")
        (folder / "RECORD").write_text("", "utf-8")
        # the package that it requires; the laws regard its import as slow
        heavy = tmp_path / "colorsys_for_tests-1.0.dist-info"
        if not heavy.exists():
            heavy.mkdir()
            (heavy / "METADATA").write_text(
                "Metadata-Version: 2.4\nName: colorsys-for-tests\nVersion: 1.0\n", "utf-8"
            )
            (heavy / "top_level.txt").write_text("heavy_for_tests\n", "utf-8")
            (heavy / "RECORD").write_text("", "utf-8")
            (tmp_path / "heavy_for_tests.py").write_text("", "utf-8")
        importlib.invalidate_caches()
        REGISTRY.refresh()
        return entry

    yield install_plugin
    for module in modules:
        sys.modules.pop(module, None)
    monkeypatch.undo()
    REGISTRY.refresh()


def examine_plugin(name: str, *laws: str) -> list[Result]:
    return list(examine_all(Subject.select(name), laws or ["host"]))


QUICK = ("host.entry-point", "host.metadata", "host.language", "host.probe")
"""The laws that start no processes."""


def failures(results: list[Result]) -> dict[str, str]:
    return {f"{r.case.law}/{r.case.op}": r.says for r in results if r.status != "passed"}


@pytest.mark.parametrize("name", ["numpy", "reference", "string", "Numpy", "numpy:cpu"])
def test_first_party_backends_pass(name: str):
    results = examine_plugin(name, *(QUICK if name in ("Numpy", "numpy:cpu") else ()))
    assert failures(results) == {}
    assert len(results) >= 13
    assert all(result.level == 0 for result in results)


def test_a_correct_plugin_passes(install: Any):
    assert failures(examine_plugin(install())) == {}


def test_backends_that_are_not_installed_have_only_probe_cases():
    results = examine_plugin("tensorken_numpy.backend:Numpy")
    assert failures(results) == {}
    assert {r.case.law for r in results} == {"host.probe"}
    assert level_of(results, Numpy.capabilities) is not None


@pytest.mark.parametrize(
    ("law", "arguments"),
    [
        ("host.metadata/summary", {"facts": "summary=''"}),
        ("host.metadata/summary", {"facts": "summary='two' + chr(10) + 'lines'"}),
        ("host.metadata/summary", {"facts": f"summary={'long ' * 40!r}"}),
        ("host.metadata/license", {"License_Expression": None}),
        ("host.metadata/description", {"Summary": None}),
        ("host.metadata/requirement", {"Requires_Dist": None}),
        ("host.metadata/requirement", {"Requires_Dist": "tensorken-core>=0.1"}),
        ("host.language/next", {"facts": 'summary="a", spec=">=1.0"'}),
    ],
)
def test_incomplete_metadata_fails(install: Any, law: str, arguments: dict[str, Any]):
    failed = failures(examine_plugin(install(**arguments), *QUICK))
    assert failed.keys() == {law}
    assert failed[law]


def test_a_plugin_module_that_imports_its_library_fails(install: Any):
    name = install(code="import heavy_for_tests\n" + PLUGIN)
    failed = failures(examine_plugin(name, "host.lazy"))
    assert failed.keys() == {"host.lazy/describing"}
    assert "heavy_for_tests" in failed["host.lazy/describing"]


def test_a_listing_that_imports_the_plugin_fails(install: Any, monkeypatch: pytest.MonkeyPatch):
    name = install()
    listing = 'main(["backends", "--json"])'
    assert listing in host.PROGRAM
    eager = host.PROGRAM.replace(listing, f"{listing}; import {name.replace('-', '_')}")
    monkeypatch.setattr(host, "PROGRAM", eager)
    assert failures(examine_plugin(name, "host.lazy")).keys() == {"host.lazy/listing"}


def test_a_plugin_that_cannot_be_loaded_fails(install: Any):
    name = install(facts='summary="a", spec=">=2.0,<3"')
    with pytest.raises(Exception, match="needs the language version"):
        Subject.select(name)
    subject = Subject(Fuse(Numpy()), name)
    failed = failures(list(examine_all(subject, QUICK)))
    assert "host.language/this" in failed
    assert "host.probe/probe" in failed


def test_an_ambiguous_name_has_only_probe_cases(install: Any, tmp_path: Path):
    name = install()
    subject = Subject.select(name)
    folder = tmp_path / "other-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.4\nName: other\nVersion: 1.0\n", "utf-8")
    (folder / "entry_points.txt").write_text(f"[tensorken.backends]\n{name} = other\n", "utf-8")
    REGISTRY.refresh()
    results = list(examine_all(subject, QUICK))
    assert all(r.status == "passed" for r in results)  # the cases of a backend that is not installed
    assert len(results) == 4
    with pytest.raises(Exception, match="comes from 2 distributions"):
        SELECTION.resolve(name, "cpu")


class Plain(RawTensor[Any]):
    """Has no repr of its own."""

    capabilities = Numpy.capabilities
    __repr__ = object.__repr__


class Lines(Numpy):
    """Has a repr of two lines."""

    def __repr__(self) -> str:
        return "Lines(\n)"


@pytest.mark.parametrize(("backend", "op"), [(Plain, "repr"), (Lines, "repr")])
def test_a_bad_repr_fails(backend: Any, op: str):
    failed = failures(list(examine_all(Subject(backend(), "a-fault/bad-repr"), ["host"])))
    assert failed.keys() == {f"host.probe/{op}"}


def test_loading_twice_must_return_one_backend(monkeypatch: pytest.MonkeyPatch):
    subject = Subject(Numpy(), "forgetful")
    monkeypatch.setattr(SELECTION, "resolve", lambda *arguments: Numpy())
    assert "two" in failures(list(examine_all(subject, QUICK)))["host.probe/once"]


def test_a_backend_registered_under_another_name_fails(monkeypatch: pytest.MonkeyPatch):
    subject = Subject(Numpy(), "numpy")
    interpreter = Numpy()
    REGISTRY.remember(interpreter, "somebody-else", "cpu")
    monkeypatch.setattr(SELECTION, "resolve", lambda *arguments: interpreter)
    failed = failures(list(examine_all(subject, QUICK)))
    assert "somebody-else" in failed["host.probe/name"]
