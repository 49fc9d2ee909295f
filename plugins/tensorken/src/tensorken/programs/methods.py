"""Methods of `Program` that need more than its data: calling it, its forms, files, adjoints; `attach` adds them."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from tensorken.arrays.creation import as_operand, as_tensor, new
from tensorken.programs.adjoints import adjoints
from tensorken.programs.forms.dot import dot
from tensorken.programs.forms.files import serialize
from tensorken.programs.forms.html import html
from tensorken.programs.forms.loading import deserialize
from tensorken.programs.forms.mermaid import mermaid
from tensorken.programs.forms.python import source
from tensorken.programs.forms.text import summary, text
from tensorken.programs.passes.explanation import explanation
from tensorken_core import tree
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_core.host.registry import resolve
from tensorken_core.program.program import Program
from tensorken_core.tensor.tensor import Tensor


def call(self: Program, *arguments: Any, **keywords: Any) -> Any:
    """Run the equations one by one, on the backend and at the level of the arguments.

    Python numbers become tensors on the backend of the other arguments, with the dtypes that were traced.

    Raises:
        StructureError, ShapeError, ArgumentError: if the arguments are not like those that it was traced with.
    """
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


def explain(self: Program, backend: Any = None) -> str:
    """What each pass does to this program before it runs: a table, a row for each that changes something.

    Args:
        backend: where it is to run, a name or an interpreter; None for where it was traced.

    >>> import tensorken as tk
    >>> print(tk.trace(tk.grad(lambda a, b: (a @ b).sum()))(tk.ones((2, 3)), tk.ones((3, 4))).explain())
    ... # doctest: +ELLIPSIS
    <lambda>: ... equations, 3 after all passes
    pass ...
    """
    return explanation(self, self.backend if backend is None else resolve(backend, None))


def to_python(self: Program) -> str:
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
    return source(self)


def save(self: Program, path: str | PathLike[str], *, drop_rules: bool = False) -> None:
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
    text = serialize(self, drop_rules)  # all of it, before the file is touched
    Path(path).write_text(text, encoding="utf-8", newline="\n")


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
    interpreter = resolve(backend, None)
    return deserialize(
        Path(path).read_bytes(),
        str(path),
        interpreter,
        lambda shape, data, dtype: new(shape, data, dtype, backend=interpreter),
    )


def to_mermaid(self: Program) -> str:
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
    return mermaid(self)


def to_dot(self: Program) -> str:
    """A graph in the language of Graphviz: `dot -Tsvg` draws it.

    >>> import tensorken as tk
    >>> print(tk.trace(tk.sin)(1.0).to_dot().splitlines()[0])
    digraph "sin" {
    """
    return dot(self)


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
}
"""By their names; `Program` declares the same signatures for type checkers."""


def attach() -> None:
    """Add the methods to `Program`."""
    for name, method in METHODS.items():
        setattr(Program, name, method)
