"""Every name of the array API standard is here, with a signature that takes every call that the standard's takes.

The names and signatures are those of array-api-strict; docs/array-api.md lists different ones.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import array_api_strict as strict
import pytest

import tensorken as tk
from core.tests.each import each_of
from tensorken_core.host.plugin import Capabilities
from tensorken_numpy.backend import Numpy
from tools import array_api

NOT_OF_THE_STANDARD = {  # but of array-api-strict
    *("ArrayAPIStrictFlags", "Device", "__version__"),
    *("get_array_api_strict_flags", "reset_array_api_strict_flags", "set_array_api_strict_flags"),
}
NEWER_THAN_2024_12 = {"broadcast_shapes", "isin"}
OF_THE_PROTOCOLS_OF_PYTHON = {
    "__new__",
    "__array__",
    "__buffer__",
    "__annotations__",
    "__module__",
    "__slots__",
    "__weakref__",
}

P = inspect.Parameter
POSITIONAL = (P.POSITIONAL_ONLY, P.POSITIONAL_OR_KEYWORD)
BY_NAME = (P.KEYWORD_ONLY, P.POSITIONAL_OR_KEYWORD)


def names() -> Iterator[tuple[str, Any]]:
    """All public names, with a prefix for extensions and array methods, and their objects in array-api-strict."""
    for prefix, module in (("", strict), ("linalg.", strict.linalg)):
        for name in sorted(set(module.__all__) - NOT_OF_THE_STANDARD - NEWER_THAN_2024_12 - {"linalg"}):
            yield prefix + name, getattr(module, name)
    array = type(strict.asarray(0.0))
    for name in sorted(set(dir(array)) - OF_THE_PROTOCOLS_OF_PYTHON):
        inherited = getattr(object, name, None) is getattr(array, name)
        private = name.startswith("_") and not name.startswith("__")
        in_place = name.startswith("__i") and f"__{name[3:]}" in dir(array)  # `x += y` needs no method
        if not (inherited or private or in_place):
            yield f"Tensor.{name}", getattr(array, name)


NAMES = dict(names())
FUNCTIONS = [name for name, value in NAMES.items() if inspect.isfunction(value)]


def found(name: str) -> Any:
    """The object with a dotted name in tensorken; KeyError if there is none."""
    place: Any = tk
    for part in name.split("."):
        if not hasattr(place, part):
            raise KeyError(name)
        place = getattr(place, part)
    return place


def misfits(standard: Any, ours: Any) -> list[str]:
    """The reasons why a call valid for the first signature may fail or mean something else with the second."""
    given = list(inspect.signature(standard).parameters.values())
    taken = list(inspect.signature(ours).parameters.values())
    in_place = [p for p in taken if p.kind in POSITIONAL]
    by_name = {p.name: p for p in taken if p.kind in BY_NAME}
    rest = any(p.kind is P.VAR_POSITIONAL for p in taken)
    wrong, used = [], set()
    for place, p in enumerate(given):
        if p.kind is P.VAR_POSITIONAL:
            wrong += [] if rest else [f"does not take *{p.name}"]
            continue
        mine = in_place[place] if p.kind in POSITIONAL and place < len(in_place) else by_name.get(p.name)
        if mine is None or (p.kind in BY_NAME and (mine.name != p.name or mine.kind not in BY_NAME)):
            wrong.append(f"does not take {p.name} as {p.kind.description}")
            continue
        used.add(mine.name)
        if p.default is not P.empty and mine.default is P.empty:
            wrong.append(f"requires {p.name}")
        elif type(p.default).__name__ == "Undef" or mine.default is None:
            continue  # what is left out is no value: what it stands for, the values tell
        elif p.default is not P.empty and mine.default != p.default:
            wrong.append(f"takes {mine.default!r} for {p.name}, not {p.default!r}")
    wrong += [
        f"requires {p.name} too"
        for p in taken
        if p.name not in used and p.default is P.empty and p.kind in (*POSITIONAL, P.KEYWORD_ONLY)
    ]
    return wrong


@each_of("name", NAMES)
def test_the_name_is_here(name):
    found(name)


@each_of("name", FUNCTIONS)
def test_the_signature_accepts_the_arguments_of_the_standard(name):
    standard = NAMES[name]
    if name == "Tensor.to_device":  # in array-api-strict stream may be positional; in the standard it may not

        def standard(self, device, /, *, stream=None): ...

    assert misfits(standard, found(name)) == []


def test_the_lists_of_differences_only_shrink():
    assert len(array_api.departures()) <= 7
    for backend in ("numpy", "reference", "jax", "torch"):
        assert len(array_api.expected_failures(backend)) <= 4
    assert len(array_api.expected_failures("wgpu")) <= 7


def test_a_misfit_would_be_seen():
    def standard(x1, x2, /, axis=None, *, dtype=None, keepdims=False): ...

    def same(a, b, axis=None, *more, keepdims=False, dtype=None, where=None): ...

    def worse(x1, /, axis, *, keepdims=True, extra): ...

    assert misfits(standard, same) == []
    assert misfits(standard, worse) == [
        "requires axis",
        "does not take dtype as keyword-only",
        "takes True for keepdims, not False",
        "requires extra too",
    ]


def test_constants_dtypes_and_versions():
    for name in ("e", "inf", "pi"):
        assert getattr(tk, name) == getattr(strict, name)
    assert tk.nan != tk.nan
    assert tk.newaxis is None
    assert tk.__array_api_version__ == "2025.12"
    for name in ("bool", "int8", "int32", "int64", "uint8", "uint64", "float32", "float64"):
        dtype = getattr(tk, name)
        assert (dtype.name, tk.asarray([1], dtype=dtype).dtype) == (name, dtype)
        assert dtype == dtype and dtype != "x" and hash(dtype) == hash(dtype)


def test_the_namespace_of_a_tensor():
    x = tk.asarray([1.0])
    assert x.__array_namespace__() is tk
    for version in (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
        assert x.__array_namespace__(api_version=version) is tk
    with pytest.raises(ValueError, match=r"version '2009.12' .* is not supported; use 2025.12"):
        x.__array_namespace__(api_version="2009.12")
    kept = []
    tk.grad(lambda y: (kept.append(y.__array_namespace__()), y.sum())[1])(x)
    assert kept == [tk]


def test_the_inspection_of_the_namespace():
    info, other = tk.__array_namespace_info__(), strict.__array_namespace_info__()
    assert info.capabilities().keys() == other.capabilities().keys()
    assert info.capabilities()["max dimensions"] == 64
    assert len(tk.zeros((1,) * 64).shape) == 64
    assert info.default_device() in info.devices()
    for device in (None, *info.devices()):
        defaults = info.default_dtypes(device=device)
        assert defaults == {"real floating": tk.float32, "complex floating": tk.complex64,
                            "integral": tk.int32, "indexing": tk.int32}  # fmt: skip
        for kind in (None, "bool", "signed integer", "unsigned integer", "integral", "real floating",
                     "complex floating", "numeric", ("bool", "integral"), ()):  # fmt: skip
            ours = info.dtypes(device=device, kind=kind)
            theirs = set(other.dtypes(kind=kind))
            assert set(ours) == theirs
            assert all(dtype.name == name for name, dtype in ours.items())
    assert tk.asarray(1.0).dtype is info.default_dtypes()["real floating"]
    assert tk.asarray(1).dtype is info.default_dtypes()["integral"]
    assert tk.argmax(tk.asarray([1.0])).dtype is info.default_dtypes()["indexing"]
    with pytest.raises(TypeError, match=r"^dtypes: the kind 'real' is unknown; the kinds are bool, "):
        info.dtypes(kind="real")
    with pytest.raises(tk.errors.BackendError, match="no device 'gpu'"):
        info.dtypes(device="gpu")
    with tk.use_backend("reference"):
        assert info.devices() == tuple(tk.devices("reference"))


def test_the_dtypes_are_those_of_the_backend_in_use():
    class Narrow(Numpy):
        capabilities = Capabilities(dtypes=("bool", "int32", "float32"))

    with tk.use_backend(Narrow()):
        dtypes = tk.__array_namespace_info__().dtypes()
        assert set(dtypes) == {"bool", "int32", "float32", "complex64"}
        for dtype in dtypes.values():
            assert tk.zeros(1, dtype=dtype).dtype is dtype
        assert tk.__array_namespace_info__().dtypes(kind="unsigned integer") == {}
        assert set(array_api.missing_dtypes()) == set(array_api.STANDARD_DTYPES) - set(dtypes)
    assert array_api.missing_dtypes() == []


OPERATIONS = [
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "@",
    "&",
    "|",
    "^",
    "<<",
    ">>",
    "<",
    "<=",
    ">",
    ">=",
    "==",
    "!=",
]


@pytest.mark.parametrize("symbol", OPERATIONS)
def test_operators_take_tensors_and_numbers_on_both_sides_and_in_place(symbol):
    integer = symbol in ("&", "|", "^", "<<", ">>")
    a, b = [[5, 3], [2, 7]], [[2, 1], [3, 4]]
    dtype = "int32" if integer else "float32"
    namespaces = [(xp, getattr(xp, dtype)) for xp in (tk, strict)]
    pairs = [(xp.asarray(a, dtype=d), xp.asarray(b, dtype=d)) for xp, d in namespaces]

    def agree(expression: str) -> None:
        ours, theirs = (eval(expression, {"a": a, "b": b}) for a, b in pairs)
        assert ours.dtype.name == str(theirs.dtype).split(".")[-1]
        assert ours.tolist() == [[v for v in row] for row in theirs._array.tolist()], expression  # noqa: C416

    agree(f"a {symbol} b")
    if symbol != "@":
        agree(f"a {symbol} 2")
        agree(f"3 {symbol} b")
    if symbol[0] not in "<>=!" or symbol in ("<<", ">>"):
        before = pairs[0][0].tolist()
        place = {"x": pairs[0][0], "y": pairs[0][1]}
        exec(f"x {symbol}= y", place)
        assert place["x"].tolist() == eval(f"a {symbol} b", dict(zip("ab", pairs[0], strict=True))).tolist()
        assert pairs[0][0].tolist() == before


def test_numbers_of_tensors_without_axes():
    assert float(tk.asarray(2.5)) == 2.5
    assert int(tk.asarray(2)) == [0, 1, 2].index(2) == tk.asarray(2).__index__()
    assert complex(tk.asarray(2.5)) == 2.5 + 0j
    assert bool(tk.asarray(True)) is True
    for value in (float("nan"), float("inf"), float("-inf")):
        assert str(complex(tk.asarray(value)).real) == str(float(tk.asarray(value))) == str(value)
    with pytest.raises(OverflowError):
        int(tk.asarray(float("inf")))
    with pytest.raises(TypeError):
        tk.asarray(2.0).__index__()
