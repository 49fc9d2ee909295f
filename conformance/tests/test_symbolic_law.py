"""symbolic.*: the string backend keeps them, and each finds a pretty-printer that is wrong in one way."""

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


def test_the_string_backend_has_its_full_level():
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
    """Signs are written without parentheses: exp(-x) and -exp(x) read the same."""

    def rewritten(self, op: Op, text: str) -> str:
        return text.replace("(-A).exp()", "-A.exp()")


class Weak(Rewriting):
    """A power of a negative base loses its parentheses."""

    def rewritten(self, op: Op, text: str) -> str:
        return text.replace("((-A) **", "(-A **")


class Swapped(Rewriting):
    """Differences are written the wrong way round."""

    def interpret(self, op: Op, operands: Sequence[Expression], params: tuple[Any, ...]) -> Any:
        return super().interpret(op, operands[::-1] if op.name == "sub" else operands, params)


class Forgetful(Rewriting):
    """Axes are not written."""

    def rewritten(self, op: Op, text: str) -> str:
        return text.replace("([1])", "([])") if op.name == "max" else text


class Renamed(Rewriting):
    """An op goes by the name of another."""

    def rewritten(self, op: Op, text: str) -> str:
        return text.replace(".sinh(", ".sin(")


class Chatty(Rewriting):
    """The text has a word too many."""

    def rewritten(self, op: Op, text: str) -> str:
        return f"please {text}" if op.name == "floor" else text


class Rounding(Rewriting):
    """Numbers are written in short."""

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
def test_a_text_that_says_another_program_is_found(backend: Any, case: str | None):
    found = failures(backend(), "symbolic.parses")
    assert found
    if case is not None:
        assert case in found


class Shapeless(String):
    """A reduction forgets its axes in the shape, not in the text."""

    def interpret(self, op: Op, operands: Sequence[Expression], params: tuple[Any, ...]) -> Any:
        y = super().interpret(op, operands, params)
        return Expression(y.text, operands[0].shape, y.dtype) if op.name == "sum" else y


class Floating(String):
    """Comparisons have the dtype of what they compare."""

    def interpret(self, op: Op, operands: Sequence[Expression], params: tuple[Any, ...]) -> Any:
        y = super().interpret(op, operands, params)
        return Expression(y.text, y.shape, operands[0].dtype) if op.name == "lt" else y


@pytest.mark.parametrize(("backend", "op"), [(Shapeless, "sum"), (Floating, "lt")])
def test_a_wrong_shape_or_dtype_is_found(backend: Any, op: str):
    assert op in failures(backend(), "symbolic.shapes")


def test_a_wrong_shape_of_a_derivative_is_found():
    found = failures(Shapeless(), "symbolic.derivatives")
    assert "expand" in found
    assert "cotangent of expand: expected float32" in found["expand"]


class Counting(String):
    """Each expression is numbered."""

    def __init__(self) -> None:
        self.count = itertools.count()

    def interpret(self, op: Op, operands: Sequence[Expression], params: tuple[Any, ...]) -> Any:
        y = super().interpret(op, operands, params)
        if op.name != "sech_squared":
            return y
        return Expression(f"{y.text[:-1]}{next(self.count)})", y.shape, y.dtype)


class Hashed(String):
    """Something in the text depends on the hash of a word."""

    def interpret(self, op: Op, operands: Sequence[Expression], params: tuple[Any, ...]) -> Any:
        y = super().interpret(op, operands, params)
        if op.name not in ("sech_squared", "softmax"):
            return y
        return Expression(f"{y.text}#{hash('abc')}", y.shape, y.dtype)


def test_a_text_that_varies_is_found():
    assert "gradient" in failures(Counting(), "symbolic.determinism")
    subject = Subject.select("conformance.tests.test_symbolic_law:Hashed")
    results = {r.case.op: r for r in examine_all(subject, ["symbolic.determinism"])}
    assert results["gradient"].status == "passed"
    assert results["hash-seeds"].status == "failed"
    assert "PYTHONHASHSEED" in results["hash-seeds"].says


class Generous(String):
    """It makes up values."""

    def ravel(self, x: Expression) -> Any:
        size = 1
        for n in x.shape:
            size *= n
        return [0.0] * size


class Rude(String):
    """It says no, in its own way."""

    def ravel(self, x: Expression) -> Any:
        raise NotImplementedError("values")


class Wordy(String):
    """It says no at length."""

    def ravel(self, x: Expression) -> Any:
        raise ConcretizationError("no values\nat all")


@pytest.mark.parametrize("backend", [Generous, Rude, Wordy])
def test_a_value_that_is_given_is_found(backend: Any):
    assert failures(backend(), "symbolic.refuses").keys() >= {"tolist", "item", "array"}


class Misspelt(String):
    """It declares the error of an op that there is not."""

    capabilities = Capabilities(dtypes=("bool", "int32", "float32"), symbolic=True, ulp={"floot": 1})


def test_what_it_declares_is_looked_at():
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
def test_texts_are_read(text: str, tree: Any):
    assert read(text) == tree


@pytest.mark.parametrize(
    "text", ["", "x +", "x.nonsense()", "x(1)", "x if y else z", "x @ y", "x.exp(a=1)", "[x]"]
)
def test_what_is_no_expression_of_the_language_is_refused(text: str):
    with pytest.raises(ValueError, match=r"no Python expression|nothing that the language has"):
        read(text)


def test_differences_are_found_wherever_they_are():
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


def test_drawn_programs_are_programs():
    recorder = Recorder(String())
    texts = {str(y.representation[0]) for i in range(20) for y in drawn(recorder, f"{i}")}
    assert len(texts) >= 18
    assert max(map(len, texts)) > 60
    assert all(program(recorder).dtype is not None for program in WRITTEN.values())
    assert recorder.shape(recorder.full((2,), 1.0, float32)) == (2,)
