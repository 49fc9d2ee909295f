"""Methods of `Program` that need more than its data: calls, text forms, files and adjoints; `attach` adds them."""

from __future__ import annotations

from collections.abc import Collection
from os import PathLike
from pathlib import Path
from typing import Any

from tensorken.arrays.creation import as_operand, as_tensor, new
from tensorken.programs.adjoints import adjoints
from tensorken.programs.compiled import kernels_of
from tensorken.programs.execution import compiler_plugins
from tensorken.programs.forms.dot import dot
from tensorken.programs.forms.files import serialize
from tensorken.programs.forms.html import html
from tensorken.programs.forms.loading import deserialize
from tensorken.programs.forms.mermaid import mermaid
from tensorken.programs.forms.python import source
from tensorken.programs.forms.svg import svg
from tensorken.programs.forms.text import summary, text
from tensorken.programs.passes.explanation import explanation
from tensorken_core import tree
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_core.host.registry import resolve
from tensorken_core.program.program import Program
from tensorken_core.tensor.tensor import Tensor


def call(self: Program, *arguments: Any, **keywords: Any) -> Any:
    """Run the equations one by one, on the backend and at the level of the arguments.

    Python numbers become tensors on the backend of the other arguments, with the dtypes of the traced arguments.

    Raises:
        StructureError, ShapeError, ArgumentError: if the arguments differ from the traced ones in structure, shape or
            dtype.
    """
    leaves, structure = tree.flatten((arguments, keywords))
    if self.arguments is not None:
        tree.check_same(self.arguments, structure, f"{self.name}: arguments")
    elif len(leaves) != len(self.inputs):
        raise ArgumentError(f"{self.name}: {len(leaves)} arguments; need {len(self.inputs)}")
    first_tensor = next((x for x in leaves if isinstance(x, Tensor)), None)
    xs: list[Tensor] = []
    for i, (leaf, variable) in enumerate(zip(leaves, self.inputs, strict=True)):
        if isinstance(leaf, bool | int | float) and first_tensor is not None:
            leaf = as_operand(self.name, leaf, first_tensor).astype(variable.dtype)
        x = as_tensor(leaf)
        if x.shape != variable.shape or x.dtype is not variable.dtype:
            raise ShapeError(
                f"{self.name}: argument leaf {i} is {x.dtype.name} {x.shape}, and this program was traced for "
                f"{variable.dtype.name} {variable.shape}; trace the function again"
            )
        xs.append(x)
    ys = self.on(xs)
    return ys if self.result is None else tree.unflatten(self.result, ys)


def explain(self: Program, backend: Any = None) -> str:
    """A table of the passes that change this program, with the ops that each pass removes and adds.

    If a compiler compiles the program and reports its kernels, a table of the kernels follows: ops, loops, bytes,
    operations.

    Args:
        backend: the backend that the passes optimize for, a name or an interpreter; by default the trace's backend.

    >>> import tensorken as tk
    >>> print(tk.trace(tk.grad(lambda a, b: (a @ b).sum()))(tk.ones((2, 3)), tk.ones((3, 4))).explain())
    ... # doctest: +ELLIPSIS
    <lambda>: ... equations, 3 after all passes
    pass ...
    """
    chosen = self.backend if backend is None else resolve(backend, None)
    kernels = kernels_of(self, chosen) if compiler_plugins() else None
    return explanation(self, chosen) + ("" if kernels is None else f"\n\n{kernels}")


def to_python(self: Program) -> str:
    '''The source of a Python module with a function that computes the same bits on the same backend and machine.

    Small constants are written as numbers, large ones in base64 below the functions.  Functions with custom derivative
    rules are written without the rules.

    Raises:
        ProgramError: if a constant has no value, or Python has no form for an op that runs programs.

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
    return source(self)


def save(self: Program, path: str | PathLike[str], *, drop_rules: bool = False) -> None:
    """Write the program to a text file, from which `Program.load` restores it; see docs/programs.md for the format.

    Args:
        path: of the file.
        drop_rules: whether to write functions with custom derivative rules without the rules.

    Raises:
        ProgramError: if the program has a value without a text form; no file is written then.

    >>> import tempfile, pathlib
    >>> import tensorken as tk
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "sine.tk")
    ...     tk.trace(lambda x: {"y": tk.sin(x)})(1.0).save(path)
    ...     tk.Program.load(path)(0.0)["y"].item()
    0.0
    """
    text = serialize(
        self, drop_rules
    )  # before the file is opened, so that an error leaves the file unchanged
    Path(path).write_text(text, encoding="utf-8", newline="\n")


def load(path: str | PathLike[str], *, backend: Any = None) -> Program:
    """Load a program from a file that `save` wrote; its constants go to `backend`, by default the default backend.

    Raises:
        ProgramError: if the file is damaged, has a newer format, or needs an op that is not registered.

    >>> import tempfile, pathlib
    >>> import tensorken as tk
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "sine.tk")
    ...     tk.trace(tk.sin)(1.0).save(path)
    ...     tk.Program.load(path)
    <Program sin: 1 input, 1 equation, 1 output>
    """
    interpreter = resolve(backend, None)
    return deserialize(
        Path(path).read_bytes(),
        str(path),
        interpreter,
        lambda shape, data, dtype: new(shape, data, dtype, backend=interpreter),
    )


def to_mermaid(self: Program) -> str:
    """A Mermaid flowchart of the program, which many Markdown viewers draw.

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
    return mermaid(self)


def to_dot(self: Program) -> str:
    """A Graphviz graph of the program; `dot -Tsvg` draws it.

    >>> import tensorken as tk
    >>> print(tk.trace(tk.sin)(1.0).to_dot().splitlines()[0])
    digraph "sin" {
    """
    return dot(self)


def to_svg(self: Program, mark: Collection[str] = ()) -> str:
    """A picture of the program, in which values flow downwards; it needs no other program to be drawn.

    The text is an SVG document of its own, for a file or for `IPython.display.SVG`. It has colours for dark mode.

    Args:
        mark: names of variables, as in the program's text, whose boxes get another colour.

    Raises:
        ArgumentError: if the program has no variable of such a name.

    >>> import tensorken as tk
    >>> print(tk.trace(tk.sin)(1.0).to_svg().splitlines()[1])
    <title>Program sin: 1 input, 1 equation, 1 output</title>
    """
    return svg(self, mark)


METHODS = {
    "__call__": call,
    "__repr__": summary,
    "__str__": lambda self: text(self),
    "_repr_html_": html,
    "adjoints": adjoints,
    "explain": explain,
    "load": staticmethod(load),
    "save": save,
    "to_dot": to_dot,
    "to_mermaid": to_mermaid,
    "to_python": to_python,
    "to_svg": to_svg,
}
"""The methods by name; `Program` declares the same signatures for type checkers."""


def attach() -> None:
    """Add the methods to `Program`."""
    for name, method in METHODS.items():
        setattr(Program, name, method)
