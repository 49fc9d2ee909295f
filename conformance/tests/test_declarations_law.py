"""declarations.*: each law finds those who break it, and leaves those in peace who keep it."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from conformance.tests.examining import examine_all
from tensorken_conformance.capability_checks import FIELDS, fault_of
from tensorken_conformance.case import Result
from tensorken_conformance.operands.samples import methods, samples_of, takes, values_of
from tensorken_conformance.running.delegation import delegated
from tensorken_conformance.subject import Subject
from tensorken_core.errors import BackendError, DTypeError, MissingOpError
from tensorken_core.host.plugin import Capabilities
from tensorken_core.language.op import OPS, run
from tensorken_core.language.raw import RawTensor
from tensorken_core.rewriting.fuse import Fuse
from tensorken_core.rewriting.shape_tracker import ShapeTracker
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference

THREE = ("bool", "int32", "float32")


class Small(Numpy):
    """Three dtypes, no sort, no running sums of ints; all else is refused as it should be."""

    capabilities = Capabilities(
        dtypes=THREE, unsupported={"sort": "no sort here", "cumsum.int32": "floats alone"}
    )

    def checked(self, dtype: Any) -> Any:
        if dtype.name not in self.capabilities.dtypes:
            raise DTypeError(f"small: no {dtype}")
        return dtype

    def new(self, shape: Any, data: Any, dtype: Any) -> Any:
        return super().new(shape, data, self.checked(dtype))

    def full(self, shape: Any, value: Any, dtype: Any) -> Any:
        return super().full(shape, value, self.checked(dtype))

    def cast(self, x: Any, dtype: Any) -> Any:
        return super().cast(x, self.checked(dtype))

    def sort(self, x: Any, axis: int) -> Any:
        raise NotImplementedError("no sort here")

    def cumsum(self, x: Any, axis: int) -> Any:
        if x.dtype.kind == "i":
            raise MissingOpError("cumsum: floats alone")
        return super().cumsum(x, axis)


def results(backend: RawTensor[Any], law: str) -> list[Result]:
    return list(examine_all(Subject(backend, "honest"), [law]))


def failures(backend: RawTensor[Any], law: str) -> dict[str, str]:
    """What failed: the ops, and what was said of the last of each."""
    return {r.case.op: r.says for r in results(backend, law) if r.status == "failed"}


@pytest.mark.parametrize(
    "law", ["declarations.refuses", "declarations.levels", "declarations.entries", "declarations.own-work"]
)
@pytest.mark.parametrize("backend", [Numpy, Reference, Small, lambda: ShapeTracker(Fuse(Numpy()))])
def test_the_honest_keep_the_laws(law, backend):
    found = results(backend(), law)
    assert {r.status for r in found} <= {"passed", "unsupported"}
    assert found or law == "declarations.refuses"


def test_what_is_refused_counts_as_declared_unsupported():
    found = results(Small(), "declarations.refuses")
    assert {r.status for r in found} == {"unsupported"}
    says = {(r.case.op, r.case.dtype): r.says for r in found}
    assert says["sort", "float32"] == "no sort here"
    assert says["cumsum", "int32"] == "floats alone"
    assert says["exp", "float64"] == says["full", "float64"] == "has no float64"
    assert ("cumsum", "float32") not in says
    assert {r.case.dtype for r in found} == {"bool", "int32", "float32", "int64", "float16", "float64"}


class Unguarded(Small):
    """It trusts in core, and fails by accident where it lacks a dtype."""

    def checked(self, dtype: Any) -> Any:
        return dict.fromkeys(THREE, dtype)[dtype.name]


def test_a_dtype_that_core_refuses_may_fail_in_any_way():
    assert failures(Unguarded(), "declarations.refuses") == {}


# ---- declarations.refuses ---------------------------------------------------------------------------------------


class Stale(Small):
    """It can sort after all."""

    def sort(self, x: Any, axis: int) -> Any:
        return np.sort(x, axis)


class StaleBody(Small):
    """It leaves the op that it declares unsupported to the op's body, which works."""

    capabilities = Capabilities(dtypes=THREE, unsupported={"tanh": "no"})
    tanh = RawTensor.tanh


class Wide(Small):
    """It has float64 after all."""

    def checked(self, dtype: Any) -> Any:
        return dtype


class Crude(Small):
    """It says no by whatever its dictionary raises."""

    def sort(self, x: Any, axis: int) -> Any:
        raise KeyError("sort")


class Wordy(Small):
    """It says no at length."""

    def sort(self, x: Any, axis: int) -> Any:
        raise NotImplementedError("sort:\nnot yet")


class Late(Small):
    """It says no when it has begun."""

    def sort(self, x: Any, axis: int) -> Any:
        x[...] = x[..., ::-1]
        raise NotImplementedError("sort: not yet")


class WrongCast(Small):
    """It refuses a dtype in creation, and not in casts."""

    def cast(self, x: Any, dtype: Any) -> Any:
        return Numpy.cast(self, x, dtype)


@pytest.mark.parametrize(
    ("backend", "op", "says"),
    [
        (Stale, "sort", "stale declaration"),
        (StaleBody, "tanh", "stale declaration"),
        (Wide, "new", "stale declaration"),
        (Wide, "exp", "blocked by declarations.refuses/new/float64"),
        (WrongCast, "cast", "stale declaration"),
        (Crude, "sort", "KeyError"),
        (Wordy, "sort", "one line"),
        (Late, "sort", "an operand was"),
    ],
)
def test_a_stale_or_a_rude_declaration_is_found(backend, op, says):
    found = failures(backend(), "declarations.refuses")
    assert says in found[op]


# ---- declarations.levels ----------------------------------------------------------------------------------------


class Lacking(Numpy):
    """It lacks a required op and says nothing of that."""

    exp = RawTensor.exp


class LackingInts(Numpy):
    """It lacks a required op for one dtype."""

    def floor_divide(self, a: Any, b: Any) -> Any:
        if a.dtype.itemsize == 8:
            raise NotImplementedError("floor_divide: int64 comes later")
        return super().floor_divide(a, b)


class Silent(Numpy):
    """It declares nothing."""

    capabilities = Capabilities()


class Swallowing(Numpy):
    """It answers with nothing where it should say that it cannot."""

    def sqrt(self, x: Any) -> Any:
        return None


class Pretender(Numpy):
    """It says that it has every op, and raises for each."""

    def has(self, op: Any) -> bool:
        return True

    def interpret(self, op: Any, operands: Any, params: Any) -> Any:
        raise MissingOpError(f"{op.name}: not here")


for _op in OPS.values():
    if _op.method:
        setattr(Pretender, _op.name, getattr(RawTensor, _op.name))


@pytest.mark.parametrize(
    ("backend", "ops"),
    [
        (Lacking, {"exp"}),
        (LackingInts, {"floor_divide"}),
        (Silent, {"dtypes"}),
        (Swallowing, {"sqrt"}),
        (Pretender, {op.name for op in methods() if op.body is None}),
    ],
)
def test_what_is_missing_without_a_word_is_found(backend, ops):
    assert failures(backend(), "declarations.levels").keys() == ops


def test_who_declares_nothing_is_told_so_once():
    found = list(examine_all(Subject(Silent(), "silent"), ["declarations"]))
    assert [r.status for r in found] == ["failed"]
    assert "capabilities = Capabilities(dtypes=" in found[0].says


# ---- declarations.entries -------------------------------------------------------------------------------

WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("ulp", {"ulp": {"floot": 1}}, "did you mean floor?"),
    ("ulp", {"ulp": {"exp.float23": 1}}, "no dtype 'float23'"),
    ("ulp", {"ulp": {"exp.float64": 1}}, "none of the declared dtypes"),
    ("ulp", {"ulp": {"add.int32": 1}}, "only floating-point"),
    ("ulp", {"ulp": {"bitwise_and": 1}}, "only floating-point"),
    ("ulp", {"ulp": {"exp": -1}}, "not negative"),
    ("ulp", {"ulp": {"exp": 0.5}}, "must be an int"),
    ("ulp", {"ulp": {"exp.int32": 1}}, "matches nothing"),
    ("unsupported", {"unsupported": {"sortt": "later"}}, "did you mean sort"),
    ("unsupported", {"unsupported": {"sort": ""}}, "no reason"),
    ("unsupported", {"unsupported": {"exp.bool": "later"}}, "matches nothing"),
    ("nondeterministic", {"nondeterministic": ("summ",)}, "did you mean sum"),
    ("nondeterministic", {"nondeterministic": ("sum",), "unsupported": {"sum": "no"}}, "unsupported, too"),
    ("flushes_subnormals", {"flushes_subnormals": ("int32",)}, "floating-point dtypes"),
    ("flushes_subnormals", {"flushes_subnormals": ("float64",)}, "floating-point dtypes"),
    ("flushes_subnormals", {"flushes_subnormals": ("float",)}, "no dtype 'float'"),
    ("dtypes", {"dtypes": (*THREE, "flaot64")}, "did you mean float64"),
    ("delegates", {"delegates": ("nunpy",)}, "did you mean numpy"),
]


@pytest.mark.parametrize(("field", "declared", "says"), WRONG, ids=[f"{w[0]}-{w[2]}" for w in WRONG])
def test_a_declaration_that_means_nothing_is_found(field, declared, says):
    class Odd(Numpy):
        capabilities = Capabilities(**{"dtypes": THREE, **declared})

    found = failures(Odd(), "declarations.entries")
    assert found.keys() == {field}
    assert says in found[field]


def test_a_declaration_that_means_something_is_not():
    declared = Capabilities(
        dtypes=THREE,
        ulp={"*": 4, "exp": 2, "exp.float32": 1, "*.float32": 3, "sum": 0},
        unsupported={"sort": "no", "cumsum.int32": "no"},
        nondeterministic=("sum", "scatter_add"),
        flushes_subnormals=("float32",),
        delegates=("numpy",),
    )
    for field in FIELDS:
        for key in getattr(declared, field):
            assert fault_of(declared, field, key) == ""


# ---- declarations.own-work --------------------------------------------------------------------------------------


class Delegating(Reference):
    """It computes in plain Python, but for one op, which it has numpy do."""

    def max(self, x: Any, axes: Any) -> Any:
        numpy = Numpy()
        dtype = self.dtype(x)
        y = numpy.max(numpy.new(x.shape, list(self.ravel(x)), dtype), axes)
        return self.new(y.shape, memoryview(np.ascontiguousarray(y).reshape(-1)), dtype)


class DelegatingByRun(Reference):
    """The same, by the way that core calls ops."""

    def max(self, x: Any, axes: Any) -> Any:
        numpy, dtype = Numpy(), self.dtype(x)
        y = run(numpy, OPS["max"], [numpy.new(x.shape, list(self.ravel(x)), dtype)], (axes,))
        return self.new(y.shape, y.reshape(-1).tolist(), dtype)


class Open(Delegating):
    """The same, and it says so."""

    capabilities = Capabilities(dtypes=Reference.capabilities.dtypes, delegates=("numpy",))


class Proxy(RawTensor[Any]):
    """It claims every op, and has numpy do them all."""

    capabilities = Capabilities(dtypes=THREE)

    def __init__(self) -> None:
        self.numpy = Numpy()

    def has(self, op: Any) -> bool:
        return True

    def interpret(self, op: Any, operands: Any, params: Any) -> Any:
        return run(self.numpy, op, operands, params)

    def __getattribute__(self, name: str) -> Any:
        if name in ("new", "full", "ravel", "shape", "dtype"):
            return getattr(self.numpy, name)
        return super().__getattribute__(name)


def test_delegated_work_is_found():
    delegated = failures(Delegating(), "declarations.own-work")
    assert delegated["max"].startswith("max: delegated to numpy.new, numpy.max;")
    assert "softmax" in delegated  # its body takes the maximum
    assert not delegated.keys() & {"exp", "sum", "min", "sort"}
    assert "delegated to numpy." in failures(DelegatingByRun(), "declarations.own-work")["max"]
    assert failures(Open(), "declarations.own-work") == {}
    proxied = failures(Proxy(), "declarations.own-work")
    assert len(proxied) == len(
        [op for op in methods() if any(takes(op, d) for d in Subject(Proxy(), "").dtypes())]
    )
    assert proxied["exp"].startswith("exp: delegated to numpy.exp;")


def attributes() -> Iterator[tuple[type[Any], dict[str, Any]]]:
    for kind in (Numpy, Reference):
        yield kind, dict(vars(kind))


def test_watching_leaves_no_trace():
    before, overrides = list(attributes()), (Numpy.overrides, Reference.overrides)
    with contextlib.suppress(ValueError), delegated(Small()):
        assert "sort" in vars(Reference)
        raise ValueError("stop")
    assert list(attributes()) == before
    assert (Numpy.overrides, Reference.overrides) == overrides
    assert "add" in {name for name, _ in inspect.getmembers(Numpy)}


# ---- operands ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", methods(), ids=lambda op: op.name)
def test_every_op_has_operands_on_which_it_runs(op):
    subject = Subject(Numpy(), "numpy")
    for dtype in subject.dtypes():
        if takes(op, dtype):
            for sample in samples_of(op):
                operands = [subject.tensor(x, kind) for x, kind in values_of(op, sample, dtype)]
                result = subject.run(op, operands, sample[1])
                for y in result if isinstance(result, tuple) else (result,):
                    if y.dtype.kind == "float" and op.name != "from_bits":  # which gives NaN, too
                        assert np.isfinite(subject.read(y)).all()


def test_what_is_declared_in_another_form_is_refused_before_any_case() -> None:
    class ByDict(Numpy):
        capabilities = {"dtypes": ("float32",)}  # type: ignore[assignment]  # noqa: RUF012

    with pytest.raises(BackendError, match="its capabilities are a dict; declare Capabilities"):
        Subject(ByDict(), "mine")
