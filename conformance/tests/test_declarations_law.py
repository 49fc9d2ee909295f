"""declarations.*: honest backends pass each law, and backends with wrong declarations fail."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from conformance.tests.examining import examine_all
from tensorken_conformance.backends.capability_checks import FIELDS, fault_of
from tensorken_conformance.backends.delegation import delegated, may_delegate
from tensorken_conformance.case import Result
from tensorken_conformance.operands.samples import methods, samples_of, takes, values_of
from tensorken_conformance.subject import Subject
from tensorken_core.errors import BackendError, DTypeError, MissingOpError
from tensorken_core.host.plugin import Capabilities
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS, run
from tensorken_core.language.raw import RawTensor
from tensorken_core.rewriting.fuse import Fuse
from tensorken_core.rewriting.shape_tracker import ShapeTracker
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference

THREE = ("bool", "int32", "float32")


class Small(Numpy):
    """Supports three dtypes, no sort and no cumsum of integers, and raises the right errors for the rest."""

    capabilities = Capabilities(
        dtypes=THREE, unsupported={"sort": "no sort here", "cumsum.int32": "only floats"}
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
            raise MissingOpError("cumsum: only floats")
        return super().cumsum(x, axis)


def run_law(backend: RawTensor[Any], law: str) -> list[Result]:
    return list(examine_all(Subject(backend, "honest"), [law]))


def failures(backend: RawTensor[Any], law: str) -> dict[str, str]:
    """The failed ops, each with the message of its last failure."""
    return {r.case.op: r.says for r in run_law(backend, law) if r.status == "failed"}


@pytest.mark.parametrize(
    "law", ["declarations.refuses", "declarations.levels", "declarations.entries", "declarations.own-work"]
)
@pytest.mark.parametrize("backend", [Numpy, Reference, Small, lambda: ShapeTracker(Fuse(Numpy()))])
def test_honest_backends_pass(law, backend):
    results = run_law(backend(), law)
    assert {r.status for r in results} <= {"passed", "unsupported"}
    assert results or law in ("declarations.refuses", "declarations.own-work")


def test_declared_refusals_count_as_unsupported():
    results = run_law(Small(), "declarations.refuses")
    assert {r.status for r in results} == {"unsupported"}
    reasons = {(r.case.op, r.case.dtype): r.says for r in results}
    assert reasons["sort", "float32"] == "no sort here"
    assert reasons["cumsum", "int32"] == "only floats"
    assert ("cumsum", "float32") not in reasons


class Wide(Small):
    """Computes with dtypes that it does not declare."""

    def checked(self, dtype: Any) -> Any:
        return dtype


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype not in THREE])
def test_core_refuses_undeclared_dtypes_so_a_backend_may_accept_them(dtype):
    backend = Fuse(Wide())
    assert {r.case.dtype for r in run_law(backend, "declarations.refuses")} <= {*THREE}
    for make in (
        lambda: tk.tensor([1], dtype, backend=backend),
        lambda: tk.full(3, 1, dtype=dtype, backend=backend),
        lambda: tk.ones(3, backend=backend).astype(dtype),
    ):
        with pytest.raises(DTypeError, match=rf"has no {dtype}; use one of bool, int32, float32"):
            make()


# ---- declarations.refuses ---------------------------------------------------------------------------------------


class Stale(Small):
    """Declares sort unsupported, but sorts."""

    def sort(self, x: Any, axis: int) -> Any:
        return np.sort(x, axis)


class StaleBody(Small):
    """Declares tanh unsupported, but its body works."""

    capabilities = Capabilities(dtypes=THREE, unsupported={"tanh": "no"})
    tanh = RawTensor.tanh


class Crude(Small):
    """Refuses sort with a KeyError."""

    def sort(self, x: Any, axis: int) -> Any:
        raise KeyError("sort")


class Wordy(Small):
    """Refuses sort with a message of two lines."""

    def sort(self, x: Any, axis: int) -> Any:
        raise NotImplementedError("sort:\nnot yet")


class Late(Small):
    """Refuses sort after it has overwritten the operand."""

    def sort(self, x: Any, axis: int) -> Any:
        x[...] = x[..., ::-1]
        raise NotImplementedError("sort: not yet")


@pytest.mark.parametrize(
    ("backend", "op", "message"),
    [
        (Stale, "sort", "stale declaration"),
        (StaleBody, "tanh", "stale declaration"),
        (Crude, "sort", "KeyError"),
        (Wordy, "sort", "one line"),
        (Late, "sort", "an operand was"),
    ],
)
def test_stale_declarations_and_bad_refusals_fail(backend, op, message):
    assert message in failures(backend(), "declarations.refuses")[op]


# ---- declarations.levels ----------------------------------------------------------------------------------------


class Lacking(Numpy):
    """Lacks a required op, and does not declare that."""

    exp = RawTensor.exp


class LackingInts(Numpy):
    """Lacks a required op for one dtype, and does not declare that."""

    def floor_divide(self, a: Any, b: Any) -> Any:
        if a.dtype.itemsize == 8:
            raise NotImplementedError("floor_divide: int64 comes later")
        return super().floor_divide(a, b)


class Silent(Numpy):
    """Declares no dtypes."""

    capabilities = Capabilities()


class Swallowing(Numpy):
    """Returns None instead of raising an error."""

    def sqrt(self, x: Any) -> Any:
        return None


class Pretender(Numpy):
    """Claims to have every op, and raises MissingOpError for each."""

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
def test_undeclared_missing_ops_fail(backend, ops):
    assert failures(backend(), "declarations.levels").keys() == ops


def test_a_backend_without_declared_dtypes_fails_once():
    [result] = examine_all(Subject(Silent(), "silent"), ["declarations"])
    assert result.status == "failed"
    assert "capabilities = Capabilities(dtypes=" in result.says


# ---- declarations.entries -------------------------------------------------------------------------------

INVALID: list[tuple[str, dict[str, Any], str]] = [
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


@pytest.mark.parametrize(
    ("field", "declared", "message"), INVALID, ids=[f"{row[0]}-{row[2]}" for row in INVALID]
)
def test_invalid_declarations_fail(field, declared, message):
    class Invalid(Numpy):
        capabilities = Capabilities(**{"dtypes": THREE, **declared})

    failed = failures(Invalid(), "declarations.entries")
    assert failed.keys() == {field}
    assert message in failed[field]


def test_valid_declarations_have_no_fault():
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
    """Delegates max to numpy, and computes the rest in plain Python."""

    def max(self, x: Any, axes: Any) -> Any:
        numpy = Numpy()
        dtype = self.dtype(x)
        y = numpy.max(numpy.new(x.shape, list(self.ravel(x)), dtype), axes)
        return self.new(y.shape, memoryview(np.ascontiguousarray(y).reshape(-1)), dtype)


class DelegatingByRun(Reference):
    """Delegates max to numpy through `run`, as core calls ops."""

    def max(self, x: Any, axes: Any) -> Any:
        numpy, dtype = Numpy(), self.dtype(x)
        y = run(numpy, OPS["max"], [numpy.new(x.shape, list(self.ravel(x)), dtype)], (axes,))
        return self.new(y.shape, y.reshape(-1).tolist(), dtype)


class DeclaredDelegating(Delegating):
    """Delegates max to numpy, and declares that."""

    capabilities = Capabilities(dtypes=Reference.capabilities.dtypes, delegates=("numpy",))


class Proxy(RawTensor[Any]):
    """Claims every op, and delegates them all to numpy."""

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


def test_undeclared_delegation_fails():
    delegated = failures(Delegating(), "declarations.own-work")
    assert delegated["max"].startswith("max: delegated to numpy.new, numpy.max;")
    assert "softmax" in delegated  # its body calls max
    assert not delegated.keys() & {"exp", "sum", "min", "sort"}
    assert "delegated to numpy." in failures(DelegatingByRun(), "declarations.own-work")["max"]
    assert failures(DeclaredDelegating(), "declarations.own-work") == {}
    proxied = failures(Proxy(), "declarations.own-work")
    examined = {op.name for op in methods() if any(takes(op, d) for d in Subject(Proxy(), "").dtypes())}
    assert examined - proxied.keys() == {"with_placement"}  # the identity, which calls nothing
    assert proxied["exp"].startswith("exp: delegated to numpy.exp;")


@pytest.mark.parametrize(
    ("line", "may"),
    [
        ("import numpy", False),
        ("from tensorken_numpy.backend import Numpy", True),
        ("def other(x):\n    import tensorken_reference.backend", True),
        ("import tensorken as tk; y = tk.tensor([1.0], backend='numpy')", True),
        ("import tensorken as tk; tk.use_backend('reference')", True),
    ],
)
@pytest.mark.parametrize("file", ["delegating_module.py", "delegating_module/deep/other.py"])
def test_only_a_package_that_names_another_backend_is_watched(line, may, file, tmp_path, monkeypatch):
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.parent != tmp_path:
        (tmp_path / "delegating_module" / "__init__.py").touch()
    path.write_text(f"{line}\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "delegating_module", raising=False)
    spec = importlib.util.find_spec("delegating_module")
    assert spec is not None
    monkeypatch.setitem(sys.modules, "delegating_module", importlib.util.module_from_spec(spec))
    mine = type("Mine", (RawTensor,), {"__module__": "delegating_module", "capabilities": Small.capabilities})
    assert may_delegate(mine()) is may
    assert bool(run_law(mine(), "declarations.own-work")) is may


def attributes() -> Iterator[tuple[type[Any], dict[str, Any]]]:
    """The attributes of both backend classes."""
    for backend in (Numpy, Reference):
        yield backend, dict(vars(backend))


def test_observing_delegation_restores_the_classes():
    before, overrides = list(attributes()), (Numpy.overrides, Reference.overrides)
    with contextlib.suppress(ValueError), delegated(Small()):
        assert "sort" in vars(Reference)
        raise ValueError("stop")
    assert list(attributes()) == before
    assert (Numpy.overrides, Reference.overrides) == overrides
    assert "add" in {name for name, _ in inspect.getmembers(Numpy)}


# ---- operands ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", methods(), ids=lambda op: op.name)
def test_every_op_runs_on_its_sample_operands(op):
    subject = Subject(Numpy(), "numpy")
    for dtype in subject.dtypes():
        if takes(op, dtype):
            for sample in samples_of(op):
                operands = [subject.tensor(x, d) for x, d in values_of(op, sample, dtype)]
                result = subject.run(op, operands, sample[1])
                for y in result if isinstance(result, tuple) else (result,):
                    if y.dtype.kind == "float" and op.name != "from_bits":  # its results may be NaN
                        assert np.isfinite(subject.read(y)).all()


def test_capabilities_of_another_type_are_rejected() -> None:
    class ByDict(Numpy):
        capabilities = {"dtypes": ("float32",)}  # type: ignore[assignment]  # noqa: RUF012

    with pytest.raises(BackendError, match="its capabilities are a dict; declare Capabilities"):
        Subject(ByDict(), "mine")
