"""`Op`, the record of one operation; `OPS`, the table of all ops; and `run`, which calls an op at any level.

The decorator that declares an op (declare.py) holds every fact about it.  Derivative rules and bodies use Tensor
operators, so they can be differentiated, batched and traced too, and the language need not import Tensor.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tensorken_core.language.dtypes import DType
from tensorken_core.language.higher_order import HigherOrderRules
from tensorken_core.language.observe import OBSERVERS, notify
from tensorken_core.language.shapes import Shape

Rule = Callable[..., Any]
"""`(t, y, *operands, *params) -> Tensor | None`: linear in the tangent or cotangent `t`; None is an exact zero."""

Sample = tuple[tuple[Shape, ...], tuple[Any, ...]]
"""Operand shapes and params for one test of an op."""

Opaque = Literal["pure", "debug", "io"]
"""How often an opaque op may run: `pure`, any number of times, as it has no effect; `debug`, at least once, as its
effect shows values, also where a checkpoint computes them again; `io`, exactly once."""


@dataclass(frozen=True, eq=False, slots=True)
class Op:
    """One operation and every fact about it that an interpreter, a backend or a law uses.

    An op need not be a method of the language: custom derivative rules and the ops of plugins are `Op` values too,
    and `run` calls them like all others.

    Attributes:
        name: its name in the op table.
        arity: the number of operands; None: any number.
        shape: `(*operand shapes, *params) -> Shape`; a tuple of shapes if there are several results.
        dtype: `(*operand dtypes, *params) -> DType`; a tuple of dtypes if there are several results.
        params: the kind of each param: axes axis shape order pads limits size dtype data program
            placement named_axis.
        param_names: the names of the params in printed programs; () if they are named after their kinds.
        operand_kinds: the kind of each operand: data, condition or indices; () if all are data.
        jvp: for each operand the rule that maps its tangent to a tangent of the result; None: no derivative.
        vjp: for each operand the rule that maps the result's cotangent to the operand's; None: no derivative.
        jvp_all: `(tangents, ys, xs, params) -> tangents of the results`, in place of `jvp`.
        vjp_all: `(cotangents, ys, xs, params) -> cotangents of the operands`, in place of `vjp`.
        vjp_needs_active: whether `vjp_all` takes a last argument: a flag for each operand, whether it is active.
        primal_rule: `(active, xs, params) -> (ys, residuals)`: computes the results when the op is differentiated;
            the derivative rules get the residuals after the results; None: the op itself computes the results.
        jvp_with_primals: `(tangents, xs, params) -> (ys, tangents)`, in place of `primal_rule` and `jvp_all`.
        depends_on_first: the number of leading operands that the results depend on; None: all operands.
        transposes_through_body: whether the transpose of a linear function follows the body instead of the rules.
        body: `(*operands, *params) -> Tensor`: the op in terms of others; without operands it takes the backend first.
        scalar: an elementwise op on Python numbers: its meaning in real arithmetic.
        elementwise: whether each element of the result depends only on the operands' elements at the same index.
        either_zero: whether a zero result may have either sign where the operands are zeros of both signs.
        bool_version: `(*operands) -> Tensor`: the operator on bools, for an op that does not take them.
        results: the number of results; None: as many as the body returns, in a tuple.
        per_example: whether body and rules are written for one example; a batch then maps them over its examples
            instead of shifting the params.
        batch: `(batched, xs, params) -> y`: the batching rule; the flagged operands and all results have a leading
            batch axis; None: all operands get a batch axis, and the params are shifted.
        min_loop_steps: a lower bound of the steps that loops in the body take (`RawTensor.loop`), for each row or
            column of a matrix.
        higher_order: the rules of an op with programs among its params.
        collective: for an op over a named axis, which is its first param, the meaning at the Batch level of this axis:
            `(level, operands, params) -> result`, of values of that level.
        opaque: for an op whose body is Python code on values: how it may run.  Such an op runs only on a backend, never
            while a function is traced or a program is optimised; its body takes the backend first.  Passes do not
            merge or move it, and an op with an effect is never dropped.  None for all other ops.
        method: whether a backend may override the op with a method of its name.
        domain: the interval from which tests and the conformance kit draw floating-point operands.
        adjust_samples: `(*operands) -> operands`: maps drawn operands to operands at which the op is smooth; None: the
            drawn operands are used.
        samples: operand shapes and params for tests.
        tape_needs: a cache of reverse.py, by active operands: how much of the result and operands the tape keeps.
        result_dtypes: a cache of the dtype rule, by operand dtypes.
    """

    name: str
    arity: int | None
    shape: Callable[..., Any]
    dtype: Callable[..., Any]
    params: tuple[str, ...] = ()
    param_names: tuple[str, ...] = ()
    operand_kinds: tuple[str, ...] = ()
    jvp: tuple[Rule | None, ...] = ()
    vjp: tuple[Rule | None, ...] = ()
    jvp_all: Callable[..., Any] | None = None
    vjp_all: Callable[..., Any] | None = None
    vjp_needs_active: bool = False
    primal_rule: Callable[..., Any] | None = None
    jvp_with_primals: Callable[..., Any] | None = None
    depends_on_first: int | None = None
    transposes_through_body: bool = False
    body: Callable[..., Any] | None = None
    scalar: Callable[..., Any] | None = None
    elementwise: bool = False
    either_zero: bool = False
    bool_version: Callable[..., Any] | None = None
    results: int | None = 1
    per_example: bool = False
    batch: Callable[..., Any] | None = None
    min_loop_steps: int = 0
    higher_order: HigherOrderRules[Op] | None = None
    collective: Callable[..., Any] | None = None
    opaque: Opaque | None = None
    method: bool = False
    domain: tuple[float, float] = (-2.0, 2.0)
    adjust_samples: Callable[..., Any] | None = None
    samples: Sequence[Sample] = ()
    tape_needs: dict[tuple[bool, ...], tuple[int, ...]] = field(default_factory=dict)
    result_dtypes: dict[Any, Any] = field(default_factory=dict)

    @property
    def differentiable(self) -> bool:
        """Whether any operand has a derivative rule."""
        return (
            self.jvp_all is not None
            or self.vjp_all is not None
            or self.higher_order is not None
            or any(rule is not None for rule in (*self.jvp, *self.vjp))
        )

    def result_dtype(self, dtypes: tuple[DType, ...], params: tuple[Any, ...]) -> Any:
        """The dtype of the result, cached by operand dtypes.

        Raises:
            DTypeError: if the op does not take these dtypes.
        """
        if self.opaque or "program" in self.params:
            return self.dtype(*dtypes, *params)
        key = (dtypes, params) if "dtype" in self.params else dtypes
        result = self.result_dtypes.get(key)
        if result is None:
            result = self.result_dtypes[key] = self.dtype(*dtypes, *params)
        return result

    def __repr__(self) -> str:
        return f"Op({self.name})"

    def __reduce__(self) -> Any:
        if OPS.get(self.name) is not self:
            raise TypeError(f"the op {self.name!r} is not in the op table, so it cannot be pickled")
        return named, (self.name,)


OPS: dict[str, Op] = {}
"""The op table."""


LAZY_OPS: dict[str, str] = {}
"""The modules that register ops when they are imported, by the op's name."""


def named(name: str) -> Op:
    """The op of this name; its module is imported first if needed.  KeyError if there is no such op."""
    if name not in OPS and name in LAZY_OPS:
        importlib.import_module(LAZY_OPS[name])
    return OPS[name]


def register(op: Op) -> Op:
    """Add an op to the table, which interpreters and laws read.

    Raises:
        ValueError: if the table has another op of that name.
    """
    if OPS.setdefault(op.name, op) is not op:
        raise ValueError(f"the op table has an op {op.name!r} already; give yours another name")
    return op


def run(interpreter: Any, op: Op, operands: Sequence[Any], params: tuple[Any, ...]) -> Any:
    """Call an op at any level: the interpreter's own method if it has one, else its `interpret`."""
    if OBSERVERS:
        return notify(_run, interpreter, op, operands, params)
    override = interpreter.overrides[op]
    if override is None:
        return interpreter.interpret(op, operands, params)
    return override(interpreter, *operands, *params)


def _run(interpreter: Any, op: Op, operands: Sequence[Any], params: tuple[Any, ...]) -> Any:
    """`run` without observers."""
    override = interpreter.overrides[op]
    if override is None:
        return interpreter.interpret(op, operands, params)
    return override(interpreter, *operands, *params)
