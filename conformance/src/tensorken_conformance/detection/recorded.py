"""The files of this folder."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any


def read(name: str) -> Any:
    """The data in a JSON file of this folder.

    >>> sorted(read("detection.json"))[:2]
    ['alarms', 'caught']
    """
    return json.loads(resources.files(__package__).joinpath(name).read_text("utf-8"))
