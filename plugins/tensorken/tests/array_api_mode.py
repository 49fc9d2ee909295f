"""Call functions of scipy and scikit-learn in array API mode, on tensors and on numpy arrays, and compare the results.

`SCIPY_ARRAY_API=1 python -m plugins.tensorken.tests.array_api_mode` prints a line for each call that is wrong; scipy
reads that variable when it is imported.  The calls are in array_api_mode.txt.  `docs/array-api.md` lists the functions,
and which of them assign to elements of arrays and so must refuse tensors.
"""

from __future__ import annotations

import importlib
import itertools
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tensorken as tk
from tensorken_core.errors import ImmutableError
from tools import array_api, pages

CALLS = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
"""One a line: of arrays x, y, p > 0 (matrices), v, w, t (vectors), k (labels), filters b, a, sos and h."""

TRANSFORMED = {
    "scipy.stats.skew": "skew(v)",
    "scipy.stats.kstat": "kstat(v, 3)",
    "scipy.stats.differential_entropy": "differential_entropy(v)",
    "scipy.stats.ttest_1samp": "ttest_1samp(v, 0.1).statistic",
    "scipy.signal.fftconvolve": "fftconvolve(v, v)",
    "scipy.signal.freqz": "freqz(v, 1.0, worN=8)[1].real",
    "scipy.fft.rfft": "rfft(v).imag",
    "scipy.integrate.cumulative_trapezoid": "cumulative_trapezoid(v)",
}
"""Functions whose derivatives are tried, and `jit` and `vmap`, under which scipy.stats cannot look for NaN."""


def operands(xp: Any) -> dict[str, Any]:
    """The names of the calls, with arrays of a namespace."""
    import scipy  # here, since other processes import this module to collect tests
    import sklearn

    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 6, 32))
    b, a = scipy.signal.butter(3, 0.3)
    arrays = {
        "x": x,
        "y": x + y,
        "p": np.abs(x) + 0.1,
        "v": x[0],
        "w": x[0] + y[0],
        "t": x @ np.arange(32.0),
        "k": np.asarray([0, 1, 1, 0, 1, 0], "int32"),
        "b": b,
        "a": a,
        "sos": scipy.signal.butter(4, 0.3, output="sos"),
        "h": np.hanning(5) + 0.1,
    }
    libraries = {"scipy": scipy, "sklearn": sklearn}  # they import their modules when these are used
    return {**libraries, "xp": xp, "np": np, **{name: xp.asarray(array) for name, array in arrays.items()}}


def evaluated(call: str, xp: Any) -> Any:
    """The result of a call, or its exception."""
    try:
        return eval(call, operands(xp))
    except Exception as error:  # noqa: BLE001 -- it is compared with what the page says
        return error


def named(call: str, names: set[str]) -> str | None:
    """The longest of the names that a call begins with.

    >>> named("scipy.stats.tmean(v)", {"scipy.stats.t", "scipy.stats.tmean", "scipy.stats"})
    'scipy.stats.tmean'
    """
    found = [name for name in names if re.match(rf"{re.escape(name)}(?!\w)", call)]
    return max(found, key=len, default=None)


def leaves(result: Any) -> Iterator[Any]:
    """The arrays and numbers of a result."""
    if isinstance(result, (tuple, list)):
        for part in result:
            yield from leaves(part)
    elif hasattr(result, "statistic"):
        yield from leaves((result.statistic, result.pvalue))
    else:
        yield result


def difference(found: Any, wanted: Any) -> str | None:
    """How a result on tensors differs from numpy's; float64 and float32 are equal here.

    >>> difference((tk.ones(2), 1), (np.ones(2), 1))
    >>> difference(np.ones(2), np.ones(2))
    'a ndarray for an array'
    >>> difference(tk.ones(2), np.asarray([1.0, 1.1]))
    '[1. 1.] for [1.  1.1]'
    """
    ours, theirs = list(leaves(found)), list(leaves(wanted))
    if len(ours) != len(theirs) or not ours:
        return f"{len(ours)} parts for {len(theirs)}"
    for mine, other in zip(ours, theirs, strict=True):
        if isinstance(other, np.ndarray) and not isinstance(mine, tk.Tensor):
            return f"a {type(mine).__name__} for an array"
        mine, other = np.asarray(mine), np.asarray(other)
        if (mine.shape, mine.dtype.kind) != (other.shape, other.dtype.kind):
            return f"{mine.dtype}{mine.shape} for {other.dtype}{other.shape}"
        if not np.allclose(mine, other, rtol=1e-5, atol=1e-5, equal_nan=True):
            return f"{mine} for {other}"
    return None


def wrong_calls(working: set[str], assigning: set[str]) -> Iterator[str]:
    """The calls that do not do what the page says, with the reason."""
    for call in CALLS:
        found, wanted = evaluated(call, tk), evaluated(call, np)
        if isinstance(wanted, Exception):
            yield f"{call}: numpy raises {wanted!r}"
        elif named(call, working | assigning) in assigning:
            if not isinstance(found, ImmutableError):
                yield f"{call}: does not assign to elements, so it belongs into the other column"
        elif isinstance(found, Exception):
            yield f"{call}: {found!r}"
        elif problem := difference(found, wanted):
            yield f"{call}: {problem}"


def wrong_transforms() -> Iterator[str]:
    """The functions whose derivative, or result under a transform, is wrong."""
    v = operands(tk)["v"]
    for function, call in TRANSFORMED.items():
        module = vars(importlib.import_module(function.rpartition(".")[0]))

        def f(v: Any, call: str = call, module: Any = module) -> Any:
            return eval(call, module, {"v": v})

        tk.testing.check_grads(f, (v,), order=1)
        if function.startswith("scipy.stats."):
            continue
        for way, found, wanted in (
            ("jit", tk.jit(f)(v), f(v)),
            ("vmap", tk.vmap(f)(tk.stack([v, v + 1.0]))[1], f(v + 1.0)),
        ):
            if not np.allclose(np.asarray(found), np.asarray(wanted), rtol=1e-9, atol=1e-9):
                yield f"{call} under {way}: {found} for {wanted}"


def wrong_names(names: set[str]) -> Iterator[str]:
    """The names that only the page or only the file of calls has."""
    called = {call: named(call, names) for call in CALLS}
    yield from (f"no call of {name}" for name in sorted(names - {*called.values()}))
    yield from (f"not on the page: {call}" for call, name in called.items() if name is None)


def wrong_output() -> Iterator[str]:
    """The examples of the page whose output differs from the page."""
    page = re.sub("```python(?: elsewhere)?\n", "```python\n", array_api.PAGE.read_text("utf-8"))
    yield from pages.run(page, array_api.PAGE.name)


def main() -> None:
    """Print what is wrong."""
    import sklearn

    working, assigning = array_api.functions_of_libraries()
    with sklearn.config_context(array_api_dispatch=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong = [
            wrong_names(working | assigning),
            wrong_calls(working, assigning),
            wrong_transforms(),
            wrong_output(),
        ]
        for line in itertools.chain(*wrong):
            print(line)


if __name__ == "__main__":
    main()
