"""Ops whose body is a function of the user's: made at a call, from that call's arguments, and run like all others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tensorken import tree
from tensorken.arguments import matching
from tensorken.creation import as_tensor, tensor
from tensorken.dispatch import at_one_level
from tensorken.errors import ArgumentError, EscapedTensorError, StructureError, TensorkenError
from tensorken.levels import lift, meet, standing_on
from tensorken.spec.interpreter import Interpreter
from tensorken.spec.op import Op, run
from tensorken.tensor import Tensor
from tensorken.transforms import jvp, vjp

STATIC = (bool, int, str, bytes, type(None))
"""Kinds of arguments that reach the user's function as they are; floats and arrays become tensors."""


@dataclass(slots=True)
class Arguments:
    """The arguments of one call: tensors, and what stands between them."""

    tensors: list[Tensor]
    structure: Any
    places: list[int]  # of the tensors among the leaves
    leaves: list[Any]

    @classmethod
    def of(cls, name: str, arguments: Any) -> Arguments:
        """Take the arguments apart.

        Raises:
            ArgumentError: if a leaf is neither a tensor, a number, a string nor a function.
        """
        leaves, structure = tree.flatten(arguments)
        tensors, places = [], []
        for i, leaf in enumerate(leaves):
            if not _is_static(leaf):
                try:
                    tensors.append(as_tensor(leaf))
                except ArgumentError as error:
                    raise ArgumentError(f"{name}: argument leaf {i}: {error}") from None
                places.append(i)
        return cls(tensors, structure, places, leaves)

    def filled(self, values: Sequence[Any], rest: bool = True) -> Any:
        """The arguments with other values for the tensors; what is no tensor stays, or becomes None."""
        leaves = list(self.leaves) if rest else [None] * len(self.leaves)
        for place, value in zip(self.places, values, strict=True):
            leaves[place] = value
        return tree.unflatten(self.structure, leaves)

    def cotangents(self, name: str, pulled: Any, xs: Sequence[Tensor]) -> list[Tensor | None]:
        """The cotangents that a rule gives, one an argument, as those of the tensors; None is zero, at any depth.

        Raises:
            StructureError, ShapeError: if they do not match the arguments.
        """
        count = len(self.structure_of_each)
        if not isinstance(pulled, tuple | list) or len(pulled) != count:
            got = f"{len(pulled)}" if isinstance(pulled, tuple | list) else type(pulled).__name__
            raise StructureError(
                f"{name}: the backward half of a custom_vjp returns a tuple of {count} cotangents, one for each "
                f"argument, got {got}; use None for zero"
            )
        given = [
            t
            for structure, own in zip(self.structure_of_each, pulled, strict=True)
            for t in _up_to(structure, own, name)
        ]
        found: list[Tensor | None] = []
        for place, x in zip(self.places, xs, strict=True):
            t = given[place]
            found.append(None if t is None or x.dtype.kind != "float" else matching(name, "cotangent", x, t))
        return found

    @property
    def structure_of_each(self) -> list[Any]:
        """The structure of each argument."""
        whole = tree.unflatten(self.structure, range(self.structure.size))
        return [tree.structure(argument) for argument in whole]


def _up_to(structure: Any, value: Any, name: str) -> list[Any]:
    """The leaves of a cotangent; a None stands for as many zeros as its part of the argument has leaves."""
    leaves, prefix = tree.flatten(value, is_leaf=lambda x: x is None)
    try:
        parts = tree.flatten_up_to(prefix, tree.unflatten(structure, range(structure.size)))
        counts = [len(tree.leaves(part)) for part in parts]
        if all([count == 1 or leaf is None for leaf, count in zip(leaves, counts, strict=True)]):
            return [t for t, count in zip(leaves, counts, strict=True) for t in [t] * count]
    except StructureError:
        pass
    tree.check_same(structure, tree.structure(value), f"{name}: the cotangent of an argument")
    return []


@dataclass(slots=True)
class Result:
    """How the tensors that an op returns make up the result of the user's function."""

    name: str
    structure: Any = None
    leaves: list[Any] = field(default_factory=list)  # what is no tensor; None where a tensor stands

    def tensors(self, result: Any) -> list[Any]:
        """What of a result is or becomes a tensor."""
        leaves, self.structure = tree.flatten(result)
        self.leaves = [leaf if _is_static(leaf) else None for leaf in leaves]
        return [leaf for leaf in leaves if not _is_static(leaf)]

    def taken_apart(self, result: Any, interpreter: Interpreter[Any]) -> list[Tensor]:
        """The tensors of a result, at the level of an interpreter."""
        return [at_level(self.name, interpreter, leaf) for leaf in self.tensors(result)]

    @property
    def count(self) -> int:
        """The number of tensors."""
        return sum([leaf is None for leaf in self.leaves])

    def matching(self, what: str, tangent: Any, ys: Sequence[Tensor]) -> list[Tensor]:
        """The tensors of something that must have the structure, shapes and dtypes of the result."""
        leaves, structure = tree.flatten(tangent)
        tree.check_same(self.structure, structure, f"{self.name}: {what}")
        tensors = [t for t, own in zip(leaves, self.leaves, strict=True) if own is None]
        return [matching(self.name, what, y, t) for y, t in zip(ys, tensors, strict=True)]

    def put_together(self, tensors: Sequence[Any]) -> Any:
        """The inverse: a result with these tensors."""
        found = iter(tensors)
        return tree.unflatten(self.structure, [next(found) if leaf is None else leaf for leaf in self.leaves])


def _is_static(leaf: Any) -> bool:
    return isinstance(leaf, STATIC) or callable(leaf)


def at_level(name: str, interpreter: Interpreter[Any], y: Any) -> Tensor:
    """A leaf of the result at the level that the function ran at."""
    try:
        x = y if isinstance(y, Tensor) else tensor(y, backend=interpreter.base)
    except ArgumentError as error:
        raise ArgumentError(f"{name}: the function's result: {error}") from None
    try:
        if x.interpreter is interpreter or meet((x.interpreter, interpreter), name) is interpreter:
            return Tensor(interpreter, lift(x.representation, x.interpreter, interpreter), x.shape, x.dtype)
    except EscapedTensorError:
        pass
    raise ArgumentError(
        f"{name}: the function used a tensor of an enclosing transform that is not among its arguments; "
        f"pass it as an argument"
    )


def user_op(
    name: str,
    body: Callable[[list[Tensor]], list[Tensor]],
    push: Callable[[list[Tensor | None], list[Tensor], list[Tensor]], Sequence[Tensor | None]],
    pull: Callable[[list[Tensor | None], list[Tensor], list[Tensor]], Sequence[Tensor | None]],
) -> Op:
    """An op with as many results as its body returns.

    Args:
        name: for messages.
        body: from the operands to the results.
        push: from tangents of the operands, results and operands to the tangents of the results.
        pull: from cotangents of the results, results and operands to the cotangents of the operands.
    """

    def run_body(*operands: Tensor) -> tuple[Tensor, ...]:
        with standing_on(operands[0].interpreter):
            return tuple(body(list(operands)))

    def rule(function: Callable[..., Any]) -> Callable[..., Any]:
        def run_rule(given: Any, ys: Any, xs: Any, params: Any) -> Any:
            present = [x.interpreter for x in (*given, *ys, *xs) if x is not None]
            with standing_on(meet(present, name)):
                return function(list(given), list(ys), list(xs))

        return run_rule

    return Op(
        name,
        None,
        shape=_unknown,
        dtype=_unknown,
        jvp_all=rule(push),
        vjp_all=rule(pull),
        body=run_body,
        results=None,
        mapped=True,
    )


def _unknown(*args: Any) -> Any:
    raise TensorkenError("the result of a user's function has no shape before it is run")


def call(op: Op, operands: Sequence[Tensor]) -> list[Tensor]:
    """Run a user's op on tensors, raised to one level first."""
    interpreter, representations = at_one_level(op, operands)
    return [Tensor(interpreter, y) for y in run(interpreter, op, representations, ())]


def zeros_for_none(given: Sequence[Tensor | None], like: Sequence[Tensor]) -> list[Tensor]:
    """Tangents or cotangents with the exact zeros written out."""
    return [x.zeros_like() if t is None else t for t, x in zip(given, like, strict=True)]


def transposed(
    linear: Callable[..., Sequence[Tensor | None]],
    operands: Sequence[Tensor],
    cotangents: Sequence[Tensor | None],
) -> list[Tensor | None]:
    """What a linear function of tensors like the operands, run backwards, makes of cotangents of its results.

    Operands that are not floating-point are no variables: they stay zeros and get None.
    """
    given: list[Tensor] = []

    def present(*xs: Tensor) -> list[Tensor]:
        pairs = list(zip(linear(*xs), cotangents, strict=True))
        given[:] = [t for y, t in pairs if y is not None and t is not None]
        return [y for y, t in pairs if y is not None and t is not None]

    zeros = [x.zeros_like() for x in operands]
    partial, places = of_floats(present, zeros)
    _, pull_back = vjp(partial, *[zeros[i] for i in places])
    pulled: list[Tensor | None] = [None] * len(operands)
    if given:
        for place, t in zip(places, pull_back(given), strict=True):
            pulled[place] = t
    return pulled


# ---- derivatives of functions of operands, some of which are no floats ------------------------------------------


def of_floats(
    function: Callable[..., Sequence[Any]], xs: Sequence[Tensor]
) -> tuple[Callable[..., Sequence[Any]], list[int]]:
    """The function of those operands that have derivatives, and their places."""
    places = [i for i, x in enumerate(xs) if x.dtype.kind == "float"]

    def partial(*floats: Tensor) -> Sequence[Any]:
        full = list(xs)
        for place, x in zip(places, floats, strict=True):
            full[place] = x
        return function(*full)

    return partial, places


def pushed_through(
    function: Callable[..., Sequence[Any]], xs: Sequence[Tensor], tangents: Sequence[Tensor | None]
) -> list[Tensor]:
    """The tangents of the function's results."""
    partial, places = of_floats(function, xs)
    primals = [xs[i] for i in places]
    pushed: Sequence[Tensor] = jvp(partial, primals, zeros_for_none([tangents[i] for i in places], primals))[
        1
    ]
    return list(pushed)


def pulled_through(
    function: Callable[..., Sequence[Any]], xs: Sequence[Tensor], cotangents: Sequence[Tensor | None]
) -> list[Tensor | None]:
    """The cotangents of the operands; None for those that are no floats."""
    pulled: list[Tensor | None] = [None] * len(xs)
    if all([t is None for t in cotangents]):
        return pulled
    partial, places = of_floats(function, xs)
    ys, pull_back = vjp(partial, *[xs[i] for i in places])
    for place, t in zip(places, pull_back(type(ys)(zeros_for_none(cotangents, ys))), strict=True):
        pulled[place] = t
    return pulled


def added(first: Sequence[Tensor | None], second: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Sums of contributions, in which None is an exact zero."""
    return [b if a is None else a if b is None else a + b for a, b in zip(first, second, strict=True)]
