"""Bodies: the functions that loops and choices are given, traced; and the tensors that they are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tensorken.arrays.creation import as_tensor, tensor
from tensorken.programs.names import labels_of, parameters_of
from tensorken_core import tree
from tensorken_core.errors import ArgumentError, DTypeError, ShapeError
from tensorken_core.language.dtypes import DType, with_scalar
from tensorken_core.language.interpreter import Interpreter
from tensorken_core.levels.trace import Source, Trace, traced
from tensorken_core.program.program import Program, Variable
from tensorken_core.tensor.level import interpreter_below
from tensorken_core.tensor.tensor import Tensor
from tensorken_core.transforms.arguments import Function

NUMBERS = (bool, int, float)


@dataclass(slots=True)
class LoopArguments:
    """The leaves of the arguments as tensors, which of them came as numbers, and what their function stands on."""

    tensors: list[Tensor]
    numbers: dict[int, Any]
    inner: Interpreter[Any]

    @classmethod
    def of(cls, name: str, leaves: Sequence[Any]) -> LoopArguments:
        base = base_of(leaves)
        tensors = []
        for i, leaf in enumerate(leaves):
            try:
                tensors.append(leaf if isinstance(leaf, Tensor) else as_constant(leaf, None, base))
            except ArgumentError as error:
                raise ArgumentError(f"{name}: argument leaf {i}: {error}") from None
        inner = interpreter_below([x.interpreter for x in tensors] or [as_tensor(0.0).interpreter], name)
        return cls(tensors, {i: x for i, x in enumerate(leaves) if type(x) in NUMBERS}, inner)


def as_constant(data: Any, dtype: DType | None, base: Any) -> Tensor:
    """A tensor on a backend; of a number one that is known to be that number, which then stands in the program."""
    x = tensor(data, dtype, backend=base)
    return x.scalar(data) if type(data) in NUMBERS else x


def base_of(value: Any) -> Any:
    """The backend of the tensors in a value; None if there are none, which is the default one."""
    return next((x.interpreter.base for x in tree.leaves(value) if isinstance(x, Tensor)), None)


@dataclass(slots=True)
class TracedFunction:
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
        *,
        chosen: bool = False,
        counters: int = 0,
    ) -> TracedFunction:
        """Trace a function; its results that are Python numbers take the dtypes wanted, if their kind allows.

        Args:
            chosen: whether it is a branch, in which loops and choices wait until it is taken.
            counters: how much of a loop's own the first argument has in front, for messages.
        """
        results: list[Any] = []
        numbers: set[int] = set()

        def flat(*values: Tensor) -> list[Any]:
            level = interpreter_below([inner], name)
            if isinstance(level, Trace):
                level.in_branch = chosen
            leaves, structure = tree.flatten(function(*tree.unflatten(arguments, values)))
            results.append(structure)
            for i, leaf in enumerate(leaves):
                if type(leaf) in NUMBERS:
                    numbers.add(i)
                    dtype = with_scalar(wanted[i].dtype, leaf) if i < len(wanted) else None
                    leaves[i] = as_constant(leaf, dtype, inner.base)
            return leaves

        own = getattr(function, "__name__", name)
        source = Source(name, own, lambda: _labels(function, arguments, counters))
        program = traced(flat, like, inner, own, source)
        captured = list(program.constants.values())
        program = program.changed(inputs=(*program.constants, *program.inputs), constants={})
        return cls(program, captured, results[0], numbers)


def _labels(function: Function, arguments: tree.Structure, counters: int) -> list[str]:
    """What a function calls the leaves of its arguments; that of a `fori_loop` takes i and the value."""
    positional = tree.unflatten(arguments, range(arguments.size))
    names = parameters_of(function, 2 if counters else len(positional))
    if not counters or len(names) < 2:
        return labels_of(tree.structure((positional, {})), names)
    found = []
    for path, _ in tree.flatten_with_path(positional[0])[0]:
        place, _, rest = path.removeprefix("[").partition("]")
        own = {0: names[0], counters: names[1]}
        found.append(f"{own.get(int(place), 'the upper bound')}{rest}")
    return found


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop as its user sees it, for messages.

    Attributes:
        name: of the function that was called.
        carried: what it calls that which each step gives the next.
        counters: how much the loop carries of its own, before that.
        stacks: whether its step returns a pair, of what is carried and what is stacked.
    """

    name: str
    carried: str = "value"
    counters: int = 0
    stacks: bool = False


def traced_step(
    loop: Loop,
    function: Function,
    arguments: Any,
    given: LoopArguments,
    values: list[Tensor],
    rows: Sequence[Variable],
    carry: Any,
) -> TracedFunction:
    """The function of one step, whose first results must be as the carry.

    What came as a Python number takes the dtype that the function returns for it, if its kind allows; `values` then
    has it so.
    """
    numbers = dict(given.numbers)
    while True:
        like = [*values, *rows]
        body = TracedFunction.of(
            loop.name, function, arguments, like, given.inner, values, counters=loop.counters
        )
        after = tree.unflatten(body.result, range(body.result.size))
        check_structure(loop, carry, tree.structure(after[0] if loop.stacks else after))
        if not adopt_dtypes(values, body.outputs, numbers):
            break
    check_carry(loop, carry, values, body.outputs)
    return body


def check_structure(loop: Loop, carry: Any, found: Any) -> None:
    """Raise a StructureError if a step returns a carry of another structure."""
    skipped = loop.counters
    before, after = [tree.unflatten(one, range(one.size)) for one in (carry, found)]
    if skipped:
        before, after = before[skipped], after[skipped]
    what = f"{loop.name}: the {loop.carried} that the function returns"
    tree.check_same(tree.structure(before), tree.structure(after), what)


def adopt_dtypes(values: list[Tensor], found: Sequence[Any], numbers: dict[int, Any]) -> bool:
    """Give values that came as Python numbers the dtypes that a step returns, if their kind allows; whether any has.

    Args:
        values: the first carry, which is changed.
        found: what the step returns, anything with dtypes.
        numbers: the places of the numbers, of which those with new dtypes are dropped.
    """
    changed = False
    for i, (x, v) in enumerate(zip(values, found, strict=False)):
        if i in numbers and x.dtype is not v.dtype and with_scalar(v.dtype, numbers[i]) is v.dtype:
            values[i] = as_constant(numbers.pop(i), v.dtype, x.interpreter.base)
            changed = True
    return changed


def check_carry(loop: Loop, carry: Any, values: Sequence[Tensor], found: Sequence[Any]) -> None:
    """Raise a ShapeError or DTypeError if a step returns a carry of other shapes or dtypes."""
    skipped = loop.counters
    paths = [path for path, _ in tree.flatten_with_path(tree.unflatten(carry, values))[0]]
    for path, x, v in zip(paths, values, found, strict=False):
        own = path.removeprefix(f"[{skipped}]") if skipped else path
        _check_kind(f"{loop.name}: the {loop.carried}{own and f' at {own}'}", x, v)


def check_condition(name: str, found: Sequence[Any]) -> None:
    """Raise a ShapeError unless a condition gave one bool of shape ()."""
    kinds = [(v.dtype.name, v.shape) for v in found]
    if kinds == [("bool", ())]:
        return
    came = " and ".join([f"{dtype} {shape}" for dtype, shape in kinds]) or "nothing"
    way_out = (
        "compare it, as by != 0" if [shape for _, shape in kinds] == [()] else "reduce it by tk.all or tk.any"
    )
    raise ShapeError(f"{name}: cond_fun gave {came}, need one bool of shape (); {way_out}")


def _check_kind(what: str, expected: Any, got: Any) -> None:
    error = ShapeError if expected.shape != got.shape else DTypeError
    if expected.shape != got.shape or expected.dtype is not got.dtype:
        raise error(
            f"{what} goes in as {expected.dtype.name} {expected.shape} and comes out as {got.dtype.name} {got.shape}; "
            f"return it as it came (x.astype, x.reshape), or start with what it becomes"
        )


def check_alike(what: str, first: TracedFunction, outputs: Sequence[Variable]) -> None:
    """Raise a ShapeError or DTypeError if a function's results are not those of another."""
    places = tree.unflatten(first.result, range(first.result.size))
    for path, i in tree.flatten_with_path(places)[0]:
        v, w = first.outputs[i], outputs[i]
        if v.shape != w.shape or v.dtype is not w.dtype:
            error = ShapeError if v.shape != w.shape else DTypeError
            raise error(
                f"{what}{path and f', at {path}'}: {w.dtype.name} {w.shape}, and not {v.dtype.name} {v.shape}; make "
                f"both functions return the same (x.astype, x.reshape)"
            )


def with_common_inputs(bodies: Sequence[TracedFunction]) -> list[Program]:
    """The programs of functions of the same arguments, each of which then takes what any of them captured."""
    captured = [body.program.inputs[: len(body.captured)] for body in bodies]
    programs = []
    for i, body in enumerate(bodies):
        own = [v if i == j else Variable(v.shape, v.dtype) for j, group in enumerate(captured) for v in group]
        programs.append(body.program.changed(inputs=(*own, *body.program.inputs[len(body.captured) :])))
    return programs
