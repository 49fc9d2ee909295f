"""values.elementwise and values.cast: correct backends pass, and the laws detect faults in single cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from tensorken_conformance.case import Case, Result
from tensorken_conformance.law import LAWS
from tensorken_conformance.laws import elementwise as law_module
from tensorken_conformance.operands import pools
from tensorken_conformance.running.examine import examine
from tensorken_conformance.subject import Depth, Subject
from tensorken_core.language.capabilities import Capabilities
from tensorken_core.language.dtype_rules import floating
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS, Op
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import same
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference

LAW = "values.elementwise"


def run_law(
    backend: RawTensor[Any], law: str = LAW, depth: Depth = "default", **only: str | Iterable[str]
) -> list[Result]:
    """The results of the cases of a law whose fields have one of the given values."""
    subject = Subject(backend, "a", depth=depth)
    selected = {field: {value} if isinstance(value, str) else set(value) for field, value in only.items()}
    return [
        examine(subject, LAWS[law], case)
        for case in LAWS[law].cases(subject)
        if all(getattr(case, field) in values for field, values in selected.items())
    ]


def failures(backend: RawTensor[Any], law: str = LAW, **only: str | Iterable[str]) -> list[Result]:
    """The results that have not passed."""
    return [result for result in run_law(backend, law, **only) if result.status != "passed"]


# ---- correct backends --------------------------------------------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.parametrize("backend", [Numpy(), Reference()], ids=["numpy", "reference"])
@pytest.mark.parametrize("law", [LAW, "values.cast"])
def test_correct_backends_pass(backend: RawTensor[Any], law: str) -> None:
    shapes = ("scalar", "empty", "expanded", "padded", "cropped", "65")
    assert [result.case.id for result in failures(backend, law, shape=shapes)] == []


def test_there_are_cases_for_each_elementwise_op() -> None:
    subject = Subject(Numpy(), "a")
    cases = list(LAWS[LAW].cases(subject))
    assert len(set(cases)) == len(cases) > 20_000
    assert {case.op for case in cases} == {op.name for op in OPS.values() if op.elementwise}
    unary = {case.op for case in cases if case.values == pools.EXHAUSTIVE}
    assert unary == {op.name for op in OPS.values() if op.arity == 1 and op.elementwise} - {"from_bits"}


def test_a_smoke_run_has_one_case_for_each_op() -> None:
    cases = list(LAWS[LAW].cases(Subject(Numpy(), "a", depth="smoke")))
    assert sorted(case.op for case in cases) == sorted(op.name for op in OPS.values() if op.elementwise)
    assert {case.values for case in cases} == {"mixed"}
    assert {(case.dtype.startswith("int"), case.shape) for case in cases} == {
        (True, "pool"),
        (False, "small"),
    }


def test_a_smoke_run_divides_by_minus_one() -> None:
    class Low(Numpy):
        def floor_divide(self, a: Any, b: Any) -> Any:
            return super().floor_divide(a, b) - ((b == -1) & (a > 0))

    results = run_law(Low(), depth="smoke", op="floor_divide")
    assert [result.status for result in results] == ["failed"]


def test_numbers_depend_on_the_seed_but_ids_do_not() -> None:
    first, second = (Subject(Numpy(), "a", seed) for seed in (0, 1))
    assert list(LAWS[LAW].cases(first)) == list(LAWS[LAW].cases(second))
    rows = [pools.rows(OPS["exp"], DTYPES["float32"], "normals", seed, 96)[0].tolist() for seed in (0, 1)]
    assert rows[0] != rows[1]


def test_undeclared_dtypes_have_no_cases() -> None:
    class Few(Numpy):
        capabilities = Capabilities(dtypes=("bool", "int32", "float32", "float64"))

    cases = list(LAWS[LAW].cases(Subject(Few(), "a")))
    assert {case.dtype for case in cases} == {"bool", "int32", "float32", "float64"}
    assert not [
        case for case in cases if case.op == "to_bits" and case.dtype == "float64"
    ]  # the bits are int64


def test_ordinary_numbers_on_required_ops_belong_to_level_1() -> None:
    assert law_module.level(Case(LAW, "exp", "float32", "prime", "normals")) == 1
    assert law_module.level(Case(LAW, "exp", "float32", "prime", "nans")) == 2
    assert law_module.level(Case(LAW, "tanh", "float32", "prime", "normals")) == 2
    assert law_module.level(Case(LAW, "where", "bool", "prime", "mixed")) == 1


# ---- faults ------------------------------------------------------------------------------------------------------


def faulty_backend(name: str, change: Callable[..., Any]) -> RawTensor[Any]:
    """Numpy whose method `name` returns `change(result, *operands)`."""

    def method(self: Any, *operands: Any) -> Any:
        with np.errstate(all="ignore"):
            return change(getattr(Numpy, name)(self, *operands), *operands)

    return type("Faulty", (Numpy,), {name: method})()


def where(condition: Any, a: Any, b: Any) -> Any:
    return np.asarray(np.where(condition, a, b)).astype(b.dtype)


def next_up(y: Any) -> Any:
    return np.nextafter(y, y.dtype.type(np.inf))


def with_last(y: Any, value: Any) -> Any:
    changed = np.array(y)
    if changed.size:
        changed.reshape(-1)[-1] = value
    return changed


FAULTS: dict[str, tuple[str, Callable[..., Any]]] = {
    "inaccurate for huge angles": ("sin", lambda y, x: where(np.abs(x) > 1e6, y + y * y.dtype.type(0.01), y)),
    "neg of zero has no sign": ("neg", lambda y, x: y + 0 if y.dtype.kind == "f" else y),
    "maximum drops NaN": ("maximum", lambda y, a, b: np.fmax(a, b)),
    "a wrong last element of 257": ("minimum", lambda y, a, b: with_last(y, 1) if y.size == 257 else y),
    "add flushes": ("add", lambda y, a, b: where(np.abs(y) < 1e-37, y * 0, y) if y.dtype == np.float32 else y),
    "ties of add are rounded up": ("add", lambda y, a, b: where((a == 0.5) & (b % 2 == 1), y + 1, y)),
    "one product is off by a unit": ("mul", lambda y, a, b: next_up(y) if y.dtype == "f8" and y.shape == (7,) else y),
    "sqrt of the largest": ("sqrt", lambda y, x: where(x == np.finfo(x.dtype).max, next_up(y), y)),
    "pow of 1 and NaN": ("pow", lambda y, a, b: where(np.isnan(b), np.nan, y)),
    "pow of -0 to odd powers": ("pow", lambda y, a, b: where(a == 0, np.abs(y), y)),
    "atan2 of two infinities": ("atan2", lambda y, a, b: where(np.isinf(a) & np.isinf(b), np.nan, y)),
    "infinity becomes the largest number": ("exp", lambda y, x: where(np.isinf(x), np.nan_to_num(y), y)),
    "overflow gives the largest number": ("exp", lambda y, x: np.minimum(y, np.finfo(y.dtype).max)),
    "a pole without a sign": ("reciprocal", lambda y, x: where(x == 0, np.inf, y)),
    "halves go up": ("round", lambda y, x: np.floor(x + x.dtype.type(0.5))),
    "a shift by all bits": ("shift_left", lambda y, a, b: where(b == 8 * a.itemsize, a, y)),
    "an arithmetic shift": ("shift_right", lambda y, a, b: where((a < 0) & (b == 1), a >> 1, y)),
    "abs of the smallest integer": ("abs", lambda y, x: np.maximum(y, 0)),
    "division truncates": ("floor_divide", lambda y, a, b: where((y < 0) & (y * b != a), y + 1, y)),
    "a negative exponent": ("integer_pow", lambda y, a, b: where((b < 0) & (a == -1), 1, y)),
    "the sign of a NaN is lost": ("signbit", lambda y, x: np.less(x, 0) | ((x == 0) & y)),
    "bits of a NaN cleared": ("to_bits", lambda y, x: y & ~0x7FFFFF if y.dtype == "i4" and x.dtype == "f4" else y),
    "neighbours of zero": ("nextafter", lambda y, a, b: where(a == 0, a, y)),
    "the sine in float32": ("sin", lambda y, x: np.sin(x.astype("f4")).astype(x.dtype)),
    "the first row repeated": ("where", lambda y, c, a, b: np.repeat(y[:1], 4, 0) if y.shape == (4, 3) else y),
    "equal where both are NaN": ("eq", lambda y, a, b: y | ((a != a) & (b != b))),
    "less or equal": ("lt", lambda y, a, b: np.less_equal(a, b)),
    "log1p loses small operands": ("log1p", lambda y, x: np.log(1 + x)),
    "expm1 loses small operands": ("expm1", lambda y, x: np.exp(x) - 1),
    "one float16 in 65 536": ("tanh", lambda y, x: where(x == 0.7001953125, next_up(y), y) if y.dtype == "f2" else y),
}  # fmt: skip


@pytest.mark.nightly
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_detected(fault: str) -> None:
    name, change = FAULTS[fault]
    backend: Any = faulty_backend(name, change)
    backend.capabilities = Capabilities(dtypes=tuple(DTYPES), ulp={"tanh.float16": 0})
    failed = failures(backend, op=name)
    assert failed, f"no case of {name} fails"
    assert all(result.status == "failed" and len(result.script) <= 5 for result in failed)


@pytest.mark.parametrize("position", [0, 1])
def test_a_backend_that_ignores_flips_of_one_operand_fails_only_flipped_cases(position: int) -> None:
    def unflipped(y: Any, *operands: Any) -> Any:
        read = [
            np.flip(x, (0, 1)) if i == position and x.ndim == 2 and min(x.strides) < 0 else x
            for i, x in enumerate(operands)
        ]
        return read[0] * read[1]

    shapes = {result.case.shape for result in failures(faulty_backend("mul", unflipped), op="mul")}
    assert shapes == {"flipped"}


def test_a_backend_that_expands_the_wrong_operand_fails_only_expanded_cases() -> None:
    def repeated(y: Any, a: Any, b: Any) -> Any:
        expanded = [x.ndim == 2 and x.strides[0] == 0 for x in (a, b)]
        return np.array(np.broadcast_to(y[:1], y.shape)) if any(expanded) and not all(expanded) else y

    shapes = {result.case.shape for result in failures(faulty_backend("sub", repeated), op="sub")}
    assert shapes == {"expanded"}


def test_the_script_of_a_failure_runs_the_op_on_its_operands() -> None:
    (name, change) = FAULTS["pow of 1 and NaN"]
    result = failures(faulty_backend(name, change), op="pow", dtype="float32", shape="257", values="nans")[0]
    assert "expected 1.0, got nan" in result.says
    assert result.script[2:4] == (
        "a = tk.tensor([1.0], \"float32\", backend='a')",
        f"b = tk.tensor([{'-nan' if '-nan' in result.script[3] else 'nan'}], \"float32\", backend='a')",
    )
    lines = [line.replace("backend='a'", "backend='numpy'") for line in result.script]
    exec("\n".join(lines), {})  # runs on numpy, which has no fault


def test_a_failure_that_needs_the_position_has_the_default_script() -> None:
    (name, change) = FAULTS["a wrong last element of 257"]
    result = failures(faulty_backend(name, change), op=name, dtype="int32", shape="257")[0]
    assert result.script[0] == "from tensorken_conformance import check"


# ---- errors in ULP -----------------------------------------------------------------------------------------------


class Coarse(Numpy):
    """An exponential with an error of `units` ULP."""

    units = 2

    def exp(self, x: Any) -> Any:
        y = super().exp(x)
        ordinary = np.isfinite(y) & (y > 0) & (y != 1)
        bits = y.view(f"i{y.itemsize}") if y.shape else np.array(y).view(f"i{y.itemsize}")
        return np.where(ordinary, (bits + self.units).view(y.dtype), y)


def failing_classes(units: int, ulp: dict[str, int]) -> set[str]:
    """The value classes in which an exponential with an error of `units` ULP fails."""
    attributes = {"units": units, "capabilities": Capabilities(dtypes=("bool", "int32", "float32"), ulp=ulp)}
    backend = type("Coarse", (Coarse,), attributes)()
    return {result.case.values for result in failures(backend, op="exp", dtype="float32", shape="65")}


def test_an_error_above_the_declared_one_fails() -> None:
    assert failing_classes(1, {"exp": 3}) == set()
    assert "normals" in failing_classes(2, {"exp": 1})
    assert "normals" in failing_classes(2, {"*": 1})
    assert failing_classes(1, {"*": 0, "exp.float32": 3}) == set()


def test_an_error_above_the_limit_of_the_level_fails_even_if_declared() -> None:
    assert failing_classes(1000, {}) & {"normals", "small"} == set()  # within the limit of level 1
    assert "ties" in failing_classes(1000, {})
    assert "ties" in failing_classes(1000, {"exp": 2000})
    assert "normals" in failing_classes(10_000, {"exp": 20_000})


def test_a_result_has_the_largest_error_and_its_operands() -> None:
    result = max(run_law(Coarse(), op="exp", dtype="float32", shape="257"), key=lambda r: r.ulp or 0.0)
    assert result.ulp and result.ulp >= Coarse.units - 1
    assert result.worst.startswith("exp(")


class Flushing(Numpy):
    """Flushes subnormal operands and products to zero."""

    def mul(self, a: Any, b: Any) -> Any:
        a, b = (np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.copysign(0, x), x) for x in (a, b))
        y = super().mul(a, b)
        return np.where(np.abs(y) < np.finfo(y.dtype).tiny, np.copysign(0, y), y).astype(y.dtype)


def test_declared_flushing_of_subnormals_passes() -> None:
    cells = {"op": "mul", "dtype": "float32", "shape": ("65", "257", "flipped")}
    assert {result.case.values for result in failures(Flushing(), **cells)} >= {"subnormals", "extremes"}
    Flushing.capabilities = Capabilities(dtypes=tuple(DTYPES), flushes_subnormals=("float32",))
    assert failures(Flushing(), **cells) == []


# ---- ops of plugins ----------------------------------------------------------------------------------------------


def cube(scalar: Callable[..., Any] | None, body: Callable[..., Any]) -> Op:
    """An op that a plugin would add."""
    return Op("test_cube", 1, same, floating, body=body, scalar=scalar, elementwise=True)


def test_the_op_of_a_plugin_is_compared_with_its_scalar_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPS, "test_cube", cube(lambda x: x * x * x, lambda x: x * x * x))
    results = run_law(Numpy(), op="test_cube", shape="65")
    assert {result.status for result in results} == {"passed"}
    assert {result.case.detail for result in results} == {law_module.BY_MEANING}
    law_module._pool.cache_clear()
    monkeypatch.setitem(OPS, "test_cube", cube(lambda x: x * x * x, lambda x: x * x))
    assert {r.case.values for r in failures(Numpy(), op="test_cube", shape="65")} >= {"small", "normals"}
    law_module._pool.cache_clear()


def test_an_op_without_a_scalar_function_is_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPS, "test_cube", cube(None, lambda x: x * x * x))
    results = run_law(Numpy(), op="test_cube", shape="65")
    assert {result.status for result in results} == {"unsupported"}
    assert "nothing is known of the op 'test_cube'" in results[0].says
    law_module._pool.cache_clear()


# ---- casts -------------------------------------------------------------------------------------------------------


def with_cast(change: Callable[[Any, Any, Any], Any]) -> RawTensor[Any]:
    """Numpy whose `cast` returns `change(result, operand, dtype)`."""

    class Faulty(Numpy):
        def cast(self, x: Any, dtype: Any) -> Any:
            with np.errstate(all="ignore"):
                return np.asarray(change(super().cast(x, dtype), x, dtype)).astype(dtype.name)

    return Faulty()


CASTS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "rounds to int": lambda y, x, dtype: np.where(np.abs(x) < 1e6, np.rint(x), y) if dtype.kind == "int" else y,
    "wraps beyond the range as C does": lambda y, x, dtype: x.astype(dtype.name) if dtype.kind == "int" else y,
    "int64 by way of float32": lambda y, x, dtype: x.astype("f4") if (x.dtype, dtype.name) == ("i8", "float64") else y,
    "float64 to float16 by way of float32": lambda y, x, dtype: x.astype("f4") if dtype.name == "float16" else y,
    "towards zero": lambda y, x, dtype: np.where(abs(y) > abs(x), np.nextafter(y, 0 * y), y) if y.dtype == "f4" else y,
    "saturates ints": lambda y, x, dtype: np.clip(x, -(2**31), 2**31 - 1) if (x.dtype, y.dtype) == ("i8", "i4") else y,
    "NaN is False": lambda y, x, dtype: y & (x == x) if dtype.kind == "bool" else y,
    "the sign of zero": lambda y, x, dtype: np.where(y == 0, 0, y),
}  # fmt: skip


@pytest.mark.parametrize("fault", CASTS)
def test_faulty_casts_are_detected(fault: str) -> None:
    assert failures(with_cast(CASTS[fault]), "values.cast", shape=("257", "pool"))


# ---- hints ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("op", "function"), [("neg", np.negative), ("sqrt", np.sqrt)])
def test_a_device_that_flushes_is_told_what_to_declare(op: str, function: Callable[[Any], Any]) -> None:
    def flushing(y: Any, x: Any) -> Any:
        with np.errstate(invalid="ignore"):
            y = function(law_module.flushed_to_zero(x, DTYPES[x.dtype.name]))
        return law_module.flushed_to_zero(y, DTYPES[y.dtype.name])

    found = failures(faulty_backend(op, flushing), op=op, dtype="float32", shape="257")
    assert found
    for result in found:
        assert result.says.endswith("declares flushes_subnormals=('float32',)"), result.says


def test_other_errors_have_no_such_hint() -> None:
    wrong = faulty_backend("neg", lambda y, x: np.where(x == 1, 2, y).astype(x.dtype))
    found = failures(wrong, op="neg", dtype="float32", shape="257")
    assert found
    assert not any("subnormal" in result.says for result in found)


@pytest.mark.parametrize(
    ("op", "row", "got", "passes"),
    [
        ("mul", (2.0**-126, 1.0 - 2.0**-24), 0.0, True),  # rounded to the smallest normal number
        ("mul", (2.0**-126, 1.0 + 2.0**-22), 0.0, False),
        ("exp2", (-126.0,), 0.0, True),  # four numbers below are subnormal
        ("exp2", (-125.0,), 0.0, False),
        ("neg", (2.0**-126,), -0.0, False),
    ],
)
def test_results_that_may_be_subnormal_may_be_flushed(
    op: str, row: tuple[float, ...], got: float, passes: bool
) -> None:
    backend = Numpy()
    backend.capabilities = Capabilities(dtypes=tuple(DTYPES), flushes_subnormals=("float32",))
    subject = Subject(backend, "a")
    columns = tuple(np.array([x], "float32") for x in row)
    expected = law_module.oracle.expected(OPS[op], DTYPES["float32"], columns)
    p = law_module.Pool(OPS[op], DTYPES["float32"], columns, expected)
    bound = law_module.allowed(subject, OPS[op], DTYPES["float32"], 2)
    off = law_module.distances(subject, p, np.array([got], "float32"), expected, columns, bound)
    assert (off.max() <= bound) == passes
