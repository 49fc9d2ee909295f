"""Lazy imports: the tables of lazily loaded names are right, and an import loads no more than it needs."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import json
import subprocess
import sys
from types import ModuleType

import pytest

import tensorken as tk
import tensorken_core as core

HOST_LIMIT = 40
"""The most modules of ours that `import tensorken_core.host.plugin` may load: a backend's plugin module imports it."""

LOADED_ON_USE = (
    "collectives",
    "compilation",
    "control_flow",
    "debugging",
    "distributed",
    "fft",
    "lazy",
    "linalg",
    "programs.passes",
    "random",
    "special",
    "testing",
)
"""Parts of `tensorken` that `import tensorken` must not load."""

PUBLIC_MODULES = {
    "debug",
    "distributed",
    "errors",
    "fft",
    "linalg",
    "programs",
    "random",
    "special",
    "testing",
    "tree",
}
"""The modules in `dir(tensorken)`."""


def type_checking_imports(package: ModuleType) -> dict[str, set[str]]:
    """For each module that a package imports only for type checkers, the imported names, which may be `*`."""
    found: dict[str, set[str]] = {}
    for node in ast.parse(inspect.getsource(package)).body:
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            for statement in node.body:
                if isinstance(statement, ast.ImportFrom):
                    assert statement.module is not None
                    names = {alias.name for alias in statement.names}
                    found.setdefault(statement.module, set()).update(names)
    assert found, f"{package.__name__} has no imports under TYPE_CHECKING"
    return found


def lazy_names(package: ModuleType) -> dict[str, set[str]]:
    """For each module that a package loads lazily, the names that it takes from the module."""
    if package is core:
        return {f"{core.__name__}.{module}": set(names) for module, names in core._MODULES.items()}
    return {module: set(names) for module, names in tk._LATER.items()}


@pytest.mark.parametrize("package", [tk, core], ids=lambda package: package.__name__)
def test_type_checkers_see_the_lazy_names(package: ModuleType) -> None:
    imported = type_checking_imports(package)
    modules = imported.pop(package.__name__)
    for module, names in imported.items():
        if "*" in names:
            imported[module] = (names - {"*"}) | set(importlib.import_module(module).__all__)
    assert imported == lazy_names(package)
    assert modules == (set(tk._SUBMODULES) if package is tk else {"errors", "tree"})


@pytest.mark.parametrize("package", [tk, core], ids=lambda package: package.__name__)
def test_lazy_names_are_public_in_their_modules(package: ModuleType) -> None:
    for name, names in lazy_names(package).items():
        module = importlib.import_module(name)
        public = getattr(module, "__all__", vars(module))
        assert names <= set(public), f"{name} lacks {sorted(names - set(public))}"
        for one in names:
            assert getattr(package, one) is getattr(module, one), f"{package.__name__}.{one}"


def test_no_name_is_loaded_from_two_modules() -> None:
    for package in (tk, core):
        tables = lazy_names(package).values()
        assert sum(map(len, tables)) == len(set().union(*tables))


def loaded_by(statement: str) -> set[str]:
    """The modules of ours that a new process has loaded after a statement."""
    script = f"{statement}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name for name in json.loads(done.stdout) if name.partition(".")[0].startswith("tensorken")}


def test_the_plugin_interface_loads_few_modules() -> None:
    loaded = loaded_by("import tensorken_core.host.plugin")
    assert "tensorken_core.host.plugin" in loaded
    assert len(loaded) < HOST_LIMIT, sorted(loaded)
    assert not {name for name in loaded if name.partition(".")[0] != "tensorken_core"}


def test_import_tensorken_loads_only_the_modules_it_needs() -> None:
    loaded = loaded_by("import tensorken")
    assert "tensorken.arrays.functions.arithmetic" in loaded
    unwanted = {f"tensorken.{part}" for part in LOADED_ON_USE}
    assert not unwanted & loaded


@pytest.mark.parametrize("part", LOADED_ON_USE)
def test_the_parts_that_load_on_use_exist(part: str) -> None:
    assert importlib.util.find_spec(f"tensorken.{part}") is not None


def test_dir_has_only_public_names() -> None:
    script = """
import json, types
import tensorken as tk
before = dir(tk)
values = {name: getattr(tk, name) for name in before}
modules = [name for name, value in values.items() if isinstance(value, types.ModuleType)]
print(json.dumps([before, modules, dir(tk)]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    before, modules, after = json.loads(done.stdout)
    assert before == after, "a name that is used changes dir(tensorken)"
    assert set(modules) == PUBLIC_MODULES
    assert not [name for name in before if name.startswith("_") and not name.endswith("__")]
    assert {name for names in tk._LATER.values() for name in names} <= set(before)


def test_dir_of_core_has_only_public_names() -> None:
    assert set(dir(core)) == {
        "as_tensor",
        "errors",
        "tree",
        *(n for names in core._MODULES.values() for n in names),
    }
