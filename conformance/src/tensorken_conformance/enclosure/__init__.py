"""Enclosures: intervals that contain the results of all conforming backends."""

from __future__ import annotations

from tensorken_conformance.enclosure.interpreter import (
    Enclosure,
    compiles,
    contains,
    enclosed,
    enclosure_for,
    interval,
)
from tensorken_conformance.enclosure.interval import Interval, width

__all__ = ["Enclosure", "Interval", "compiles", "contains", "enclosed", "enclosure_for", "interval", "width"]
