"""Traced functions: the functions passed to loops and conds, traced to programs, and their arguments as tensors."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tensorken.arrays.creation import tensor
from tensorken.programs.names import labels_of, parameters_of
from tensorken_core import tree
from tensorken_core.errors import ArgumentError, DTypeError, ShapeError
from tensorken_core.host.registry import resolve
from tensorken_core.language.dtypes import DType, with_number, with_scalar
from tensorken_core.language.interpreter import Interpreter
from tensorken_core.levels.trace import Source, Trace, traced
from tensorken_core.program.program import Program, Variable
from tensorken_core.tensor.level import interpreter_below
from tensorken_core.tensor.number import Number, carried, numbers_among, wide_float, with_numbers
from tensorken_core.tensor.tensor import Tensor, as_tensor
from tensorken_core.transforms.arguments import Function

NUMBER_TYPES = (bool, int, float)


@dataclass(slots=True)
class LoopArguments:
    """The leaves of the arguments as tensors, the Python numbers among them by index, and the interpreter below the
    trace.
    """

    tensors: list[Tensor]
    numbers: dict[int, Any]
    inner: Interpreter[Any]

    @classmethod
    def of(cls, name: str, leaves: Sequence[Any]) -> LoopArguments:
        base = resolve(base_of(leaves))
        tensors = []
        for i, leaf in enumerate(leaves):
            try:
                dtype = wide_float(base) if type(leaf) is float else None
                tensors.append(carried(leaf) if isinstance(leaf, Tensor) else as_constant(leaf, dtype, base))
            except ArgumentError as error:
                raise ArgumentError(f"{name}: argument leaf {i}: {error}") from None
        inner = interpreter_below([x.interpreter for x in tensors], name)
        return cls(tensors, {i: leaves[i] for i in numbers_among(leaves)}, inner)


def as_constant(data: Any, dtype: DType | None, base: Any) -> Tensor:
    """A tensor on a backend; a number becomes a tensor with a known value, which is a literal in programs."""
    x = tensor(data, dtype, backend=base)
    return x.scalar(data) if type(data) in NUMBER_TYPES else x


def in_default_dtypes(values: Sequence[Tensor], numbers: Iterable[int]) -> list[Tensor]:
    """The last carry, whose numbers are tensors of their default dtypes, as they are without jit."""
    return [as_tensor(x) for x in with_numbers(values, [i for i in numbers if i < len(values)])]


def base_of(value: Any) -> Any:
    """The backend of the tensors in a value; None, the default backend, if there are none."""
    return next((x.interpreter.base for x in tree.leaves(value) if isinstance(x, Tensor)), None)


@dataclass(slots=True)
class TracedFunction:
    """A function that was traced.

    Attributes:
        program: its first inputs are the captured tensors.
        captured: the tensors that the function closes over.
        result: the structure of its result.
        numbers: the indices of the results that were Python numbers, or stand for them.
        given: the indices of the arguments that stand for Python numbers.
    """

    program: Program
    captured: list[Tensor]
    result: Any
    numbers: set[int]
    given: tuple[int, ...]

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
        like_outputs: Sequence[Any],
        *,
        in_branch: bool = False,
        extra_carries: int = 0,
        numbers: Sequence[int] = (),
    ) -> TracedFunction:
        """Trace a function; results that are Python numbers take the dtypes of `like_outputs`, if their kind allows.

        Args:
            in_branch: whether it is a branch, in which loops and conds must not run while tracing.
            extra_carries: the number of values that the loop adds in front of the user's carry, for messages.
            numbers: the indices of the arguments that stand for Python numbers.
        """
        results: list[Any] = []
        given, numbers_out = numbers, set[int]()

        def flat(*values: Tensor) -> list[Any]:
            level = interpreter_below([inner], name)
            if isinstance(level, Trace):
                level.in_branch = in_branch
            operands = with_numbers(values, given)
            leaves, structure = tree.flatten(function(*tree.unflatten(arguments, operands)))
            results.append(structure)
            for i, leaf in enumerate(leaves):
                like_output = like_outputs[i] if i < len(like_outputs) else None
                if type(leaf) in NUMBER_TYPES:
                    numbers_out.add(i)
                    dtype = with_scalar(like_output.dtype, leaf) if like_output is not None else None
                    leaves[i] = as_constant(leaf, dtype, inner.base)
                elif type(leaf) is Number:
                    numbers_out.add(i)
                    dtype = None if like_output is None else with_number(like_output.dtype, leaf.dtype)
                    leaves[i] = as_tensor(leaf) if dtype is None else leaf.astype(dtype)
            return leaves

        name_of_function = getattr(function, "__name__", name)
        source = Source(name, name_of_function, lambda: _labels(function, arguments, extra_carries))
        program = traced(flat, like, inner, name_of_function, source)
        captured = list(program.constants.values())
        program = program.changed(inputs=(*program.constants, *program.inputs), constants={})
        return cls(program, captured, results[0], numbers_out, tuple(given))


def _labels(function: Function, arguments: tree.Structure, extra_carries: int) -> list[str]:
    """The function's names for the leaves of its arguments; the function of a `fori_loop` takes i and the value."""
    positional = tree.unflatten(arguments, range(arguments.size))
    names = parameters_of(function, 2 if extra_carries else len(positional))
    if not extra_carries or len(names) < 2:
        return labels_of(tree.structure((positional, {})), names)
    labels = []
    for path, _ in tree.flatten_with_path(positional[0])[0]:
        index, _, rest = path.removeprefix("[").partition("]")
        name_at = {0: names[0], extra_carries: names[1]}
        labels.append(f"{name_at.get(int(index), 'the upper bound')}{rest}")
    return labels


@dataclass(frozen=True, slots=True)
class Loop:
    """The names of a loop in the public API, for messages.

    Attributes:
        name: the name of the public function.
        carried: the public function's name for the carry.
        extra_carries: the number of values that the loop adds in front of the carry.
        stacks: whether a step returns a pair of the carry and the results to stack.
    """

    name: str
    carried: str = "value"
    extra_carries: int = 0
    stacks: bool = False


def traced_step(
    loop: Loop,
    function: Function,
    arguments: Any,
    loop_arguments: LoopArguments,
    values: list[Tensor],
    rows: Sequence[Variable],
    carry: Any,
) -> TracedFunction:
    """Trace one step, whose first results must match the carry.

    A carry that was a Python number takes the dtype that the function returns for it, if its kind allows; `values`
    is updated.
    """
    numbers = dict(loop_arguments.numbers)
    while True:
        like = [*values, *rows]
        body = TracedFunction.of(
            loop.name,
            function,
            arguments,
            like,
            loop_arguments.inner,
            values,
            extra_carries=loop.extra_carries,
            numbers=[*numbers],
        )
        after = tree.unflatten(body.result, range(body.result.size))
        check_structure(loop, carry, tree.structure(after[0] if loop.stacks else after))
        if not adopt_dtypes(values, body.outputs, numbers, body.numbers):
            break
    check_carry(loop, carry, values, body.outputs)
    return body


def check_structure(loop: Loop, carry: Any, returned: Any) -> None:
    """Raise a StructureError if a step returns a carry of another structure."""
    skipped = loop.extra_carries
    before, after = [tree.unflatten(structure, range(structure.size)) for structure in (carry, returned)]
    if skipped:
        before, after = before[skipped], after[skipped]
    what = f"{loop.name}: the {loop.carried} that the function returns"
    tree.check_same(tree.structure(before), tree.structure(after), what)


def adopt_dtypes(
    values: list[Tensor], results: Sequence[Any], numbers: dict[int, Any], returned: Container[int] = ()
) -> bool:
    """Convert values that were Python numbers to the dtypes that a step returns, if their kind allows; return
    whether any value, or the step's view of one, changed.

    Args:
        values: the first carry, which is modified.
        results: the results of a step, with dtypes.
        numbers: the numbers by index; numbers that are tensors from the next step on are removed.
        returned: the indices of the results that are numbers again.
    """
    changed = False
    for i, (x, v) in enumerate(zip(values, results, strict=False)):
        if i not in numbers or (i in returned and x.dtype is v.dtype):
            continue
        number = numbers[i]
        if x.dtype is not v.dtype and with_number(v.dtype, x.dtype) is v.dtype:
            is_known = type(number) in NUMBER_TYPES
            values[i] = as_constant(number, v.dtype, x.interpreter.base) if is_known else x.astype(v.dtype)
            changed = True
        if i not in returned:
            del numbers[i]
            changed = True
    return changed


def check_carry(loop: Loop, carry: Any, values: Sequence[Tensor], results: Sequence[Any]) -> None:
    """Raise a ShapeError or DTypeError if a step returns a carry of other shapes or dtypes."""
    skipped = loop.extra_carries
    paths = [path for path, _ in tree.flatten_with_path(tree.unflatten(carry, values))[0]]
    for path, x, v in zip(paths, values, results, strict=False):
        user_path = path.removeprefix(f"[{skipped}]") if skipped else path
        _check_kind(f"{loop.name}: the {loop.carried}{user_path and f' at {user_path}'}", x, v)


def check_condition(name: str, results: Sequence[Any]) -> None:
    """Raise a ShapeError unless a condition returned one bool of shape ()."""
    kinds = [(v.dtype.name, v.shape) for v in results]
    if kinds == [("bool", ())]:
        return
    got = " and ".join([f"{dtype} {shape}" for dtype, shape in kinds]) or "nothing"
    hint = (
        "compare it, as by != 0" if [shape for _, shape in kinds] == [()] else "reduce it by tk.all or tk.any"
    )
    raise ShapeError(f"{name}: cond_fun returned {got}, need a bool of shape (); {hint}")


def _check_kind(what: str, expected: Any, got: Any) -> None:
    error = ShapeError if expected.shape != got.shape else DTypeError
    if expected.shape != got.shape or expected.dtype is not got.dtype:
        raise error(
            f"{what} has the input {expected.dtype.name} {expected.shape} and the output {got.dtype.name} {got.shape}; "
            f"convert it in the function (x.astype, x.reshape), or convert the initial value"
        )


def check_alike(what: str, first: TracedFunction, outputs: Sequence[Variable]) -> None:
    """Raise a ShapeError or DTypeError if the results of two functions differ."""
    indices = tree.unflatten(first.result, range(first.result.size))
    for path, i in tree.flatten_with_path(indices)[0]:
        v, w = first.outputs[i], outputs[i]
        if v.shape != w.shape or v.dtype is not w.dtype:
            error = ShapeError if v.shape != w.shape else DTypeError
            raise error(
                f"{what}{path and f', at {path}'}: got {w.dtype.name} {w.shape}, need {v.dtype.name} {v.shape}; make "
                f"both functions return the same (x.astype, x.reshape)"
            )


def with_common_inputs(bodies: Sequence[TracedFunction]) -> list[Program]:
    """The programs of functions of the same arguments, each with the captured tensors of all functions as inputs."""
    captured = [body.program.inputs[: len(body.captured)] for body in bodies]
    programs = []
    for i, body in enumerate(bodies):
        captured_inputs = [
            v if i == j else Variable(v.shape, v.dtype) for j, group in enumerate(captured) for v in group
        ]
        programs.append(
            body.program.changed(inputs=(*captured_inputs, *body.program.inputs[len(body.captured) :]))
        )
    return programs
