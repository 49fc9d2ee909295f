"""Options: the settings of a job are a dataclass, and its fields are what the command line takes.

A field made by `option` knows its help and how its text is read, so a setting is written down once.
"""

from __future__ import annotations

import dataclasses
import math
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from tensorken_core.errors import ArgumentError

N = TypeVar("N", int, float, str)


def option(
    default: Any, read: Callable[[str], Any], help: str, *, several: bool = False, extends: bool = False
) -> Any:
    """A field of a dataclass of settings.

    Args:
        default: its value where none is given.
        read: how a word of the command line is read.
        help: what it means.
        several: whether it is a tuple, from any number of words.
        extends: whether a training that goes on may have another value than it began with.
    """
    metadata = {"read": read, "help": help, "several": several, "extends": extends}
    return dataclasses.field(default=default, metadata=metadata)


def add_options(parser: ArgumentParser, settings: type) -> None:
    """An option for each field: `--batch-size` for `batch_size`."""
    for field in dataclasses.fields(settings):
        read, default = field.metadata["read"], field.default
        words = _words(default)
        parser.add_argument(
            f"--{field.name.replace('_', '-')}",
            type=read,
            nargs="*" if field.metadata["several"] else None,
            default=SUPPRESS,  # so that it is known what was given
            metavar=getattr(read, "__name__", "word").upper(),
            help=field.metadata["help"] + ("" if default is None else f" (default: {words})"),
        )


def settings_from(options: Namespace, settings: type, recorded: Mapping[str, Any] | None = None) -> Any:
    """The settings that the command line gave, and for the others their defaults, or what was recorded.

    Args:
        options: what the command line gave.
        settings: a dataclass whose fields are options.
        recorded: the settings of the training that is to go on, as `as_json` gave them.

    Raises:
        ArgumentError: if a recorded setting would change, and may not.
    """
    fields = {field.name: field for field in dataclasses.fields(settings)}
    given = {name: _tuple(value) for name, value in vars(options).items() if name in fields}
    if recorded is None:
        return settings(**given)
    known = {}
    for name, field in fields.items():
        value = recorded.get(name, field.default)
        known[name] = _tuple(value) if not isinstance(value, str) else field.metadata["read"](value)
        if name in given and given[name] != known[name] and not field.metadata["extends"]:
            raise ArgumentError(
                f"train: the training began with --{name.replace('_', '-')} {_words(known[name])}, got "
                f"{_words(given[name])}; what goes on keeps its settings, so leave it out or begin anew"
            )
    return settings(**{**known, **given})


def as_json(settings: Any) -> dict[str, Any]:
    """Settings as JSON has them.

    >>> from tensorken_nn.jobs.digits import Settings
    >>> as_json(Settings(epochs=3))["epochs"]
    3
    """
    return {name: str(v) if isinstance(v, Path) else v for name, v in dataclasses.asdict(settings).items()}


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _words(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


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


def quantity(text: str) -> float:
    """A finite number from 0.

    >>> quantity("0")
    0.0
    """
    return _checked(text, float, lambda number: 0.0 <= number < math.inf, "a number from 0")


def share(text: str) -> float:
    """A number between 0 and 1.

    >>> share("0.2")
    0.2
    """
    return _checked(text, float, lambda number: 0.0 < number < 1.0, "a number between 0 and 1")


def one_of(*words: str) -> Callable[[str], str]:
    """One of these words.

    >>> one_of("mlp", "convnet")("mlp")
    'mlp'
    """

    def word(text: str) -> str:
        return _checked(text, str, lambda given: given in words, f"one of {', '.join(words)}")

    return word


def _checked(text: str, kind: Callable[[str], N], holds: Callable[[N], bool], need: str) -> N:
    try:
        number = kind(text)
        if holds(number):
            return number
    except ValueError:
        pass
    raise ArgumentTypeError(f"{text!r} is not {need}")
