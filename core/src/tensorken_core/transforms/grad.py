"""Derivatives of functions: the two modes, jvp and vjp, and gradients by reverse mode."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal, ParamSpec, TypeVar, overload

from tensorken_core import tree
from tensorken_core.errors import ArgumentError, GradientError
from tensorken_core.language.interpreter import Interpreter
from tensorken_core.language.raw import RawTensor
from tensorken_core.levels.forward import Dual, Forward
from tensorken_core.levels.reverse import Reverse
from tensorken_core.tensor.level import Level, current_level, lifted
from tensorken_core.tensor.number import Number
from tensorken_core.tensor.tensor import Tensor, result_at
from tensorken_core.transforms.arguments import (
    Argnums,
    Function,
    argnums_of,
    argnums_partial,
    as_variable,
    at_indices,
    check_function,
    check_sequences,
    flatten,
    float_positions,
    inner_interpreter,
    per_argnum,
    primals_of,
    tangents_of,
)
from tensorken_core.transforms.conjugates import conjugated, imaginary_leaves

__all__ = ["elementwise_grad", "grad", "jvp", "value_and_grad", "vjp"]

P = ParamSpec("P")
R = TypeVar("R")
Aux = TypeVar("Aux")

# ---- the two modes -----------------------------------------------------------------------------------------


def jvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any], *, has_aux: bool = False) -> Any:
    """f at the primals, and its directional derivative along the tangents (forward mode).

    Args:
        f: a function of pytrees of tensors.
        primals: its arguments, at least one of them floating-point; others may be integers or bools.
        tangents: one for each argument, of the same structure, shapes and dtypes; None for an integer or bool.
        has_aux: whether f returns (result, auxiliary value).

    Returns:
        (result, tangent of the result), and the auxiliary value if has_aux.

    Raises:
        StructureError, ShapeError: if the tangents do not match the primals.
        GradientError: if their dtypes do not, or no primal is floating-point.

    >>> import tensorken as tk
    >>> y, t = tk.jvp(tk.square, (3.0,), (1.0,))
    >>> y.item(), t.item()
    (9.0, 6.0)
    >>> y, t = tk.jvp(lambda x, n: x**n, (2.0, 3), (1.0, None))
    >>> y.item(), t.item()
    (8.0, 12.0)
    """
    check_function("jvp", f)
    check_sequences("jvp", primals, tangents)
    arguments, structure = flatten(tuple(primals))
    values = primals_of("jvp", arguments, structure)
    directions = tangents_of("jvp", "tangents", structure, values, tuple(tangents))
    ys, pushed, out_structure, aux = jvp_flat("jvp", f, values, directions, structure, has_aux)
    tangents_out = [y.zeros_like() if t is None else t for y, t in zip(ys, pushed, strict=True)]
    if ys:
        _settle(ys[0].interpreter, ys, tangents_out)
    pair = tree.unflatten(out_structure, ys), tree.unflatten(out_structure, tangents_out)
    return (*pair, aux) if has_aux else pair


def vjp(f: Function, *primals: Any, has_aux: bool = False) -> Any:
    """f at the primals, and its pullback, a map from a cotangent of the result to cotangents of the primals.

    Returns:
        (result, pullback), and the auxiliary value if has_aux. The pullback takes a cotangent of the result's
        structure, shapes and dtypes, returns a tuple with one cotangent for each primal, and may be called again.
        The cotangent of an integer or bool is None, the exact zero; the cotangent of an integer result may be None.

    Raises:
        GradientError: if no primal is floating-point.
        StructureError, ShapeError: when the pullback is called, if the cotangent does not match the result.

    >>> import tensorken as tk
    >>> y, pull_back = tk.vjp(lambda a, b: a * b, 2.0, 5.0)
    >>> [t.item() for t in pull_back(1.0)]
    [5.0, 2.0]
    >>> rows = tk.tensor([0, 0, 1])
    >>> y, pull_back = tk.vjp(lambda table, rows: table[rows], tk.zeros(2), rows)
    >>> table, of_rows = pull_back(tk.ones(3))
    >>> table.tolist(), of_rows
    ([2.0, 1.0], None)
    """
    check_function("vjp", f)
    leaves, structure = flatten(primals)
    values = primals_of("vjp", leaves, structure)
    positions = float_positions(values)
    chosen = [values[i] for i in positions]
    of_floats = argnums_partial(lambda *xs: f(*tree.unflatten(structure, xs)), values, positions, {})
    level, outputs, out_structure, aux = record("vjp", of_floats, chosen, None, has_aux)
    inner = level.inner
    results = primals_at(outputs, inner)

    def pull_back(cotangent: Any) -> tuple[Any, ...]:
        """The cotangents of the primals."""
        cotangents = tangents_of("vjp", "cotangent", out_structure, results, cotangent)
        cotangents = conjugated(out_structure, cotangents)
        seeds = [y.zeros_like() if t is None else t for y, t in zip(results, cotangents, strict=True)]
        pulled = _cotangents_of(chosen, pull(level, outputs, seeds, consume=False), inner)
        _settle(inner, pulled)
        leaves = conjugated(structure, at_indices(pulled, positions, len(values)))
        return tree.unflatten(structure, leaves)  # type: ignore[no-any-return]

    result = tree.unflatten(out_structure, results)
    return (result, pull_back, lower_aux(aux, level)) if has_aux else (result, pull_back)


# ---- gradients ---------------------------------------------------------------------------------------------


def value_and_grad(
    f: Callable[P, R],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_unused: bool = True,
) -> Callable[P, tuple[R, Any]]:
    """The function that returns f's value and its gradient, computing f once.

    For a complex argument x + iy the gradient is df/dx - i df/dy, as in JAX: f grows fastest along its conjugate.

    Args:
        f: a scalar-valued, floating-point function.
        argnums: which positional argument to differentiate, or several: then the gradient is a tuple.
        has_aux: whether f returns (value, auxiliary value); the result is then ((value, aux), gradient).
        holomorphic: whether f is a holomorphic function of complex arguments, whose value is complex; the gradient
            is its complex derivative.
        allow_unused: if False, an argument that does not influence the value is an error instead of zeros.

    Raises:
        GradientError: if f's value is not one floating-point number, or an argument is not floating-point.

    >>> import tensorken as tk
    >>> value, gradient = tk.value_and_grad(lambda x: (x * x).sum())(tk.tensor([1.0, 2.0]))
    >>> value.item(), gradient.tolist()
    (5.0, [2.0, 4.0])
    """
    return _gradient("value_and_grad", f, argnums, has_aux, holomorphic, allow_unused)


@overload
def grad(
    f: Callable[P, tuple[Any, Aux]],
    argnums: Argnums = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_unused: bool = True,
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def grad(
    f: Callable[P, Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_unused: bool = True,
) -> Callable[P, Any]: ...
def grad(
    f: Function,
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_unused: bool = True,
) -> Callable[..., Any]:
    """The function that returns the gradient of a scalar-valued f; `value_and_grad` also returns its value.

    The gradient has the structure, shapes and dtypes of the argument. For a complex argument x + iy it is
    df/dx - i df/dy, as in JAX.

    Args:
        f: a function whose value is one floating-point number; its arguments are tensors, numbers, or trees of them.
        argnums: which positional argument to differentiate, or several: then the gradient is a tuple.
        has_aux: whether f returns (value, auxiliary value); the result is then (gradient, aux).
        holomorphic: whether f is a holomorphic function of complex arguments, whose value is complex; the gradient
            is its complex derivative.
        allow_unused: if False, an argument that does not influence the value is an error instead of zeros.

    Raises:
        GradientError: when called, if f's value is not one floating-point number, or an argument is not
            floating-point.

    >>> import tensorken as tk
    >>> print(f"{tk.grad(tk.tanh)(2.0):.5f}")
    0.07065
    """
    return _gradient("grad", f, argnums, has_aux, holomorphic, allow_unused)


def elementwise_grad(f: Callable[P, Any], argnums: Argnums = 0) -> Callable[P, Any]:
    """The gradient of the sum of f's results: for an elementwise f, its derivative at each element (reverse mode).

    Raises:
        GradientError: when called, if an argument is not floating-point.

    >>> import tensorken as tk
    >>> tk.elementwise_grad(tk.square)(tk.tensor([1.0, 2.0])).tolist()
    [2.0, 4.0]
    """
    return _differentiated("elementwise_grad", f, argnums, False, True)


# ---- pieces ------------------------------------------------------------------------------------------------

TRANSFORMED = "__tensorken_transformed__"
"""The attribute of a compiled function that holds a weak reference to the compiled function, and a function that
compiles a transform of the original.
"""


def _gradient(
    name: str, f: Function, argnums: Argnums, has_aux: bool, holomorphic: bool, allow_unused: bool
) -> Function:
    """The gradient of f; of a compiled function, the compiled gradient of the function that was compiled.

    Decorators copy attributes, so the attribute refers to its own function.
    """
    reference, transform = getattr(f, TRANSFORMED, (None, None))
    if reference is None or reference() is not f or transform is None:
        return _differentiated(name, f, argnums, has_aux, allow_unused, holomorphic)
    # argnums that are not an int may be unhashable, or wrong; the call raises the error
    key = (name, argnums if isinstance(argnums, int) else repr(argnums), has_aux, holomorphic, allow_unused)
    compiled: Function = transform(
        key, lambda g: _differentiated(name, g, argnums, has_aux, allow_unused, holomorphic)
    )
    return compiled


def _differentiated(
    name: str, f: Function, argnums: Argnums, has_aux: bool, allow_unused: bool, holomorphic: bool = False
) -> Callable[..., Any]:
    """The function that returns the cotangents of the chosen arguments, after f's value for value_and_grad."""
    if holomorphic:
        inner_f = _differentiated("value_and_grad", real_part(name, f, has_aux), argnums, True, allow_unused)

        @functools.wraps(f, updated=())
        def derivative(*arguments: Any, **keywords: Any) -> Any:
            (_, value_and_aux), gradients = inner_f(*arguments, **keywords)
            value, aux = value_and_aux
            if name == "grad":
                return (gradients, aux) if has_aux else gradients
            return ((value, aux) if has_aux else value), gradients

        return derivative

    @functools.wraps(check_function(name, f), updated=())
    def differentiated(*arguments: Any, **keywords: Any) -> Any:
        positions = argnums_of(name, argnums, len(arguments))
        if len(arguments) == len(positions) == 1 and not keywords:
            partial, chosen = f, arguments
        else:
            partial = argnums_partial(f, arguments, positions, keywords)
            chosen = tuple([arguments[i] for i in positions])
        leaves, structure = _leaves(chosen)
        values = [
            x if type(x) is Tensor and x.dtype.kind == "float" else as_variable(name, x, i, structure)
            for i, x in enumerate(leaves)
        ]
        level, outputs, out_structure, aux = record(name, partial, values, structure, has_aux)
        inner = level.inner
        if imaginary_leaves(out_structure):
            raise GradientError(
                f"{name} needs a real value, got a complex one; take abs(y) or y.real, or pass holomorphic=True"
            )
        if name != "elementwise_grad":
            _check_scalar_output(name, outputs)
        results = primals_at(outputs, inner)
        cotangents = pull(level, outputs, [y.ones_like() for y in results], consume=True)
        if not allow_unused:
            for i, (path, _) in enumerate(tree.flatten_with_path(chosen)[0]):
                if i not in cotangents:
                    raise GradientError(
                        f"{name}: the value does not depend on argument {path}; drop it, "
                        f"or pass allow_unused=True for zeros"
                    )
        pulled = _cotangents_of(values, cotangents, inner)
        _settle(inner, results, pulled)
        gradients = per_argnum(_arguments(structure, conjugated(structure, pulled)), argnums)
        if name != "value_and_grad":
            return (gradients, lower_aux(aux, level)) if has_aux else gradients
        value = tree.unflatten(out_structure, results)
        return ((value, lower_aux(aux, level)) if has_aux else value), gradients

    return differentiated


def _leaves(arguments: tuple[Any, ...]) -> tuple[list[Any], Any]:
    """The leaves of the arguments and their structure, which is None in the common case that each is one tensor."""
    if all([type(x) is Tensor for x in arguments]):
        return list(arguments), None
    return flatten(arguments)


def _arguments(structure: Any, leaves: Sequence[Tensor]) -> Any:
    """The inverse of `_leaves`."""
    return tuple(leaves) if structure is None else tree.unflatten(structure, leaves)


def results_at(
    level: Level[Any], name: str, f: Function, arguments: Sequence[Any], has_aux: bool
) -> tuple[list[Tensor], Any, Any]:
    """Run f at this level: the leaves of its result at the level, their structure, and aux."""
    with current_level(level):
        result, aux = _split(name, f(*arguments), has_aux)
        outputs, out_structure = flatten(result)
        return [result_at(level, y) for y in outputs], out_structure, aux


def jvp_flat(
    name: str,
    f: Function,
    values: Sequence[Tensor],
    tangents: Sequence[Tensor | None],
    structure: Any = None,
    has_aux: bool = False,
) -> tuple[list[Tensor], list[Tensor | None], Any, Any]:
    """Run f in forward mode, None being an exact zero: the leaves of its result, their tangents, structure, and aux."""
    inner = inner_interpreter(name, (*values, *tangents))
    level: Forward[Any] = Forward(inner)
    duals = [
        x if t is None else Number.like(x, level, Dual(lifted(x, inner), lifted(t, inner)))
        for x, t in zip(values, tangents, strict=True)
    ]
    outputs, out_structure, aux = results_at(level, name, f, _arguments(structure, duals), has_aux)
    pushed = [
        None if t is None else Tensor(inner, t, y.shape, y.dtype)
        for y, t in [(y, y.representation.tangent) for y in outputs]
    ]
    return primals_at(outputs, inner), pushed, out_structure, lower_aux(aux, level) if has_aux else None


def vjp_flat(
    function: Callable[..., Sequence[Any]],
    xs: Sequence[Tensor],
    cotangents: Sequence[Tensor | None],
    active: Sequence[bool] | None = None,
    linear: bool = False,
) -> list[Tensor | None]:
    """Run a function in reverse mode, None being an exact zero: the cotangents of the operands.

    Args:
        function: from tensors to tensors.
        xs: its operands.
        cotangents: of its results.
        active: which operands have derivatives; None for all.
        linear: whether to transpose the function, which is linear.
    """
    indices = [i for i in float_positions(xs) if active is None or active[i]]
    if not indices or all([t is None for t in cotangents]):
        return [None] * len(xs)
    partial = argnums_partial(function, xs, indices, {})
    seeds: list[Tensor] = []

    def with_cotangents(*floats: Tensor) -> list[Any]:
        pairs = [
            (y, t)
            for y, t in zip(partial(*floats), cotangents, strict=True)
            if y is not None and t is not None
        ]
        seeds[:] = [t for _, t in pairs]
        return [y for y, _ in pairs]

    level, ys, *_ = record("vjp", with_cotangents, [xs[i] for i in indices], None, False, linear)
    pulled = pull(level, ys, seeds, consume=True)
    return at_indices([pulled.get(i) for i in range(len(indices))], indices, len(xs))


def record(
    name: str,
    f: Function,
    values: list[Tensor],
    structure: Any,
    has_aux: bool,
    linear: bool = False,
    make_level: type[Reverse[Any]] = Reverse,
) -> tuple[Reverse[Any], list[Tensor], Any, Any]:
    """Run f on a new tape (to transpose it, if `linear`): the level, f's results at it, their structure, and aux."""
    inner = inner_interpreter(name, values)
    level = make_level(inner)
    level.transform = name
    level.linear = linear
    variables = [Number.like(x, level, level.variable(lifted(x, inner))) for x in values]
    return level, *results_at(level, name, f, _arguments(structure, variables), has_aux)


def pull(
    level: Reverse[Any], outputs: list[Tensor], seeds: list[Tensor], *, consume: bool
) -> dict[int, Tensor]:
    """The cotangents of the variables by tape index, from a cotangent of each output; int and bool have none."""
    cotangents: dict[int, Tensor] = {}
    for y, seed in zip(outputs, seeds, strict=True):
        index = y.representation.index
        if index is not None and y.dtype.kind == "float":
            seed = level.at_inner(seed)
            cotangents[index] = cotangents[index] + seed if index in cotangents else seed
    pulled = level.pull_back(cotangents, consume=consume)
    return {index: level.at_inner(t) for index, t in pulled.items()}


def primals_at(outputs: list[Tensor], inner: Interpreter[Any]) -> list[Tensor]:
    """The results of a function at the level below, without their derivatives."""
    return [Tensor(inner, y.representation.primal, y.shape, y.dtype) for y in outputs]


def _cotangents_of(values: list[Tensor], pulled: dict[int, Tensor], inner: Interpreter[Any]) -> list[Tensor]:
    """The cotangent of each variable; zeros for a variable that the result does not depend on."""
    return [
        pulled[i] if i in pulled else Tensor(inner, lifted(x.zeros_like(), inner), x.shape, x.dtype)
        for i, x in enumerate(values)
    ]


def _settle(inner: Interpreter[Any], *results: list[Tensor]) -> None:
    """Compute lazy results of an outermost transform, so that the values on the tape can be freed."""
    if isinstance(inner, RawTensor):
        for tensors in results:
            for x in tensors:
                if x.interpreter is inner:
                    inner.settle(x.representation)


def lower_aux(aux: Any, level: Any) -> Any:
    """Auxiliary results at the level below, without their derivatives."""
    inner = level.inner

    def drop(x: Any) -> Any:
        if not isinstance(x, Tensor) or x.interpreter is not level:
            return x
        return Tensor(inner, level.lower(x.representation), x.shape, x.dtype)

    return tree.map(drop, aux)


def real_part(name: str, f: Function, has_aux: bool) -> Function:
    """The real part of a complex function's value, with the value and aux: its gradient is that of holomorphic f."""

    def real(*arguments: Any, **keywords: Any) -> Any:
        value, aux = _split(name, f(*arguments, **keywords), has_aux)
        if not isinstance(value, Tensor) or value.dtype.kind != "complex":
            raise GradientError(
                f"{name}: holomorphic=True needs a function with a complex value; leave it out"
            )
        return value.real, (value, aux)

    return functools.wraps(check_function(name, f), updated=())(real)


def _split(name: str, result: Any, has_aux: bool) -> tuple[Any, Any]:
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise ArgumentError(
            f"{name}: has_aux=True needs a function that returns a pair (result, aux), got {type(result).__name__}; "
            f"return a pair, or leave out has_aux"
        )
    return result


def _check_scalar_output(name: str, outputs: list[Tensor]) -> None:
    if len(outputs) != 1:
        raise GradientError(
            f"{name} needs a scalar-valued function, got {len(outputs)} results; use has_aux=True, jacrev or vjp"
        )
    (y,) = outputs
    if y.shape != ():
        raise GradientError(
            f"{name} needs a scalar-valued function, got shape {y.shape}; use jacrev, vjp or elementwise_grad"
        )
    if y.dtype.kind != "float":
        raise GradientError(
            f"{name} needs a floating-point value, got {y.dtype}; cast it (y.astype('float32'))"
        )
