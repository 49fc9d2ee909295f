"""The laws on exact results: right backends pass, and backends that are wrong in a small corner fail there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from conformance.tests.examining import failures, faulty, is_found, results
from tensorken_conformance.laws.cipher import KNOWN, threefry
from tensorken_conformance.running.examine import laws_for
from tensorken_conformance.subject import Subject
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference

LAWS = ("values.movement", "values.extrema", "values.indexing", "values.arrangement", "values.cipher")


@pytest.mark.nightly
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("backend", [Numpy(), Reference()], ids=["numpy", "reference"])
def test_right_backends_pass(backend: Any, law: str) -> None:
    found = results(backend, law, 7, where=lambda case: case.dtype in ("bool", "int32", "float16"))
    assert {result.status for result in found} == {"passed"}
    assert len(found) > 100
    assert len({result.case.id for result in found}) == len(found)


@pytest.mark.parametrize("law", LAWS)
def test_cases_do_not_depend_on_the_seed(law: str) -> None:
    first, second = (Subject(Numpy(), "numpy", seed) for seed in (0, 1))
    (chosen,) = laws_for(first, [law])
    assert list(chosen.cases(first)) == list(chosen.cases(second))


@pytest.mark.parametrize("law", [*LAWS, "values.workgroups"])
def test_the_quick_run_has_a_case_an_op(law: str) -> None:
    found = results(Numpy(), law, depth="smoke")
    assert {result.status for result in found} <= {"passed"}
    assert len({result.case.op for result in found}) == len(found) < 10


def test_the_quick_run_adds_integers_where_the_full_one_does() -> None:
    """Sums of floats are rounded in an order that is the backend's."""
    found = results(Numpy(), "values.indexing", depth="smoke", where=lambda case: case.op == "scatter_add")
    assert [result.case.dtype for result in found] == ["int32"]


def test_other_laws_find_the_cases_that_they_need() -> None:
    subject = Subject(Numpy(), "numpy")
    (chosen,) = laws_for(subject, ["values.movement"])
    ids = {case.id for case in chosen.cases(subject)}
    for dtype in Numpy.capabilities.dtypes:
        for op in ("reshape", "permute", "expand", "flip", "pad", "crop"):
            assert f"values.movement/{op}/{dtype}/small" in ids


def is_odd_int64(x: Any) -> bool:
    return bool(x.dtype == np.int64 and x.size % 2)


def changed(y: Any, index: Any, value: Any) -> Any:
    y = np.array(y)
    y[index] = value
    return y


FAULTS: dict[str, tuple[str, str, Callable[..., Any]]] = {
    "flips no int64 of an odd size": (
        "values.movement",
        "flip",
        lambda right, x, axes: x if is_odd_int64(x) else right(x, axes),
    ),
    "loses the last element above 256": (
        "values.movement",
        "pad",
        lambda right, x, pads: changed(right(x, pads), -1, 0) if x.shape == (257,) else right(x, pads),
    ),
    "loses the sign of zeros of float16": (
        "values.movement",
        "reshape",
        lambda right, x, shape: (
            right(x, shape) + x.dtype.type(0) if x.dtype == np.float16 else right(x, shape)
        ),
    ),
    "carries float64 as float32": (
        "values.movement",
        "permute",
        lambda right, x, order: (
            right(x.astype("float32").astype(x.dtype), order) if x.dtype == np.float64 else right(x, order)
        ),
    ),
    "crops from the start what is a view": (
        "values.movement",
        "crop",
        lambda right, x, limits: (
            right(x, tuple([(0, e - s) for s, e in limits])) if x.strides[-1:] < (0,) else right(x, limits)
        ),
    ),
    "expands the last of three axes wrongly": (
        "values.movement",
        "expand",
        lambda right, x, shape: (
            right(x, shape)[..., ::-1] if x.ndim == 3 and x.dtype == bool else right(x, shape)
        ),
    ),
    "begins with the lowest finite number": (
        "values.extrema",
        "max",
        lambda right, x, axes: (
            np.maximum(right(x, axes), np.finfo(x.dtype).min) if x.dtype == np.float32 else right(x, axes)
        ),
    ),
    "leaves NaN out": (
        "values.extrema",
        "min",
        lambda right, x, axes: (
            np.fmin.reduce(x, axes, keepdims=True) if x.dtype == np.float16 and axes else right(x, axes)
        ),
    ),
    "makes the zeros of rows of negative zeros positive": (
        "values.extrema",
        "max",
        lambda right, x, axes: (
            right(x, axes) + x.dtype.type(0) if x.dtype.kind == "f" and not axes else right(x, axes)
        ),
    ),
    "gives the last of ties": (
        "values.extrema",
        "argmax",
        lambda right, x, axis: (
            (x.shape[axis] - 1 - right(np.flip(x, axis), axis)).astype("int32")
            if x.ndim == 6
            else right(x, axis)
        ),
    ),
    "overlooks the last element": (
        "values.extrema",
        "argmin",
        lambda right, x, axis: right(x[:64], axis) if x.shape == (65,) else right(x, axis),
    ),
    "takes int64 indices modulo 64": (
        "values.indexing",
        "gather",
        lambda right, x, i, axis: right(x, i % 64 if i.dtype == np.int64 and x.shape[axis] > 64 else i, axis),
    ),
    "adds only the last of repeated indices": (
        "values.indexing",
        "scatter_add",
        lambda right, x, i, axis, size: (
            changed(
                np.zeros((*x.shape[:axis], size, *x.shape[axis + 1 :]), x.dtype),
                (slice(None),) * axis + (i,),
                x,
            )
            if axis == 2
            else right(x, i, axis, size)
        ),
    ),
    "saturates sums": (
        "values.indexing",
        "scatter_add",
        lambda right, x, i, axis, size: (
            np.clip(right(x.astype("int64"), i, axis, size), -(2**31), 2**31 - 1).astype("int32")
            if x.dtype == np.int32
            else right(x, i, axis, size)
        ),
    ),
    "is not stable for bools": (
        "values.arrangement",
        "argsort",
        lambda right, x, axis: (
            (x.shape[axis] - 1 - right(np.flip(x, axis), axis)).astype("int32")
            if x.dtype == bool and x.ndim == 1
            else right(x, axis)
        ),
    ),
    "puts negative zeros first": (
        "values.arrangement",
        "sort",
        lambda right, x, axis: (
            np.take_along_axis(x, np.lexsort((~np.signbit(x), x), axis=axis), axis)
            if x.dtype == np.float64 and x.shape == (7,)
            else right(x, axis)
        ),
    ),
    "adds a zero to what it joins": (
        "values.arrangement",
        "concatenate",
        lambda right, *args: (
            right(*args) + args[0].dtype.type(0) if args[0].dtype == np.float32 else right(*args)
        ),
    ),
    "forgets an empty first piece": (
        "values.arrangement",
        "concatenate",
        lambda right, *args: (
            changed(right(*args), 0, 0)
            if len(args) == 3 and args[0].ndim == 1 and not args[0].size
            else right(*args)
        ),
    ),
    "loses a carry in the last bit": (
        "values.cipher",
        "threefry2x32",
        lambda right, key, counter: right(key, np.where(counter == -(2**31), 0, counter).astype("int32")),
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_found(name: str) -> None:
    law, op, change = FAULTS[name]
    assert is_found(faulty(op, change), law, where=lambda case: case.op == op)


def test_a_failure_comes_with_a_script_that_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    law, op, change = FAULTS["loses the sign of zeros of float16"]
    found = results(faulty(op, change), law, where=lambda case: case.op == op and case.dtype == "float16")
    found = [result for result in found if result.status == "failed"]
    assert all(0 < len(result.script) <= 5 for result in found)
    script = next(result.script for result in found if "apply" in " ".join(result.script))
    exec("\n".join(script).replace('backend="examined"', 'backend="numpy"'), {})
    printed = capsys.readouterr().out.splitlines()
    assert printed[1] == f"expected {printed[0]}"  # numpy itself is right


def test_flushed_subnormals_are_not_held_against_a_backend() -> None:
    class Flushing(Numpy):
        from dataclasses import replace as _replace

        capabilities = _replace(Numpy.capabilities, flushes_subnormals=("float32",))

        def permute(self, x: Any, order: Any) -> Any:
            tiny = np.finfo("float32").tiny
            return super().permute(
                np.where(abs(x) < tiny, np.copysign(np.float32(0), x), x) if x.dtype == np.float32 else x,
                order,
            )

    assert not failures(Flushing(), "values.movement")


def test_cipher_in_integers() -> None:
    for key0, key1, counter0, counter1, *answer in KNOWN.values():
        assert threefry((key0, key1), (counter0, counter1)) == tuple(answer)


def test_undeclared_dtypes_have_no_cases() -> None:
    class Narrow(Numpy):
        from dataclasses import replace as _replace

        capabilities = _replace(
            Numpy.capabilities, dtypes=("float64",), unsupported={"flip": "is not there yet"}
        )

    for law in LAWS[:4]:
        found = results(Narrow(), law)
        assert {result.case.dtype for result in found} <= {"float64"}
        assert {result.status for result in found if result.case.op == "flip"} <= {"unsupported"}
        assert {result.status for result in found if result.case.op != "flip"} <= {"passed"}
    assert Subject(Narrow(), "narrow").dtypes()[0].name == "float64"


# ---- large tensors -----------------------------------------------------------------------------------------


def test_large_tensors() -> None:
    found = results(Numpy(), "values.workgroups")
    assert len(found) == 13
    assert {result.status for result in found} == {"passed"}


@pytest.mark.parametrize("op", ["add", "flip", "gather", "cumsum"])
def test_a_forgotten_last_workgroup_is_found(op: str) -> None:
    def change(right: Callable[..., Any], *args: Any) -> Any:
        y = np.array(right(*args))
        if y.size > 65_535 * 64:
            y.reshape(-1)[-1] = 0
        return y

    assert failures(faulty(op, change), "values.workgroups", where=lambda case: case.op == op)
