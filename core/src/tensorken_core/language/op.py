"""Op, the record of one operation; the table of all ops; and `run`, which calls an op at any level.

Everything known of an op stands in the decorator that declares it (declare.py).  Derivative rules and bodies are
written with Tensor operators, so they can be differentiated, batched and traced themselves, and the language does not
import Tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tensorken_core.language.dtypes import DType
from tensorken_core.language.higher_order import HigherOrderRules
from tensorken_core.language.observe import OBSERVERS, notify
from tensorken_core.language.shapes import Shape

Rule = Callable[..., Any]
"""`(t, y, *operands, *params) -> Tensor | None`: linear in the tangent or cotangent `t`; None is an exact zero."""

Sample = tuple[tuple[Shape, ...], tuple[Any, ...]]
"""Operand shapes and params with which tests and the conformance kit exercise an op."""


@dataclass(frozen=True, eq=False, slots=True)
class Op:
    """One operation: everything that interpreters, backends and laws need to know of it.

    An op need not be a method of the language: custom derivative rules, and the ops of plugins, are `Op` values too,
    and go through `run` like all others.

    Attributes:
        name: its name in the op table.
        arity: the number of operands; None: any number.
        shape: `(*operand shapes, *params) -> Shape`; a tuple of shapes if there are several results.
        dtype: `(*operand dtypes, *params) -> DType`; a tuple of dtypes if there are several results.
        params: the kind of each param: axes axis shape order pads limits size dtype data program.
        names: of the params, where programs are printed; () if they are named after their kinds.
        roles: of each operand: data, condition or indices; () if all are data.
        jvp: a rule for each operand, which pushes its tangent forward; None: no derivative.
        vjp: a rule for each operand, which pulls the cotangent back to it; None: no derivative.
        jvp_all: `(tangents, ys, xs, params) -> tangents of the results`, in place of `jvp`.
        vjp_all: `(cotangents, ys, xs, params) -> cotangents of the operands`, in place of `vjp`.
        vjp_needs_active: whether `vjp_all` takes a last argument: for each operand whether it has a derivative.
        primal_rule: `(active, xs, params) -> (ys, residuals)`: computes the results where the op is differentiated, and
            what the rules get after them; None: the op itself.
        jvp_with_primals: `(tangents, xs, params) -> (ys, tangents)`, in place of `primal_rule` and `jvp_all`.
        reaching: how many of the first operands the results may depend on; None: all.
        transposes_through_body: whether the transpose of a linear function follows the body instead of the rules.
        body: `(*operands, *params) -> Tensor`: the op in terms of others.
        scalar: an elementwise op on Python numbers: its meaning in real arithmetic.
        elementwise: whether each element of the result depends on the operands' elements at the same index alone.
        either_zero: whether the op, where it chooses between zeros of both signs, may return either.
        bool_version: `(*operands) -> Tensor`: what operators return for bools, which the op does not take.
        results: the number of results; None: as many as the body returns, in a tuple.
        mapped: whether body and rules are for one example, so that a batch maps them instead of shifting params.
        turns: the least number of steps, for each row or column of a matrix, of loops in the body (`RawTensor.loop`).
        higher_order: the rules of an op with programs among its params.
        method: whether backends may override it with a method of its name.
        domain: the interval from which tests and the conformance kit draw floating-point operands.
        prepare: `(*operands) -> operands`: makes drawn operands such that the op is smooth there; None: they are.
        samples: operand shapes and params for tests.
        saves: for each pattern of active operands what the tape keeps; filled in by reverse.py.
        dtypes: results of the dtype rule, by operand dtypes.
    """

    name: str
    arity: int | None
    shape: Callable[..., Any]
    dtype: Callable[..., Any]
    params: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    jvp: tuple[Rule | None, ...] = ()
    vjp: tuple[Rule | None, ...] = ()
    jvp_all: Callable[..., Any] | None = None
    vjp_all: Callable[..., Any] | None = None
    vjp_needs_active: bool = False
    primal_rule: Callable[..., Any] | None = None
    jvp_with_primals: Callable[..., Any] | None = None
    reaching: int | None = None
    transposes_through_body: bool = False
    body: Callable[..., Any] | None = None
    scalar: Callable[..., Any] | None = None
    elementwise: bool = False
    either_zero: bool = False
    bool_version: Callable[..., Any] | None = None
    results: int | None = 1
    mapped: bool = False
    turns: int = 0
    higher_order: HigherOrderRules[Op] | None = None
    method: bool = False
    domain: tuple[float, float] = (-2.0, 2.0)
    prepare: Callable[..., Any] | None = None
    samples: Sequence[Sample] = ()
    saves: dict[tuple[bool, ...], tuple[int, ...]] = field(default_factory=dict)
    dtypes: dict[Any, Any] = field(default_factory=dict)

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
        """The dtype of the result, or a DTypeError; remembered, since few combinations occur."""
        if "program" in self.params:
            return self.dtype(*dtypes, *params)
        key = (dtypes, params) if "dtype" in self.params else dtypes
        found = self.dtypes.get(key)
        if found is None:
            found = self.dtypes[key] = self.dtype(*dtypes, *params)
        return found

    def __repr__(self) -> str:
        return f"Op({self.name})"

    def __reduce__(self) -> Any:
        if OPS.get(self.name) is not self:
            raise TypeError(f"the op {self.name!r} is not in the op table, so it cannot be pickled")
        return named, (self.name,)


OPS: dict[str, Op] = {}
"""The op table."""


def named(name: str) -> Op:
    """The op of this name in the table."""
    return OPS[name]


def register(op: Op) -> Op:
    """Add an op to the table, so that every interpreter and every law knows it.

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
