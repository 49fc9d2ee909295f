"""The plugin host: discovery by metadata, loading of exactly one plugin, and the choice of the backend.

The plugins are modules and `*.dist-info` folders in a temporary folder, which is what an installation leaves
behind; tests/test_host_wheels.py goes the whole way, with wheels and pip.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import subprocess
import sys
import textwrap
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, strategies as st
from packaging.specifiers import SpecifierSet

import tensorken as tk
from tensorken.plugin_names import load_name, plugin_names
from tensorken.programs.execution import compiler_of, failing_compilers
from tensorken_core.errors import ArgumentError, BackendError, UnknownBackendError
from tensorken_core.host import discovery, load_monitor, loading
from tensorken_core.host.backend_choice import DEFAULT_ORDER, DISTRIBUTIONS, VARIABLES, Selection
from tensorken_core.host.discovery import PluginRecord, required_range
from tensorken_core.host.loading import Registry
from tensorken_core.host.plugin import SPEC_VERSION, BackendEntry
from tensorken_core.host.versions import place_in_range
from tensorken_core.language.op import OPS, Op
from tensorken_core.language.raw import RawTensor
from tensorken_core.rewriting.fuse import Fuse
from tensorken_reference.backend import Reference

PLUGIN = """
from tensorken_core.host.plugin import BackendEntry, hookimpl

@hookimpl
def tensorken_backend():
    def load(device=None):
        import {module}_heavy
        return {module}_heavy.Toy(device)
    return BackendEntry({name!r}, load, {facts})
"""

HEAVY = """
from tensorken_core.language.raw import RawTensor

class Toy(RawTensor):
    def __init__(self, device=None):
        self.on = device
"""


class Toy(RawTensor[Any]):
    """An interpreter that is not a plugin."""


class Site:
    """A folder into which plugins are installed, and a host that looks there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.registry = Registry([str(folder)])
        self.selection = Selection(self.registry)
        self.modules: list[str] = []

    def install(
        self,
        distribution: str,
        entry_points: dict[str, dict[str, str]],
        *,
        version: str = "1.0",
        requires: tuple[str, ...] = (),
        **modules: str,
    ) -> Path:
        """Write the files of an installed distribution; returns the folder of its metadata."""
        info = self.folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        lines = ["Metadata-Version: 2.1", f"Name: {distribution}", f"Version: {version}"]
        lines += [f"Requires-Dist: {requirement}" for requirement in requires]
        (info / "METADATA").write_text("\n".join(lines) + "\n", encoding="utf-8")
        groups = [
            f"[tensorken.{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
            for group, points in entry_points.items()
        ]
        (info / "entry_points.txt").write_text("\n".join(groups), encoding="utf-8")
        for name, source in modules.items():
            self.modules.append(name)
            (self.folder / f"{name}.py").write_text(textwrap.dedent(source), encoding="utf-8")
        return info

    def backend(self, name: str, distribution: str = "", facts: str = "", **more: Any) -> Path:
        """Install a backend that works."""
        distribution = distribution or DISTRIBUTIONS.get(name, f"dist-{name}")
        module = f"fake_{distribution.replace('-', '_').lower()}"
        sources = {module: PLUGIN.format(module=module, name=name, facts=facts), f"{module}_heavy": HEAVY}
        return self.install(distribution, {"backends": {name: module}}, **{**sources, **more})

    def uninstall(self, info: Path) -> None:
        for file in info.iterdir():
            file.unlink()
        info.rmdir()

    @property
    def imported(self) -> set[str]:
        return set(self.modules) & set(sys.modules)

    def status(self) -> dict[str, str]:
        return {record.selector: record.status for record in self.selection.backends()}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.syspath_prepend(str(tmp_path))
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    made = Site(tmp_path)
    yield made
    for module in made.modules:
        sys.modules.pop(module, None)


def one(site: Site, name: str) -> PluginRecord:
    (record,) = site.registry.find("backends", name)
    return record


# ---- discovery ---------------------------------------------------------------------------------------------


@pytest.mark.feature(201)
def test_fifty_plugins_are_listed_and_none_is_imported(site: Site) -> None:
    for i in range(50):
        site.backend(f"toy{i}")
        site.install(
            f"addon-{i}", {"plugins": {f"addon{i}": f"addon_{i}"}, "commands": {f"do{i}": f"addon_{i}:main"}}
        )
    site.backend("numpy")
    assert len(site.selection.backends()) == 51
    assert len(site.registry.records("plugins")) == len(site.registry.records("commands")) == 50
    assert site.selection.default_backend().name == "numpy"
    with pytest.raises(UnknownBackendError):
        site.selection.resolve("toy77")
    assert site.imported == set()


def test_a_record_has_the_contents_of_the_metadata(site: Site) -> None:
    site.backend(" My_GPU", "Acme-GPU", version="2.1", requires=("numpy", "tensorken-core <9, >=0.1"))
    (record,) = site.selection.backends()
    assert (record.name, record.distribution, record.version) == ("my-gpu", "Acme-GPU", "2.1")
    assert (record.needs, record.status, record.reason) == ("<9,>=0.1", "available", "")
    assert repr(record) == (
        "PluginRecord(name='my-gpu', distribution='Acme-GPU', version='2.1', needs='<9,>=0.1', "
        "status='available', reason='')"
    )


@pytest.mark.parametrize("spelling", ["my-gpu", "MY_GPU", " my gpu ", "My--Gpu"])
def test_names_ignore_case_spaces_and_dashes(site: Site, spelling: str) -> None:
    site.backend("My_GPU")
    assert site.registry.name_of(site.selection.resolve(spelling)) == ("my-gpu", "cpu")


def test_records_are_sorted(site: Site) -> None:
    for name in ("zeta", "alpha", "mid"):
        site.backend(name)
    assert [record.name for record in site.selection.backends()] == ["alpha", "mid", "zeta"]


def test_two_distributions_with_one_name_clash(site: Site) -> None:
    site.backend("toy", "acme")
    site.backend("toy", "bolt")
    assert site.status() == {"toy@acme": "clash", "toy@bolt": "clash"}
    assert "acme" in site.registry.find("backends", "toy", "bolt")[0].reason
    with pytest.raises(BackendError, match=r"(?s)'toy' comes from 2 dist.*toy@acme \(1\.0\) or toy@bolt"):
        site.selection.resolve("toy")
    assert site.imported == set()
    chosen = site.selection.resolve("toy@BOLT")
    assert site.selection.name_of(chosen) == ("toy@bolt", "cpu")
    assert site.selection.resolve("toy@bolt:cpu") is chosen
    assert site.selection.resolve("toy@acme") is not chosen
    assert site.status() == {"toy@acme": "clash", "toy@bolt": "clash"}


def test_two_copies_of_one_distribution_are_one(site: Site, tmp_path: Path) -> None:
    site.backend("toy", "acme", version="2.0")
    second = Site(tmp_path / "second")
    second.folder.mkdir()
    second.backend("toy", "Acme", version="1.0")
    both = Registry([str(site.folder), str(second.folder)])
    assert [(record.version, record.status) for record in both.records("backends")] == [("2.0", "available")]


def test_a_copy_without_our_entry_points_hides_a_later_one(site: Site, tmp_path: Path) -> None:
    site.install("acme", {})
    second = Site(tmp_path / "second")
    second.folder.mkdir()
    second.backend("toy", "acme")
    assert Registry([str(site.folder), str(second.folder)]).records("backends") == []


@pytest.mark.parametrize(
    ("metadata", "entry_points"),
    [
        (None, "[tensorken.backends]\nbad = bad\n"),
        ("Metadata-Version: 2.1\n", "[tensorken.backends]\nbad = bad\n"),
        ("Name: bad\nVersion: 1\n", "[tensorken.backends]\nno equals sign\n"),
        ("Name: bad\nVersion: 1\n", b"[tensorken.backends]\n\xff\xfe = bad\n"),
    ],
)
def test_unreadable_metadata_hide_nothing_else(site: Site, metadata: str | None, entry_points: Any) -> None:
    site.backend("toy")
    info = site.folder / "bad-1.dist-info"
    info.mkdir()
    if metadata is not None:
        (info / "METADATA").write_text(metadata, encoding="utf-8")
    raw = entry_points if isinstance(entry_points, bytes) else entry_points.encode()
    (info / "entry_points.txt").write_bytes(raw)
    assert [record.name for record in site.selection.backends()] == ["toy"]
    assert len(site.registry.problems) == 1
    assert "bad-1.dist-info" in site.registry.problems[0]


def test_an_entry_point_that_names_no_object_is_broken(site: Site) -> None:
    site.install("bad", {"backends": {"bad": "not a module"}})
    (record,) = site.selection.backends()
    assert record.status == "broken"
    assert "'not a module'" in record.reason
    with pytest.raises(BackendError, match="'not a module'"):
        site.selection.resolve("bad")


def test_a_distribution_that_gives_one_name_twice_is_broken_unless_both_mean_the_same(site: Site) -> None:
    site.install("twice", {"backends": {"a": "one", "A": "two", "b": "one", "B": "one"}})
    assert site.status() == {"a": "broken", "b": "available"}
    assert "one, two" in one(site, "a").reason


# ---- versions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("core", "needs", "way_out"),
    [
        ("1.2.0", ">=2,<3", "pip install -U tensorken-core"),
        ("2.0.0", ">=1.0,<2", "pip install -U dist-toy"),
        ("1.0rc1", ">=1.0", "pip install -U tensorken-core"),
    ],
)
def test_a_plugin_for_another_core_is_refused_before_its_import(
    site: Site, monkeypatch: pytest.MonkeyPatch, core: str, needs: str, way_out: str
) -> None:
    monkeypatch.setattr(discovery, "core_version", lambda: core)
    site.backend("toy", requires=(f"tensorken-core {needs}",))
    assert site.status() == {"toy": "incompatible"}
    with pytest.raises(BackendError, match="cannot be loaded: it needs") as caught:
        site.selection.resolve("toy")
    assert f"this is {core}; {way_out}" in str(caught.value)
    assert site.imported == set()


def test_an_unreadable_requirement_breaks_only_its_plugin(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "core_version", lambda: "1.0")
    site.backend("toy")
    site.backend("bad", requires=("tensorken-core ~> 1",))
    assert site.status() == {"bad": "broken", "toy": "available"}


def test_a_backend_of_another_language_is_refused_before_it_loads(site: Site) -> None:
    site.backend("old", facts="spec='<1.0'")
    site.backend("new", facts="spec='>=2.0,<3'")
    for name, way_out in (("old", "-U dist-old"), ("new", "-U tensorken-core")):
        with pytest.raises(BackendError, match=f"this core has {SPEC_VERSION}; pip install {way_out}"):
            site.selection.resolve(name)
    assert site.status() == {"new": "incompatible", "old": "incompatible"}
    assert site.imported == {"fake_dist_old", "fake_dist_new"}


def test_an_invalid_range_is_an_error_in_the_entry() -> None:
    with pytest.raises(ValueError, match=r"'1\.0' is not a range of versions"):
        BackendEntry("toy", Toy, spec="1.0")


@pytest.mark.parametrize(
    ("requirements", "expected"),
    [
        (["tensorken-core>=1.0,<2"], ">=1.0,<2"),
        (["Tensorken_Core (>= 1.0, < 2)", "numpy>=2"], ">=1.0,<2"),
        (["tensorken.core[all] ~= 1.2"], "~=1.2"),
        (["tensorken-core"], ""),
        (["tensorken-core @ https://example.org/core.whl"], ""),
        (["tensorken>=3", "tensorken-core-extra>=3"], ""),
        (["tensorken-core>=9; extra == 'test'"], ""),
        (["tensorken-core>=1 ; python_version >= '3.11'"], ">=1"),
        (["tensorken-core>=1; python_version < '3.12'", "tensorken-core>=2; python_version >= '3.12'"], ""),
        (["tensorken-core>=1; python_version < '3.12'", "tensorken-core<9"], "<9"),
        ([], ""),
    ],
)
def test_the_requirement_on_core_is_read_from_the_metadata(requirements: list[str], expected: str) -> None:
    assert required_range(requirements, "tensorken-core") == expected


VERSIONS = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["0.9", "1", "1.0", "1.0.0", "1.2", "1.2.3", "2", "2.0.1", "10", "1!1.0"]),
    st.sampled_from(["", "", "a1", "b2", "rc1"]),
    st.sampled_from(["", "", ".post1"]),
    st.sampled_from(["", "", ".dev3"]),
)
CLAUSES = st.one_of(
    st.builds("{}{}".format, st.sampled_from(["==", "!=", "<", ">", "<=", ">="]), VERSIONS),
    st.builds("~={}.{}".format, st.integers(0, 2), VERSIONS.filter(lambda v: "!" not in v)),
    st.builds("{}{}.*".format, st.sampled_from(["==", "!="]), st.sampled_from(["1", "1.0", "1.2", "2"])),
)


@example("0.9a1.post1", [">0.9a1.dev3"])
@example("0.9.post1.dev3", ["<0.9.post1"])
@example("0.9a1", ["<0.9.post1"])
@given(VERSIONS, st.lists(CLAUSES, max_size=3))
def test_version_ranges_agree_with_pip(version: str, clauses: list[str]) -> None:
    text = ",".join(clauses)
    expected = SpecifierSet(text).contains(version, prereleases=True)
    assert (place_in_range(version, text) == "inside") == expected


@pytest.mark.parametrize("text", ["1.0", ">=", ">=x", "~> 1", ">=1;<2"])
def test_invalid_ranges_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a range|not a version"):
        place_in_range("1.0", text)


# ---- loading -----------------------------------------------------------------------------------------------


def test_exactly_the_named_backend_is_loaded_and_once(site: Site) -> None:
    site.backend("toy")
    site.backend("other")
    first = site.selection.resolve("toy")
    assert type(first).__name__ == "Toy"
    assert site.selection.resolve("TOY") is site.selection.resolve("toy", "cpu") is first
    assert site.imported == {"fake_dist_toy", "fake_dist_toy_heavy"}


def test_describing_a_backend_imports_nothing_heavy(site: Site) -> None:
    site.backend("toy", facts="summary='a toy', devices=('left', 'right')")
    assert site.registry.entry(one(site, "toy")).summary == "a toy"
    assert site.selection.devices("toy") == ["left", "right"]
    assert site.registry.devices(one(site, "toy")) == ("left", "right")
    assert "fake_dist_toy_heavy" in sys.modules  # `devices` chose it by name, as a tensor would
    assert site.imported == {"fake_dist_toy", "fake_dist_toy_heavy"}


def test_a_backend_is_used_as_its_load_gives_it(site: Site) -> None:
    site.backend("plain")
    plain = site.selection.resolve("plain")
    assert type(plain) is sys.modules["fake_dist_plain_heavy"].Toy
    assert site.selection.name_of(plain) == ("plain", "cpu")
    source = """
        from tensorken_core.rewriting.fuse import Fuse
        from tensorken_core.host.plugin import BackendEntry, hookimpl
        from tensorken_core.language.raw import RawTensor

        class Toy(RawTensor): pass
        made = Fuse(Toy())

        @hookimpl
        def tensorken_backend():
            return BackendEntry("fused", lambda device: made)
        """
    site.install("fused", {"backends": {"fused": "fake_fused"}}, fake_fused=source)
    wrapped = site.selection.resolve("fused")
    assert wrapped is sys.modules["fake_fused"].made
    assert site.selection.name_of(wrapped) == ("fused", "cpu")


BROKEN = {
    "missing dependency": ("import no_such_module_at_all", "install no_such_module_at_all, or remove"),
    "syntax error": ("def", "SyntaxError"),
    "error at import": (
        "raise RuntimeError('out of order\\nline 2')",
        "RuntimeError: out of order; update it",
    ),
    "base exception": ("class Skipped(BaseException): pass\nraise Skipped('not here')", "Skipped: not here"),
    "stop iteration": ("raise StopIteration('x')", "StopIteration: x; update it"),
    "imports itself": ("import fake_bad\nfake_bad.x", "AttributeError: .*fake_bad.* has no attribute 'x'"),
    "endless recursion": ("def f(): f()\nf()", "RecursionError: maximum recursion depth exceeded"),
    "no module": ("import sys\nsys.modules[__name__] = None", "cannot be loaded: "),
    "devices of another kind": (
        PLUGIN.format(module="x", name="bad", facts="devices=[1, 2]"),
        "the names of its devices must be printable texts",
    ),
    "ops of another kind": (
        PLUGIN.format(module="x", name="bad", facts="") + "\n@hookimpl\ndef tensorken_ops(): return [3]\n",
        r"its tensorken_ops\(\) returns 3, which is not an Op",
    ),
    "no hook": ("x = 1", "no function that is marked @hookimpl and named tensorken_backend"),
    "not marked": ("def tensorken_backend(): ...", "is marked @hookimpl"),
    "misspelt hook": (
        "from tensorken_core.host.plugin import hookimpl\n@hookimpl\ndef tensorken_backnd(): ...",
        "there is no hook 'tensorken_backnd'; did you mean tensorken_backend",
    ),
    "wrong arguments": (
        "from tensorken_core.host.plugin import hookimpl\n@hookimpl\ndef tensorken_backend(nonsense): ...",
        "PluginValidationError",
    ),
    "no entry": (
        "from tensorken_core.host.plugin import hookimpl\n@hookimpl\ndef tensorken_backend(): return 'bad'",
        r"must return one BackendEntry, got \['bad'\]",
    ),
    "another name": (
        PLUGIN.format(module="x", name="worse", facts=""),
        "named 'bad', but its BackendEntry is named 'worse'",
    ),
    "load raises": (PLUGIN.format(module="no_such", name="bad", facts=""), "install no_such_heavy"),
    "a class instead of an instance": (
        "from tensorken_core.host.plugin import *\nfrom tensorken_core.language.raw import RawTensor\n"
        "@hookimpl\ndef tensorken_backend(): return BackendEntry('bad', lambda device: RawTensor)",
        "not an instance of RawTensor",
    ),
    "devices raise": (
        PLUGIN.format(module="x", name="bad", facts="devices=lambda: 1 / 0"),
        "ZeroDivisionError",
    ),
    "devices alike": (PLUGIN.format(module="x", name="bad", facts="devices=('a', 'A')"), "not unique: a, A"),
}


@pytest.mark.feature(201)
@pytest.mark.parametrize("source", BROKEN)
def test_a_broken_backend_fails_only_when_selected(site: Site, source: str) -> None:
    code, expected = BROKEN[source]
    site.backend("toy")
    site.install("bad-dist", {"backends": {"bad": "fake_bad"}}, version="0.3", fake_bad=code)
    assert site.status() == {"bad": "available", "toy": "available"}
    with pytest.raises(BackendError, match=expected) as caught:
        site.selection.resolve("bad")
    assert "backend 'bad' of bad-dist 0.3 cannot be loaded: " in str(caught.value)
    assert str(caught.value).endswith("chosen by backend='bad'")
    assert len(str(caught.value).splitlines()) == 2
    assert caught.value.__cause__ is not None
    assert one(site, "bad").status == "broken"
    assert one(site, "bad").reason
    assert site.selection.resolve("toy")
    assert site.status() == {"bad": "broken", "toy": "available"}
    with pytest.raises(UnknownBackendError, match=r"broken: bad \(bad-dist 0\.3\): "):
        site.selection.resolve("tyo")


def test_a_plugin_that_fails_is_not_left_half_registered(site: Site) -> None:
    source = """
        from tensorken_core.host.plugin import hookimpl
        @hookimpl
        def tensorken_report_header(): return "from the dead"
        @hookimpl
        def tensorken_bakend(): ...
        """
    site.install("bad", {"backends": {"bad": "fake_bad"}}, fake_bad=source)
    with pytest.raises(BackendError):
        site.selection.resolve("bad")
    assert site.registry.report_header() == []


def test_a_backend_that_is_refused_leaves_no_ops(site: Site, op_table: dict[str, Op]) -> None:
    ops = OPS_PLUGIN.format(first="fake_f", second="fake_g")
    site.backend("toy", fake_dist_toy=PLUGIN.format(module="x", name="toy", facts="spec='>=9'") + ops)
    with pytest.raises(BackendError, match="needs the language version >=9"):
        site.selection.resolve("toy")
    assert "fake_f" not in op_table
    assert site.registry.hook.tensorken_ops() == []


def test_a_module_with_missing_files_must_be_installed_again(site: Site) -> None:
    site.install("bad", {"backends": {"bad": "no_such_module.plugin"}})
    with pytest.raises(BackendError, match="pip install --force-reinstall bad"):
        site.selection.resolve("bad")


def test_an_interruption_passes_and_leaves_nothing_behind(site: Site) -> None:
    site.backend("toy", facts="devices=lambda: (_ for _ in ()).throw(KeyboardInterrupt())")
    with pytest.raises(KeyboardInterrupt):
        site.selection.resolve("toy")
    assert site.status() == {"toy": "available"}


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("bad", r"backend 'bad' of bad 1\.0 cannot be loaded: it called sys\.exit\(3\); update it"),
        ("late", r"backend 'late' of dist-late 1\.0 cannot be loaded: it called sys\.exit\('x'\); update it"),
        ("fake_bad:x", r"backend 'fake_bad:x' cannot be loaded: it called sys\.exit\(3\)"),
        ("sys:exit", r"backend 'sys:exit' cannot be loaded: it called sys\.exit\(None\)"),
    ],
)
def test_a_backend_that_exits_is_an_error_that_names_it(site: Site, choice: str, expected: str) -> None:
    site.install("bad", {"backends": {"bad": "fake_bad"}}, fake_bad="exit(3)")
    site.backend("late", facts="devices=lambda: exit('x')")
    with pytest.raises(BackendError, match=expected):
        site.selection.resolve(choice)
    assert os._exit is load_monitor._EXIT


def test_an_error_without_a_readable_message_breaks_only_its_plugin(site: Site) -> None:
    source = "class Bad(Exception):\n    def __str__(self): 1 / 0\nraise Bad"
    site.install("bad", {"backends": {"bad": "fake_bad"}}, fake_bad=source)
    with pytest.raises(BackendError, match="Bad: its message cannot be read"):
        site.selection.resolve("bad")


ENDS = """
import os, sys
sys.path.insert(0, {folder!r})
from tensorken_core.host.loading import Registry
from tensorken_core.host.backend_choice import Selection
Selection(Registry([{folder!r}])).resolve({choice!r})
"""


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("bad", "tensorken: backend 'bad' of bad 1.0 ended this process by os._exit(7) while it was loaded"),
        (
            "fake_bad:x",
            "tensorken: backend 'fake_bad:x' ended this process by os._exit(7) while it was loaded",
        ),
    ],
)
def test_a_backend_that_ends_the_process_is_named_on_stderr(site: Site, choice: str, expected: str) -> None:
    site.install("bad", {"backends": {"bad": "fake_bad"}}, fake_bad="import os\nos._exit(7)")
    program = ENDS.format(folder=str(site.folder), choice=choice)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stderr.splitlines()) == (7, [expected])


def test_a_child_of_a_plugin_that_loads_may_end_itself(site: Site, capfd: pytest.CaptureFixture[str]) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    child = """
        import os, threading, warnings
        warnings.simplefilter("ignore")
        process = os.fork()
        if not process:
            os._exit(3)
        status = os.waitpid(process, 0)[1]
        """
    site.install("forks", {"backends": {"forks": "fake_forks"}}, fake_forks=child)
    with pytest.raises(BackendError, match="no function that is marked @hookimpl"):
        site.selection.resolve("forks")
    assert os.waitstatus_to_exitcode(sys.modules["fake_forks"].status) == 3
    assert capfd.readouterr().err == ""


def test_a_backend_that_takes_long_to_load_is_named_meanwhile(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plugin waits for the line that names it, and would wait for ever without one."""
    monkeypatch.setattr(load_monitor, "SLOW_LOAD", 0.01)
    lines: list[str] = []
    monkeypatch.setattr(load_monitor, "write_message", lines.append)
    monkeypatch.setattr(sys, "said_for_a_test", lines, raising=False)
    site.backend(
        "slow",
        fake_dist_slow_heavy="import sys, time\nwhile not sys.said_for_a_test: time.sleep(0.01)\n" + HEAVY,
    )
    assert site.selection.resolve("slow")
    assert lines[0].startswith("still loading backend 'slow' of dist-slow 1.0 after 0.01 s; ")


def test_our_own_backends_are_loaded_without_a_monitor(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "monitored", lambda what: pytest.fail(what))
    site.backend("numpy")
    assert chosen_name(site) == "numpy"


def test_listing_survives_a_plugin_that_exits(site: Site) -> None:
    site.install("bad", {"backends": {"bad": "fake_bad"}, "plugins": {"bad": "fake_bad"}}, fake_bad="exit(3)")
    assert site.registry.probe(one(site, "bad")).status == "broken"
    (record,) = site.registry.load_plugins()
    assert record.status == "broken"
    assert "sys.exit(3)" in record.reason


def test_a_repaired_backend_loads(site: Site) -> None:
    site.backend("toy")
    heavy = site.folder / "fake_dist_toy_heavy.py"
    heavy.rename(site.folder / "away")
    with pytest.raises(BackendError):
        site.selection.resolve("toy")
    assert [record.status for record in site.registry.refresh()["backends"]] == ["broken"]
    (site.folder / "away").rename(heavy)
    assert site.selection.resolve("toy")
    assert site.status() == {"toy": "available"}


def test_one_module_may_have_entry_points_in_several_groups(site: Site) -> None:
    source = PLUGIN.format(module="fake_both", name="both", facts="") + textwrap.dedent(
        """
        @hookimpl
        def tensorken_report_header(): return ["first", "second"]
        """
    )
    groups = {"backends": {"both": "fake_both"}, "plugins": {"both": "fake_both"}}
    site.install("both", groups, fake_both=source, fake_both_heavy=HEAVY)
    assert site.selection.resolve("both")
    assert [record.status for record in site.registry.load_plugins()] == ["available"]
    assert site.registry.report_header() == ["first", "second"]


# ---- devices -----------------------------------------------------------------------------------------------


def test_a_device_is_named_by_name_or_number(site: Site) -> None:
    site.backend("gpu", facts="devices=lambda: ['Left', 'cuda:1']")
    resolve, name_of = site.selection.resolve, site.selection.name_of
    left, right = resolve("gpu"), resolve("gpu:1")
    assert (left.on, right.on) == ("Left", "cuda:1")
    assert resolve("gpu:left") is resolve("gpu", "LEFT") is resolve("gpu", 0) is resolve("gpu:0") is left
    assert resolve("gpu:cuda:1") is resolve("gpu", device="1") is right
    assert (name_of(left), name_of(right)) == (("gpu", "Left"), ("gpu", "cuda:1"))
    with site.selection.use_backend("gpu:1"):
        assert resolve() is right
        assert resolve(device=0) is left
        assert str(site.selection.default_backend()) == "gpu:cuda:1 (use_backend('gpu:1'))"
        assert site.selection.devices() == ["Left", "cuda:1"]


def test_a_backend_may_report_facts_of_a_device(site: Site) -> None:
    site.backend("gpu", facts="devices=('left', 'right'), facts=lambda device: {'driver': 3, 'of': device}")
    site.backend("toy")
    site.backend("bad", facts="facts=lambda device: 1 / 0")
    facts = site.registry.facts
    assert facts(one(site, "gpu"), "right") == {"driver": "3", "of": "right"}
    assert facts(one(site, "toy"), "cpu") == {}
    with pytest.raises(BackendError, match="ZeroDivisionError"):
        facts(one(site, "bad"), "cpu")


def test_a_device_that_is_not_there_is_an_error(site: Site) -> None:
    site.backend("gpu", facts="devices=('left', 'right')")
    site.backend("none", facts="devices=lambda: []")
    site.backend("toy")
    for choice, device, message in [
        ("gpu:2", None, "'gpu' has no device '2'; its devices are left, right"),
        ("gpu", "middle", "'gpu' has no device 'middle'"),
        ("toy:1", None, "'toy' has no device '1'; its devices are cpu"),
        ("none", None, "'none' finds no device on this machine"),
        ("gpu:left", "right", "two devices for backend 'gpu': 'left' and 'right'"),
    ]:
        with pytest.raises(BackendError, match=message):
            site.selection.resolve(choice, device)
    assert one(site, "gpu").status == "available"
    assert site.registry.probe(one(site, "none")).status == "unavailable"


def test_the_first_device_of_a_kind_needs_no_number(site: Site) -> None:
    site.backend("torch", facts="devices=('cpu', 'cuda:0', 'cuda:1')")
    site.backend("jax", facts="devices=('gpu', 'gpu:1', 'cpu')")
    for choice, device in [
        ("torch:cuda", "cuda:0"),
        ("torch:cuda:0", "cuda:0"),
        ("torch:cuda:1", "cuda:1"),
        ("jax:gpu:0", "gpu"),
        ("jax:gpu", "gpu"),
    ]:
        interpreter = site.selection.resolve(choice)
        assert site.registry.name_of(interpreter)[1] == device


def test_a_device_without_a_backend_selects_the_backend_in_use(site: Site) -> None:
    site.backend("numpy", facts="devices=('a', 'b')")
    assert site.selection.name_of(site.selection.resolve(device="b")) == ("numpy", "b")
    with (
        site.selection.use_backend(Toy()),
        pytest.raises(ArgumentError, match="needs a backend chosen by name"),
    ):
        site.selection.resolve(device="b")
    with pytest.raises(ArgumentError, match="write x:1,y"):
        site.selection.resolve("x,y", 1)


# ---- which backend is meant --------------------------------------------------------------------------------


def chosen_name(site: Site, backend: Any = None) -> str:
    return site.selection.name_of(site.selection.resolve(backend))[0]


@pytest.mark.feature(204)
def test_the_order_of_precedence(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("argument", "inner", "outer", "process", "variable", "numpy"):
        site.backend(name)
    assert chosen_name(site) == "numpy"
    monkeypatch.setenv("TENSORKEN_BACKEND", "variable")
    site.selection.use_backend(None)
    assert chosen_name(site) == "variable"
    site.selection.use_backend("process")
    assert chosen_name(site) == "process"
    with site.selection.use_backend("outer"):
        with site.selection.use_backend("inner"):
            assert chosen_name(site, "argument") == "argument"
            assert chosen_name(site) == chosen_name(site, "") == "inner"
        assert chosen_name(site) == "outer"
    assert chosen_name(site) == "process"
    site.selection.use_backend("")
    assert chosen_name(site) == "variable"


@pytest.mark.feature(204)
@pytest.mark.parametrize(
    ("value", "expected", "device"),
    [
        (None, "numpy", "cpu"),
        ("", "numpy", "cpu"),
        ("  ", "numpy", "cpu"),
        (" , ", "numpy", "cpu"),
        ("my-gpu", "my-gpu", "left"),
        (" MY_gpu ", "my-gpu", "left"),
        ("my gpu:1", "my-gpu", "right"),
        ("my-gpu : Right", "my-gpu", "right"),
        ("my-gpu@dist-my-gpu:0", "my-gpu", "left"),
        ("my-gpu,numpy", "my-gpu", "left"),
        ("my-gpu:1,,numpy,", "my-gpu", "right"),
    ],
)
def test_values_of_the_environment_variable(
    site: Site, monkeypatch: pytest.MonkeyPatch, value: str | None, expected: str, device: str
) -> None:
    site.backend("numpy")
    site.backend("my-gpu", facts="devices=('left', 'right')")
    if value is not None:
        monkeypatch.setenv("TENSORKEN_BACKEND", value)
    foreseen = site.selection.default_backend()
    assert site.imported == set()
    assert site.selection.name_of(site.selection.resolve()) == (expected, device)
    assert foreseen.name == site.selection.default_backend().name == expected
    why = "the default: the first installed of numpy, reference, wgpu, jax, torch, string"
    if expected != "numpy":
        why = f"TENSORKEN_BACKEND={value!r}"
    assert foreseen.why == site.selection.default_backend().why == why


def test_the_variable_is_read_at_first_use_and_a_later_change_warns_once(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.backend("toy")
    site.backend("other")
    monkeypatch.setenv("TENSORKEN_BACKEND", "no-such-backend")
    site.selection.backends()
    monkeypatch.setenv("TENSORKEN_BACKEND", "toy")
    assert chosen_name(site) == "toy"
    monkeypatch.setenv("TENSORKEN_BACKEND", "other")
    with pytest.warns(
        RuntimeWarning, match="TENSORKEN_BACKEND is now 'other'; in use is still toy"
    ) as caught:
        assert chosen_name(site) == "toy"
    assert caught[0].filename == __file__
    monkeypatch.setenv("TENSORKEN_BACKEND", "third")
    assert chosen_name(site) == "toy"
    monkeypatch.delenv("TENSORKEN_BACKEND")
    assert chosen_name(site) == "toy"
    monkeypatch.setenv("TENSORKEN_BACKEND", "other")
    site.selection.use_backend(None)
    assert chosen_name(site) == "other"


def test_without_a_choice_the_variable_counts_again(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.backend("numpy")
    site.backend("toy")
    site.selection.use_backend("toy")
    site.selection.use_backend(None)
    assert chosen_name(site) == "numpy"
    monkeypatch.setenv("TENSORKEN_BACKEND", "toy")
    with pytest.warns(RuntimeWarning, match="TENSORKEN_BACKEND is now 'toy'; in use is still numpy"):
        assert chosen_name(site) == "numpy"


def test_a_changed_variable_is_ignored_after_use_backend(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.backend("toy")
    monkeypatch.setenv("TENSORKEN_BACKEND", "toy")
    site.selection.resolve()
    site.selection.use_backend("toy")
    monkeypatch.setenv("TENSORKEN_BACKEND", "other")
    assert chosen_name(site) == "toy"


def test_the_default_follows_a_fixed_order_and_no_installation_changes_it(site: Site) -> None:
    site.backend("aaa")
    with pytest.raises(
        UnknownBackendError, match=r"none of numpy, .* from aaa \(dist-aaa 1\.0\), or pip install"
    ):
        site.selection.resolve()
    for name in reversed(DEFAULT_ORDER):
        site.backend(name)
        site.registry.refresh()
        site.selection.use_backend(None)
        assert chosen_name(site) == name
    site.backend("before-all")
    site.registry.refresh()
    site.selection.use_backend(None)
    assert chosen_name(site) == DEFAULT_ORDER[0] == "numpy"


def test_without_any_backend_the_error_suggests_an_installation(site: Site) -> None:
    with pytest.raises(UnknownBackendError, match="pip install tensorken-numpy"):
        site.selection.resolve()
    with pytest.raises(UnknownBackendError, match="pip install tensorken-numpy"):
        site.selection.default_backend()


def test_one_name_never_falls_back(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.backend("reference")
    site.install("tensorken-numpy", {"backends": {"numpy": "fake_bad"}}, fake_bad="raise RuntimeError('no')")
    with pytest.raises(
        BackendError, match=r"RuntimeError: no; .*\n  chosen by the default: the first installed"
    ):
        site.selection.resolve()
    monkeypatch.setenv("TENSORKEN_BACKEND", "wgpu")
    with pytest.raises(UnknownBackendError, match="chosen by TENSORKEN_BACKEND='wgpu'"):
        site.selection.resolve()
    with pytest.raises(UnknownBackendError, match="chosen by TENSORKEN_BACKEND='wgpu'"):
        site.selection.default_backend()


def test_a_list_falls_back_in_order_and_says_why(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.backend("numpy")
    site.install("bad", {"backends": {"bad": "fake_bad"}}, fake_bad="raise RuntimeError('no luck')")
    monkeypatch.setenv("TENSORKEN_BACKEND", "wgpu, bad, numpy, reference")
    expected = r"^TENSORKEN_BACKEND='wgpu, bad.*': using numpy, since unknown backend 'wgpu'; .*no luck"
    assert site.selection.default_backend().name == "bad"  # the prediction from metadata
    with pytest.warns(RuntimeWarning, match=expected) as caught:
        assert chosen_name(site) == "numpy"
    assert caught[0].filename == __file__
    assert site.selection.default_backend().name == "numpy"
    assert chosen_name(site) == "numpy"
    with pytest.warns(RuntimeWarning, match="using numpy, since backend 'numpy' has no device '7'"):
        site.selection.use_backend("numpy:7,numpy")


def test_a_list_of_unusable_backends_is_an_error(site: Site) -> None:
    site.backend("numpy")
    names = ",".join(f"x{i}" for i in range(20))
    with pytest.raises(BackendError, match=r"none of the backends x0, x1, .* can be used") as caught:
        site.selection.resolve(names)
    assert len(str(caught.value).splitlines()) <= 8


# ---- module:attribute and interpreters ---------------------------------------------------------------------


MODULE = """
from tensorken_core.rewriting.fuse import Fuse
from tensorken_core.host.plugin import BackendEntry
from tensorken_core.language.raw import RawTensor

class Mine(RawTensor):
    def __init__(self, device=None):
        self.on = device

instance = Mine()
entry = BackendEntry("any", Mine, devices=("left", "right"))
fused = BackendEntry("any", lambda device: Fuse(Mine(device)))
alien = BackendEntry("any", Mine, spec=">=7")
nothing = 3
class Space:
    inside = instance
def factory(): return Mine("made")
def describe(): return entry
def empty(): return None
def fails(): raise RuntimeError("no luck")
"""


@pytest.mark.parametrize(
    ("attribute", "on"),
    [
        ("instance", None),
        ("Space.inside", None),
        ("Mine", None),
        ("factory", "made"),
        ("entry", "left"),
        ("describe", "left"),
    ],
)
def test_module_and_attribute_select_a_backend_that_is_not_installed(
    site: Site, attribute: str, on: str | None
) -> None:
    site.install("other", {}, fake_module=MODULE)
    text = f"fake_module:{attribute}"
    interpreter = site.selection.resolve(text)
    assert (type(interpreter).__name__, interpreter.on) == ("Mine", on)
    assert (
        site.selection.resolve(text) is site.selection.resolve(f" fake_module : {attribute} ") is interpreter
    )
    with site.selection.use_backend(text) as choice:
        assert site.selection.resolve() is interpreter
        assert choice.name == text
    if attribute != "Space.inside":
        assert site.selection.name_of(interpreter)[0] == text


def test_an_entry_of_a_module_is_treated_as_if_it_were_installed(site: Site) -> None:
    site.install("other", {}, fake_module=MODULE)
    assert site.selection.resolve("fake_module:entry", "right").on == "right"
    assert type(site.selection.resolve("fake_module:fused")) is Fuse
    with pytest.raises(BackendError, match="it needs the language version >=7"):
        site.selection.resolve("fake_module:alien")


@pytest.mark.parametrize(
    ("text", "device", "error", "message"),
    [
        ("fake_module:missing", None, UnknownBackendError, "fake_module has no attribute 'missing'"),
        ("fake_module:instanse", None, UnknownBackendError, "did you mean instance"),
        ("fake_module:Space.outside", None, UnknownBackendError, "Space has no attribute 'outside'"),
        (
            "fake_module:nothing",
            None,
            BackendError,
            r"refers to 3, which is neither an interpreter \(a RawTensor\)",
        ),
        ("fake_module:empty", None, BackendError, "refers to None"),
        ("fake_module:fails", None, BackendError, "RuntimeError: no luck"),
        ("fake_module:instance", "1", BackendError, "no devices to choose from"),
        ("fake_broken:x", None, BackendError, "ModuleNotFoundError: No module named 'not_there'"),
        ("no_such_module:x", None, UnknownBackendError, "unknown backend 'no_such_module:x'"),
        ("fake_module.inner:x", None, UnknownBackendError, "unknown backend"),
        (".relative:x", None, UnknownBackendError, "unknown backend"),
        ("C:/some/path", None, UnknownBackendError, "unknown backend"),
        ("no_such_backend:1", None, UnknownBackendError, "unknown backend 'no_such_backend'"),
        ("nunpy:cpu", None, UnknownBackendError, "did you mean: numpy"),
    ],
)
def test_errors_of_module_and_attribute(
    site: Site, text: str, device: str | None, error: type[Exception], message: str
) -> None:
    site.install("other", {}, fake_module=MODULE, fake_broken="import not_there")
    with pytest.raises(error, match=message):
        site.selection.resolve(text, device)


def test_before_the_colon_an_installed_backend_goes_before_a_module(site: Site) -> None:
    site.install("other", {}, fake_module=MODULE)
    assert site.selection.resolve("fake_module:instance")
    site.backend("fake_module")
    site.registry.refresh()
    with pytest.raises(BackendError, match="'fake-module' has no device 'Mine'"):
        site.selection.resolve("fake_module:Mine")


def test_before_the_colon_a_known_backend_goes_before_a_module_even_if_it_is_not_installed(
    site: Site,
) -> None:
    site.install("other", {}, wgpu=MODULE)
    with pytest.raises(UnknownBackendError, match="pip install tensorken-wgpu"):
        site.selection.resolve("wgpu:Mine")


def test_interpreters_are_used_as_they_are(site: Site) -> None:
    site.backend("numpy")
    raw, stacked = Toy(), Fuse(Toy())
    with site.selection.use_backend(stacked) as choice:
        assert site.selection.resolve() is stacked
        assert (choice.name, choice.why) == ("fuse", "use_backend(Fuse)")
    assert site.selection.resolve(raw) is raw
    assert site.selection.name_of(raw) == ("toy", "default")


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (3, "not a int"),
        (Toy, r"not a type; make one: Toy\(\)"),
        (["numpy"], "not a list"),
        (object(), "not a object"),
    ],
)
def test_an_invalid_choice_is_refused_at_the_call(site: Site, choice: Any, message: str) -> None:
    site.backend("numpy")
    with pytest.raises(ArgumentError, match=message):
        site.selection.use_backend(choice)
    with pytest.raises(ArgumentError, match=message):
        site.selection.resolve(choice)
    with pytest.raises(ArgumentError, match="for backends chosen by name"):
        site.selection.resolve(Toy(), device=1)
    assert chosen_name(site) == "numpy"


def test_records_and_choices_select_their_backend(site: Site) -> None:
    site.backend("toy", "acme")
    site.backend("toy", "bolt", facts="devices=('a', 'b')")
    last = site.selection.backends()[-1]
    with site.selection.use_backend(last, device="b"):
        kept = site.selection.default_backend()
    assert site.selection.name_of(site.selection.resolve(last)) == ("toy@bolt", "a")
    with site.selection.use_backend(kept):
        assert site.selection.name_of(site.selection.resolve()) == ("toy@bolt", "b")
    with site.selection.use_backend(Toy()) as choice:
        pass
    assert site.selection.resolve(choice) is choice.interpreter


# ---- use_backend -------------------------------------------------------------------------------------------


@pytest.fixture
def abc(site: Site) -> Site:
    for name in ("numpy", "a", "b", "c"):
        site.backend(name)
    return site


def test_an_unknown_name_is_an_error_at_the_call_and_changes_nothing(abc: Site) -> None:
    abc.selection.use_backend("a")
    with pytest.raises(UnknownBackendError, match=r"chosen by use_backend\('x'\)"):
        abc.selection.use_backend("x")
    assert chosen_name(abc) == "a"


def test_a_block_restores_exactly_even_after_an_exception(abc: Site) -> None:
    use = abc.selection.use_backend
    use("a")
    before = abc.selection.default_backend()
    with pytest.raises(ZeroDivisionError), use("b"), use("c"):
        assert chosen_name(abc) == "c" * (1 // 0)
    assert abc.selection.default_backend() is before
    with use(None):
        assert chosen_name(abc) == "numpy"
    assert abc.selection.default_backend() is before


def test_a_plain_call_inside_a_block_takes_effect_after_it(abc: Site) -> None:
    with abc.selection.use_backend("a"):
        abc.selection.use_backend("b")
        assert chosen_name(abc) == "a"
    assert chosen_name(abc) == "b"


def test_the_result_of_use_backend_can_be_entered_later_and_again(abc: Site) -> None:
    use = abc.selection.use_backend("a")
    assert repr(use) == "<using a (use_backend('a'))>"
    assert chosen_name(abc) == "a"
    with use, use:
        assert chosen_name(abc) == "a"
    assert chosen_name(abc) == "numpy"


def test_entering_later_keeps_later_choices(abc: Site) -> None:
    early = abc.selection.use_backend("a")
    abc.selection.use_backend("b")
    with early:
        assert chosen_name(abc) == "a"
    assert chosen_name(abc) == "b"


def in_thread(function: Callable[[], Any]) -> Any:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


def test_a_block_affects_its_thread_and_a_plain_call_all_threads(abc: Site) -> None:
    abc.selection.use_backend("a")
    with abc.selection.use_backend("b"):
        assert chosen_name(abc) == "b"
        assert in_thread(lambda: chosen_name(abc)) == "a"
        in_thread(lambda: abc.selection.use_backend("c"))
        assert in_thread(lambda: chosen_name(abc)) == "c"
        assert chosen_name(abc) == "b"
    assert chosen_name(abc) == "c"


def test_tasks_do_not_see_each_others_blocks(abc: Site) -> None:
    async def task(name: str) -> list[str]:
        seen = []
        with abc.selection.use_backend(name):
            for _ in range(3):
                await asyncio.sleep(0)
                seen.append(chosen_name(abc))
        return [*seen, chosen_name(abc)]

    async def both() -> list[list[str]]:
        return await asyncio.gather(task("a"), task("b"))

    assert asyncio.run(both()) == [["a", "a", "a", "numpy"], ["b", "b", "b", "numpy"]]


def test_generators_that_end_in_any_order_leave_the_choice_right(abc: Site) -> None:
    def use(name: str) -> Iterator[None]:
        with abc.selection.use_backend(name):
            yield

    first, second = use("a"), use("b")
    next(first)
    next(second)
    assert chosen_name(abc) == "b"
    first.close()  # type: ignore[attr-defined]
    assert chosen_name(abc) == "b"
    second.close()  # type: ignore[attr-defined]
    assert chosen_name(abc) == "numpy"
    abandoned = use("c")
    in_thread(lambda: next(abandoned))
    abandoned.close()  # type: ignore[attr-defined]
    assert chosen_name(abc) == "numpy"


def test_a_backend_may_create_tensors_while_it_loads(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """In two threads, each of which holds a lock that the other needs."""
    site.backend("numpy", fake_tensorken_numpy_heavy="import time\ntime.sleep(0.05)\n" + HEAVY)
    eager = "import host_under_test\nhost_under_test.selection.resolve()\n" + HEAVY
    site.backend("eager", fake_dist_eager_heavy="import time\ntime.sleep(0.02)\n" + eager)
    monkeypatch.setitem(sys.modules, "host_under_test", site)
    record = one(site, "eager")
    threads = [
        threading.Thread(target=function, args=arguments, daemon=True)
        for function, arguments in ((site.registry.load, (record,)), (site.selection.resolve, ()))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert not any(thread.is_alive() for thread in threads)
    assert site.status() == {"eager": "available", "numpy": "available"}


def test_threads_that_load_concurrently_get_one_interpreter(site: Site) -> None:
    slow = "import time\n" + HEAVY + "        time.sleep(0.05)\n"
    site.backend("numpy", fake_tensorken_numpy_heavy=slow)
    found: list[Any] = []
    barrier = threading.Barrier(4)

    def ask() -> None:
        barrier.wait()
        found.append(site.selection.resolve())

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(interpreter) for interpreter in found}) == 1
    assert len(found) == 4


# ---- unknown names and variables ---------------------------------------------------------------------------


@pytest.mark.feature(204)
def test_an_unknown_name_is_an_error_of_eight_lines(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.backend("numpy")
    site.install(
        "bad", {"backends": {"bad": "fake_bad"}}, version="0.3", fake_bad="raise RuntimeError('no luck')"
    )
    with pytest.raises(BackendError):
        site.selection.resolve("bad")
    monkeypatch.setenv("TENSORKEN_BACKEND", "wgpv")
    with pytest.raises(UnknownBackendError) as caught:
        site.selection.resolve()
    assert str(caught.value).splitlines() == [
        "unknown backend 'wgpv'",
        "  did you mean: wgpu",
        "  installed: numpy (tensorken-numpy 1.0)",
        "  broken: bad (bad 0.3): RuntimeError: no luck; update it, pip install -U bad, or remove it, "
        "pip uninstall bad",
        "  to install: pip install tensorken-wgpu",
        "  to see more: tensorken backends",
        "  chosen by TENSORKEN_BACKEND='wgpv'",
    ]


def test_the_error_stays_short_however_much_is_installed(site: Site) -> None:
    for i in range(50):
        site.backend(f"toy{i}")
        site.install(f"bad{i}", {"backends": {f"bad{i}": "not a module"}})
    with pytest.raises(UnknownBackendError, match="; 44 more") as caught:
        site.selection.resolve("toy-99")
    lines = str(caught.value).splitlines()
    assert len(lines) <= 8
    assert max(map(len, lines)) < 1200


def typos(name: str) -> set[str]:
    splits = [(name[:i], name[i:]) for i in range(len(name) + 1)]
    return {
        *(a + b[1:] for a, b in splits if b),
        *(a + b[1] + b[0] + b[2:] for a, b in splits if len(b) > 1),
        *(a + letter + b[1:] for a, b in splits if b for letter in "xq"),
        *(a + letter + b for a, b in splits for letter in "xq"),
    } - {name}


@pytest.mark.parametrize("name", [*DISTRIBUTIONS, "my-gpu"])
def test_every_small_mistake_in_a_name_is_recognised(site: Site, name: str) -> None:
    site.backend("my-gpu")
    for typo in typos(name):
        with pytest.raises(UnknownBackendError, match=rf"did you mean: ([\w-]+ or )*{name}\b"):
            site.selection.resolve(typo)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_known_name_that_is_not_installed_suggests_its_installation(site: Site, name: str) -> None:
    with pytest.raises(UnknownBackendError, match=f"to install: pip install tensorken-{name}") as caught:
        site.selection.use_backend(name)
    assert isinstance(caught.value, LookupError)


def test_unknown_variables_are_warned_of_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.backend("numpy")
    site.backend("my-gpu")
    monkeypatch.setenv("TENSORKEN_BAKEND", "toy")
    monkeypatch.setenv("TENSORKEN_MY_GPU_POWER", "9")
    monkeypatch.setenv("TENSORKEN_WGPU_VALIDATE", "1")
    monkeypatch.setenv("TENSORKEN_DEBUG_NANS", "1")
    monkeypatch.setenv("UNRELATED", "1")
    assert site.selection.unknown_variables() == {"TENSORKEN_BAKEND": ["TENSORKEN_BACKEND"]}
    expected = r"^Tensorken reads no variable TENSORKEN_BAKEND; did you mean TENSORKEN_BACKEND\?$"
    with pytest.warns(RuntimeWarning, match=expected) as caught:
        site.selection.resolve()
    assert (len(caught), caught[0].filename) == (1, __file__)
    site.selection.resolve()
    site.selection.use_backend(None)
    site.selection.resolve()


def test_a_warning_raised_as_an_error_is_raised_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.backend("numpy")
    monkeypatch.setenv("TENSORKEN_NONSENSE", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="known are TENSORKEN_BACKEND, "):
            site.selection.resolve()
        assert chosen_name(site) == "numpy"


# ---- while the program runs --------------------------------------------------------------------------------


def test_a_backend_installed_at_run_time_is_found(site: Site) -> None:
    site.backend("numpy")
    assert [record.name for record in site.selection.backends()] == ["numpy"]
    site.backend("late")
    assert chosen_name(site, "late") == "late"
    assert [record.name for record in site.selection.backends()] == ["late", "numpy"]


def test_a_backend_uninstalled_while_selected_is_an_error_at_the_next_use_by_name(site: Site) -> None:
    site.backend("numpy")
    info = site.backend("toy")
    interpreter = site.selection.resolve("toy")
    site.selection.use_backend("toy")
    site.uninstall(info)
    assert site.selection.resolve() is interpreter  # it is loaded, and code that holds it keeps working
    assert site.selection.name_of(interpreter) == ("toy", "cpu")
    expected = r"(?s)backend 'toy' is no longer installed; .*installed: numpy .*chosen by backend='toy'"
    for _ in range(2):
        with pytest.raises(UnknownBackendError, match=expected):
            site.selection.resolve("toy")
    with pytest.raises(UnknownBackendError, match="no longer installed"):
        site.selection.use_backend("toy")
    site.backend("toy")
    assert site.selection.resolve("toy") is interpreter


def test_a_backend_uninstalled_before_its_first_use_is_unknown(site: Site) -> None:
    info = site.backend("toy")
    assert site.status() == {"toy": "available"}
    site.uninstall(info)
    with pytest.raises(UnknownBackendError, match="unknown backend 'toy'"):
        site.selection.resolve("toy")


# ---- plugins that are no backends --------------------------------------------------------------------------


OPS_PLUGIN = """
from tensorken_core.host.plugin import hookimpl
from tensorken_core.language.op import Op

def same(*types): return types[0]
first, second = (Op(name, 1, same, same) for name in ({first!r}, {second!r}))

@hookimpl
def tensorken_ops(): return [first, second]
"""


@pytest.fixture
def op_table() -> Iterator[dict[str, Op]]:
    before = dict(OPS)
    yield OPS
    OPS.clear()
    OPS.update(before)


@pytest.mark.feature(106)
def test_plugins_bring_ops(site: Site, op_table: dict[str, Op]) -> None:
    source = OPS_PLUGIN.format(first="fake_a", second="fake_b")
    site.install("ops", {"plugins": {"ops": "fake_ops"}}, fake_ops=source)
    for _ in range(2):
        assert [(record.name, record.status) for record in site.registry.load_plugins()] == [
            ("ops", "available")
        ]
        assert op_table["fake_a"] is sys.modules["fake_ops"].first
        assert op_table["fake_b"] is sys.modules["fake_ops"].second


def test_ops_whose_names_are_taken_are_refused_together(site: Site, op_table: dict[str, Op]) -> None:
    before = dict(op_table)
    site.install(
        "good", {"plugins": {"zz": "fake_good"}}, fake_good=OPS_PLUGIN.format(first="fake_c", second="fake_d")
    )
    site.install(
        "bad", {"plugins": {"bad": "fake_bad"}}, fake_bad=OPS_PLUGIN.format(first="fake_e", second="exp")
    )
    odd = "from tensorken_core.host.plugin import hookimpl\n@hookimpl\ndef tensorken_ops(): return ['exp']"
    site.install("odd", {"plugins": {"odd": "fake_odd"}}, fake_odd=odd)
    reasons = {record.name: record.reason for record in site.registry.load_plugins()}
    assert "already" in reasons["bad"]
    assert "'exp', which is not an Op" in reasons["odd"]
    assert reasons["zz"] == ""
    assert set(op_table) - set(before) == {"fake_c", "fake_d"}
    assert op_table["exp"] is before["exp"]


def test_a_broken_plugin_harms_no_other(site: Site) -> None:
    good = """
        from tensorken_core.host.plugin import hookimpl
        @hookimpl
        def tensorken_compile(program, backend):
            return None if program == "hard" else f"{backend} runs {program}"
        @hookimpl
        def tensorken_report_header(): return "good: at your service"
        """
    grumpy = """
        from tensorken_core.host.plugin import hookimpl
        @hookimpl
        def tensorken_report_header(): raise RuntimeError("not today")
        """
    unhashable = """
        from tensorken_core.host.plugin import hookimpl
        class Plugin:
            __hash__ = None
            @hookimpl
            def tensorken_report_header(self): return "unhashable"
        plugin = Plugin()
        """
    site.install("good", {"plugins": {"good": "fake_good"}}, fake_good=good)
    site.install("grumpy", {"plugins": {"grumpy": "fake_grumpy"}}, fake_grumpy=grumpy)
    site.install("odd", {"plugins": {"odd": "fake_odd:plugin"}}, fake_odd=unhashable)
    site.install("bad", {"plugins": {"bad": "fake_bad"}}, fake_bad="1 / 0")
    site.install("gone", {"plugins": {"gone": "no_such_module"}})
    status = {record.name: record.status for record in site.registry.load_plugins()}
    assert status == {
        "good": "available",
        "grumpy": "available",
        "odd": "available",
        "bad": "broken",
        "gone": "broken",
    }
    assert site.registry.hook.tensorken_compile(program="easy", backend="toy") == "toy runs easy"
    assert site.registry.hook.tensorken_compile(program="hard", backend="toy") is None
    assert site.registry.report_header() == [
        "good: at your service",
        "plugins:grumpy@grumpy: tensorken_report_header: RuntimeError: not today",
        "unhashable",
    ]


def test_a_compiler_may_take_programs_before_the_passes(site: Site) -> None:
    source = """
        from tensorken_core.host.plugin import hookimpl
        @hookimpl
        def tensorken_compile(program): return "after", program
        @hookimpl
        def tensorken_compile_traced(program, optimised):
            if program.name == "known": return "before", program
            if program.name == "fails": 1 / 0
            return "after", optimised()
        """
    site.install("keeping", {"plugins": {"keeping": "fake_keeping"}}, fake_keeping=source)
    compiler = compiler_of(site.registry)
    assert compiler is not None

    def passes() -> Any:
        raise ArgumentError("a pass fails")

    traced, optimised = [tk.trace(lambda x: x)(tk.ones(2, backend=Reference())) for _ in range(2)]
    known: Any = compiler(passes, Toy(), traced.changed(name="known"))
    assert known[0] == "before"
    for before in (None, traced):
        assert compiler(lambda: optimised, Toy(), before) == ("after", optimised)
    with pytest.raises(ArgumentError, match="a pass fails"):  # it is not the compiler's error
        compiler(passes, Toy(), traced)
    with pytest.warns(RuntimeWarning, match="compiler plugins:keeping@keeping failed on program 'fails'"):
        assert compiler(lambda: optimised, Toy(), traced.changed(name="fails")) is None


def test_plugins_of_one_name_do_not_clash(site: Site) -> None:
    for i in (1, 2):
        source = "from tensorken_core.host.plugin import hookimpl\n"
        source += f"@hookimpl\ndef tensorken_report_header(): return '{i}'"
        site.install(f"dist{i}", {"plugins": {"report": f"fake_{i}"}}, **{f"fake_{i}": source})
    assert {record.status for record in site.registry.load_plugins()} == {"available"}
    assert site.registry.report_header() == ["1", "2"]


def test_a_variable_chooses_compilers(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    source = """
        from tensorken_core.host.plugin import hookimpl
        @hookimpl
        def tensorken_compile(program): return {name!r}
        """
    for name in ("first", "second"):
        module = {f"fake_{name}": source.format(name=name)}
        site.install(f"of-{name}", {"plugins": {name: f"fake_{name}"}}, **module)
    program = tk.trace(lambda x: x)(tk.ones(2, backend=Reference()))

    def compiled() -> Any:
        compiler = compiler_of(site.registry)
        return None if compiler is None else compiler(lambda: program, Toy())

    chosen = {"first": "first", "second, first": "second", "-first": "second", "none": None, "": None}
    for text, expected in chosen.items():
        monkeypatch.setenv("TENSORKEN_COMPILERS", text)
        assert compiled() == expected
    monkeypatch.setenv("TENSORKEN_COMPILERS", "frist")
    with pytest.raises(
        BackendError, match=r"there is no compiler 'frist'; installed: .*; did you mean first"
    ):
        compiled()
    monkeypatch.delenv("TENSORKEN_COMPILERS")
    assert compiled() in ("first", "second")


def test_a_compiler_that_fails_is_named_and_those_after_it_are_not(site: Site) -> None:
    source = """
        from tensorken_core.host.plugin import hookimpl
        @hookimpl{facts}
        def tensorken_compile(program): {body}
        """
    last = source.format(facts="(trylast=True)", body="return 'compiled'")
    site.install("last", {"plugins": {"last": "fake_last"}}, fake_last=last)
    passing = source.format(facts="", body="return None")
    site.install("passing", {"plugins": {"passing": "fake_passing"}}, fake_passing=passing)
    compiler = compiler_of(site.registry)
    assert compiler is not None
    program = tk.trace(lambda x: x)(tk.ones(2, backend=Reference()))
    compiled: Any = compiler(lambda: program, Toy())
    assert compiled == "compiled"
    site.install("bad-one", {"plugins": {"bad": "fake_bad"}}, fake_bad=source.format(facts="", body="1 / 0"))
    compiler = compiler_of(Registry([str(site.folder)]))
    assert compiler is not None
    message = (
        "compiler plugins:bad@bad-one failed on program '<lambda>': ZeroDivisionError: division by zero; "
        "report it to its author, or uninstall bad-one"
    )
    with failing_compilers(), pytest.raises(BackendError) as caught:
        compiler(lambda: program, Toy())
    assert str(caught.value) == message
    with pytest.warns(RuntimeWarning) as warned:
        found: Any = compiler(lambda: program, Toy())
    assert found == "compiled"
    assert [str(one.message) for one in warned] == [f"{message}; the program runs without it"]
    assert warned[0].filename == __file__


# ---- names that plugins add to `tensorken` -----------------------------------------------------------------


@pytest.mark.feature(201)
def test_a_plugin_adds_a_name_which_is_imported_when_it_is_used(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tensorken_core.host.registry.REGISTRY", site.registry)
    names = {"my_tool": "fake_tool:Tool", "ones": "fake_ones:nothing"}
    site.install("tool", {"namespace": names}, fake_tool="class Tool: pass", fake_ones="1 / 0")
    assert "my_tool" in dir(tk)
    assert {"ones", "sin", "linalg"} <= set(dir(tk))
    assert not site.imported
    assert tk.my_tool is tk.my_tool is sys.modules["fake_tool"].Tool  # type: ignore[attr-defined]
    assert tk.ones(2, backend=Reference()).shape == (2,)  # names of tensorken have precedence
    assert site.imported == {"fake_tool"}
    scope: dict[str, Any] = {}
    exec("from tensorken import my_tool", scope)
    assert scope["my_tool"] is tk.my_tool  # type: ignore[attr-defined]


def test_an_unknown_attribute_is_an_attribute_error(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensorken_core.host.registry.REGISTRY", site.registry)
    site.install("tool", {"namespace": {"my_tool": "fake_tool:Tool"}}, fake_tool="class Tool: pass")
    for name in ("my-tool", "my_tol", "cosinus", "_my_tool"):
        with pytest.raises(AttributeError) as caught:
            getattr(tk, name)
        assert str(caught.value) == f"module 'tensorken' has no attribute {name!r}"
        assert (caught.value.name, caught.value.obj) == (name, tk)
    assert not site.imported


@pytest.mark.parametrize(
    ("dists", "reason"),
    [
        ({"bad": "1 / 0"}, "name 'tool' of bad 1.0 cannot be loaded: ZeroDivisionError: division by zero; "),
        ({"one": "tool = 1", "two": "tool = 2"}, "two brings it, too; uninstall one"),
    ],
    ids=["broken", "twice"],
)
def test_a_broken_name_harms_no_other(
    site: Site, monkeypatch: pytest.MonkeyPatch, dists: dict[str, str], reason: str
) -> None:
    monkeypatch.setattr("tensorken_core.host.registry.REGISTRY", site.registry)
    for name, source in dists.items():
        site.install(name, {"namespace": {"tool": f"fake_{name}:tool"}}, **{f"fake_{name}": source})
    site.install("good", {"namespace": {"good": "fake_good:good"}}, fake_good="good = 3")
    assert not hasattr(tk, "tool")
    with pytest.raises(AttributeError) as caught:
        tk.tool  # type: ignore[attr-defined]  # noqa: B018
    assert str(caught.value).startswith(f"tensorken.tool: {reason}")
    assert tk.good == 3  # type: ignore[attr-defined]
    records = [site.registry.probe(record) for record in site.registry.records("namespace")]
    status = [(record.name, record.status) for record in records]
    expected = "broken" if len(dists) == 1 else "clash"
    assert status == [("good", "available"), *[("tool", expected)] * len(dists)]
    assert [name for name, _ in inspect.getmembers(tk) if name in ("good", "tool")] == ["good"]


def test_the_trace_variable_logs_the_steps_of_the_host(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site.backend("toy")
    site.selection.resolve("toy")
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("TENSORKEN_TRACE_PLUGINS", "1")
    traced = Selection(Registry([str(site.folder)]))
    traced.resolve("toy")
    told = capsys.readouterr().err
    assert "tensorken: looked for plugins in " in told
    assert "tensorken: loaded backend 'toy' of dist-toy 1.0 in " in told


# ---- names that belong to our own distributions --------------------------------------------------------------


def test_our_backend_names_select_our_distributions(site: Site) -> None:
    site.backend("numpy")
    site.backend("numpy", "acme")
    site.backend("reference", "acme-2")
    assert site.status() == {"numpy@acme": "clash", "numpy": "available", "reference@acme-2": "clash"}
    assert (
        chosen_name(site)
        == chosen_name(site, "numpy")
        == chosen_name(site, "numpy@tensorken-numpy")
        == "numpy"
    )
    assert chosen_name(site, "numpy@acme") == "numpy@acme"
    with pytest.raises(
        UnknownBackendError, match=r"(?s)installed: .*reference@acme-2.*pip install tensorken-ref"
    ):
        site.selection.resolve("reference")
    assert chosen_name(site, "reference@acme-2") == "reference@acme-2"


def test_the_default_ignores_other_distributions_with_our_names(site: Site) -> None:
    site.backend("numpy", "acme")
    with pytest.raises(
        UnknownBackendError, match=r"choose by .* from numpy@acme \(acme 1\.0\), or pip install"
    ):
        site.selection.default_backend()
    site.backend("reference")
    assert site.selection.default_backend().name == chosen_name(site) == "reference"


def test_other_distributions_cannot_take_our_public_names(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tensorken_core.host.registry.REGISTRY", site.registry)
    site.install("acme", {"namespace": {"profile": "fake_acme:x"}}, fake_acme="x = 'acme'")
    with pytest.raises(BackendError, match="the name belongs to tensorken-profile; uninstall this one"):
        load_name("profile")
    site.install("tensorken-profile", {"namespace": {"profile": "fake_profile:x"}}, fake_profile="x = 'ours'")
    site.registry.refresh()
    assert load_name("profile") == "ours"
    assert plugin_names() == ["profile"]
