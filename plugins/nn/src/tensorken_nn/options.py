"""Command-line options from the fields of a dataclass of settings.

A field made by `option` contains its help and its parser, so each setting is declared once.
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
    default: Any, read: Callable[[str], Any], help: str, *, multiple: bool = False, may_change: bool = False
) -> Any:
    """A field of a dataclass of settings.

    Args:
        default: the default value.
        read: parses one argument of the command line.
        help: the text for --help.
        multiple: whether the value is a tuple, from any number of arguments.
        may_change: whether a resumed run may have another value.
    """
    metadata = {"read": read, "help": help, "multiple": multiple, "may_change": may_change}
    return dataclasses.field(default=default, metadata=metadata)


def parts_option() -> Any:
    """The field `parts` of the settings of a job whose batches may be divided (`tensorken_nn.parts`)."""
    return option(None, count, "divide each batch into this many parts, whose gradients are added in order")


def local_steps_option() -> Any:
    """The field `local_steps` of the settings of a job whose batches may be divided (`tensorken_nn.parts`)."""
    return option(
        None,
        count,
        "train on each part alone for this many steps, then average the parameters (needs --parts or --cluster)",
    )


def add_options(parser: ArgumentParser, settings: type) -> None:
    """Add an option for each field, such as `--batch-size` for `batch_size`."""
    for field in dataclasses.fields(settings):
        read, default = field.metadata["read"], field.default
        text = _format(default)
        parser.add_argument(
            f"--{field.name.replace('_', '-')}",
            type=read,
            nargs="*" if field.metadata["multiple"] else None,
            default=SUPPRESS,  # so that the namespace has only the options passed
            metavar=getattr(read, "__name__", "word").upper(),
            help=field.metadata["help"] + ("" if default is None else f" (default: {text})"),
        )


def parse_settings(options: Namespace, settings: type, saved: Mapping[str, Any] | None = None) -> Any:
    """The settings from the command line; all others have their default or, in a resumed run, their saved value.

    Args:
        options: the parsed arguments.
        settings: a dataclass whose fields are options.
        saved: the settings of the run to resume, from `to_json`.

    Raises:
        ArgumentError: if a setting differs from its saved value and may not change.
    """
    fields = {field.name: field for field in dataclasses.fields(settings)}
    passed = {name: _tuple(value) for name, value in vars(options).items() if name in fields}
    if saved is None:
        return settings(**passed)
    previous = {}
    for name, field in fields.items():
        value = saved.get(name, field.default)
        previous[name] = _tuple(value) if not isinstance(value, str) else field.metadata["read"](value)
        if name in passed and passed[name] != previous[name] and not field.metadata["may_change"]:
            raise ArgumentError(
                f"train: the run was started with --{name.replace('_', '-')} {_format(previous[name])}, got "
                f"{_format(passed[name])}; a resumed run keeps its settings, so leave the option out or start a new run"
            )
    return settings(**{**previous, **passed})


def to_json(settings: Any) -> dict[str, Any]:
    """Settings as JSON values.

    >>> from tensorken_nn.jobs.digits import Settings
    >>> to_json(Settings(epochs=3))["epochs"]
    3
    """
    return {name: str(v) if isinstance(v, Path) else v for name, v in dataclasses.asdict(settings).items()}


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _format(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def count(text: str) -> int:
    """An integer of 1 or more.

    >>> count("12")
    12
    """
    return _checked(text, int, lambda number: number >= 1, "a whole number of at least 1")


def seed(text: str) -> int:
    """An integer of 0 or more.

    >>> seed("0")
    0
    """
    return _checked(text, int, lambda number: number >= 0, "a whole number of at least 0")


def rate(text: str) -> float:
    """A finite number above 0.

    >>> rate("1e-3")
    0.001
    """
    return _checked(text, float, lambda number: 0.0 < number < math.inf, "a number above 0")


def quantity(text: str) -> float:
    """A finite number of 0 or more.

    >>> quantity("0")
    0.0
    """
    return _checked(text, float, lambda number: 0.0 <= number < math.inf, "a number of at least 0")


def share(text: str) -> float:
    """A number between 0 and 1.

    >>> share("0.2")
    0.2
    """
    return _checked(text, float, lambda number: 0.0 < number < 1.0, "a number between 0 and 1")


def one_of(*words: str) -> Callable[[str], str]:
    """A parser that accepts one of these words.

    >>> one_of("mlp", "convnet")("mlp")
    'mlp'
    """

    def choice(text: str) -> str:
        return _checked(text, str, lambda value: value in words, f"one of {', '.join(words)}")

    return choice


def _checked(text: str, parse: Callable[[str], N], is_valid: Callable[[N], bool], requirement: str) -> N:
    try:
        number = parse(text)
        if is_valid(number):
            return number
    except ValueError:
        pass
    raise ArgumentTypeError(f"must be {requirement}, got {text!r}")
