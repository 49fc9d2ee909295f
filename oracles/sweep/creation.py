"""Rows of functions that make tensors, run users' functions, or combine examples."""

from __future__ import annotations

from typing import Any

import numpy as np

import tensorken as tk
from oracles.sweep.arrays import on_any, small
from oracles.sweep.operands import COMPLEX, INTEGERS, ends, kind, numpy_dtype, regular
from oracles.sweep.row import KEEPS, MOVES, Case, Row, always, counted, inexact, same

CREATION: dict[str, Row] = {}
EAGER = frozenset(("eager",))


def with_dtype(*arguments: Any, **params: Any) -> Any:
    """The arguments of a function that makes a tensor of a dtype."""
    return lambda d: [Case("regular", arguments, {**params, "dtype": d})]


def _made(name: str, oracle: Any, *arguments: Any, ulp: float = 0.5, scale: str = "result") -> None:
    """A row of a function that takes a dtype: the oracle makes float64 or complex128, which is then rounded."""

    def computed(*xs: Any, dtype: str) -> Any:
        return np.asarray(oracle(*xs)).astype(numpy_dtype(dtype))

    CREATION[f"tk.{name}"] = Row(
        computed, cases=with_dtype(*arguments), result=same, ulp=ulp, scale=scale, modes=EAGER
    )


_made("arange", np.arange, 0, 7, 2)
_made("eye", np.eye, 3)
_made("identity", np.identity, 3)
_made("tri", np.tri, 3)
_made("ones", np.ones, (2, 3))
_made("zeros", np.zeros, (2, 3))
_made("full", np.full, (2,), True)
_made("linspace", np.linspace, 0, 8, 5)
_made("logspace", np.logspace, 0, 3, 4, ulp=8)
_made("geomspace", np.geomspace, 1, 16, 5, ulp=8)
_made("indices", np.indices, (2, 3))
_made("bartlett", np.bartlett, 5, ulp=4)
_made("hamming", np.hamming, 5, ulp=4)
_made("hanning", np.hanning, 5, ulp=4)
_made("kaiser", np.kaiser, 5, 2.0, ulp=8)
_made("fromfunction", lambda f, s: np.fromfunction(lambda i: i, s), lambda i: i, (3,))
_made("fft.fftfreq", np.fft.fftfreq, 5, ulp=1)
_made("fft.rfftfreq", np.fft.rfftfreq, 5, ulp=1)
_made("blackman", np.blackman, 5, ulp=8, scale="one")
CREATION["tk.empty"] = Row(
    lambda shape, dtype: np.zeros(shape, numpy_dtype(dtype)),
    cases=with_dtype((2, 3)),
    result=same,
    modes=EAGER,
    skip=lambda y, *xs: True,
)
CREATION["tk.array"] = Row(lambda x: x, cases=on_any(), **KEEPS)
CREATION["tk.asarray"] = CREATION["tk.array"]
CREATION["tk.astype"] = Row(lambda x: x, call=lambda f, x: f(x, x.dtype), cases=on_any(), **KEEPS)
_made_of: dict[str, tuple[Any, Any]] = {
    "tensor": (lambda f, x: f(x.tolist(), x.dtype), on_any()),
    "scalar": (lambda f, x: f(x.item(), x.dtype), lambda d: [Case("one", (ends(d)[1],))]),
    "new": (lambda f, x: f(x.shape, x.tolist(), x.dtype), on_any()),
    "from_dlpack": (
        lambda f, x: f(np.from_dlpack(np.asarray(x).copy())),
        lambda d: on_any()(d) if d != "bfloat16" else [],
    ),
    "frombuffer": (
        lambda f, x: f(np.asarray(x).tobytes(), x.dtype),
        lambda d: [Case("ends", (ends(d),))],
    ),
}
for _name, (_call, _cases) in _made_of.items():
    CREATION[f"tk.{_name}"] = Row(lambda x: x, call=_call, cases=_cases, modes=EAGER, **KEEPS)

# a cast to each dtype, from the ends that it has
for _target in ("bool", *INTEGERS, "float16", "bfloat16", "float32", "float64", *COMPLEX):

    def _cast(x: Any, _target: str = _target) -> Any:
        return x.astype(numpy_dtype(_target))

    def _castable(d: str, _target: str = _target) -> list[Case]:
        """Numbers that the target has: a cast of others to integers is undefined."""
        x = ends(d)
        if _target in INTEGERS and kind(d) != "integer":
            x = x[np.isfinite(x.astype("complex128"))] if d != "bool" else x
            x = np.trunc(x.astype("float64")).astype(x.dtype) if kind(d) == "float" else x
            with np.errstate(all="ignore"):
                inside = np.abs(x.astype("complex128").real) < (100 if d != "bool" else 2)
                x = x[inside & (x.astype("complex128").real >= 0)] if kind(d) != "complex" else x[:0]
        is_refused = kind(d) == "complex" and _target not in (*COMPLEX, "bool")
        return [Case("ends", (ends(d) if is_refused else x,))]

    CREATION[f"tk.{_target}"] = Row(_cast, cases=_castable, precision="kept", result=always(_target), ulp=0.5)

# ---- functions of functions ------------------------------------------------------------------------------------

_one = lambda d: [Case(label, (x,)) for label, x in (("regular", regular(d, (3,))), ("ends", ends(d)))]  # noqa: E731
_calls: dict[str, Any] = {
    "cond": (lambda x: x, lambda f, x: f(True, lambda v: v, lambda v: v[::-1], x)),
    "switch": (lambda x: x[::-1], lambda f, x: f(1, [lambda v: v, lambda v: v[::-1]], x)),
    "scan": (lambda x: (x[-1], x), lambda f, x: f(lambda c, v: (v, v), x[0], x)),
    "map": (lambda x: x, lambda f, x: f(lambda v: v, x)),
    "while_loop": (
        lambda x: np.roll(x, 3),
        lambda f, x: f(lambda s: s[0] < 3, lambda s: (s[0] + 1, tk.roll(s[1], 1)), (0, x))[1],
    ),
    "fori_loop": (lambda x: np.roll(x, 2), lambda f, x: f(0, 2, lambda i, v: tk.roll(v, 1), x)),
    "checkpoint": (lambda x: x, lambda f, x: f(lambda v: v)(x)),
    "stop_gradient": (lambda x: x, lambda f, x: f(x)),
    "vmap": (lambda x: x, lambda f, x: f(lambda v: v)(x)),
    "jit": (lambda x: x, lambda f, x: f(lambda v: v)(x)),
    "vectorize": (lambda x: x, lambda f, x: f(lambda v: v)(x)),
    "apply_along_axis": (lambda x: x[::-1], lambda f, x: f(lambda v: v[::-1], 0, x)),
    "all_gather": (lambda x: np.stack([x] * 2), lambda f, x: _on_axis(lambda v: f(v, "i"), x)),
    "pmax": (lambda x: x, lambda f, x: _on_axis(lambda v: f(v, "i"), x)),
    "pmin": (lambda x: x, lambda f, x: _on_axis(lambda v: f(v, "i"), x)),
    "ppermute": (lambda x: x, lambda f, x: _on_axis(lambda v: f(v, "i", [(0, 1), (1, 0)]), x)),
}


def _on_axis(f: Any, x: Any) -> Any:
    return tk.vmap(f, axis_name="i", axis_size=2)(tk.stack([x, x]))[0]


for _name, (_oracle, _call) in _calls.items():
    CREATION[f"tk.{_name}"] = Row(_oracle, call=_call, cases=_one, **KEEPS)
CREATION["tk.psum"] = Row(
    lambda x: np.sum(np.stack([x, x]), 0, dtype=x.dtype if x.dtype != bool else "int32"),
    call=lambda f, x: _on_axis(lambda v: f(v, "i"), x),
    cases=_one,
    precision="same",
    result=counted,
    ulp=1,
)
CREATION["tk.pmean"] = Row(
    lambda x: x,
    call=lambda f, x: _on_axis(lambda v: f(v, "i"), x),
    cases=lambda d: _one(d)[:1],
    result=inexact,
    ulp=1,
)
CREATION["tk.associative_scan"] = Row(
    np.maximum.accumulate,
    call=lambda f, x: f(tk.maximum, x),
    cases=_one,
    **MOVES,
)
CREATION["tk.convolution"] = Row(
    lambda x, k: np.stack([(x[0, 0, i : i + 3] * k[0, 0]).sum(-1, dtype=x.dtype) for i in range(4)])[
        None, None
    ],
    cases=lambda d: [Case("regular", (small(d, (1, 1, 6)), small(d, (1, 1, 3), 1)))],
    precision="same",
    result=same,
    ulp=16,
    scale="terms",
)
