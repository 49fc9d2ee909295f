"""Program: the equations that a function of tensors comes down to, in static single assignment form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal as OneOf, TypeVar

from tensorken import tree
from tensorken.errors import ArgumentError, ShapeError
from tensorken.levels import lift, meet
from tensorken.origin import Origin
from tensorken.spec.dtypes import DType
from tensorken.spec.interpreter import Interpreter
from tensorken.spec.op import Op, run
from tensorken.spec.shapes import Shape
from tensorken.tensor import Tensor

if TYPE_CHECKING:
    from tensorken.adjoints import Adjoints
    from tensorken.tree import Structure

T = TypeVar("T")


class Variable:
    """A value of a program: known by its identity; what it is called is decided when a program is shown.

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
    """A value all of whose elements are one number, which stands in the program itself.

    >>> import tensorken as tk
    >>> tk.trace(lambda x: x * 2.0)(tk.ones(3)).equations[0].operands[1]
    <float32[3] 2.0>
    """

    __slots__ = ("value",)

    def __init__(self, shape: Shape, dtype: DType, value: bool | int | float) -> None:
        super().__init__(shape, dtype)
        self.value = value

    def __repr__(self) -> str:
        return f"<{self.dtype.name}{list(self.shape)} {self.value!r}>"


@dataclass(frozen=True, eq=False, slots=True)
class Equation:
    """One op, run once.

    Attributes:
        op: the op.
        operands: what it takes.
        params: what it takes besides; a program among them belongs to the op.
        results: what it defines.
        origin: the line of the user's that led to it.
        scope: equations of two scopes are never merged: what a checkpoint computes again has a scope of its own.

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


@dataclass(frozen=True, eq=False, slots=True)
class Program:
    """Equations in an order in which they can be run, from inputs to outputs.

    Attributes:
        inputs: what is given, flat.
        outputs: what results, flat; inputs, constants and literals may be among them.
        equations: each uses only what is given, or what an equation before it defines.
        constants: tensors that the function used without being given them.
        arguments: the structure of (positional arguments, keyword arguments); None if they are the inputs themselves.
        result: the structure of the result; None if it is the tuple of the outputs.
        parameters: what the function calls its positional arguments; fewer, or none, if it does not tell.
        name: of the function, for messages and listings.
        backend: where it was traced; its constants live there, and it runs there if nothing says otherwise.
        donated: the places of inputs that nobody uses afterwards, so that outputs may take their memory.

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
    """What has been made of this program once, as its derivatives and what runs it."""

    def once(self, key: Any, make: Callable[[], T]) -> T:
        """What `make` gives, made at the first call with this key."""
        found: T = self.derived.get(key, self.derived)
        if found is self.derived:
            found = self.derived[key] = make()
        return found

    @property
    def ops(self) -> frozenset[Op]:
        """The ops of the equations.  A pass that is about others need not look at these.

        >>> import tensorken as tk
        >>> sorted([op.name for op in tk.trace(lambda x: tk.sin(x) + tk.sin(2.0 * x))(1.0).ops])
        ['add', 'mul', 'sin']
        """
        return self.once("ops", lambda: frozenset([equation.op for equation in self.equations]))

    def changed(self, **facts: Any) -> Program:
        """A copy with other facts."""
        return replace(self, **facts, derived={})

    # ---- running -------------------------------------------------------------------------------------------

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Run the equations one by one, on whichever backend and under whichever transforms the arguments are.

        Raises:
            StructureError, ShapeError, ArgumentError: if the arguments are not like those that it was traced with.
        """
        from tensorken.creation import as_operand, as_tensor

        leaves, structure = tree.flatten((arguments, keywords))
        if self.arguments is not None:
            tree.check_same(self.arguments, structure, f"{self.name}: arguments")
        elif len(leaves) != len(self.inputs):
            raise ArgumentError(f"{self.name}: {len(leaves)} arguments; need {len(self.inputs)}")
        beside = next((x for x in leaves if isinstance(x, Tensor)), None)
        xs: list[Tensor] = []
        for i, (leaf, variable) in enumerate(zip(leaves, self.inputs, strict=True)):
            if isinstance(leaf, bool | int | float) and beside is not None:
                leaf = as_operand(self.name, leaf, beside).astype(variable.dtype)
            x = as_tensor(leaf)
            if x.shape != variable.shape or x.dtype is not variable.dtype:
                raise ShapeError(
                    f"{self.name}: argument leaf {i} is {x.dtype.name} {x.shape}, and this program was traced for "
                    f"{variable.dtype.name} {variable.shape}; trace the function again"
                )
            xs.append(x)
        ys = self.on(xs)
        return ys if self.result is None else tree.unflatten(self.result, ys)

    def on(self, xs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The outputs for these inputs, flat."""
        interpreters = [x.interpreter for x in xs]
        above = [x.interpreter for x in self.constants.values() if x.interpreter.below is not None]
        interpreter = meet(interpreters + above or [self.backend], self.name)
        ys = self.replay(interpreter, [lift(x.representation, x.interpreter, interpreter) for x in xs])
        return tuple(
            [Tensor(interpreter, y, v.shape, v.dtype) for y, v in zip(ys, self.outputs, strict=True)]
        )

    def replay(self, interpreter: Interpreter[Any], representations: Sequence[Any]) -> list[Any]:
        """Run the equations one by one on an interpreter; a value is dropped after its last use."""
        values: dict[Variable, Any] = dict(zip(self.inputs, representations, strict=True))
        deaths = self.once("deaths", self._deaths)

        def value(v: Variable) -> Any:
            found = values.get(v)
            if found is None:
                found = values[v] = self.outside(v, interpreter)
            return found

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
            own: Any = x.interpreter
            return lift(base.new(v.shape, own.ravel(x.representation), v.dtype), base, interpreter)
        return lift(x.representation, x.interpreter, interpreter)

    def _deaths(self) -> list[list[Variable]]:
        """For each equation the values that nothing uses after it."""
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

    def adjoints(
        self,
        output: int = 0,
        inputs: Any = None,
        *,
        strategy: OneOf["accumulate", "pass on"] | None = None,
        cotangent: bool = False,
    ) -> Adjoints:
        """This program with the ops that compute derivatives of an output added; see `tensorken.adjoints.adjoints`.

        >>> import tensorken as tk
        >>> print(tk.trace(lambda x, y: x * tk.sin(y))(1.0, 0.0).adjoints(inputs="x"))  # doctest: +ELLIPSIS
        adjoints of <lambda>(x: float32[], y: float32[]):
            a: float32[] = sin(y)...
            b: float32[] = mul(x, a)...
            # b: pass on the increment 1.0
            c: float32[] = mul(1.0, a)...
            # x: initialise by c
            # x: finalise, the adjoint is c
            return c
        """
        from tensorken.adjoints import adjoints

        return adjoints(self, output, inputs, strategy=strategy, cotangent=cotangent)

    # ---- looking at it -------------------------------------------------------------------------------------

    def variables(self) -> Iterator[Variable]:
        """All values in the order in which they appear, each once, without literals."""
        seen: set[Variable] = set()
        groups = [self.inputs, tuple(self.constants), *[equation.results for equation in self.equations]]
        for group in groups:
            for v in group:
                if v not in seen:
                    seen.add(v)
                    yield v

    def __str__(self) -> str:
        from tensorken.programs.text import text

        return text(self)

    def explain(self, backend: Any = None) -> str:
        """What each pass does to this program before it runs: a table, a row for each that changes something.

        Args:
            backend: where it is to run, a name or an interpreter; None for where it was traced.

        >>> import tensorken as tk
        >>> print(tk.trace(tk.grad(lambda a, b: (a @ b).sum()))(tk.ones((2, 3)), tk.ones((3, 4))).explain())
        ... # doctest: +ELLIPSIS
        <lambda>: ... equations, 3 after all passes
        pass ...
        """
        from tensorken.programs.passes.explanation import explanation
        from tensorken.registry import resolve

        return explanation(self, self.backend if backend is None else resolve(backend, None))

    def __repr__(self) -> str:
        from tensorken.programs.text import summary

        return summary(self)

    def _repr_html_(self) -> str:
        from tensorken.programs.page import page

        return page(self)

    def to_python(self) -> str:
        '''The source of a module with a function of this program's name: the same bits on one backend of one machine.

        Small constants stand in it as numbers, large ones below the functions in base64.  Functions with derivative
        rules of their own are written without these.

        Raises:
            ProgramError: if a constant has no value, or an op runs programs as Python has no words for.

        >>> import tensorken as tk
        >>> print(tk.trace(lambda x: 2.0 * tk.sin(x))(1.0).to_python())  # doctest: +ELLIPSIS
        """function, op by op."""
        <BLANKLINE>
        import tensorken as tk
        <BLANKLINE>
        <BLANKLINE>
        def function(x):
            a = tk.sin(x)...
            b = a * 2.0...
            return b
        <BLANKLINE>
        '''
        from tensorken.programs.python import source

        return source(self)

    def save(self, path: str | PathLike[str], *, drop_rules: bool = False) -> None:
        """Write the program to a file of text, from which `Program.load` makes it again: see docs/programs.md.

        Args:
            path: of the file.
            drop_rules: whether functions with derivative rules of their own may be written without these.

        Raises:
            ProgramError: if something in it has no form in text; nothing is written then.

        >>> import tempfile, pathlib
        >>> import tensorken as tk
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "sine.tk")
        ...     tk.trace(lambda x: {"y": tk.sin(x)})(1.0).save(path)
        ...     tk.Program.load(path)(0.0)["y"].item()
        0.0
        """
        from tensorken.programs.files import written

        text = written(self, drop_rules)  # all of it, before the file is touched
        Path(path).write_text(text, encoding="utf-8", newline="\n")

    @staticmethod
    def load(path: str | PathLike[str], *, backend: Any = None) -> Program:
        """The program that `save` wrote; its constants are on a backend, the one in use by default.

        Raises:
            ProgramError: if the file is damaged, is newer than this version knows, or has an op that is not there.

        >>> import tempfile, pathlib
        >>> import tensorken as tk
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "sine.tk")
        ...     tk.trace(tk.sin)(1.0).save(path)
        ...     tk.Program.load(path)
        <Program sin: 1 input, 1 equation, 1 output>
        """
        from tensorken.creation import new
        from tensorken.programs.loading import read
        from tensorken.registry import resolve

        interpreter = resolve(backend, None)
        return read(
            Path(path).read_bytes(),
            str(path),
            interpreter,
            lambda shape, data, dtype: new(shape, data, dtype, backend=interpreter),
        )

    def to_mermaid(self) -> str:
        """A flowchart in the language of Mermaid, which many viewers of Markdown draw.

        >>> import tensorken as tk
        >>> print(tk.trace(tk.sin)(1.0).to_mermaid())
        flowchart TD
            subgraph p0["sin"]
                p0n0(["x<br/>float32[]"])
                p0n1["a = sin(x)<br/>float32[]"]
                p0n2[["return a"]]
                p0n0 --> p0n1
                p0n1 --> p0n2
            end
        <BLANKLINE>
        """
        from tensorken.programs.mermaid import mermaid

        return mermaid(self)

    def to_dot(self) -> str:
        """A graph in the language of Graphviz: `dot -Tsvg` draws it.

        >>> import tensorken as tk
        >>> print(tk.trace(tk.sin)(1.0).to_dot().splitlines()[0])
        digraph "sin" {
        """
        from tensorken.programs.dot import dot

        return dot(self)
