"""Ops whose body is a user's function: each call makes an op from its arguments, and runs it like any other op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tensorken_core import tree
from tensorken_core.errors import (
    ArgumentError,
    DTypeError,
    EscapedTensorError,
    ShapeError,
    StructureError,
    TensorkenError,
)
from tensorken_core.language.dtypes import float32, float64, with_scalar
from tensorken_core.language.interpreter import Interpreter
from tensorken_core.language.op import Op, run
from tensorken_core.levels.batch import named_axes
from tensorken_core.program.program import Variable
from tensorken_core.tensor.coercion import as_operand
from tensorken_core.tensor.level import ClosureError, deepest, interpreter_below, levels_on, lifted
from tensorken_core.tensor.number import carried, carrying_dtype, numbers_among, with_numbers
from tensorken_core.tensor.tensor import Tensor, as_tensor
from tensorken_core.transforms.arguments import flatten, leaves_or_none, tangent_like

STATIC = (bool, int, str, bytes, type(None))
"""Types of arguments that are passed to the user's function unchanged; floats and arrays become tensors."""


@dataclass(slots=True)
class Arguments:
    """The structure and the static leaves of the arguments of one call.

    It has no tensors: the tape refers to the op, and the op's rules to this object, so a tape would refer to itself.
    """

    structure: Any
    indices: list[int]  # of the tensors among the leaves
    leaves: list[Any]  # None in place of a tensor
    numbers: tuple[int, ...] = ()  # of the tensors those that stand for Python numbers

    @classmethod
    def of(cls, name: str, arguments: Any) -> tuple[Arguments, list[Tensor]]:
        """Split the arguments into the tensors and the rest.

        A number takes the widest floating-point dtype of the tensors; numbers and arrays take the tensors' backend.

        Raises:
            ArgumentError: if a leaf is not a tensor, number, string or function.
        """
        leaves, structure = flatten(arguments)
        numbers = numbers_among([leaf for leaf in leaves if not _is_static(leaf)])
        widest = max(
            [leaf for leaf in leaves if isinstance(leaf, Tensor) and not leaf.is_number],
            key=lambda x: (x.dtype.kind == "float", x.dtype.itemsize),
            default=None,
        )
        tensors, indices = [], []
        for i, leaf in enumerate(leaves):
            if not _is_static(leaf):
                try:
                    tensors.append(_as_argument(name, leaf, widest))
                except ArgumentError as error:
                    raise ArgumentError(f"{name}: argument leaf {i}: {error}") from None
                indices.append(i)
                leaves[i] = None
        return cls(structure, indices, leaves, numbers), tensors

    def filled(self, values: Sequence[Any], rest: bool = True) -> Any:
        """The arguments with other values for the tensors; static leaves are unchanged, or None without `rest`."""
        leaves = list(self.leaves) if rest else [None] * len(self.leaves)
        values = with_numbers(values, self.numbers) if rest else values
        for index, value in zip(self.indices, values, strict=True):
            leaves[index] = value
        return tree.unflatten(self.structure, leaves)

    def cotangents(self, name: str, pulled: Any, xs: Sequence[Tensor]) -> list[Tensor | None]:
        """The cotangents of the tensors, from the cotangents of the arguments that a rule returns; None is zero.

        Raises:
            StructureError, ShapeError: if they do not match the arguments.
        """
        arguments = tree.unflatten(self.structure, range(self.structure.size))
        count = len(arguments)
        if not isinstance(pulled, tuple | list) or len(pulled) != count:
            got = f"{len(pulled)}" if isinstance(pulled, tuple | list) else type(pulled).__name__
            raise StructureError(
                f"{name}: the backward function of a custom_vjp must return a tuple of {count} cotangents, one per "
                f"argument, got {got}; use None for zero"
            )
        leaves = [
            t
            for argument, ct in zip(arguments, pulled, strict=True)
            for t in leaves_or_none(tree.structure(argument), ct, f"{name}: the cotangent of an argument")
        ]
        result: list[Tensor | None] = []
        for index, x in zip(self.indices, xs, strict=True):
            t = leaves[index] if x.dtype.kind == "float" else None
            result.append(None if t is None else tangent_like(name, "cotangent", x, t))
        return result


def _as_argument(name: str, leaf: Any, like: Tensor | None) -> Tensor:
    wide = float64 if like is not None and like.dtype is float64 else float32
    if isinstance(leaf, Tensor):
        return carried(leaf) if wide is float64 else as_tensor(leaf)
    if like is None:
        return as_tensor(leaf)
    if type(leaf) is float:
        return as_operand(name, leaf, like).astype(carrying_dtype(leaf, wide))
    return Interpreter.coerce(leaf, None, like.interpreter.base)  # type: ignore[no-any-return]


@dataclass(slots=True)
class Result:
    """The structure and the static leaves of the result of a user's function, whose tensors an op returns."""

    name: str
    static: tuple[type, ...] = STATIC  # types of leaves that are kept unchanged
    structure: Any = None
    leaves: list[Any] = field(default_factory=list)  # None in place of a tensor
    outputs: Sequence[Variable] | None = (
        None  # the shapes and dtypes of the tensors, once the function was traced
    )

    def copy_from(self, other: Result) -> Result:
        """Take the structure of an equal call whose function was traced."""
        if other.outputs is not None:
            self.structure, self.leaves, self.outputs = other.structure, other.leaves, other.outputs
        return self

    def tensors(self, result: Any) -> list[Any]:
        """The leaves of a result that are tensors, or are converted to tensors."""
        leaves, self.structure = flatten(result)
        self.leaves = [leaf if _is_static(leaf, self.static) else None for leaf in leaves]
        return [carried(leaf) for leaf in leaves if not _is_static(leaf, self.static)]

    def flatten(self, result: Any, interpreter: Interpreter[Any]) -> list[Tensor]:
        """The tensors of a result, at the level of an interpreter."""
        return [at_level(self.name, interpreter, leaf) for leaf in self.tensors(result)]

    @property
    def count(self) -> int:
        """The number of tensors."""
        return sum([leaf is None for leaf in self.leaves])

    def tangents(self, what: str, tangent: Any, ys: Sequence[Tensor], none_ok: bool) -> list[Tensor | None]:
        """The tensors of a tangent, checked to have the structure, shapes and dtypes of the result.

        Args:
            what: a name for messages.
            tangent: the tree of tangents.
            ys: the tensors of the result.
            none_ok: whether None is allowed, as an exact zero; for integers and bools it always is.
        """
        leaves = leaves_or_none(self.structure, tangent, f"{self.name}: the {what}")
        tensors = [t for t, static in zip(leaves, self.leaves, strict=True) if static is None]
        if not none_ok and any(
            [t is None and y.dtype.kind == "float" for y, t in zip(ys, tensors, strict=True)]
        ):
            _leaves(self.structure, tangent, f"{self.name}: the {what}")  # which raises
        zeros = [
            None if none_ok or t is not None else y.zeros_like() for y, t in zip(ys, tensors, strict=True)
        ]
        return [
            zero if t is None else tangent_like(self.name, what, y, t)
            for y, t, zero in zip(ys, tensors, zeros, strict=True)
        ]

    def tensors_like(
        self, what: str, value: Any, like: Sequence[Any], interpreter: Interpreter[Any]
    ) -> list[Tensor]:
        """The tensors, at the level of an interpreter, of another result of the same structure, shapes and dtypes.

        Args:
            what: a name for messages.
            value: the other result; numbers in it take the dtypes.
            like: values with the shapes and dtypes of the tensors of the result.
            interpreter: the level.

        Raises:
            StructureError, ShapeError, DTypeError: if it has another structure, shape or dtype.
        """
        tensors = [
            t
            for t, static in zip(
                _leaves(self.structure, value, f"{self.name}: {what}"), self.leaves, strict=True
            )
            if static is None
        ]
        result = []
        for leaf, v in zip(tensors, like, strict=True):
            if type(leaf) in (bool, int, float) and with_scalar(v.dtype, leaf) is v.dtype:
                leaf = Interpreter.coerce(leaf, v.dtype, interpreter.base)
            y = at_level(self.name, interpreter, leaf)
            if y.shape != v.shape or y.dtype is not v.dtype:
                error = ShapeError if y.shape != v.shape else DTypeError
                raise error(
                    f"{self.name}: {what} is {y.dtype.name} {y.shape}, but the function's is {v.dtype.name} "
                    f"{v.shape}; make both the same (x.astype, x.reshape)"
                )
            result.append(y)
        return result

    def unflatten(self, tensors: Sequence[Any]) -> Any:
        """The result with these tensors: the inverse of `flatten`."""
        rest = iter(tensors)
        return tree.unflatten(self.structure, [next(rest) if leaf is None else leaf for leaf in self.leaves])


def _is_static(leaf: Any, static: tuple[type, ...] = STATIC) -> bool:
    return isinstance(leaf, static) or callable(leaf)


def _leaves(structure: tree.Structure, value: Any, what: str) -> list[Any]:
    """The leaves of a value, which must have this structure."""
    leaves, actual = tree.flatten(value)
    tree.check_same(structure, actual, what)
    return leaves


def at_level(name: str, interpreter: Interpreter[Any], y: Any) -> Tensor:
    """A leaf of the result at the level that the function ran at."""
    try:
        x = y if isinstance(y, Tensor) else Interpreter.coerce(y, None, interpreter.base)
    except ArgumentError as error:
        raise ArgumentError(f"{name}: the result of the function: {error}") from None
    try:
        if x.interpreter is interpreter or deepest((x.interpreter, interpreter), name) is interpreter:
            return Tensor(interpreter, lifted(x, interpreter), x.shape, x.dtype)
    except EscapedTensorError:
        pass
    raise ClosureError(name)


@dataclass(frozen=True, slots=True)
class Rules:
    """How to differentiate an op whose body is a user's function; None is an exact zero.

    Attributes:
        push: `(tangents, ys, xs) -> tangents of the results`; `ys` are the results and the residuals of `primal`.
        pull: `(cotangents, ys, xs, active) -> cotangents of the operands`.
        primal: `(active, xs) -> (results, residuals)`: the results where these operands are differentiated.
        both: `(tangents, xs) -> (results, tangents of the results)`.
    """

    push: Callable[..., Any]
    pull: Callable[..., Any]
    primal: Callable[..., Any]
    both: Callable[..., Any]


def user_op(
    name: str,
    body: Callable[..., Sequence[Any]],
    rules: Rules,
    applies: Callable[[Sequence[bool]], bool] = any,
    *,
    transposes_through_body: bool = False,
    depends_on_first: int | None = None,
) -> Op:
    """An op with a user's function as its body, and rules for all operands at once.

    Args:
        name: the op's name, for messages and printed programs.
        body: from tensors to a sequence of tensors or numbers.
        rules: called only where they apply; tangents and cotangents of operands and results that are not
            floating-point are dropped.
        applies: whether the rules apply where these floating-point operands are differentiated.
        transposes_through_body: whether the body, and not the rules, is transposed within a linear function.
        depends_on_first: the number of leading operands that the results may depend on; None: all.
    """

    def run_on(level: Interpreter[Any], function: Callable[..., Any], *arguments: Any) -> Any:
        with levels_on(level):
            try:
                return function(*arguments)
            except EscapedTensorError as error:
                hint = "a tensor of an enclosing transform must come in as an argument"
                if hint not in str(error):
                    error.args = (f"{name}: {error}; {hint}",)
                raise

    def plain(*xs: Tensor) -> list[Tensor]:
        level = xs[0].interpreter
        return [at_level(name, level, y) for y in run_on(level, body, *xs)]

    def run_primal(active: Sequence[bool], xs: list[Tensor], params: Any) -> Any:
        active = [flag and x.dtype.kind == "float" for flag, x in zip(active, xs, strict=True)]
        return run_on(xs[0].interpreter, rules.primal, active, xs) if applies(active) else (plain(*xs), [])

    def run_both(tangents: Sequence[Tensor | None], xs: list[Tensor], params: Any) -> Any:
        tangents = _of_floats(tangents, xs)
        if not applies([t is not None for t in tangents]):
            ys = plain(*xs)
            return ys, [None] * len(ys)
        ys, pushed = run_on(xs[0].interpreter, rules.both, tangents, xs)
        return ys, _of_floats(pushed, ys)

    def run_push(tangents: Sequence[Tensor | None], ys: list[Tensor], xs: list[Tensor], params: Any) -> Any:
        tangents = _of_floats(tangents, xs)
        return run_rule(rules.push, tangents, [t is not None for t in tangents], ys, ys, xs)

    def run_pull(
        cotangents: Sequence[Tensor | None], ys: list[Tensor], xs: list[Tensor], params: Any, active: Any
    ) -> Any:
        active = [flag and x.dtype.kind == "float" for flag, x in zip(active, xs, strict=True)]
        return run_rule(rules.pull, cotangents, active, xs, ys, xs, active)

    def run_rule(rule: Callable[..., Any], ts: Any, active: Any, targets: Any, *rest: Any) -> Any:
        idle = all([t is None for t in ts]) or all([x.dtype.kind != "float" for x in targets])
        if idle or not applies(active):
            return [None] * len(targets)
        level = deepest([x.interpreter for x in (*ts, *rest[0], *rest[1]) if x is not None], name)
        return _of_floats(run_on(level, rule, ts, *rest), targets)

    return Op(
        name,
        None,
        shape=_unknown,
        dtype=_unknown,
        jvp_all=run_push,
        vjp_all=run_pull,
        vjp_needs_active=True,
        primal_rule=run_primal,
        jvp_with_primals=run_both,
        transposes_through_body=transposes_through_body,
        depends_on_first=depends_on_first,
        body=lambda *xs: tuple(plain(*xs)),
        results=None,
        per_example=True,
    )


def _of_floats(ts: Sequence[Tensor | None], targets: Sequence[Tensor]) -> list[Tensor | None]:
    """Tangents or cotangents, with None where the target is not floating-point; a rule may return fewer."""
    return [t if x.dtype.kind == "float" else None for t, x in zip(ts, targets, strict=False)]


def _unknown(*args: Any) -> Any:
    raise TensorkenError("the result of a user's function has no shape before it is run")


def call(op: Op, operands: Sequence[Tensor]) -> list[Tensor]:
    """Run a user's op on tensors, which are first lifted to one level."""
    interpreter = deepest([x.interpreter for x in operands], op.name)
    running = interpreter_below([interpreter], op.name)
    if running is not interpreter and named_axes(running):  # the function and its rules may use the axes
        interpreter = running
    ys = run(interpreter, op, [lifted(x, interpreter) for x in operands], ())
    return [Tensor(interpreter, y) for y in ys]
