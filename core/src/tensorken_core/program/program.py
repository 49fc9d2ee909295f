"""Program: the equations of a traced function, in static single assignment form."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal as OneOf, TypeVar

from tensorken_core.errors import ProgramError
from tensorken_core.language.dtypes import DType, python_scalar
from tensorken_core.language.higher_order import Loop
from tensorken_core.language.interpreter import Interpreter
from tensorken_core.language.op import Op, Opaque, run
from tensorken_core.language.shapes import Shape
from tensorken_core.source_line import Origin
from tensorken_core.tensor.level import deepest, interpreter_below, lift
from tensorken_core.tensor.tensor import Tensor

if TYPE_CHECKING:
    from os import PathLike

    from tensorken_core.tree import Structure

T = TypeVar("T")


class Variable:
    """A value of a program, compared by identity; it gets a name when the program is printed.

    >>> import tensorken as tk
    >>> tk.trace(tk.sin)(tk.ones((2, 3))).outputs
    (<float32[2, 3]>,)
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: Shape, dtype: DType) -> None:
        self.shape = shape
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"<{self.dtype.name}{list(self.shape)}>"


class Literal(Variable):
    """A value whose elements are all one number, stored in the program itself.

    >>> import tensorken as tk
    >>> tk.trace(lambda x: x * 2.0)(tk.ones(3)).equations[0].operands[1]
    <float32[3] 2.0>
    """

    __slots__ = ("value",)

    def __init__(self, shape: Shape, dtype: DType, value: bool | int | float) -> None:
        super().__init__(shape, dtype)
        self.value = python_scalar(value, dtype)

    def __repr__(self) -> str:
        return f"<{self.dtype.name}{list(self.shape)} {self.value!r}>"


@dataclass(frozen=True, eq=False, slots=True)
class Equation:
    """One call of an op.

    Attributes:
        op: the op.
        operands: the values that the op takes.
        params: the params of the op; a program among them belongs to the op.
        results: the values that the equation defines.
        origin: the line of the user's code.
        scope: equations of different scopes are never merged; each checkpoint recomputes in its own scope.

    >>> import tensorken as tk
    >>> equation = tk.trace(lambda x: x.sum(axis=0, keepdims=True))(tk.ones((2, 3))).equations[0]
    >>> equation.op.name, equation.params, equation.results
    ('sum', ((0,),), (<float32[1, 3]>,))
    """

    op: Op
    operands: tuple[Variable, ...]
    params: tuple[Any, ...]
    results: tuple[Variable, ...]
    origin: Origin | None = None
    scope: int = 0

    @property
    def loop(self) -> Loop | None:
        """The loop of a `scan` or a `while_loop`; None for other ops.

        >>> import tensorken as tk
        >>> total = tk.trace(lambda xs: tk.scan(lambda sum, x: (sum + x, sum), 0.0, xs))(tk.ones(3))
        >>> loop = total.equations[-1].loop
        >>> loop.length, loop.carried, loop.sliced, loop.stacked
        (3, ((0, 0),), ((1, 0),), ((1, 0),))
        """
        rules = self.op.higher_order
        return None if rules is None else rules.layout(self.params).loop

    @property
    def branches(self) -> tuple[Program, Program] | None:
        """The programs of a `cond`, for a first operand that is True and False; None for other ops.

        The other operands are the inputs of each.
        """
        rules = self.op.higher_order
        return None if rules is None else rules.layout(self.params).branches

    @property
    def opaque(self) -> frozenset[Opaque]:
        """How the opaque ops that it runs, also by its programs, may run; see `Op.opaque`."""
        if self.op.opaque:
            return frozenset((self.op.opaque,))
        return opaque_ops(self.params) if "program" in self.op.params else _NONE

    @property
    def has_effect(self) -> bool:
        """Whether it runs even if nothing uses its results."""
        return not self.opaque <= _PURE


_NONE: frozenset[Opaque] = frozenset()
_PURE: frozenset[Opaque] = frozenset(("pure",))


def without_debug_ops(params: tuple[Any, ...]) -> tuple[Any, ...]:
    """The params of an op, with programs that show no values, for a run that repeats one that has shown them."""
    return (
        tuple([p.without_debug_ops() if isinstance(p, Program) else p for p in params]) if params else params
    )


def opaque_ops(params: Sequence[Any]) -> frozenset[Opaque]:
    """How the opaque ops in the programs among an op's params may run."""
    return _NONE.union(*[p.opaque for p in params if isinstance(p, Program)])


def axes_of(params: Sequence[Any]) -> frozenset[Any]:
    """The named axes of the collectives in the programs among an op's params."""
    return frozenset().union(*[p.axes for p in params if isinstance(p, Program)])


def is_repeated(shape: Sequence[int], of: Sequence[int]) -> bool:
    """Whether an array of this shape has that of another but for size 1 along some axes."""
    return len(shape) == len(of) and all([n in (1, m) for n, m in zip(shape, of, strict=True)])


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Program:
    """Equations in an order in which they can be run, from inputs to outputs.

    Attributes:
        inputs: the leaves of the arguments.
        outputs: the leaves of the result; inputs, constants and literals may be among them.
        equations: each uses only inputs, constants, literals and results of earlier equations.
        constants: the tensors that the function closed over.
        arguments: the structure of (positional arguments, keyword arguments); None if they are the inputs themselves.
        result: the structure of the result; None if it is the tuple of the outputs.
        parameters: the names of the function's positional parameters, as far as they are known.
        name: the name of the function, for messages and listings.
        backend: the backend of the trace: constants are on it, and the program runs on it by default.
        donated: the indices of inputs that the caller does not use afterwards, so that outputs may take their memory.

    >>> import tensorken as tk
    >>> program = tk.trace(lambda x: tk.sin(x) * x)(2.0)
    >>> program
    <Program <lambda>: 1 input, 2 equations, 1 output>
    >>> program(0.0).item(), tk.grad(program)(0.0).item()
    (0.0, 0.0)
    """

    inputs: tuple[Variable, ...]
    outputs: tuple[Variable, ...]
    equations: tuple[Equation, ...]
    constants: Mapping[Variable, Tensor] = field(default_factory=dict)
    arguments: Structure | None = None
    result: Structure | None = None
    parameters: tuple[str, ...] = ()
    name: str = "program"
    backend: Any = None
    donated: frozenset[int] = frozenset()
    derived: dict[Any, Any] = field(default_factory=dict, repr=False)
    """A cache of derived objects, such as the program's derivatives and its executable."""

    def once(self, key: Any, make: Callable[[], T]) -> T:
        """The result of `make`, cached by key."""
        result: T = self.derived.get(key, self.derived)
        if result is self.derived:
            result = self.derived[key] = make()
        return result

    @property
    def ops(self) -> frozenset[Op]:
        """The ops of the equations; a pass for other ops can skip the program.

        >>> import tensorken as tk
        >>> sorted([op.name for op in tk.trace(lambda x: tk.sin(x) + tk.sin(2.0 * x))(1.0).ops])
        ['add', 'mul', 'sin']
        """
        return self.once("ops", lambda: frozenset([equation.op for equation in self.equations]))

    @property
    def opaque(self) -> frozenset[Opaque]:
        """How the opaque ops of the equations, also those in inner programs, may run; see `Op.opaque`."""
        if not any([op.opaque or "program" in op.params for op in self.ops]):
            return _NONE
        return self.once("opaque", lambda: _NONE.union(*[e.opaque for e in self.equations]))

    @property
    def axes(self) -> frozenset[Any]:
        """The named axes of the collectives among the equations, also those in inner programs."""
        if "pure" not in self.opaque:
            return frozenset()
        return self.once(
            "axes",
            lambda: frozenset().union(
                *[(e.params[0],) if e.op.collective else axes_of(e.params) for e in self.equations]
            ),
        )

    def without_debug_ops(self) -> Program:
        """The program without the ops that show values, also in inner programs; the same program if there are none."""
        if "debug" not in self.opaque:
            return self
        kept = [e for e in self.equations if e.op.opaque != "debug"]
        return self.once(
            "without debug ops",
            lambda: self.changed(
                equations=tuple([replace(e, params=without_debug_ops(e.params)) for e in kept])
            ),
        )

    def changed(self, **attributes: Any) -> Program:
        """A copy with other attributes."""
        return replace(self, **attributes, derived={})

    def on(self, xs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The outputs for these inputs, flat."""
        interpreters = [x.interpreter for x in xs]
        above = [x.interpreter for x in self.constants.values() if x.interpreter.below is not None]
        # A running trace records opaque ops, also on values from outside of it.
        choose = interpreter_below if self.opaque else deepest
        interpreter = choose(interpreters + above or [self.backend], self.name)
        ys = self.replay(interpreter, [lift(x.representation, x.interpreter, interpreter) for x in xs])
        return tuple(
            [Tensor(interpreter, y, v.shape, v.dtype) for y, v in zip(ys, self.outputs, strict=True)]
        )

    def check_inputs(
        self, interpreter: Interpreter[Any], xs: Sequence[Any], *, repeats: bool = False
    ) -> None:
        """Check representations of the inputs: compiled code would read those of another dtype as other numbers.

        Args:
            interpreter: of the representations.
            xs: one for each input.
            repeats: whether they may have size 1 along axes whose elements repeat.

        Raises:
            ProgramError: if their number, a dtype or a shape is another one.
        """
        if len(xs) != len(self.inputs):
            raise ProgramError(f"{self.name}: the program has {len(self.inputs)} inputs, got {len(xs)}")
        for i, (v, x) in enumerate(zip(self.inputs, xs, strict=True)):
            dtype: Any
            try:
                shape, dtype = tuple(interpreter.shape(x)), interpreter.dtype(x)
            except (AttributeError, KeyError):  # no value of the interpreter
                shape, dtype = getattr(x, "shape", ()), getattr(x, "dtype", type(x).__name__)
            if dtype is v.dtype and (shape == v.shape or (repeats and is_repeated(shape, v.shape))):
                continue
            found = f"{dtype.name if isinstance(dtype, DType) else dtype}{list(shape)}"
            raise ProgramError(
                f"{self.name}: input {i} is {found}, but the program was made for {v.dtype.name}{list(v.shape)}; "
                f"cast it, or trace the function for it"
            )

    def replay(self, interpreter: Interpreter[Any], representations: Sequence[Any]) -> list[Any]:
        """Run the equations in order on an interpreter; a value is dropped after its last use."""
        values: dict[Variable, Any] = dict(zip(self.inputs, representations, strict=True))
        deaths = self.once("deaths", self._deaths)

        def value(v: Variable) -> Any:
            x = values.get(v)
            if x is None:
                x = values[v] = self.outside(v, interpreter)
            return x

        for equation, dying in zip(self.equations, deaths, strict=True):
            operands = [value(v) for v in equation.operands]
            ys = run(interpreter, equation.op, operands, equation.params)
            del operands
            for v in dying:
                values.pop(v, None)
            if equation.op.results == 1:
                values[equation.results[0]] = ys
            else:
                values.update(zip(equation.results, ys, strict=True))
        return [value(v) for v in self.outputs]

    def outside(self, v: Variable, interpreter: Interpreter[Any]) -> Any:
        """The representation, on an interpreter, of a literal or constant."""
        base: Any = interpreter.base
        if isinstance(v, Literal):
            return lift(base.full(v.shape, v.value, v.dtype), base, interpreter)
        x = self.constants[v]
        if x.interpreter.below is None and x.interpreter is not base:
            owner: Any = x.interpreter
            return lift(base.new(v.shape, owner.ravel(x.representation), v.dtype), base, interpreter)
        return lift(x.representation, x.interpreter, interpreter)

    def _deaths(self) -> list[list[Variable]]:
        """For each equation the values whose last use it is."""
        last: dict[Variable, int] = {}
        for i, equation in enumerate(self.equations):
            for v in equation.operands:
                last[v] = i
        kept = set(self.outputs)
        deaths: list[list[Variable]] = [[] for _ in self.equations]
        for v, i in last.items():
            if v not in kept:
                deaths[i].append(v)
        return deaths

    def variables(self) -> Iterator[Variable]:
        """All values in the order in which they appear, each once, without literals."""
        seen: set[Variable] = set()
        groups = [self.inputs, tuple(self.constants), *[equation.results for equation in self.equations]]
        for group in groups:
            for v in group:
                if v not in seen:
                    seen.add(v)
                    yield v

    if TYPE_CHECKING:  # `import tensorken` attaches these: tensorken.programs.methods

        def __call__(self, *arguments: Any, **keywords: Any) -> Any: ...
        def _repr_html_(self) -> str: ...
        def adjoints(
            self,
            output: int = 0,
            inputs: int | str | Variable | Sequence[int | str | Variable] | None = None,
            *,
            strategy: OneOf["accumulate", "pass on"] | None = None,
            cotangent: bool = False,
        ) -> Any: ...
        def explain(self, backend: Any = None) -> str: ...
        @staticmethod
        def load(path: str | PathLike[str], *, backend: Any = None) -> Program: ...
        def save(self, path: str | PathLike[str], *, drop_rules: bool = False) -> None: ...
        def to_dot(self) -> str: ...
        def to_mermaid(self) -> str: ...
        def to_python(self) -> str: ...
        def to_svg(self, mark: Collection[str] = ()) -> str: ...
