"""Switches: the environment variables of users, such as `TENSORKEN_WGPU_TUNING=off`."""

from __future__ import annotations

import os

_ON = frozenset({"1", "true", "yes", "on"})
_OFF = frozenset({"0", "false", "no", "off"})


def value_of(variable: str) -> str:
    """The value of a variable in lower case, without spaces around it; empty if it is not set."""
    return os.environ.get(variable, "").strip().lower()


def is_on(variable: str) -> bool:
    """Whether a variable is set to on, or another word for it."""
    return value_of(variable) in _ON


def is_off(variable: str) -> bool:
    """Whether a variable is set to off, or another word for it."""
    return value_of(variable) in _OFF
