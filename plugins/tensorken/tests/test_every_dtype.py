"""Functions of every dtype: values and dtypes are numpy's, eagerly and in programs, where numpy has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of

DTYPES = ["bool", *[f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]]
DTYPES += ["float16", "float32", "float64"]

UNARY = """abs sign negative positive square signbit isfinite isnan logical_not invert bitwise_count sort argsort
    cumsum cumprod diff ediff1d sum prod mean var median max min ptp argmax argmin nansum nanmax any all count_nonzero
    flip real conj trunc"""
BINARY = """add subtract multiply divide floor_divide remainder fmod power maximum minimum fmax fmin heaviside equal
    less less_equal logical_and logical_xor bitwise_and bitwise_or bitwise_xor left_shift right_shift gcd lcm dot vdot
    inner outer kron vecdot convolve correlate isclose array_equal isin append polyadd polysub polyval cov"""
OPERATORS = """a+b a-b a*b a/b a//b a%b a**b a&b a|b a^b a<<b a>>b a@b m@n -a ~a a<b a==b 1-a 2*a a**3 a//2 a%2 a<<1
    a&1 a<300 a>=-1"""
EXPRESSIONS = [
    *[f"xp.{name}(a)" for name in UNARY.split()],
    *[f"xp.{name}(a, b)" for name in BINARY.split()],
    *OPERATORS.split(),
    "divmod(a, b)",
    "xp.matvec(m, a[:3])",
    "xp.vecmat(a[:2], m)",
    "xp.tensordot(m, n, 1)",
    "xp.einsum('ij,jk', m, n)",
    "xp.einsum('ij->j', m)",
    "xp.einsum('ij,jk,kl->il', m, n, m)",
    "xp.linalg.matrix_power(s, 2)",
    "xp.linalg.matrix_power(s, 0)",
    "xp.linalg.multi_dot([m, n, m])",
    "xp.linalg.trace(s)",
    "xp.linalg.norm(a)",
    "xp.clip(a, 2, 4)",
    "xp.clip(a, -1, 300)",
    "xp.where(a > 2, a, 0)",
    "xp.select([a > 2, b > 2], [a, b], 0)",
    "xp.take(a, c)",
    "xp.repeat(b, 2)",
    "xp.pad(a, 2)",
    "xp.concatenate([a, b])",
    "xp.histogram(a, 3)[0]",
    "xp.digitize(a, xp.sort(b))",
    "xp.searchsorted(xp.sort(a), b)",
    "xp.interp(a, xp.asarray([1, 2, 3, 4]), xp.asarray([1.0, 4, 9, 16]))",
    "xp.percentile(a, 30)",
    "xp.average(a, weights=b)",
    "xp.vander(a, 3)",
    "xp.polyder(a)",
    "xp.gradient(xp.asarray([1.0, 2.0, 4.0]), xp.asarray([1, 3, 6]).astype(a.dtype))",
    "xp.round(a, -1)",
    "xp.unwrap(a, period=4)",
    "xp.ldexp(xp.asarray([1.0, 2.0]), a[:2])",
    "xp.cumulative_sum(a, include_initial=True)",
    "xp.trace(s) if xp.__name__ == 'numpy' else s.trace()",
    "xp.sum(a, where=b > 2)",
    "xp.max(a, initial=1, where=b > 2)",
    "xp.packbits(a)",
    "xp.bincount(c, weights=a)",
]
"""On vectors a and b, matrices m of shape (2, 3), n of shape (3, 2) and s of shape (3, 3), and int32 indices c."""

OF_ANOTHER_DTYPE = {
    "conj": "bools stay bools",
    "gradient": "the values have another dtype than the coordinates",
    "heaviside": "integers stay integers",
    "trunc": "integers stay integers",
    "bincount(c": "sums have the dtype of the weights",
    "xp.interp": "float16 stays float16",
}
"""Functions whose results have another dtype than numpy's, with the reason; they are compared in value."""

OF_ANOTHER_VALUE = {
    ("xp.ldexp", "bool"): "exponents are integers",
    ("xp.gradient", "bool"): "the coordinates are equal",
}
"""Functions of a dtype that are refused, or have no value, with the reason."""

Array = np.ndarray[Any, Any]


def operands(dtype: str) -> dict[str, Array]:
    def array(*values: int) -> Array:
        return (np.array(values) % 2 if dtype == "bool" else np.array(values)).astype(dtype)

    a, b = array(3, 1, 2, 7, 5, 2), array(2, 1, 4, 3, 6, 5)
    s = array(4, 1, 2, 1, 5, 2, 1, 2, 6).reshape(3, 3)
    return {
        "a": a,
        "b": b,
        "m": a.reshape(2, 3),
        "n": b.reshape(3, 2),
        "s": s,
        "c": np.array([3, 1, 2, 0, 5, 2], "int32"),
    }


def leaves(result: Any) -> Iterator[Any]:
    if isinstance(result, tuple | list):
        for part in result:
            yield from leaves(part)
    else:
        yield result


def narrowed(dtype: str, of: str) -> set[str]:
    """The dtypes here for one of numpy: its default integer is int32 and its default float float32."""
    found = {dtype, *{"int64": ["int32"], "uint64": ["uint32"], "float64": ["float32"]}.get(dtype, [])}
    if of == "float16" and dtype == "float64":  # numpy computes such functions in float64
        return {"float16"}
    return found | ({"float32"} if dtype == "float16" and of != "float16" else set())


def close(found: Array, wanted: Array, of: str) -> bool:
    if found.shape != wanted.shape:
        return False
    if wanted.dtype.kind in "biu" and found.dtype.kind in "biu":
        return bool((found.astype(object) == wanted.astype(object)).all())
    rough = 2e-3 if "float16" in (str(found.dtype), str(wanted.dtype), of) else 1e-5
    return bool(np.allclose(found.astype(float), wanted.astype(float), rough, rough, equal_nan=True))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@each_of("dtype", DTYPES)
def test_values_and_dtypes_are_those_of_numpy(dtype: str) -> None:
    arrays = operands(dtype)
    tensors = {name: tk.asarray(x) for name, x in arrays.items()}
    wrong, tried = [], 0
    for text in EXPRESSIONS:
        try:
            wanted = [np.asarray(y) for y in leaves(eval(text, {"xp": np, **arrays}))]
        except (TypeError, ValueError, OverflowError):  # numpy refuses it
            continue
        if (text.partition("(")[0], dtype) in OF_ANOTHER_VALUE:
            continue
        tried += 1
        found = list(leaves(eval(text, {"xp": tk, **tensors})))
        program = tk.jit(lambda t, text=text: eval(text, {"xp": tk, **t}))
        compiled = found if "bincount" in text else list(leaves(program(tensors)))
        for y, z, w in zip(found, compiled, wanted, strict=True):
            is_free = any(name in text for name in OF_ANOTHER_DTYPE) or not hasattr(y, "dtype")
            agrees = close(np.asarray(y), w, dtype) and close(np.asarray(z), np.asarray(y), dtype)
            if not agrees or not (is_free or str(y.dtype) in narrowed(str(w.dtype), dtype)):
                wrong.append(f"{text}: {y!r}, in a program {z!r}, not {w.dtype} {w.tolist()}")
    assert wrong == []
    assert tried > 90
