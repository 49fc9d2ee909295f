"""The environment variables of Tensorken and its plugins, all read in one way.

A value has no spaces around it, an empty value is the same as none, and any other value that the variable does not
allow is an error in one line.
"""

from __future__ import annotations

import os

from tensorken_core.errors import SettingError
from tensorken_core.text import quoted

ON = frozenset({"1", "true", "yes", "on"})
OFF = frozenset({"0", "false", "no", "off"})


def value_of(variable: str) -> str:
    """The value of a variable without spaces around it; empty if it is not set.

    >>> value_of("TENSORKEN_EXAMPLE")
    ''
    """
    return os.environ.get(variable, "").strip()


def switch(variable: str, default: bool = False) -> bool:
    """Whether a variable is on: 1, true, yes or on; 0, false, no or off switch it off.

    Args:
        variable: its name.
        default: the result if it is not set.

    Raises:
        SettingError: if it has another value.
    """
    value = value_of(variable).lower()
    if value and value not in ON | OFF:
        raise refused(variable, "expected 1 or 0 (or on, off, true, false, yes, no)")
    return value in ON if value else default


def choice(variable: str, *allowed: str) -> str:
    """The value of a variable in lower case; empty if it is not set.

    Args:
        variable: its name.
        allowed: its values.

    Raises:
        SettingError: if it has another value.
    """
    value = value_of(variable).lower()
    if value and value not in allowed:
        raise refused(variable, f"expected one of {', '.join(allowed)}")
    return value


def count(variable: str) -> int | None:
    """The positive integer that a variable has; None if it is not set.

    Raises:
        SettingError: if it has another value.
    """
    value = value_of(variable)
    if not value:
        return None
    if not (value.isascii() and value.isdecimal() and len(value) <= 18 and int(value) > 0):
        raise refused(variable, "expected an integer of at least 1")
    return int(value)


def refused(variable: str, fault: str) -> SettingError:
    """The error for the present value of a variable.

    Args:
        variable: its name.
        fault: what is wrong, or what was expected.
    """
    return SettingError(f"{variable}={quoted(os.environ.get(variable, ''))}: {fault} (or unset it)")
