"""Bounds: how far the numbers of a backend may be off, from the same computation on intervals."""

from __future__ import annotations
