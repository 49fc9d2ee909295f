"""Modules: networks as trees of parameters.

A module is an instance of a class with fields, some of them tensors or other modules. It is a tree (`tk.tree`), so all
functions on trees apply: the gradient of a loss with respect to a module is a module of gradients, an optimiser maps a
module to an updated one, a compiled function takes and returns modules.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import TYPE_CHECKING, Any, Self, dataclass_transform

from tensorken import Tensor
from tensorken_core import tree
from tensorken_core.errors import ArgumentError
from tensorken_core.host.discovery import did_you_mean


def static(*, default: Any = dataclasses.MISSING) -> Any:
    """A field that is not a parameter, such as a size, a function or a name; the value must be hashable.

    Compiled functions are retraced for each value of a static field.
    """
    return dataclasses.field(default=default, metadata={"static": True})


@dataclass_transform(eq_default=False, field_specifiers=(static, dataclasses.field))
class Module:
    """The base class of modules. A subclass is an immutable dataclass.

    Annotated names of the class are its fields. Without an `__init__`, the constructor takes the fields; an `__init__`
    must set each field once. `replace` returns a module with other values.

    >>> import tensorken as tk
    >>> class Scale(Module):
    ...     factor: Tensor
    ...     axis: int = static()
    ...
    ...     def __init__(self, size: int, axis: int = -1) -> None:
    ...         self.factor = tk.ones((size,))
    ...         self.axis = axis
    ...
    ...     def __call__(self, x: Tensor) -> Tensor:
    ...         return (x.swapaxes(self.axis, -1) * self.factor).swapaxes(self.axis, -1)
    >>> scale = Scale(2)
    >>> tk.grad(lambda scale: scale(tk.tensor([3.0, 4.0])).sum())(scale).factor.tolist()
    [3.0, 4.0]
    >>> scale
    Scale(factor=float32 (2,), axis=-1)
    """

    def __init_subclass__(cls, *, init: bool = True, **options: Any) -> None:
        """Make the subclass a dataclass; with `init=False` it keeps the inherited constructor.

        A subclass without its own fields keeps the inherited constructor in any case; `init=False` then only informs
        type checkers.
        """
        super().__init_subclass__(**options)
        writes_init = init and bool(inspect.get_annotations(cls)) and "__init__" not in cls.__dict__
        dataclasses.dataclass(init=writes_init, repr=False, eq=False)(cls)

    def __setattr__(self, name: str, value: Any) -> None:
        names = [field.name for field in dataclasses.fields(self)]  # type: ignore[arg-type]
        kind = type(self).__name__
        if name not in names:
            raise AttributeError(
                f"{kind}: {name!r} is not a field; annotate it in the class to make it one{did_you_mean(name, names)}"
            )
        if name in self.__dict__:
            raise AttributeError(
                f"{kind}: {name!r} is already set and modules are immutable; make a new module, "
                f"as module.replace({name}=...)"
            )
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(
            f"{type(self).__name__}: {name!r} cannot be deleted, as modules are immutable; use replace"
        )

    if not TYPE_CHECKING:  # type checkers would accept every attribute

        def __getattr__(self, name: str) -> Any:  # called only if normal lookup fails
            kind = type(self).__name__
            if name in [field.name for field in dataclasses.fields(self)]:
                raise AttributeError(f"{kind}: the field {name!r} was not set; set it in __init__")
            raise AttributeError(f"{kind!r} object has no attribute {name!r}")

    def replace(self, **fields: Any) -> Self:
        """A copy of this module with other values in some of its fields.

        Raises:
            ArgumentError: if there is no such field.

        >>> import tensorken as tk
        >>> from tensorken_nn import Linear
        >>> layer = Linear(2, 3, key=tk.random.key(0))
        >>> layer.replace(bias=None)
        Linear(weight=float32 (3, 2), bias=None)
        """
        new = object.__new__(type(self))
        names = [field.name for field in dataclasses.fields(self)]  # type: ignore[arg-type]
        for name in fields:
            if name not in names:
                raise ArgumentError(
                    f"replace: {type(self).__name__} has no field {name!r}; it has "
                    f"{', '.join(names)}{did_you_mean(name, names)}"
                )
        for name in names:
            setattr(new, name, fields[name] if name in fields else getattr(self, name))
        return new

    def __repr__(self) -> str:
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return format_module(
            type(self).__name__, [f"{f.name}={_text(getattr(self, f.name, ...))}" for f in fields]
        )


LINE_WIDTH = 100  # columns of a line of a module's repr
PATH_STEP = re.compile(  # a step of a tree path: .name, [number] or ["key"]
    r'\.(\w+)|\[(-?\w+)\]|\["((?:[^"\\]|\\.)*)"\]'
)


class Function(Module):
    """A function without parameters, as a module.

    >>> import tensorken as tk
    >>> Function(tk.relu)
    Function(relu)
    """

    function: Callable[[Tensor], Tensor] = static()

    def __call__(self, x: Tensor) -> Tensor:
        """Apply the function."""
        return self.function(x)

    def __repr__(self) -> str:
        return f"Function({_text(self.function)})"


def size(module: Any) -> int:
    """The number of elements of all tensors of a module or any tree.

    >>> import tensorken as tk
    >>> from tensorken_nn import mlp
    >>> size(mlp((64, 32, 10), key=tk.random.key(0)))
    2410
    """
    return sum(leaf.size for leaf in tree.leaves(module))


def named_parameters(module: Any) -> dict[str, Tensor]:
    """The parameters of a module or any tree of tensors by their dotted path, in the order of the leaves.

    Raises:
        ArgumentError: if two paths give the same name, such as key `"a.b"`, and key `"b"` in key `"a"`, of a dict.

    >>> import tensorken as tk
    >>> from tensorken_nn import mlp
    >>> list(named_parameters(mlp((2, 3, 1), key=tk.random.key(0))))
    ['layers.0.weight', 'layers.0.bias', 'layers.2.weight', 'layers.2.bias']
    """
    pairs, _ = tree.flatten_with_path(module)
    parameters: dict[str, Tensor] = {}
    for path, leaf in pairs:
        name = PATH_STEP.sub(lambda step: f".{step[step.lastindex or 0]}", path).removeprefix(".")
        if name in parameters:
            raise ArgumentError(
                f"named_parameters: two paths give the name {name!r}, one of them {path}; rename its key"
            )
        parameters[name] = leaf
    return parameters


def format_module(name: str, parts: Iterable[Any]) -> str:
    """The repr of a module: one line, or a line for each part if that is too long.

    >>> format_module("Pair", ["left=1", 2])
    'Pair(left=1, 2)'
    """
    texts = [_text(part) for part in parts]
    line = f"{name}({', '.join(texts)})"
    if len(line) <= LINE_WIDTH and not any("\n" in text for text in texts):
        return line
    return "\n".join([f"{name}(", *[f"  {line}" for text in texts for line in f"{text},".split("\n")], ")"])


def _text(value: Any) -> str:
    """A value as text; a tensor by its dtype and shape."""
    if isinstance(value, str):
        return value
    if isinstance(value, Tensor):
        return f"{value.dtype} {value.shape}"
    if isinstance(value, (tuple, list)) and any(isinstance(part, Module) for part in value):
        return format_module("", value)
    if isinstance(value, FunctionType):
        return value.__name__
    return repr(value)
