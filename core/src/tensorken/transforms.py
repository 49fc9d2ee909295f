"""The derivatives that users call: functions in, functions out.  Arguments and results are pytrees."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tensorken import tree
from tensorken.creation import as_tensor, tensor
from tensorken.errors import ArgumentError, GradientError, ShapeError, StructureError
from tensorken.forward import Dual, Forward
from tensorken.functions import stack
from tensorken.levels import ground, lift, meet, running
from tensorken.reverse import Reverse
from tensorken.spec.dtypes import DType
from tensorken.spec.interpreter import Interpreter
from tensorken.spec.op import Op
from tensorken.spec.raw import RawTensor
from tensorken.tensor import Tensor

for record in (DType, Op):  # dataclasses, but no containers of tensors
    tree.register_leaf(record)

Function = Callable[..., Any]
Argnums = int | Sequence[int]


# ---- the two modes -----------------------------------------------------------------------------------------


def jvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any], *, has_aux: bool = False) -> Any:
    """f at the primals, and its directional derivative along the tangents (forward mode).

    Args:
        f: a function of pytrees of tensors.
        primals: its arguments.
        tangents: one for each argument, of the same structure, shapes and dtypes.
        has_aux: whether f returns (result, anything else).

    Returns:
        (result, tangent of the result), and what else f returned if has_aux.

    Raises:
        StructureError, ShapeError, GradientError: if the tangents do not match the primals.

    >>> import tensorken as tk
    >>> y, t = tk.jvp(tk.square, (3.0,), (1.0,))
    >>> y.item(), t.item()
    (9.0, 6.0)
    """
    _function("jvp", f)
    _check_sequences("jvp", primals, tangents)
    arguments, structure = tree.flatten(tuple(primals))
    pushes, pushed_structure = tree.flatten(tuple(tangents))
    tree.check_same(structure, pushed_structure, "jvp: tangents")
    values = [_variable("jvp", x, i) for i, x in enumerate(arguments)]
    directions = [_matching("jvp", "tangent", x, t) for x, t in zip(values, pushes, strict=True)]
    inner = ground([x.interpreter for x in (*values, *directions)] or [as_tensor(0.0).interpreter], "jvp")
    level: Forward[Any] = Forward(inner)
    with running(level):
        duals = [
            Tensor(level, Dual(_raised(x, inner), _raised(t, inner)), x.shape, x.dtype)
            for x, t in zip(values, directions, strict=True)
        ]
        result, aux = _split("jvp", f(*tree.unflatten(structure, duals)), has_aux)
        outputs, out_structure = tree.flatten(result)
        outputs = [_result_at(level, y) for y in outputs]
    primals_out = [Tensor(inner, y.representation.primal, y.shape, y.dtype) for y in outputs]
    tangents_out = [
        p.zeros_like()
        if y.representation.tangent is None
        else Tensor(inner, y.representation.tangent, y.shape, y.dtype)
        for p, y in zip(primals_out, outputs, strict=True)
    ]
    _settle(inner, primals_out, tangents_out)
    pair = tree.unflatten(out_structure, primals_out), tree.unflatten(out_structure, tangents_out)
    return (*pair, _dropped(aux, level)) if has_aux else pair


def vjp(f: Function, *primals: Any, has_aux: bool = False) -> Any:
    """f at the primals, and the function that pulls a cotangent of the result back to them (reverse mode).

    Returns:
        (result, pullback), and what else f returned if has_aux. The pullback takes a cotangent of the result's
        structure, shapes and dtypes, returns a tuple with one cotangent for each primal, and may be called again.

    >>> import tensorken as tk
    >>> y, pull_back = tk.vjp(lambda a, b: a * b, 2.0, 5.0)
    >>> [t.item() for t in pull_back(1.0)]
    [5.0, 2.0]
    """
    _function("vjp", f)
    arguments, structure = _leaves(primals)
    values = [_variable("vjp", x, i) for i, x in enumerate(arguments)]
    level, outputs, out_structure, aux = _record("vjp", f, values, structure, has_aux)
    inner = level.inner
    results = [Tensor(inner, y.representation.primal, y.shape, y.dtype) for y in outputs]

    def pull_back(cotangent: Any) -> tuple[Any, ...]:
        """The cotangents of the primals."""
        given, given_structure = tree.flatten(cotangent)
        tree.check_same(out_structure, given_structure, "vjp: cotangent")
        seeds = [_matching("vjp", "cotangent", y, t) for y, t in zip(results, given, strict=True)]
        found = _pull(level, outputs, seeds, consume=False)
        pulled = [
            found[i] if i in found else Tensor(inner, _raised(x.zeros_like(), inner))
            for i, x in enumerate(values)
        ]
        _settle(inner, pulled)
        return _arguments(structure, pulled)  # type: ignore[no-any-return]

    result = tree.unflatten(out_structure, results)
    return (result, pull_back, _dropped(aux, level)) if has_aux else (result, pull_back)


# ---- gradients ---------------------------------------------------------------------------------------------


def value_and_grad(
    f: Function, argnums: Argnums = 0, *, has_aux: bool = False, allow_unused: bool = True
) -> Callable[..., Any]:
    """The function that returns f's value and its gradient, computing f once.

    Args:
        f: a function whose value is one floating-point number.
        argnums: which positional argument to differentiate, or several: then the gradient is a tuple.
        has_aux: whether f returns (value, anything else); then so does the result: ((value, aux), gradient).
        allow_unused: if False, an argument that does not influence the value is an error instead of zeros.

    Raises:
        GradientError: if f's value is not one floating-point number, or an argument is not floating-point.

    >>> import tensorken as tk
    >>> value, gradient = tk.value_and_grad(lambda x: (x * x).sum())(tk.tensor([1.0, 2.0]))
    >>> value.item(), gradient.tolist()
    (5.0, [2.0, 4.0])
    """
    return _differentiated("value_and_grad", f, argnums, has_aux, allow_unused, scalar=True)


def grad(
    f: Function, argnums: Argnums = 0, *, has_aux: bool = False, allow_unused: bool = True
) -> Callable[..., Any]:
    """The function that returns the gradient of f, whose value is one number; see `value_and_grad`.

    >>> import tensorken as tk
    >>> print(f"{tk.grad(tk.tanh)(2.0):.5f}")
    0.07065
    """
    both = _differentiated("grad", f, argnums, has_aux, allow_unused, scalar=True)

    @functools.wraps(f)
    def gradient(*arguments: Any, **keywords: Any) -> Any:
        value, pulled = both(*arguments, **keywords)
        return (pulled, value[1]) if has_aux else pulled

    return gradient


def elementwise_grad(f: Function, argnums: Argnums = 0) -> Callable[..., Any]:
    """The gradient of the sum of f's results: for an elementwise f, its derivative at each element (reverse mode).

    >>> import tensorken as tk
    >>> tk.elementwise_grad(tk.square)(tk.tensor([1.0, 2.0])).tolist()
    [2.0, 4.0]
    """
    both = _differentiated("elementwise_grad", f, argnums, False, True, scalar=False)

    @functools.wraps(f)
    def gradient(*arguments: Any, **keywords: Any) -> Any:
        return both(*arguments, **keywords)[1]

    return gradient


def derivative(f: Function, argnum: int = 0) -> Callable[..., Any]:
    """The directional derivative of f along ones: for an elementwise f, its derivative at each element (forward mode).

    >>> import tensorken as tk
    >>> tk.derivative(tk.derivative(tk.sin))(0.0).item()
    -0.0
    """

    @functools.wraps(_function("derivative", f))
    def differentiated(*arguments: Any, **keywords: Any) -> Any:
        (place,) = _places("derivative", argnum, len(arguments))
        at = tree.map(as_tensor, arguments[place])
        ones = tree.map(lambda x: _variable("derivative", x, 0).ones_like(), at)
        return jvp(_partial(f, arguments, (place,), keywords), (at,), (ones,))[1]

    return differentiated


# ---- Jacobians ---------------------------------------------------------------------------------------------


def jacfwd(f: Function, argnums: Argnums = 0) -> Callable[..., Any]:
    """The Jacobian of f by forward mode, one push for each input element: for few inputs and many outputs.

    Returns:
        A function that gives, for each output and each input of the pytrees, a tensor of shape
        `output.shape + input.shape`.

    >>> import tensorken as tk
    >>> tk.jacfwd(tk.square)(tk.tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """

    @functools.wraps(_function("jacfwd", f))
    def jacobian(*arguments: Any, **keywords: Any) -> Any:
        places = _places("jacfwd", argnums, len(arguments))
        at = tuple([tree.map(as_tensor, arguments[i]) for i in places])
        inputs, structure = tree.flatten(at)
        inputs = [_variable("jacfwd", x, i) for i, x in enumerate(inputs)]
        partial = _partial(f, arguments, places, keywords)
        columns: list[list[list[Tensor]]] = []  # [input][element of the input][output]
        out_structure: Any = None
        for k, x in enumerate(inputs):
            columns.append([])
            for direction in _basis(x):
                directions = [direction if i == k else z.zeros_like() for i, z in enumerate(inputs)]
                pushed = jvp(
                    partial, tree.unflatten(structure, inputs), tree.unflatten(structure, directions)
                )[1]
                outputs, out_structure = tree.flatten(pushed)
                columns[k].append(outputs)
        if out_structure is None:
            outputs, out_structure = tree.flatten(partial(*tree.unflatten(structure, inputs)))
        else:
            outputs = next(column for column in columns if column)[0]
        blocks = []
        for o, y in enumerate(outputs):
            row = []
            for x, column in zip(inputs, columns, strict=True):
                shape = y.shape + x.shape
                row.append(
                    stack([out[o] for out in column], y.ndim).reshape(shape) if column else _zeros(y, shape)
                )
            blocks.append(_over_inputs(tree.unflatten(structure, row), argnums))
        return tree.unflatten(out_structure, blocks)

    return jacobian


def jacrev(f: Function, argnums: Argnums = 0) -> Callable[..., Any]:
    """The Jacobian of f by reverse mode, one pull for each output element: for many inputs and few outputs.

    Returns:
        A function that gives, for each output and each input of the pytrees, a tensor of shape
        `output.shape + input.shape`.

    >>> import tensorken as tk
    >>> tk.jacrev(tk.square)(tk.tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """

    @functools.wraps(_function("jacrev", f))
    def jacobian(*arguments: Any, **keywords: Any) -> Any:
        places = _places("jacrev", argnums, len(arguments))
        at = tuple([tree.map(as_tensor, arguments[i]) for i in places])
        inputs, structure = tree.flatten(at)
        result, pull_back = vjp(_partial(f, arguments, places, keywords), *at)
        outputs, out_structure = tree.flatten(result)
        blocks = []
        for k, y in enumerate(outputs):
            rows: list[list[Tensor]] = []  # [element of the output][input]
            for cotangent in _basis(_variable("jacrev", y, k)):
                seeds = [cotangent if i == k else z.zeros_like() for i, z in enumerate(outputs)]
                rows.append(tree.flatten(pull_back(tree.unflatten(out_structure, seeds)))[0])
            block = [
                stack([row[i] for row in rows], 0).reshape(y.shape + x.shape)
                if rows
                else _zeros(x, y.shape + x.shape)
                for i, x in enumerate(inputs)
            ]
            blocks.append(_over_inputs(tree.unflatten(structure, block), argnums))
        return tree.unflatten(out_structure, blocks)

    return jacobian


def hessian(f: Function, argnums: Argnums = 0) -> Callable[..., Any]:
    """The second derivatives of f, forward over reverse: tensors of shape `output.shape + input.shape * 2`.

    >>> import tensorken as tk
    >>> tk.hessian(lambda x: (x * x * x).sum())(tk.tensor([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    return jacfwd(jacrev(f, argnums), argnums)


def hvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The Hessian of scalar-valued f at the primals times the tangents, without ever building the Hessian.

    Returns:
        For one primal its product; for several a tuple.

    >>> import tensorken as tk
    >>> tk.hvp(lambda x: (x * x * x).sum(), (tk.tensor([1.0, 2.0]),), (tk.tensor([1.0, 0.0]),)).tolist()
    [6.0, 0.0]
    """
    _check_sequences("hvp", primals, tangents)
    argnums: Argnums = 0 if len(primals) == 1 else tuple(range(len(primals)))
    return jvp(grad(f, argnums), primals, tangents)[1]


# ---- pieces ------------------------------------------------------------------------------------------------


def _differentiated(
    name: str, f: Function, argnums: Argnums, has_aux: bool, allow_unused: bool, scalar: bool
) -> Callable[..., Any]:
    """The function that returns f's value and the cotangents of the chosen arguments."""

    @functools.wraps(_function(name, f))
    def differentiated(*arguments: Any, **keywords: Any) -> Any:
        places = _places(name, argnums, len(arguments))
        if len(arguments) == len(places) == 1 and not keywords:
            partial, chosen = f, arguments
        else:
            partial, chosen = _partial(f, arguments, places, keywords), tuple([arguments[i] for i in places])
        leaves, structure = _leaves(chosen)
        values = [
            x if type(x) is Tensor and x.dtype.kind == "float" else _variable(name, x, i, structure)
            for i, x in enumerate(leaves)
        ]
        level, outputs, out_structure, aux = _record(name, partial, values, structure, has_aux)
        inner = level.inner
        if scalar:
            _check_scalar_output(name, outputs)
        results = [Tensor(inner, y.representation.primal, y.shape, y.dtype) for y in outputs]
        found = _pull(level, outputs, [y.ones_like() for y in results], consume=True)
        if not allow_unused:
            for i, (path, _) in enumerate(tree.flatten_with_path(chosen)[0]):
                if i not in found:
                    raise GradientError(
                        f"{name}: the value does not depend on argument {path}; drop it, or pass allow_unused=True for zeros"
                    )
        pulled = [
            found[i] if i in found else Tensor(inner, _raised(x.zeros_like(), inner), x.shape, x.dtype)
            for i, x in enumerate(values)
        ]
        _settle(inner, results, pulled)
        gradients = _over_inputs(_arguments(structure, pulled), argnums)
        value = tree.unflatten(out_structure, results)
        return ((value, _dropped(aux, level)) if has_aux else value), gradients

    return differentiated


def _function(name: str, f: Any) -> Function:
    """f, which must be callable."""
    if not callable(f):
        raise ArgumentError(
            f"{name}: need a function, got {type(f).__name__}; write {name}(f), not {name}(f(x))"
        )
    return f  # type: ignore[no-any-return]


def _leaves(arguments: tuple[Any, ...]) -> tuple[list[Any], Any]:
    """The leaves of the arguments and their structure; None if each argument is one tensor, the commonest case."""
    if all([type(x) is Tensor for x in arguments]):
        return list(arguments), None
    return tree.flatten(arguments)


def _arguments(structure: Any, leaves: list[Tensor]) -> Any:
    """The inverse of `_leaves`."""
    return tuple(leaves) if structure is None else tree.unflatten(structure, leaves)


def _record(
    name: str, f: Function, values: list[Tensor], structure: Any, has_aux: bool
) -> tuple[Reverse[Any], list[Tensor], Any, Any]:
    """Run f on a fresh tape; the level, and f's results there."""
    inner = ground([x.interpreter for x in values] or [as_tensor(0.0).interpreter], name)
    level: Reverse[Any] = Reverse(inner)
    level.transform = name
    with running(level):
        variables = [Tensor(level, level.variable(_raised(x, inner)), x.shape, x.dtype) for x in values]
        result, aux = _split(name, f(*_arguments(structure, variables)), has_aux)
        outputs, out_structure = tree.flatten(result)
        return level, [_result_at(level, y) for y in outputs], out_structure, aux


def _pull(
    level: Reverse[Any], outputs: list[Tensor], seeds: list[Tensor], *, consume: bool
) -> dict[int, Tensor]:
    """Pull one cotangent of each output back to the variables; an int or bool output has none."""
    cotangents: dict[int, Tensor] = {}
    for y, seed in zip(outputs, seeds, strict=True):
        place = y.representation.index
        if place is not None and y.dtype.kind == "float":
            seed = level.at_inner(seed)
            cotangents[place] = cotangents[place] + seed if place in cotangents else seed
    found = level.pull_back(cotangents, consume=consume)
    return {place: level.at_inner(t) for place, t in found.items()}


def _variable(name: str, leaf: Any, index: int, structure: Any = None) -> Tensor:
    """A leaf of the arguments as a floating-point tensor."""
    try:
        x = as_tensor(leaf)
    except ArgumentError as error:
        raise ArgumentError(f"{name}: argument leaf {index}: {error}") from None
    if x.dtype.kind != "float":
        where = "" if structure is None else f" at {_path(structure, index)}"
        raise GradientError(
            f"{name}: cannot differentiate {x.dtype} of shape {x.shape}{where}; pass floats (x.astype('float32')), "
            f"or leave the argument out of argnums"
        )
    return x


def _path(structure: Any, index: int) -> str:
    """Where a leaf stands among the arguments."""
    path: str = tree.flatten_with_path(tree.unflatten(structure, range(structure.leaf_count)))[0][index][0]
    return path


def _settle(inner: Interpreter[Any], *results: list[Tensor]) -> None:
    """Have nothing of the results of an outermost transform held back: the tape's values can then go."""
    if isinstance(inner, RawTensor):
        for tensors in results:
            for x in tensors:
                if x.interpreter is inner:
                    inner.settle(x.representation)


def _raised(x: Tensor, inner: Interpreter[Any]) -> Any:
    return x.representation if x.interpreter is inner else lift(x.representation, x.interpreter, inner)


def _result_at(level: Any, y: Any) -> Tensor:
    """A leaf of f's result at the level; a number becomes a tensor of the level's backend."""
    result = y if isinstance(y, Tensor) else tensor(y, backend=level.base)
    if result.interpreter is level:
        return result
    deepest: Any = meet((result.interpreter, level), level.transform)
    if deepest is not level:
        raise deepest.refuse(level.transform)
    return Tensor(level, _raised(result, level), result.shape, result.dtype)


def _dropped(aux: Any, level: Any) -> Any:
    """Extra results, one level down: their derivatives are not asked for."""
    inner = level.inner

    def drop(x: Any) -> Any:
        if not isinstance(x, Tensor) or x.interpreter is not level:
            return x
        return Tensor(inner, x.interpreter.lower(x.representation), x.shape, x.dtype)

    return tree.map(drop, aux)


def _split(name: str, result: Any, has_aux: bool) -> tuple[Any, Any]:
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise ArgumentError(
            f"{name}: has_aux=True needs a function that returns (result, aux), got {type(result).__name__}"
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


def _matching(name: str, what: str, x: Tensor, t: Any) -> Tensor:
    """A tangent or cotangent, which must have x's shape and dtype; a Python number takes the dtype."""
    found = x.scalar(float(t)) if type(t) in (bool, int, float) and x.shape == () else as_tensor(t)
    if found.shape != x.shape:
        raise ShapeError(
            f"{name}: the {what} has shape {found.shape}, need {x.shape}, that of its primal; reshape it"
        )
    if found.dtype is not x.dtype:
        raise GradientError(
            f"{name}: the {what} is {found.dtype}, need {x.dtype}, that of its primal; cast it (t.astype)"
        )
    return found


def _check_sequences(name: str, primals: Any, tangents: Any) -> None:
    for what, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, tuple | list):
            raise ArgumentError(
                f"{name}: {what} must be a tuple or list, one entry for each argument, got {type(given).__name__}"
            )
    if len(primals) != len(tangents):
        raise StructureError(
            f"{name}: {len(primals)} primals and {len(tangents)} tangents; need one tangent for each primal"
        )


def _places(name: str, argnums: Any, count: int) -> tuple[int, ...]:
    """Non-negative positions of the chosen arguments."""
    chosen = tuple(argnums) if isinstance(argnums, tuple | list) else (argnums,)
    for i in chosen:
        if type(i) is not int or not -count <= i < count:
            raise ArgumentError(
                f"{name}: argnums {argnums!r} does not fit a call with {count} positional arguments; "
                f"give their places, from 0, and pass what is to be differentiated by position"
            )
    places = tuple([i % count for i in chosen])
    if len(set(places)) != len(places):
        raise ArgumentError(f"{name}: argnums {argnums!r} names an argument twice; name each once")
    return places


def _partial(
    f: Function, arguments: Sequence[Any], places: Sequence[int], keywords: dict[str, Any]
) -> Function:
    """f as a function of the chosen arguments alone."""

    def partial(*chosen: Any) -> Any:
        full = list(arguments)
        for i, x in zip(places, chosen, strict=True):
            full[i] = x
        return f(*full, **keywords)

    return partial


def _over_inputs(chosen: tuple[Any, ...], argnums: Argnums) -> Any:
    return chosen[0] if isinstance(argnums, int) else chosen


def _basis(x: Tensor) -> list[Tensor]:
    """All tensors of x's shape and dtype with a single 1."""
    n = x.size
    numbers = [[1.0 if i == k else 0.0 for i in range(n)] for k in range(n)]
    return [x.constant(row, x.dtype, x.shape) for row in numbers]


def _zeros(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    return x.constant([], x.dtype, (0,)).reshape(shape)
