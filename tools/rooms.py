"""What is public: the rooms of `tensorken` whose names users write, and the names in them.

`tensorken/__init__.py` says it by what it imports, so a name that is added to the `__all__` of a room appears in the
reference and is held to the rules for docstrings with nothing else to do.
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
from tensorken_core.host.registry import REGISTRY


@dataclass(frozen=True, slots=True)
class Room:
    """A module with names for users."""

    module: types.ModuleType
    namespace: str  # where users find the names: `tensorken`, or `tensorken.linalg`
    names: tuple[str, ...]
    also: tuple[str, ...] = ()  # those that `tk.` offers, too, as it does `tk.linalg.norm`

    @property
    def title(self) -> str:
        """What the room is called: as users write it if they write it, else by its module's name."""
        if self.namespace == tensorken.__name__:
            return self.page.replace("_", " ").capitalize()
        return f"tk.{self.page}" if self.page in _modules(tensorken) else self.namespace

    @property
    def page(self) -> str:
        """The name of its page in the reference."""
        return self.module.__name__.rpartition(".")[2]

    @property
    def intro(self) -> str:
        """The module's docstring, examples left out."""
        paragraphs = (inspect.getdoc(self.module) or "").split("\n\n")
        return "\n\n".join(text for text in paragraphs if not text.lstrip().startswith(">>>"))

    def object(self, name: str) -> Any:
        """What a name stands for."""
        return getattr(sys.modules[self.namespace], name)


def rooms() -> list[Room]:
    """The rooms of `tensorken`, with what a plugin's author imports, in the order of `tensorken/__init__.py`."""
    spread = _spread(tensorken)
    offered = [getattr(tensorken, name).__name__ for name in _modules(tensorken)]
    also = {room.module.__name__: room.names for room in spread}
    found = [room for room in spread if room.module.__name__ not in offered]
    return [
        *found,
        *[
            _whole(name, also.get(name, ()))
            for name in [*sorted(offered, key=_last), "tensorken_core.host.plugin"]
        ],
    ]


def names_of(module: types.ModuleType) -> tuple[str, ...]:
    """The public names of a module: its `__all__`, or the classes and functions that it defines."""
    stated = getattr(module, "__all__", None)
    if stated is not None:
        return tuple(stated)
    return tuple(
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    )


def public_names() -> set[str]:
    """The names that `tk.` offers, but for its modules and the names that plugins add."""
    return {
        name
        for name in {*dir(tensorken)} - {*REGISTRY.names()}
        if not name.startswith("_") and not isinstance(getattr(tensorken, name), types.ModuleType)
    }


def _imports(package: types.ModuleType) -> list[ast.ImportFrom]:
    """The imports in the `__init__` of a package, those of names that are loaded later among them."""
    source = Path(str(package.__file__)).read_text(encoding="utf-8")
    top = ast.parse(source).body
    nodes = [*top, *[inner for node in top if isinstance(node, ast.If) for inner in node.body]]
    return [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module != "__future__"]


def _spread(package: types.ModuleType) -> list[Room]:
    """The rooms from which `__init__` imports names; a second name that it gives to one goes to the same room."""
    found: list[tuple[types.ModuleType, list[str]]] = []
    for node in _imports(package):
        module = importlib.import_module(str(node.module))
        if module is package:
            continue
        starred = node.names[0].name == "*"
        names = [*names_of(module)] if starred else [alias.asname or alias.name for alias in node.names]
        values = [name for name in names if not isinstance(getattr(package, name), types.ModuleType)]
        found.append((module, values))
    taken = {name for _, names in found for name in names}
    for name in sorted(public_names() - taken):
        for _, names in found:
            if any(getattr(package, known) is getattr(package, name) for known in names):
                names.append(name)
                break
    return [Room(module, package.__name__, tuple(names)) for module, names in found if names]


def _modules(package: types.ModuleType) -> list[str]:
    """The names of the modules that `__init__` offers as they are, such as `tk.testing`."""
    names = [
        alias.asname or alias.name for node in _imports(package) for alias in node.names if alias.name != "*"
    ]
    public = [name for name in names if not name.startswith("_")]
    return [name for name in public if isinstance(getattr(package, name), types.ModuleType)]


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _whole(name: str, also: tuple[str, ...]) -> Room:
    module = importlib.import_module(name)
    return Room(module, name, names_of(module), also)
