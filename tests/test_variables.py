"""The environment variables: each refuses values that it does not allow, in one line, and all in the same way."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec

import pytest

import tensorken as tk
from core.tests.each import each_of
from tensorken.programs.compiler_choice import chosen_compilers
from tensorken_core.errors import SettingError, UnknownBackendError
from tensorken_core.host import discovery
from tensorken_core.host.backend_choice import Selection
from tensorken_core.host.registry import REGISTRY
from tensorken_core.host.variables import switch
from tools.workspace import distributions

READERS: dict[str, tuple[str, str]] = {
    "TENSORKEN_LLVM_BACKGROUND": ("tensorken_llvm.background", "is_background"),
    "TENSORKEN_LLVM_CACHE": ("tensorken_llvm.cache", "folder"),
    "TENSORKEN_LLVM_CPU": ("tensorken_llvm.machine", "cpu.__wrapped__"),
    "TENSORKEN_LLVM_QUICK": ("tensorken_llvm.program", "is_quick_allowed"),
    "TENSORKEN_LLVM_THREADS": ("tensorken_llvm.threads", "thread_count"),
    "TENSORKEN_TORCH_COMPILE": ("tensorken_torch.programs", "compile_mode"),
    "TENSORKEN_WGPU_CHECKS": ("tensorken_wgpu.device.modules", "are_checked"),
    "TENSORKEN_WGPU_SUBGROUPS": ("tensorken_wgpu.kernels.subgroups", "are_off"),
    "TENSORKEN_WGPU_TUNING": ("tensorken_wgpu.execution.tuning", "is_off"),
}
"""The functions that read the variables of plugins."""

CALLS: dict[str, Callable[[], object]] = {
    "TENSORKEN_BACKEND": lambda: Selection(REGISTRY).current(),
    "TENSORKEN_COMPILERS": lambda: chosen_compilers([]),
    "TENSORKEN_DEBUG_NANS": lambda: switch("TENSORKEN_DEBUG_NANS"),  # read where tensorken is imported
    "TENSORKEN_TRACE_PLUGINS": discovery.trace_enabled,
    "TENSORKEN_WGPU_KERNELS": lambda: _function("tensorken_wgpu.wgsl.target", "has_software_kernels")(True),
    **{name: lambda place=place: _function(*place)() for name, place in READERS.items()},  # type: ignore[misc]
}

JUNK = [
    "junk",
    "-1",
    "1 0",
    "0x1",
    "\u0661",
    "on\x1b[2J\x1b]0;title\x07",
    "a\nb",
    "\u202eon",
    "9" * 5000,
    "off" * 999,
]
"""Values that no variable allows, with control characters, and too long for a message."""


def _function(module: str, name: str) -> Callable[..., object]:
    found: object = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    assert callable(found)
    return found


def _is_installed(variable: str) -> bool:
    place = READERS.get(variable)
    package = place[0].partition(".")[0] if place else ""
    needs = {"tensorken_torch": "torch", "tensorken_llvm": "llvmlite"}.get(package, "tensorken")
    return not place or (find_spec(package) is not None and find_spec(needs) is not None)


def test_the_table_has_all_variables() -> None:
    named = {
        variable
        for home in distributions(optional=True)
        for file in (home / "src").rglob("*.py")
        for variable in re.findall(r'"(TENSORKEN_[A-Z_]*[A-Z])"', file.read_text("utf-8"))
    }
    assert named - {"TENSORKEN_EXAMPLE"} == CALLS.keys()


@each_of("variable", [variable for variable in CALLS if _is_installed(variable)])
def test_each_variable_refuses_junk_in_one_line(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = UnknownBackendError if variable == "TENSORKEN_BACKEND" else SettingError
    # a CPU starts a process for each value, and a name with a minus sign excludes a compiler
    for value in {"TENSORKEN_LLVM_CPU": JUNK[::5], "TENSORKEN_COMPILERS": JUNK[2:]}.get(variable, JUNK):
        monkeypatch.setenv(variable, value)
        with pytest.raises(expected) as caught:
            CALLS[variable]()
        first, *rest = str(caught.value).split("\n")
        assert first.isprintable(), value
        assert len(first) < 300, value
        assert f"{variable}=" in (first if expected is SettingError else rest[-1])
        assert not rest or (expected is UnknownBackendError and "".join(rest).isprintable())
    monkeypatch.delenv(variable)
    CALLS[variable]()


@each_of("variable", [name for name in CALLS if name != "TENSORKEN_LLVM_CACHE" and _is_installed(name)])
def test_an_empty_value_is_no_value(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(variable, raising=False)
    expected = CALLS[variable]()
    for value in ("", "  ", "\t"):
        monkeypatch.setenv(variable, value)
        found = CALLS[variable]()
        assert str(found) == str(expected)


@each_of(("value", "expected"), [("1", True), (" ON ", True), ("yes", True), ("0", False), ("False", False)])
def test_switches_take_the_same_words(value: str, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORKEN_TRACE_PLUGINS", value)
    assert discovery.trace_enabled() is expected


@pytest.mark.slow
@each_of(
    "variable",
    ["TENSORKEN_LLVM_CPU", "TENSORKEN_LLVM_CACHE", "TENSORKEN_LLVM_BACKGROUND", "TENSORKEN_DEBUG_NANS"],
)
def test_a_program_gets_the_error_and_goes_on(variable: str) -> None:
    if not _is_installed(variable):
        pytest.skip("without llvmlite")
    code = """
import atexit, sys
atexit.register(print, "the end")
try:
    import tensorken as tk
    tk.jit(lambda x: x * 2.0)(tk.ones(3))
except ValueError as error:
    print(error)
"""
    settings = {**os.environ, "TENSORKEN_COMPILERS": "llvm", "TENSORKEN_LLVM_CACHE": "0", variable: "haswel"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=settings, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    error, end = done.stdout.splitlines()
    assert error.startswith(f"{variable}='haswel': ")
    assert end == "the end"


def test_the_error_is_public() -> None:
    assert issubclass(tk.errors.SettingError, tk.errors.BackendError)
