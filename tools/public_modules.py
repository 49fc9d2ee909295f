"""The public modules of `tensorken`, and their public names.

They are read from the imports of `tensorken/__init__.py`. A name added to the `__all__` of a module therefore
appears in the reference, and its docstring is checked.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorken
from tensorken.plugin_names import plugin_names


@dataclass(frozen=True, slots=True)
class PublicModule:
    """A module with public names."""

    module: types.ModuleType
    namespace: str  # where users find the names, such as `tensorken` or `tensorken.linalg`
    names: tuple[str, ...]
    aliases: tuple[str, ...] = ()  # names that are also in `tk`, such as `tk.norm` for `tk.linalg.norm`

    @property
    def title(self) -> str:
        """The title: as users write the module if they do, else its name."""
        if self.namespace == tensorken.__name__:
            return self.page.replace("_", " ").capitalize()
        return f"tk.{self.page}" if self.page in _modules(tensorken) else self.namespace

    @property
    def page(self) -> str:
        """The name of the module's page in the reference."""
        return self.module.__name__.rpartition(".")[2]

    @property
    def intro(self) -> str:
        """The module's docstring without examples."""
        paragraphs = (inspect.getdoc(self.module) or "").split("\n\n")
        return "\n\n".join(text for text in paragraphs if not text.lstrip().startswith(">>>"))

    def object(self, name: str) -> Any:
        """The object of a name."""
        return getattr(sys.modules[self.namespace], name)


def public_modules() -> list[PublicModule]:
    """The public modules of `tensorken`, and `tensorken_core.host.plugin`, in the order of `tensorken/__init__.py`."""
    star_imported = _star_imports(tensorken)
    module_names = sorted(
        [getattr(tensorken, name).__name__ for name in _modules(tensorken)],
        key=lambda name: name.rpartition(".")[2],
    )
    aliases = {owner.module.__name__: owner.names for owner in star_imported}
    owners = [owner for owner in star_imported if owner.module.__name__ not in module_names]
    return [
        *owners,
        *[
            _public_module(name, aliases.get(name, ()))
            for name in [*module_names, "tensorken_core.host.plugin"]
        ],
    ]


def names_of(module: types.ModuleType) -> tuple[str, ...]:
    """The public names of a module: its `__all__`, or the classes and functions defined in it."""
    declared = getattr(module, "__all__", None)
    if declared is not None:
        return tuple(declared)
    return tuple(
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    )


def public_names() -> set[str]:
    """The public names of `tk`, except modules and the names that plugins add."""
    return {
        name
        for name in {*dir(tensorken)} - {*plugin_names()}
        if not name.startswith("_") and not isinstance(getattr(tensorken, name), types.ModuleType)
    }


def _imports(package: types.ModuleType) -> list[ast.ImportFrom]:
    """The import statements in the `__init__` of a package, including those of names that are loaded lazily."""
    source = Path(str(package.__file__)).read_text(encoding="utf-8")
    top = ast.parse(source).body
    nodes = [*top, *[inner for node in top if isinstance(node, ast.If) for inner in node.body]]
    return [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module != "__future__"]


def _star_imports(package: types.ModuleType) -> list[PublicModule]:
    """The modules from which `__init__` imports names; an alias defined there belongs to the same module."""
    imported: list[tuple[types.ModuleType, list[str]]] = []
    for node in _imports(package):
        module = importlib.import_module(str(node.module))
        if module is package:
            continue
        starred = node.names[0].name == "*"
        names = [*names_of(module)] if starred else [alias.asname or alias.name for alias in node.names]
        public = [name for name in names if not name.startswith("_") or name.endswith("__")]
        values = [name for name in public if not isinstance(getattr(package, name), types.ModuleType)]
        imported.append((module, values))
    listed = {name for _, names in imported for name in names}
    for name in sorted(public_names() - listed):
        for _, names in imported:
            if any(getattr(package, other) is getattr(package, name) for other in names):
                names.append(name)
                break
    return [PublicModule(module, package.__name__, tuple(names)) for module, names in imported if names]


def _modules(package: types.ModuleType) -> list[str]:
    """The names of the modules that `__init__` imports, such as `tk.testing`."""
    aliases = [alias for node in _imports(package) for alias in node.names if alias.name != "*"]
    names = [alias.asname or alias.name for alias in aliases]
    public = [name for name in names if not name.startswith("_")]
    return [name for name in public if isinstance(getattr(package, name), types.ModuleType)]


def _public_module(name: str, aliases: tuple[str, ...]) -> PublicModule:
    module = importlib.import_module(name)
    return PublicModule(module, name, names_of(module), aliases)
