"""Random damage to files: bytes or JSON entries are changed, removed and inserted."""

from __future__ import annotations

import json
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

STRANGE: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 2, 3, 7, 10**9, 2**31, 2**63, -(2**63), 10**30, 1.5, -0.0, 1e300),
    *("", "x", "nan:zz", "nan:7ff8000000000000", "0x1.8p+1", "inf", "float32", "int64", "bool", "constant"),
    *("carry", "import os", "x # y", "x\n\nimport os", "__class__", "tk", "\ud800", "\u2028", "a" * 10_000),
    *([], {}, [None], [[[]]], [0], [0, 0], [[0, 1]], [1, 2, 3], ["constant"], ["carry", 0], [True]),
    *(
        {"float": "x"},
        {"float": "nan:7ff8000000000000"},
        {"program": 0},
        {"program": -1},
        {"dtype": "float64"},
    ),
    *(
        {"list": []},
        {"dict": [[1, 2]]},
        {"slice": [0, None, -1]},
        {"range": [0, 10**30, 1]},
        {"bytes": "eA=="},
    ),
    *(
        {"type": "int"},
        {"type": "object"},
        ["dict", ["a"], 1],
        ["os:environ", None, 0],
        ["tuple", None, 10**9],
    ),
)
"""The replacement of an entry."""


def damaged_bytes(data: bytes, rng: random.Random) -> bytes:
    """Bytes with one to three changes."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        place, length = rng.randrange(len(data) + 1), rng.choice((1, 1, 2, 4, 8, 40, 400))
        rest = data[place + length :]
        match rng.randrange(8):
            case 0 if place < len(data):
                data = data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :]
            case 1:
                data = data[:place]
            case 2:
                data = data[:place] + rest
            case 3:
                data = data[:place] + data[place : place + length] * rng.choice((2, 3)) + rest
            case 4:
                data = data[:place] + rng.randbytes(length) + rest
            case 5:
                data = data[:place] + rng.choice((b"\0", b"\xff")) * length + rest
            case 6:
                other = rng.randrange(len(data) + 1)
                data = data[:place] + data[other : other + length] + rest
            case _:
                data = (
                    data[:place] + str(rng.choice(STRANGE)).encode("utf-8", "replace")[:length] + data[place:]
                )
    return data


def damaged_json(text: str, rng: random.Random) -> Any:
    """A JSON value with one to three entries changed, exchanged, repeated or removed."""
    content = json.loads(text)
    for _ in range(rng.choice((1, 1, 1, 1, 2, 3))):
        holders = list(_holders(content))
        if not holders:
            break
        holder = rng.choice(holders)
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        key = rng.choice(list(keys))
        match rng.randrange(12):
            case 0:
                del holder[key]
            case 1:
                holder[key] = deepcopy(rng.choice(STRANGE))  # it may be damaged next
            case 2:
                other = rng.choice(holders)
                holder[key] = json.loads(json.dumps(rng.choice([*_values(other)] or [None])))
            case 3 if isinstance(holder, list):
                holder.insert(rng.randrange(len(holder) + 1), json.loads(json.dumps(holder[key])))
            case 4 if isinstance(holder, list):
                other_key = rng.randrange(len(holder))
                holder[key], holder[other_key] = holder[other_key], holder[key]
            case 5 if isinstance(holder, dict):
                holder[rng.choice(("x", "params", "scope", "origin", key + " "))] = deepcopy(holder[key])
            case _:
                holder[key] = _near(holder[key], rng)
    return content


def _near(value: Any, rng: random.Random) -> Any:
    """A value of the same kind."""
    match value:
        case bool():
            return not value
        case int():
            return rng.choice((value + 1, value - 1, -value, value * 2, value // 2, 0, 10**6))
        case float():
            return rng.choice((-value, value * 2.0, 0.5))
        case str() if value:
            place = rng.randrange(len(value))
            return value[:place] + rng.choice("0aZ_ \n\"'#:{\\") + value[place + rng.randrange(2) :]
        case list():
            return rng.choice((value[::-1], value[:-1], value * 2, [value]))
        case _:
            return deepcopy(rng.choice(STRANGE))


def _values(holder: Any) -> Sequence[Any]:
    return list(holder.values()) if isinstance(holder, dict) else holder


def _holders(content: Any) -> Iterator[Any]:
    """The non-empty objects and arrays in a JSON value."""
    pending = [content]
    while pending:
        one = pending.pop()
        if isinstance(one, dict | list) and one:
            yield one
            pending += _values(one)


class TooLongError(BaseException):
    """A step exceeded its time limit; not an Exception, so that no handler treats it as damage to a file."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise TooLongError after `seconds` of processor time, if the system supports it."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: Any) -> None:
        raise TooLongError

    former = signal.signal(signal.SIGPROF, interrupt)
    left, _ = signal.setitimer(signal.ITIMER_PROF, seconds)  # of a block around this one
    try:
        yield
    finally:
        signal.signal(signal.SIGPROF, former)
        signal.setitimer(signal.ITIMER_PROF, left)


def outcomes(attempt: Callable[[random.Random], str], seeds: range) -> Counter[str]:
    """How often each outcome of an attempt occurs; an error of the attempt's is raised with the seed that led to it."""
    found: Counter[str] = Counter()
    for seed in seeds:
        try:
            with at_most(60.0):
                found[attempt(random.Random(seed))] += 1
        except (Exception, TooLongError) as error:
            raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}") from error
    return found
