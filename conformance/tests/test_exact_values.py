"""The laws on exact results: correct backends pass, and backends with a narrow fault fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from conformance.tests.examining import failed_cases, fails, faulty_backend, run_law
from tensorken_conformance.laws.cipher import KNOWN, threefry
from tensorken_conformance.running.examine import laws_for
from tensorken_conformance.subject import Subject
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference

LAWS = ("values.movement", "values.extrema", "values.indexing", "values.arrangement", "values.cipher")


@pytest.mark.nightly
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("backend", [Numpy(), Reference()], ids=["numpy", "reference"])
def test_correct_backends_pass(backend: Any, law: str) -> None:
    results = run_law(backend, law, 7, where=lambda case: case.dtype in ("bool", "int32", "float16"))
    assert {result.status for result in results} == {"passed"}
    assert len(results) > 100
    assert len({result.case.id for result in results}) == len(results)


@pytest.mark.parametrize("law", LAWS)
def test_cases_do_not_depend_on_the_seed(law: str) -> None:
    first, second = (Subject(Numpy(), "numpy", seed) for seed in (0, 1))
    (chosen,) = laws_for(first, [law])
    assert list(chosen.cases(first)) == list(chosen.cases(second))


@pytest.mark.parametrize("law", [*LAWS, "values.workgroups"])
def test_a_smoke_run_has_one_case_for_each_op(law: str) -> None:
    results = run_law(Numpy(), law, depth="smoke")
    assert {result.status for result in results} <= {"passed"}
    assert len({result.case.op for result in results}) == len(results) < 10


def test_the_smoke_case_of_scatter_add_has_integers() -> None:
    """The rounding of sums of floats depends on the order, which a backend chooses."""
    results = run_law(Numpy(), "values.indexing", depth="smoke", where=lambda case: case.op == "scatter_add")
    assert [result.case.dtype for result in results] == ["int32"]


def test_the_cases_that_other_laws_need_exist() -> None:
    subject = Subject(Numpy(), "numpy")
    (chosen,) = laws_for(subject, ["values.movement"])
    ids = {case.id for case in chosen.cases(subject)}
    for dtype in Numpy.capabilities.dtypes:
        for op in ("reshape", "permute", "expand", "flip", "pad", "crop"):
            assert f"values.movement/{op}/{dtype}/small" in ids


def is_odd_int64(x: Any) -> bool:
    return bool(x.dtype == np.int64 and x.size % 2)


def with_element(y: Any, index: Any, value: Any) -> Any:
    y = np.array(y)
    y[index] = value
    return y


FAULTS: dict[str, tuple[str, str, Callable[..., Any]]] = {
    "does not flip int64 tensors of odd size": (
        "values.movement",
        "flip",
        lambda original, x, axes: x if is_odd_int64(x) else original(x, axes),
    ),
    "loses the last of 257 elements": (
        "values.movement",
        "pad",
        lambda original, x, pads: (
            with_element(original(x, pads), -1, 0) if x.shape == (257,) else original(x, pads)
        ),
    ),
    "loses the sign of zeros of float16": (
        "values.movement",
        "reshape",
        lambda original, x, shape: (
            original(x, shape) + x.dtype.type(0) if x.dtype == np.float16 else original(x, shape)
        ),
    ),
    "rounds float64 to float32": (
        "values.movement",
        "permute",
        lambda original, x, order: (
            original(x.astype("float32").astype(x.dtype), order)
            if x.dtype == np.float64
            else original(x, order)
        ),
    ),
    "crops flipped views from the start": (
        "values.movement",
        "crop",
        lambda original, x, limits: (
            original(x, tuple([(0, e - s) for s, e in limits]))
            if x.strides[-1:] < (0,)
            else original(x, limits)
        ),
    ),
    "expands the last of three axes wrongly": (
        "values.movement",
        "expand",
        lambda original, x, shape: (
            original(x, shape)[..., ::-1] if x.ndim == 3 and x.dtype == bool else original(x, shape)
        ),
    ),
    "starts a maximum at the lowest finite number": (
        "values.extrema",
        "max",
        lambda original, x, axes: (
            np.maximum(original(x, axes), np.finfo(x.dtype).min)
            if x.dtype == np.float32
            else original(x, axes)
        ),
    ),
    "ignores NaN": (
        "values.extrema",
        "min",
        lambda original, x, axes: (
            np.fmin.reduce(x, axes, keepdims=True) if x.dtype == np.float16 and axes else original(x, axes)
        ),
    ),
    "makes negative zeros positive": (
        "values.extrema",
        "max",
        lambda original, x, axes: (
            original(x, axes) + x.dtype.type(0) if x.dtype.kind == "f" and not axes else original(x, axes)
        ),
    ),
    "returns the last of ties": (
        "values.extrema",
        "argmax",
        lambda original, x, axis: (
            (x.shape[axis] - 1 - original(np.flip(x, axis), axis)).astype("int32")
            if x.ndim == 6
            else original(x, axis)
        ),
    ),
    "ignores the last element": (
        "values.extrema",
        "argmin",
        lambda original, x, axis: original(x[:64], axis) if x.shape == (65,) else original(x, axis),
    ),
    "takes int64 indices modulo 64": (
        "values.indexing",
        "gather",
        lambda original, x, i, axis: original(
            x, i % 64 if i.dtype == np.int64 and x.shape[axis] > 64 else i, axis
        ),
    ),
    "adds only the last of repeated indices": (
        "values.indexing",
        "scatter_add",
        lambda original, x, i, axis, size: (
            with_element(
                np.zeros((*x.shape[:axis], size, *x.shape[axis + 1 :]), x.dtype),
                (slice(None),) * axis + (i,),
                x,
            )
            if axis == 2
            else original(x, i, axis, size)
        ),
    ),
    "saturates sums": (
        "values.indexing",
        "scatter_add",
        lambda original, x, i, axis, size: (
            np.clip(original(x.astype("int64"), i, axis, size), -(2**31), 2**31 - 1).astype("int32")
            if x.dtype == np.int32
            else original(x, i, axis, size)
        ),
    ),
    "is not stable for bools": (
        "values.arrangement",
        "argsort",
        lambda original, x, axis: (
            (x.shape[axis] - 1 - original(np.flip(x, axis), axis)).astype("int32")
            if x.dtype == bool and x.ndim == 1
            else original(x, axis)
        ),
    ),
    "puts negative zeros first": (
        "values.arrangement",
        "sort",
        lambda original, x, axis: (
            np.take_along_axis(x, np.lexsort((~np.signbit(x), x), axis=axis), axis)
            if x.dtype == np.float64 and x.shape == (7,)
            else original(x, axis)
        ),
    ),
    "adds zero to joined tensors": (
        "values.arrangement",
        "concatenate",
        lambda original, *args: (
            original(*args) + args[0].dtype.type(0) if args[0].dtype == np.float32 else original(*args)
        ),
    ),
    "changes the first element after an empty operand": (
        "values.arrangement",
        "concatenate",
        lambda original, *args: (
            with_element(original(*args), 0, 0)
            if len(args) == 3 and args[0].ndim == 1 and not args[0].size
            else original(*args)
        ),
    ),
    "treats a counter of -2**31 as 0": (
        "values.cipher",
        "threefry2x32",
        lambda original, key, counter: original(
            key, np.where(counter == -(2**31), 0, counter).astype("int32")
        ),
    ),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_detected(name: str) -> None:
    law, op, change = FAULTS[name]
    assert fails(faulty_backend(op, change), law, where=lambda case: case.op == op)


def test_the_script_of_a_failure_runs(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    law, op, change = FAULTS["loses the sign of zeros of float16"]
    results = run_law(
        faulty_backend(op, change), law, where=lambda case: case.op == op and case.dtype == "float16"
    )
    results = [result for result in results if result.status == "failed"]
    assert all(0 < len(result.script) <= 5 for result in results)
    script = next(result.script for result in results if "apply" in " ".join(result.script))
    exec("\n".join(script).replace('backend="examined"', 'backend="numpy"'), {})
    printed = capsys.readouterr().out.splitlines()
    assert printed[1] == f"expected {printed[0]}"  # numpy has no fault


def test_declared_flushing_of_subnormals_passes() -> None:
    class Flushing(Numpy):
        from dataclasses import replace as _replace

        capabilities = _replace(Numpy.capabilities, flushes_subnormals=("float32",))

        def permute(self, x: Any, order: Any) -> Any:
            tiny = np.finfo("float32").tiny
            return super().permute(
                np.where(abs(x) < tiny, np.copysign(np.float32(0), x), x) if x.dtype == np.float32 else x,
                order,
            )

    assert not failed_cases(Flushing(), "values.movement")


def test_the_oracle_of_the_cipher_has_the_known_answers() -> None:
    for key0, key1, counter0, counter1, *answer in KNOWN.values():
        assert threefry((key0, key1), (counter0, counter1)) == tuple(answer)


def test_undeclared_dtypes_have_no_cases() -> None:
    class Narrow(Numpy):
        from dataclasses import replace as _replace

        capabilities = _replace(
            Numpy.capabilities, dtypes=("float64",), unsupported={"flip": "not implemented yet"}
        )

    for law in LAWS[:4]:
        results = run_law(Narrow(), law)
        assert {result.case.dtype for result in results} <= {"float64"}
        assert {result.status for result in results if result.case.op == "flip"} <= {"unsupported"}
        assert {result.status for result in results if result.case.op != "flip"} <= {"passed"}
    assert Subject(Narrow(), "narrow").dtypes()[0].name == "float64"


# ---- large tensors -----------------------------------------------------------------------------------------


def test_numpy_passes_on_large_tensors() -> None:
    results = run_law(Numpy(), "values.workgroups")
    assert len(results) == 13
    assert {result.status for result in results} == {"passed"}


@pytest.mark.parametrize("op", ["add", "flip", "gather", "cumsum"])
def test_a_wrong_last_element_of_a_large_tensor_is_detected(op: str) -> None:
    def change(original: Callable[..., Any], *args: Any) -> Any:
        y = np.array(original(*args))
        if y.size > 65_535 * 64:
            y.reshape(-1)[-1] = 0
        return y

    assert failed_cases(faulty_backend(op, change), "values.workgroups", where=lambda case: case.op == op)
