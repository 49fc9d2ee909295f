"""Numbers with units, for people."""

from __future__ import annotations

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def duration(seconds: float) -> str:
    """Seconds with three digits.

    >>> duration(1.25), duration(0.0125), duration(1.25e-5)
    ('1.25 s', '12.5 ms', '12.5 us')
    """
    for factor, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= factor:
            return f"{digits(seconds / factor)} {unit}"
    return f"{digits(seconds * 1e6)} us"


def rate(per_second: float, unit: str) -> str:
    """A rate with three digits and a prefix.

    >>> rate(2.5e11, "B"), rate(1.2e13, "FLOP")
    ('250 GB/s', '12 TFLOP/s')
    """
    factor, prefix = next(((f, p) for f, p in _PREFIXES if per_second >= f), (1.0, ""))
    return f"{digits(per_second / factor)} {prefix}{unit}/s"


def digits(number: float) -> str:
    """A number with three digits, without an exponent from 1 up to a million.

    >>> digits(0.01234), digits(12.34), digits(12345.6)
    ('0.0123', '12.3', '12346')
    """
    return f"{number:.0f}" if abs(number) >= 1000 else f"{number:.3g}"
