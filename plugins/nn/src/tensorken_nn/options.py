"""Options: the settings of a job are a dataclass, and its fields are what the command line takes.

A field made by `option` knows its help and how its text is read, so a setting is written down once.
"""

from __future__ import annotations

import dataclasses
import math
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from typing import Any, TypeVar

N = TypeVar("N", int, float)


def option(default: Any, read: Callable[[str], Any], help: str, *, several: bool = False) -> Any:
    """A field of a dataclass of settings: its default, how a word of the command line is read, and what it means."""
    return dataclasses.field(default=default, metadata={"read": read, "help": help, "several": several})


def add_options(parser: ArgumentParser, settings: type) -> None:
    """An option for each field: `--batch-size` for `batch_size`."""
    for field in dataclasses.fields(settings):
        read, default = field.metadata["read"], field.default
        words = " ".join(map(str, default)) if isinstance(default, tuple) else default
        parser.add_argument(
            f"--{field.name.replace('_', '-')}",
            type=read,
            nargs="*" if field.metadata["several"] else None,
            default=default,
            metavar=read.__name__.upper(),
            help=field.metadata["help"] + ("" if default is None else f" (default: {words})"),
        )


def settings_from(options: Namespace, settings: type) -> Any:
    """The settings that the command line gave."""
    values = {field.name: getattr(options, field.name) for field in dataclasses.fields(settings)}
    return settings(**{name: tuple(v) if isinstance(v, list) else v for name, v in values.items()})


def count(text: str) -> int:
    """A whole number from 1.

    >>> count("12")
    12
    """
    return _checked(text, int, lambda number: number >= 1, "a whole number from 1")


def seed(text: str) -> int:
    """A whole number from 0.

    >>> seed("0")
    0
    """
    return _checked(text, int, lambda number: number >= 0, "a whole number from 0")


def rate(text: str) -> float:
    """A finite number above 0.

    >>> rate("1e-3")
    0.001
    """
    return _checked(text, float, lambda number: 0.0 < number < math.inf, "a number above 0")


def _checked(text: str, kind: Callable[[str], N], holds: Callable[[N], bool], need: str) -> N:
    try:
        number = kind(text)
        if holds(number):
            return number
    except ValueError:
        pass
    raise ArgumentTypeError(f"{text!r} is not {need}")
