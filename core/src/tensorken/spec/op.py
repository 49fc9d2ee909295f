"""Op: all that is known of one operation; the decorators that declare ops; `run`, which calls them at every level.

A fact about an op stands in its decorator and nowhere else.  Derivative rules and bodies are written with Tensor
operators, so they can be differentiated, batched and traced again, and this module need not know Tensor.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, Protocol, TypeVar, cast

from tensorken.spec.dtypes import DType
from tensorken.spec.shapes import Shape, same

Method = TypeVar("Method", bound=Callable[..., Any])

Rule = Callable[..., Any]
"""`(t, y, *operands, *params) -> Tensor | None`: linear in the tangent or cotangent `t`; None is an exact zero."""

Sample = tuple[tuple[Shape, ...], tuple[Any, ...]]
"""Operand shapes and params with which tests and the conformance kit exercise an op."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The programs among the params of an op, and what its operands and results are to them.

    Attributes:
        programs: in the order of the params; all have the same inputs.
        tests: how many of them, the first ones, only tell whether to go on; the others give the op's results.
        chooses: whether the first operand chooses one of the two programs, the first if it is True; the other operands,
            or all, are the inputs of each program.
        fixed: for each input whether it is the operand itself, at each step.
        carries: pairs of the places of an input, and of the output that comes in its place at the next step.
        repeats: whether the programs are run step by step, rather than once.
    """

    programs: tuple[Any, ...]
    fixed: tuple[bool, ...]
    tests: int = 0
    chooses: bool = False
    carries: tuple[tuple[int, int], ...] = ()
    repeats: bool = False


class Whole(Protocol):
    """How an op whose params hold programs goes through derivatives and batches: as another such op.

    The first methods give the op to run, at the level below, instead, and its params.  `active` and `batched` tell for
    each operand whether it has a derivative, or an axis of examples in front.
    """

    def push(
        self, active: tuple[bool, ...], params: tuple[Any, ...]
    ) -> tuple[Op, Any, tuple[bool, ...], tuple[bool, ...]]:
        """From operands, then the tangents of those told first, to results, then the tangents of those told last.

        More operands than the active ones may be told: their tangents are zeros.
        """

    def record(self, active: tuple[bool, ...], params: tuple[Any, ...]) -> tuple[Op, Any, int]:
        """From the operands to the results, so many, and to what the op's `vjp_all` needs besides."""

    def batch(
        self, size: int, batched: tuple[bool, ...], params: tuple[Any, ...]
    ) -> tuple[Op, Any, tuple[bool, ...], tuple[bool, ...]]:
        """From operands, those told first with an axis of examples, to results, those told last with one.

        More operands than the batched ones may be told: their values are repeated for each example.
        """

    def check(self, operands: Sequence[Any], params: tuple[Any, ...]) -> None:
        """Raise a ProgramError unless the programs take these operands, which have a shape and a dtype."""

    def parts(self, params: tuple[Any, ...]) -> Parts:
        """The programs, for passes that change them."""

    def joined(
        self,
        params: tuple[Any, ...],
        programs: tuple[Any, ...],
        inputs: Sequence[int | None],
        outputs: Sequence[int],
    ) -> tuple[Any, ...]:
        """The params with other programs: for each input and output its place before; None for a new fixed input."""


@dataclass(frozen=True, eq=False, slots=True)
class Op:
    """What every interpreter needs to know of one operation.

    An op need not be a method of the language: custom derivative rules, and the ops that plugins bring, are `Op`
    values as well, and go through `run` like all others.
    """

    name: str
    arity: int | None  # None: any number of operands
    shape: Callable[..., Any]  # (*operand shapes, *params) -> Shape; a tuple of shapes if results > 1
    dtype: Callable[..., Any]  # (*operand dtypes, *params) -> DType; a tuple of dtypes if results > 1
    params: tuple[
        str, ...
    ] = ()  # the kind of each: axes axis shape order pads limits size dtype data program
    names: tuple[
        str, ...
    ] = ()  # of the params, where programs are shown; () if they are called as their kinds
    roles: tuple[str, ...] = ()  # of each operand: data, condition or indices; () if all are data
    jvp: tuple[Rule | None, ...] = ()  # one rule an operand: push its tangent forward
    vjp: tuple[Rule | None, ...] = ()  # one rule an operand: pull the cotangent back to it
    jvp_all: Callable[..., Any] | None = None  # (tangents, ys, xs, params) -> the tangents of the results
    vjp_all: Callable[..., Any] | None = (
        None  # (cotangents, ys, xs, params) -> the cotangents of the operands
    )
    tells_active: bool = False  # `vjp_all` gets besides, at the end, which operands have derivatives
    primal_all: Callable[..., Any] | None = (
        None  # (active, xs, params) -> (ys, what the rules get after these):
    )
    # the results where the op is differentiated; None: those of the op itself
    jvp_both: Callable[..., Any] | None = (
        None  # (tangents, xs, params) -> (ys, tangents), beside `primal_all`
    )
    reaching: int | None = (
        None  # how many of the operands, the first ones, the results may depend on; None: all
    )
    linear_body: bool = (
        False  # what transposes a linear function of it looks into the body, and takes no rule
    )
    body: Callable[..., Any] | None = None  # (*operands, *params) -> Tensor: the op in terms of others
    scalar: Callable[..., Any] | None = (
        None  # an elementwise op on Python numbers: its meaning in real arithmetic
    )
    elementwise: bool = False
    either_zero: bool = (
        False  # whether of zeros of both signs, between which it chooses, the result may be either
    )
    of_bools: Callable[..., Any] | None = (
        None  # (*operands) -> Tensor: what operators and functions give for bools, which the op does not take
    )
    results: int | None = 1  # None: as many as the body returns, in a tuple
    mapped: bool = False  # body and rules are for one example: a batch maps them, instead of shifting params
    turns: int = 0  # of loops in the body, for each row or column of a matrix at least: see RawTensor.loop
    whole: Whole | None = None  # how an op with programs among its params is differentiated and batched
    method: bool = False  # backends may override it with a method of its name
    domain: tuple[float, float] = (
        -2.0,
        2.0,
    )  # where tests and the conformance kit draw floating-point operands
    prepare: Callable[..., Any] | None = (
        None  # (*operands) -> operands: makes drawn ones such that the op is smooth there; None: they are
    )
    samples: Sequence[Sample] = ()
    saves: dict[tuple[bool, ...], tuple[int, ...]] = field(default_factory=dict)  # filled in by reverse.py
    dtypes: dict[Any, Any] = field(default_factory=dict)  # results of the dtype rule

    @property
    def differentiable(self) -> bool:
        """Whether any operand has a derivative rule."""
        return (
            self.jvp_all is not None
            or self.vjp_all is not None
            or self.whole is not None
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
    override = interpreter.overrides[op]
    if override is None:
        return interpreter.interpret(op, operands, params)
    return override(interpreter, *operands, *params)


Watcher = Callable[[Callable[..., Any], Any, Op, Sequence[Any], tuple[Any, ...]], Any]
"""`(proceed, interpreter, op, operands, params) -> result`: what it gives is the op's result; `proceed` runs the op."""

watchers: tuple[Watcher, ...] = ()
"""Who watches now, the first outermost."""

_unwatched = FunctionType(run.__code__, globals(), "run")
"""`run` as it is while nobody watches."""

_chain: Callable[..., Any] = _unwatched
_unseen: ContextVar[bool] = ContextVar("tensorken_unseen", default=False)
_watching = threading.Lock()


def _watched(interpreter: Any, op: Op, operands: Sequence[Any], params: tuple[Any, ...]) -> Any:
    return (_unwatched if _unseen.get() else _chain)(interpreter, op, operands, params)


def shown(
    proceed: Callable[..., Any], interpreter: Any, op: Op, operands: Sequence[Any], params: tuple[Any, ...]
) -> Any:
    """Show a call to who watches, as one of `run`, though `proceed` does it: no interpreter is asked."""
    for watcher in reversed(() if _unseen.get() else watchers):
        proceed = functools.partial(watcher, proceed)
    return proceed(interpreter, op, operands, params)


@contextmanager
def unseen() -> Iterator[None]:
    """Within the block nobody watches: what runs there works on programs, and is none of the user's ops."""
    token = _unseen.set(True)
    try:
        yield
    finally:
        _unseen.reset(token)


def watch(watcher: Watcher) -> None:
    """Have every call of `run`, in whichever thread, go to a watcher, until `unwatch`.

    The code of `run` is exchanged, so that while nobody watches that costs nothing.
    """
    with _watching:
        _exchange((*watchers, watcher))


def unwatch(watcher: Watcher) -> None:
    """End what `watch` began; other watchers go on."""
    with _watching:
        _exchange(tuple([one for one in watchers if one is not watcher]))


def _exchange(present: tuple[Watcher, ...]) -> None:
    global watchers, _chain
    chain: Callable[..., Any] = _unwatched
    for watcher in reversed(present):
        chain = functools.partial(watcher, chain)
    watchers, _chain = present, chain
    run.__code__ = (_watched if present else _unwatched).__code__


# ---- declaring ops -----------------------------------------------------------------------------------------


def primitive(
    *,
    arity: int | None,
    shape: Callable[..., Any],
    dtype: Callable[..., Any],
    **facts: Any,
) -> Callable[[Method], Method]:
    """Declare a method of the language as an op; its call arrives at `interpret`."""

    def define(method: Method) -> Method:
        if arity is not None and facts.get("params"):
            facts["names"] = tuple(inspect.signature(method).parameters)[-len(facts["params"]) :]
        op = register(Op(method.__name__, arity, shape, dtype, method=True, **facts))

        @functools.wraps(method)
        def call(self: Any, *args: Any) -> Any:
            count = len(args) - len(op.params) if arity is None else arity
            return self.interpret(op, args[:count], args[count:])

        call.op = op  # type: ignore[attr-defined]
        return cast(Method, call)

    return define


def elementwise(
    scalar: Callable[..., Any],
    *partials: Rule | None,
    dtype: Callable[..., DType],
    arity: int | None = None,
    **facts: Any,
) -> Callable[[Method], Method]:
    """Declare an op on operands of one shape.

    Its Jacobian is diagonal, so each partial derivative is one rule that serves as JVP and as VJP.
    """
    count = arity or len(partials)
    samples: tuple[Sample, ...] = tuple((((s,) * count), ()) for s in ((), (3,), (2, 3)))
    facts = {"samples": samples, **facts}
    return primitive(
        arity=count,
        shape=same,
        dtype=dtype,
        jvp=partials,
        vjp=partials,
        scalar=scalar,
        elementwise=True,
        **facts,
    )


def linear(
    shape: Callable[..., Shape],
    transpose: Rule,
    *samples: Sample,
    dtype: Callable[..., DType],
    params: tuple[str, ...],
    **facts: Any,
) -> Callable[[Method], Method]:
    """Declare an op that is linear in its one operand: its JVP is itself, only its transpose is written."""

    def define(method: Method) -> Method:
        def push(t: Any, y: Any, x: Any, *params: Any) -> Any:
            return t.apply(OPS[method.__name__], *params)

        declare = primitive(
            arity=1,
            shape=shape,
            dtype=dtype,
            params=params,
            jvp=(push,),
            vjp=(transpose,),
            samples=samples,
            **facts,
        )
        return declare(method)

    return define
