"""Source: a generated Python function, whose ufuncs and arrays are bound to it as default arguments."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

Factory = Callable[[Any], Any]
"""Creates the object bound to a name from the memory of one instance: a view, or a list of blocks."""


class Source:
    """The lines of a function, and the objects bound to its names.

    Arguments are looked up as fast as local variables, and an instance with other defaults, for other memory, needs
    no compilation.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.indent = "    "
        self.factories: list[Factory] = []
        self._names: list[str] = []
        self._names_by_id: dict[int, str] = {}
        self._values: list[Any] = []  # keeps ids unique
        self._names_by_key: dict[Any, str] = {}
        self._count = 0

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append(self.indent + text)

    def new_name(self) -> str:
        """An unused name."""
        self._count += 1
        return f"v{self._count}"

    def assign(self, expression: str) -> str:
        """Assign the expression to a new local variable and return the variable's name."""
        name = self.new_name()
        self.line(f"{name} = {expression}")
        return name

    def bound(self, value: Any) -> str:
        """The name of an object that all instances share."""
        name = self._names_by_id.get(id(value))
        if name is None:
            name = self._names_by_id[id(value)] = self.bound_per_instance(lambda memory: value)
            self._values.append(value)
        return name

    def cached(self, key: Any, make: Callable[[], Any]) -> str:
        """The name of the object that `make` returns; `make` is called once per key."""
        name = self._names_by_key.get(key)
        if name is None:
            name = self._names_by_key[key] = self.bound(make())
        return name

    def bound_per_instance(self, factory: Factory) -> str:
        """The name of an object that each instance creates from its memory."""
        name = f"b{len(self._names)}"
        self._names.append(name)
        self.factories.append(factory)
        return name

    def text(self) -> str:
        """The text of the function."""
        return "\n".join([f"def run({', '.join(['inputs', *self._names])}):", *self.lines, ""])

    def code(self) -> CodeType:
        """The compiled function."""
        scope: dict[str, Any] = {}
        exec(compile(self.text(), "<a program compiled for numpy>", "exec"), scope)
        code: CodeType = scope["run"].__code__
        return code

    def instance(self, code: CodeType, memory: Any) -> Callable[[Any], Any]:
        """The function bound to this memory."""
        return FunctionType(code, {}, "run", tuple([make(memory) for make in self.factories]))
