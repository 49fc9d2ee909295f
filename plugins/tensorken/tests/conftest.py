"""Fixtures of the tests of tensorken."""

from __future__ import annotations

from core.tests.conftest import on_numpy as on_numpy
