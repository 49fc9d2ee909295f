"""Names that plugins add to the package `tensorken`, by entry points of the group `tensorken.namespace`."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from tensorken_core.host import registry
from tensorken_core.host.discovery import normalized
from tensorken_core.host.loading import Registry

_objects: WeakKeyDictionary[Registry, dict[str, Any]] = WeakKeyDictionary()


def plugin_names() -> list[str]:
    """The names that plugins add, without importing the plugins."""
    records = registry.REGISTRY.records("namespace")
    return [r.entry_point.name for r in records if r.entry_point and r.status == "available"]


def load_name(name: str) -> Any:
    """The object that a plugin adds under a name, imported at the first call.

    Raises:
        KeyError: if no plugin adds that name.
        BackendError: if the plugin is incompatible or broken, or two plugins add the name.
    """
    host = registry.REGISTRY
    objects = _objects.setdefault(host, {})
    if name not in objects:
        # sorted, so that the record selected by the name alone comes first
        for record in sorted(host.records("namespace"), key=lambda record: record.shared):
            point = record.entry_point
            if name == point.name if point else normalized(name) == record.name:
                objects[name] = host.load_object(record)
                break
    return objects[name]
