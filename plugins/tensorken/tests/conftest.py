"""What the tests of tensorken share."""

from __future__ import annotations

from core.tests.conftest import on_numpy as on_numpy
