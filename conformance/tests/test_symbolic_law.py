"""symbolic.*: the string backend passes, and the laws detect pretty-printers with one fault each."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

from conformance.tests.examining import examine_all
from tensorken_conformance.law import LAWS
from tensorken_conformance.levels import Level, account, level_of
from tensorken_conformance.programs.symbolic import WRITTEN, drawn
from tensorken_conformance.programs.trees import Recorder, difference, read
from tensorken_conformance.subject import Subject
from tensorken_core.errors import ConcretizationError
from tensorken_core.host.plugin import Capabilities
from tensorken_core.language.dtypes import float32
from tensorken_core.language.op import Op
from tensorken_core.language.raw import RawTensor
from tensorken_string.backend import Expression, String

LAW_NAMES = sorted(law.id for law in LAWS.values() if law.symbolic)


def failures(backend: RawTensor[Any], law: str) -> dict[str, str]:
    subject = Subject(backend, "pretty")
    return {r.case.detail or r.case.op: r.says for r in examine_all(subject, [law]) if r.status != "passed"}


def test_the_string_backend_has_level_4():
    subject = Subject.select("string")
    results = list(examine_all(subject))
    assert account(results).passed == len(results) >= 900
    assert level_of(results, subject.capabilities) == Level(4, symbolic=True)
    assert {r.case.law for r in results if r.case.law.startswith("symbolic")} == {
        "symbolic.shapes", "symbolic.derivatives", "symbolic.parses", "symbolic.declared", "symbolic.determinism",
        "symbolic.refuses", "symbolic.errors",
    }  # fmt: skip


class Rewriting(String):
    """The string backend with another text for some ops."""

    def rewritten(self, op: Op, text: str) -> str:
        return text

    def interpret(self, op: Op, operands: Sequence[Expression], params: tuple[Any, ...]) -> Any:
        y = super().interpret(op, operands, params)
        if isinstance(y, tuple):
            return y
        return Expression(self.rewritten(op, y.text), y.shape, y.dtype)


class Ambiguous(Rewriting):
    """Omits the parentheses of a negated operand, so that exp(-x) and -exp(x) are the same text."""

    def rewritten(self, op: Op, text: str) -> str:
        return text.replace("(-A).exp()", "-A.exp()")


class Weak(Rewriting):
    """Omits the parentheses of a negative base of a power."""

    def rewritten(self, op: Op, text: str) -> str:
        return text.replace("((-A) **", "(-A **")


class Swapped(Rewriting):
    """Writes the operands of sub in the wrong order."""

    def interpret(self, op: Op, operands: Sequence[Expression], params: tuple[Any, ...]) -> Any:
        return super().interpret(op, operands[::-1] if op.name == "sub" else operands, params)


class Forgetful(Rewriting):
    """Omits the axes of max."""

    def rewritten(self, op: Op, text: str) -> str:
        return text.replace("([1])", "([])") if op.name == "max" else text


class Renamed(Rewriting):
    """Writes sinh as sin."""

    def rewritten(self, op: Op, text: str) -> str:
        return text.replace(".sinh(", ".sin(")


class Chatty(Rewriting):
    """Writes a superfluous word before floor."""

    def rewritten(self, op: Op, text: str) -> str:
        return f"please {text}" if op.name == "floor" else text


class Rounding(Rewriting):
    """Rounds a number to one digit."""

    def full(self, shape: Any, value: Any, dtype: Any) -> Expression:
        return Expression(
            f"{value:.1g}" if value == -2.5 else super().full(shape, value, dtype).text, shape, dtype
        )


@pytest.mark.parametrize(
    ("backend", "case"),
    [
        (Ambiguous, "signs"),
        (Weak, "powers"),
        (Swapped, "sub"),
        (Swapped, "signs"),
        (Forgetful, "max"),
        (Renamed, "sinh"),
        (Chatty, "floor"),
        (Rounding, None),
    ],
)
def test_a_text_of_another_program_fails(backend: Any, case: str | None):
    failed = failures(backend(), "symbolic.parses")
    assert failed
    if case is not None:
        assert case in failed


class Shapeless(String):
    """Gives sum the shape of its operand."""

    def interpret(self, op: Op, operands: Sequence[Expression], params: tuple[Any, ...]) -> Any:
        y = super().interpret(op, operands, params)
        return Expression(y.text, operands[0].shape, y.dtype) if op.name == "sum" else y


class Floating(String):
    """Gives lt the dtype of its operands."""

    def interpret(self, op: Op, operands: Sequence[Expression], params: tuple[Any, ...]) -> Any:
        y = super().interpret(op, operands, params)
        return Expression(y.text, y.shape, operands[0].dtype) if op.name == "lt" else y


@pytest.mark.parametrize(("backend", "op"), [(Shapeless, "sum"), (Floating, "lt")])
def test_a_wrong_shape_or_dtype_fails(backend: Any, op: str):
    assert op in failures(backend(), "symbolic.shapes")


def test_a_wrong_shape_of_a_derivative_fails():
    failed = failures(Shapeless(), "symbolic.derivatives")
    assert "cotangent of expand: expected float32" in failed["expand"]


class Counting(String):
    """Writes a new number into each expression."""

    def __init__(self) -> None:
        self.count = itertools.count()

    def interpret(self, op: Op, operands: Sequence[Expression], params: tuple[Any, ...]) -> Any:
        y = super().interpret(op, operands, params)
        if op.name != "sech_squared":
            return y
        return Expression(f"{y.text[:-1]}{next(self.count)})", y.shape, y.dtype)


class Hashed(String):
    """Writes the hash of a string into the text."""

    def interpret(self, op: Op, operands: Sequence[Expression], params: tuple[Any, ...]) -> Any:
        y = super().interpret(op, operands, params)
        if op.name not in ("sech_squared", "softmax"):
            return y
        return Expression(f"{y.text}#{hash('abc')}", y.shape, y.dtype)


def test_a_text_that_varies_fails():
    assert "gradient" in failures(Counting(), "symbolic.determinism")
    subject = Subject.select("conformance.tests.test_symbolic_law:Hashed")
    results = {r.case.op: r for r in examine_all(subject, ["symbolic.determinism"])}
    assert results["gradient"].status == "passed"
    assert results["hash-seeds"].status == "failed"
    assert "PYTHONHASHSEED" in results["hash-seeds"].says


class WithValues(String):
    """Returns zeros from ravel."""

    def ravel(self, x: Expression) -> Any:
        size = 1
        for n in x.shape:
            size *= n
        return [0.0] * size


class Rude(String):
    """Refuses ravel with another error class."""

    def ravel(self, x: Expression) -> Any:
        raise NotImplementedError("values")


class Wordy(String):
    """Refuses ravel with a message of two lines."""

    def ravel(self, x: Expression) -> Any:
        raise ConcretizationError("no values\nat all")


@pytest.mark.parametrize("backend", [WithValues, Rude, Wordy])
def test_reading_values_must_raise_a_concretization_error(backend: Any):
    assert failures(backend(), "symbolic.refuses").keys() >= {"tolist", "item", "array"}


class Misspelt(String):
    """Declares the error of an unknown op."""

    capabilities = Capabilities(dtypes=("bool", "int32", "float32"), symbolic=True, ulp={"floot": 1})


def test_invalid_declarations_fail():
    assert "floot" in failures(Misspelt(), "symbolic.declared")


# ---- trees -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("x", ("name", "x")),
        ("-2.0", ("full", "-2.0")),
        ("--2.0", ("full", "2.0")),
        ("-0.0", ("full", "-0.0")),
        ("inf", ("full", "inf")),
        ("-x.exp()", ("neg", (("exp", (("name", "x"),), ()),), ())),
        ("(x < y)", ("lt", (("name", "x"), ("name", "y")), ())),
        ("x.cast(int32)", ("cast", (("name", "x"),), ("int32",))),
        ("x.gather(i, 1)", ("gather", (("name", "x"), ("name", "i")), (1,))),
        ("x.concatenate(y, z, 0)", ("concatenate", (("name", "x"), ("name", "y"), ("name", "z")), (0,))),
        ("x.pad([[1, 0], [0, 2]])", ("pad", (("name", "x"),), (((1, 0), (0, 2)),))),
        ("x.svd(False)[1]", ("result", 1, ("svd", (("name", "x"),), (False,)))),
        ("new([2], [1.0, inf])", ("new", (2,), ("1.0", "inf"))),
        ("new([20], 20)", ("new", (20,), 20)),
    ],
)
def test_read_parses_texts(text: str, tree: Any):
    assert read(text) == tree


@pytest.mark.parametrize(
    "text", ["", "x +", "x.nonsense()", "x(1)", "x if y else z", "x @ y", "x.exp(a=1)", "[x]"]
)
def test_read_rejects_texts_outside_the_language(text: str):
    with pytest.raises(ValueError, match=r"no Python expression|nothing that the language has"):
        read(text)


def test_difference_distinguishes_all_distinct_trees():
    texts = [
        "(x + y).sum([0])",
        "(y + x).sum([0])",
        "(x + y).sum([1])",
        "(x - y).sum([0])",
        "x.sum([0])",
        "x",
    ]
    texts += [
        "new([2], [1.0, 2.0])",
        "new([2], [1.0, 3.0])",
        "new([1, 2], [1.0, 2.0])",
        "x.qr(True)[0]",
        "x.qr(True)[1]",
    ]
    for a, b in itertools.product(texts, repeat=2):
        assert (difference(read(a), read(b)) == "") == (a == b)
    assert difference(read("new([2], [1.0, 2.0])"), read("new([2], 2)")) == ""
    assert difference(read("new([2], [1.0, 2.0])"), read("new([2], 3)"))


def test_drawn_and_written_programs_can_be_recorded():
    recorder = Recorder(String())
    texts = {str(y.representation[0]) for i in range(20) for y in drawn(recorder, f"{i}")}
    assert len(texts) >= 18
    assert max(map(len, texts)) > 60
    assert all(program(recorder).dtype is not None for program in WRITTEN.values())
    assert recorder.shape(recorder.full((2,), 1.0, float32)) == (2,)
