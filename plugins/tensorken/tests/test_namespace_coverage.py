"""Every function of the namespace is compared with numpy: each has a row in a table, and agrees with it."""

from __future__ import annotations

import inspect
import warnings
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import tensorken as tk
from core.tests.drawing import BACKENDS, FLOATS, near, same, tensor
from core.tests.each import each_of
from core.tests.examples import examples
from core.tests.support import array
from plugins.tensorken.tests.namespace.places import QUERIES
from plugins.tensorken.tests.namespace.products import LINALG, PRODUCTS
from plugins.tensorken.tests.namespace.rows import Fixed, Row, apart, common
from plugins.tensorken.tests.namespace.shapes import CREATION, PROMOTION, SHAPING
from plugins.tensorken.tests.namespace.values import ELEMENTWISE, REDUCTIONS, SEARCHING
from plugins.tensorken.tests.test_laws_of_functions import LAWS
from tensorken.plugin_names import plugin_names
from tensorken_core.errors import DTypeError, TensorkenError
from tensorken_core.language.dtypes import DType

pytestmark = pytest.mark.slow

NAMESPACE = ELEMENTWISE | REDUCTIONS | SEARCHING | SHAPING | CREATION | PROMOTION | PRODUCTS
NAMESPACE["norm"] = LINALG["norm"]

WITHOUT_VALUES = {
    **dict.fromkeys(
        ("angle", "complex", "conjugate", "iscomplex", "iscomplexobj", "isreal", "isrealobj"),
        "test_complex compares complex numbers with numpy's",
    ),
    "roots": "its results are complex: test_complex_linalg compares them with numpy's",
    "convolution": "numpy convolves vectors alone: test_convolution compares it with its definition and JAX",
    "einsum_path": "test_products compares it with numpy's",
    "empty": "its elements are arbitrary: test_creation holds its shape and dtype",
    "empty_like": "as empty",
    **dict.fromkeys(
        ("frombuffer", "load", "save", "savez", "savez_compressed"),
        "test_files_of_arrays compares bytes and files with numpy's",
    ),
    "randn": "its elements are random: test_creation holds their moments",
    "symbol": "it makes text: test_display shows it",
    "with_placement": "the identity: the tests of the JAX backend place values with it",
}
"""Functions that numpy lacks, or that are compared with it in a test of their own."""

HOMES = ("tensorken.arrays.functions.", "tensorken.arrays.creation", "tensorken.linalg", "tensorken.special")
"""Where functions of arrays are defined; other functions of the namespace take functions or names."""

OTHER_HOMES = (
    "tensorken.arrays.display.",
    "tensorken.callbacks",
    "tensorken.collectives",
    "tensorken.compilation.",
    "tensorken.control_flow.",
    "tensorken.debugging",
    "tensorken.derivatives",
    "tensorken.distributed.",
    "tensorken.programs.",
    "tensorken_core.host.",
    "tensorken_core.transforms.",
)
"""Where the other functions are defined."""


def public(module: Any) -> dict[str, Any]:
    """The public names of a module with their values, lazy ones included, without those that plugins add."""
    return {
        name: getattr(module, name)
        for name in dir(module)
        if not name.startswith("_") and name not in plugin_names()
    }


def functions_of(module: Any) -> dict[str, Any]:
    """The public functions of arrays of a module."""
    return {
        name: value
        for name, value in public(module).items()
        if isinstance(value, FunctionType) and value.__module__.startswith(HOMES)
    }


def test_every_function_has_a_row() -> None:
    assert set(functions_of(tk)) == {*NAMESPACE, *WITHOUT_VALUES, *LAWS, *QUERIES}
    assert set(functions_of(tk.linalg)) == {
        *LINALG,
        "eig",
        "eigvals",
    }  # test_complex_linalg compares these two
    assert not set(NAMESPACE) & {*WITHOUT_VALUES, *LAWS}


def test_functions_elsewhere_are_not_functions_of_arrays() -> None:
    arrays = functions_of(tk)
    others = {n: value for n, value in public(tk).items() if inspect.isroutine(value) and n not in arrays}
    assert {"grad", "jit", "scan"} <= set(others)
    assert not {n: f.__module__ for n, f in others.items() if not f.__module__.startswith(OTHER_HOMES)}


CASES = [("", name, row) for name, row in NAMESPACE.items()] + [
    ("linalg.", name, row) for name, row in LINALG.items()
]


@pytest.mark.feature(174, 176, 177)
@each_of(("backend", "count"), [("fused numpy", 25), ("reference", 5)])
@pytest.mark.parametrize(
    ("prefix", "name", "row"), CASES, ids=[f"{prefix}{name}" for prefix, name, _ in CASES]
)
def test_it_agrees_with_numpy(prefix: str, name: str, row: Row, backend: str, count: int) -> None:
    module, theirs = (tk.linalg, np.linalg) if prefix else (tk, np)
    oracle = row.numpy or getattr(theirs, name)

    @settings(max_examples=examples(count), suppress_health_check=list(HealthCheck))
    @given(st.data())
    def agrees(data: Any) -> None:
        positional, keywords = row.operands(data.draw)
        with tk.use_backend(BACKENDS[backend]):
            compared(getattr(module, name), oracle, row, BACKENDS[backend], positional, keywords)

    agrees()


def compared(mine: Any, oracle: Any, row: Row, backend: Any, positional: Any, keywords: Any) -> None:
    """Assert equal results, or an error of both."""
    kinds = [
        str(x.dtype) for x in flat(list(positional) + list(keywords.values())) if isinstance(x, np.ndarray)
    ]
    dtype = row.cast(common(*kinds)) if kinds and row.cast is not apart else None

    def cast(x: Any) -> Any:
        with np.errstate(all="ignore"):
            x = x if dtype is None else x.astype(dtype)
            return x.astype("float64") if row.near and dtype in FLOATS else x

    def there(x: Any) -> Any:
        return tensor(x, backend)

    if kinds and common(*kinds) in row.refused:
        with pytest.raises(DTypeError, match=f"not defined for {common(*kinds)}"):
            mine(*mapped(there, positional), **mapped(there, keywords))
        return
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            expected = oracle(*mapped(cast, positional), **mapped(cast, keywords))
    except (ValueError, TypeError, IndexError, OverflowError, np.linalg.LinAlgError):
        with pytest.raises(TensorkenError):
            mine(*mapped(there, positional), **mapped(there, keywords))
        return
    found = mine(*mapped(there, positional), **mapped(there, keywords))
    compare(found if row.read is None else row.read(found), expected, row, row.result, dtype)


def flat(x: Any) -> list[Any]:
    return [leaf for part in x for leaf in flat(part)] if isinstance(x, list | tuple) else [x]


def mapped(change: Any, x: Any) -> Any:
    """The arguments with each array changed; fixed ones are only converted to tensors."""
    if isinstance(x, Fixed):
        return change(x.array) if change.__name__ == "there" else x.array
    if isinstance(x, np.ndarray):
        return change(x)
    if isinstance(x, list | tuple):
        return type(x)(mapped(change, part) for part in x)
    return {name: mapped(change, part) for name, part in x.items()} if isinstance(x, dict) else x


def compare(found: Any, expected: Any, row: Row, result: Any, dtype: str | None) -> None:
    """Shape, dtype and values, of one result or of several."""
    if isinstance(found, tuple | list) and not isinstance(expected, tuple | list):
        raise AssertionError(f"{len(found)} results for one")
    if isinstance(found, tuple | list):
        results = result if isinstance(result, tuple) else (result,) * len(expected)
        for mine, theirs, kind in zip(found, expected, results, strict=True):
            compare(mine, theirs, row, kind, dtype)
        return
    if not isinstance(found, tk.Tensor):
        if isinstance(expected, dict):
            found = {key: getattr(found, key) for key in expected}
        assert str(found) == expected if isinstance(found, DType) else found == expected
        return
    wanted = np.asarray(expected)
    if row.near and wanted.dtype.kind == "f":
        kind = dtype or str(wanted.dtype)
        with np.errstate(all="ignore"):
            near(found, wanted.astype(kind), kind, row.tolerance.get(kind))
    elif row.signs:
        same(found, wanted, result)
    else:
        assert str(found.dtype) == (result or str(wanted.dtype))
        assert found.shape == wanted.shape
        np.testing.assert_array_equal(array(found), wanted)
