"""The laws, a room for each family; importing this package enters them all into the table."""

from __future__ import annotations

import importlib
import pkgutil

for _room in pkgutil.walk_packages(__path__, f"{__name__}."):
    importlib.import_module(_room.name)
