"""Control flow that is traced, differentiated and batched: choices by a value, and loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tensorken import tree
from tensorken.arguments import Function, check_function
from tensorken.branches import COND
from tensorken.calls import applied
from tensorken.creation import as_tensor, tensor
from tensorken.errors import ArgumentError, DTypeError, ShapeError
from tensorken.levels import ground
from tensorken.loops import CARRY, CONSTANT, SCAN, WHILE
from tensorken.programs.program import Program, Variable
from tensorken.spec.dtypes import DType, bool_, int32, int64, with_scalar
from tensorken.spec.interpreter import Interpreter
from tensorken.spec.raw import RawTensor
from tensorken.spec.shapes import shown
from tensorken.tensor import Tensor
from tensorken.tracing import traced

__all__ = [
    "cond",
    "fori_loop",
    "scan",
    "while_loop",
]

NUMBERS = (bool, int, float)


def cond(pred: Any, true_fun: Function, false_fun: Function, *operands: Any) -> Any:
    """`true_fun(*operands)` if pred is True, else `false_fun(*operands)`: one of them runs.

    Both are traced, wherever cond is called, so their results must be alike.  Under `vmap`, where examples may differ
    in pred, both run for all examples.

    Args:
        pred: a bool, or a tensor of shape (): whether it is not zero.
        true_fun: a function of pytrees of tensors; tensors that it uses without being given them are differentiated
            and batched all the same.
        false_fun: another, whose result has the structure, shapes and dtypes of the first one's.
        operands: their arguments.

    Raises:
        ShapeError, DTypeError, StructureError: if pred is not one value, or the results differ.

    >>> import tensorken as tk
    >>> half_or_triple = tk.jit(lambda n: tk.cond(n % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, n))
    >>> half_or_triple(6).item(), half_or_triple(7).item()
    (3, 22)
    """
    check_function("cond", true_fun)
    check_function("cond", false_fun)
    leaves, structure = tree.flatten(operands)
    given = _Given.of("cond", [pred, *leaves])
    predicate, *xs = given.tensors
    if predicate.shape != ():
        raise ShapeError(
            f"cond: the predicate has shape {predicate.shape}, need (); choose by element with tk.where, or by example "
            f"with tk.vmap"
        )
    if predicate.dtype is not bool_:
        predicate = predicate != 0
    bodies = [_Body.of("cond", f, structure, xs, given.inner, ()) for f in (true_fun, false_fun)]
    tree.check_same(bodies[0].result, bodies[1].result, "cond: the result of false_fun, beside true_fun's")
    wanted = [
        v if i not in bodies[0].numbers else w
        for i, (v, w) in enumerate(zip(bodies[0].outputs, bodies[1].outputs, strict=True))
    ]
    bodies = [
        _Body.of("cond", f, structure, xs, given.inner, wanted) if body.numbers else body
        for f, body in zip((true_fun, false_fun), bodies, strict=True)
    ]
    _check_alike("cond: the result of false_fun, beside true_fun's", bodies[0], bodies[1].outputs)
    captured = [*bodies[0].captured, *bodies[1].captured]
    programs = _with_inputs_of_all(bodies)
    ys = applied(COND, [predicate, *captured, *xs], tuple(programs))
    return tree.unflatten(bodies[0].result, ys)


def scan(
    f: Function, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False
) -> tuple[Any, Any]:
    """A loop over the first axis of xs that carries a state along and stacks what each step gives besides.

    As this Python would do, but traced once:

        carry, ys = init, []
        for x in xs:
            carry, y = f(carry, x)
            ys.append(y)
        return carry, stack(ys)

    Reverse mode keeps for each step what the derivative of f needs; `tk.checkpoint(f)` keeps the carries only.

    Args:
        f: a function (carry, x) -> (carry, y) of pytrees of tensors; the carry that it returns has the structure,
            shapes and dtypes of the one that it was given.
        init: the first carry.
        xs: a pytree of tensors, all of one size along the first axis; None if f needs none.
        length: the number of steps; must be given if xs has no tensors.
        reverse: whether to begin with the last x; ys are in the order of xs all the same.

    Returns:
        The last carry, and the ys with the steps along the first axis.

    Raises:
        ShapeError, DTypeError, StructureError: if the carry changes its kind, or the number of steps is not clear.

    >>> import tensorken as tk
    >>> total, sums = tk.scan(lambda total, x: (total + x, total + x), 0.0, tk.tensor([1.0, 2.0, 3.0]))
    >>> total.item(), sums.tolist()
    (6.0, [1.0, 3.0, 6.0])
    """
    check_function("scan", f)
    leaves, structure = tree.flatten((init, xs))
    given = _Given.of("scan", leaves)
    count = len(tree.leaves(init))
    values, slices = given.tensors[:count], given.tensors[count:]
    steps = _number_of_steps(slices, length)
    rows = [Variable(x.shape[1:], x.dtype) for x in slices]

    def step(carry: Any, x: Any) -> Any:
        result = f(carry, x)
        if not isinstance(result, tuple) or len(result) != 2:
            raise ArgumentError(
                f"scan: the function must return a pair (carry, y), got {type(result).__name__}; return (carry, None) "
                f"if there is nothing to stack"
            )
        return result

    body = _loop_body("scan", step, structure, given, values, rows, tree.structure(init))
    captured, program = body.captured, body.program
    if not program.inputs:  # an op needs an operand, to know where to run
        captured = [as_tensor(0.0)]
        program = program.changed(inputs=(Variable((), captured[0].dtype),))
    going_in = (*[CONSTANT] * len(captured), *[CARRY] * count, *[0] * len(slices))
    coming_out = (*[CARRY] * count, *[0] * (len(program.outputs) - count))
    params = (program, going_in, coming_out, steps, bool(reverse))
    carry, stacked = tree.unflatten(body.result, applied(SCAN, [*captured, *values, *slices], params))
    return carry, stacked


def while_loop(cond_fun: Function, body_fun: Function, init_val: Any) -> Any:
    """What comes of init_val by body_fun, again and again while cond_fun of it is True.

    Under `vmap`, where examples may end at different steps, all go on until the last has ended, and each keeps what it
    ended with.  Forward mode works; reverse mode needs a known number of steps: see `fori_loop` and `scan`.

    Args:
        cond_fun: a function of the value that returns a bool of shape ().
        body_fun: a function of the value that returns another of the same structure, shapes and dtypes.
        init_val: a pytree of tensors.

    Raises:
        ShapeError, DTypeError, StructureError: if the value changes its kind, or cond_fun gives no bool.
        GradientError: when a cotangent is pulled back through the loop.

    >>> import tensorken as tk
    >>> tk.while_loop(lambda x: x < 100, lambda x: x * 2, 3).item()
    192
    """
    check_function("while_loop", cond_fun)
    check_function("while_loop", body_fun)
    leaves, structure = tree.flatten(init_val)
    if not leaves:
        raise ArgumentError("while_loop: init_val has no tensors, so the loop could not end; give it a value")
    return _while("while_loop", cond_fun, body_fun, leaves, structure)


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    """What comes of init_val by `body_fun(i, value)` for i from lower up to, but not including, upper.

    With bounds that are known (ints, or tensors outside all transforms) this is a `scan`, which has both modes of
    derivatives; with others it is a `while_loop`.

    Args:
        lower: the first i, an int or an integer tensor of shape ().
        upper: where i stops.
        body_fun: a function of i and the value, which returns another of the same structure, shapes and dtypes.
        init_val: a pytree of tensors.

    Raises:
        ShapeError, DTypeError, StructureError: if the value changes its kind, or a bound is not an integer.

    >>> import tensorken as tk
    >>> tk.fori_loop(1, 5, lambda i, x: x * i, 1.0).item()
    24.0
    """
    check_function("fori_loop", body_fun)
    first, last = _bound("lower", lower), _bound("upper", upper)
    if isinstance(first, int) and isinstance(last, int):

        def step(carry: Any, _: Any) -> Any:
            i, value = carry
            return (i + 1, body_fun(i, value)), None

        start = _made(first, _counter(first, last), _base_of(init_val))
        return scan(step, (start, init_val), length=max(last - first, 0))[0][1]
    dtypes = [x.dtype for x in (first, last) if isinstance(x, Tensor)]
    dtype = int64 if int64 in dtypes else int32
    base = _base_of((lower, upper, init_val))
    i, end = [x.astype(dtype) if isinstance(x, Tensor) else _made(x, dtype, base) for x in (first, last)]
    leaves, structure = tree.flatten((i, end, init_val))
    result = _while(
        "fori_loop",
        lambda carry: carry[0] < carry[1],
        lambda carry: (carry[0] + 1, carry[1], body_fun(carry[0], carry[2])),
        leaves,
        structure,
    )
    return result[2]


# ---- what the functions share ------------------------------------------------------------------------------


def _while(name: str, cond_fun: Function, body_fun: Function, leaves: list[Any], structure: Any) -> Any:
    given = _Given.of(name, leaves)
    values = given.tensors
    alone = tree.structure((tree.unflatten(structure, leaves),))
    body = _loop_body(name, body_fun, alone, given, values, [], structure)
    condition = _Body.of(name, cond_fun, alone, values, given.inner, ())
    found = [(v.dtype.name, v.shape) for v in condition.outputs]
    if found != [("bool", ())]:
        came = " and ".join([f"{dtype} {shape}" for dtype, shape in found]) or "nothing"
        raise ShapeError(
            f"{name}: cond_fun gave {came}, need one bool of shape (); reduce it by tk.all or tk.any"
        )
    captured = [*condition.captured, *body.captured]
    programs = _with_inputs_of_all([condition, body])
    roles = (*[CONSTANT] * len(captured), *[CARRY] * len(values))
    ys = applied(WHILE, [*captured, *values], (*programs, roles))
    return tree.unflatten(body.result, ys)


@dataclass(slots=True)
class _Given:
    """The leaves of the arguments as tensors, which of them came as numbers, and what their function stands on."""

    tensors: list[Tensor]
    numbers: dict[int, Any]
    inner: Interpreter[Any]

    @classmethod
    def of(cls, name: str, leaves: Sequence[Any]) -> _Given:
        base = _base_of(leaves)
        tensors = []
        for i, leaf in enumerate(leaves):
            try:
                tensors.append(leaf if isinstance(leaf, Tensor) else _made(leaf, None, base))
            except ArgumentError as error:
                raise ArgumentError(f"{name}: argument leaf {i}: {error}") from None
        inner = ground([x.interpreter for x in tensors] or [as_tensor(0.0).interpreter], name)
        return cls(tensors, {i: x for i, x in enumerate(leaves) if type(x) in NUMBERS}, inner)


def _made(data: Any, dtype: DType | None, base: Any) -> Tensor:
    """A tensor on a backend; of a number one that is known to be that number, which then stands in the program."""
    x = tensor(data, dtype, backend=base)
    return x.scalar(data) if type(data) in NUMBERS else x


def _base_of(value: Any) -> Any:
    """The backend of the tensors in a value; None if there are none, which is the default one."""
    return next((x.interpreter.base for x in tree.leaves(value) if isinstance(x, Tensor)), None)


@dataclass(slots=True)
class _Body:
    """A function that has been traced.

    Attributes:
        program: takes what was captured first.
        captured: the tensors that the function used without being given them.
        result: the structure of its result.
        numbers: the places of the results that were Python numbers.
    """

    program: Program
    captured: list[Tensor]
    result: Any
    numbers: set[int]

    @property
    def outputs(self) -> tuple[Variable, ...]:
        return self.program.outputs

    @classmethod
    def of(
        cls,
        name: str,
        function: Function,
        arguments: Any,
        like: Sequence[Any],
        inner: Interpreter[Any],
        wanted: Sequence[Any],
    ) -> _Body:
        """Trace a function; its results that are Python numbers take the dtypes wanted, if their kind allows."""
        results: list[Any] = []
        numbers: set[int] = set()

        def flat(*values: Tensor) -> list[Any]:
            leaves, structure = tree.flatten(function(*tree.unflatten(arguments, values)))
            results.append(structure)
            for i, leaf in enumerate(leaves):
                if type(leaf) in NUMBERS:
                    numbers.add(i)
                    dtype = with_scalar(wanted[i].dtype, leaf) if i < len(wanted) else None
                    leaves[i] = _made(leaf, dtype, inner.base)
            return leaves

        program = traced(flat, like, inner, getattr(function, "__name__", name))
        captured = list(program.constants.values())
        program = program.changed(inputs=(*program.constants, *program.inputs), constants={})
        return cls(program, captured, results[0], numbers)


def _loop_body(
    name: str,
    function: Function,
    arguments: Any,
    given: _Given,
    values: list[Tensor],
    rows: Sequence[Variable],
    carry: Any,
) -> _Body:
    """The function of one step, whose first results must be as the carry.

    What came as a Python number takes the dtype that the function returns for it, if its kind allows; `values` then
    has it so.
    """
    numbers = dict(given.numbers)
    while True:
        body = _Body.of(name, function, arguments, [*values, *rows], given.inner, values)
        whole = tree.unflatten(body.result, range(body.result.size))
        own = tree.structure(whole[0] if name == "scan" else whole)
        tree.check_same(
            carry, own, f"{name}: the {'carry' if name == 'scan' else 'value'} that the function returns"
        )
        changed = False
        for i, (x, v) in enumerate(zip(values, body.outputs, strict=False)):
            if i in numbers and x.dtype is not v.dtype and with_scalar(v.dtype, numbers[i]) is v.dtype:
                values[i] = _made(numbers.pop(i), v.dtype, x.interpreter.base)
                changed = True
        if not changed:
            break
    paths = [path for path, _ in tree.flatten_with_path(tree.unflatten(carry, values))[0]]
    for path, x, v in zip(paths, values, body.outputs, strict=False):
        _check_kind(f"{name}: the {'carry' if name == 'scan' else 'value'}{path and f' at {path}'}", x, v)
    return body


def _check_kind(what: str, expected: Any, got: Any) -> None:
    error = ShapeError if expected.shape != got.shape else DTypeError
    if expected.shape != got.shape or expected.dtype is not got.dtype:
        raise error(
            f"{what} goes in as {expected.dtype.name} {expected.shape} and comes out as {got.dtype.name} {got.shape}; "
            f"return it as it came (x.astype, x.reshape), or start with what it becomes"
        )


def _check_alike(what: str, first: _Body, outputs: Sequence[Variable]) -> None:
    places = tree.unflatten(first.result, range(first.result.size))
    for path, i in tree.flatten_with_path(places)[0]:
        v, w = first.outputs[i], outputs[i]
        if v.shape != w.shape or v.dtype is not w.dtype:
            error = ShapeError if v.shape != w.shape else DTypeError
            raise error(
                f"{what}{path and f', at {path}'}: {w.dtype.name} {w.shape}, and not {v.dtype.name} {v.shape}; make "
                f"both functions return the same (x.astype, x.reshape)"
            )


def _with_inputs_of_all(bodies: Sequence[_Body]) -> list[Program]:
    """The programs of functions of the same arguments, each of which then takes what any of them captured."""
    captured = [body.program.inputs[: len(body.captured)] for body in bodies]
    programs = []
    for i, body in enumerate(bodies):
        own = [v if i == j else Variable(v.shape, v.dtype) for j, group in enumerate(captured) for v in group]
        programs.append(body.program.changed(inputs=(*own, *body.program.inputs[len(body.captured) :])))
    return programs


def _number_of_steps(slices: Sequence[Tensor], length: Any) -> int:
    if length is not None and (type(length) is not int or length < 0):
        raise ArgumentError(f"scan: length must be an int that is not negative, got {shown(length)}")
    found = length
    for i, x in enumerate(slices):
        if x.ndim == 0:
            raise ShapeError(
                f"scan: leaf {i} of xs has shape (), so no axis to go along; give it one, or use init"
            )
        if found is None:
            found = x.shape[0]
        if x.shape[0] != found:
            known = f"leaf 0 of xs has {found}" if length is None else f"length is {found}"
            raise ShapeError(
                f"scan: {known} and leaf {i} of xs has size {x.shape[0]} along axis 0; need one size"
            )
    if found is None:
        raise ArgumentError("scan: xs has no tensors, so say length=, the number of steps")
    return int(found)


def _bound(name: str, value: Any) -> Any:
    """A bound of a loop: an int if it is known."""
    if type(value) is int:
        return value
    if not isinstance(value, Tensor) or value.shape != () or value.dtype.kind != "int":
        came = f"{value.dtype.name} {value.shape}" if isinstance(value, Tensor) else type(value).__name__
        raise ArgumentError(f"fori_loop: {name} must be an int, or an integer tensor of shape (), got {came}")
    place = value.interpreter
    return int(value.item()) if isinstance(place, RawTensor) and not place.capabilities.symbolic else value


def _counter(first: int, last: int) -> DType:
    """The dtype of a counter up to a bound."""
    return int32 if first >= -(2**31) and last < 2**31 else int64
