"""Faults: backends that are each wrong in one way, a room for each family; importing this enters all into the table."""

from __future__ import annotations

import importlib
import pkgutil

for _room in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_room.name)
