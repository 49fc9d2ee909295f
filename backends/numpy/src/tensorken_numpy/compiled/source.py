"""Source: a Python function, written line by line, whose ufuncs and arrays are bound to it as defaults of arguments."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

Maker = Callable[[Any], Any]
"""From the memory of one instance to what it binds: a view, or blocks of views."""


class Source:
    """The lines of a function, and what its names stand for.

    Names of arguments are looked up as fast as local ones; and a function with other defaults, for another piece of
    memory, is made without compiling again.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.indent = "    "
        self.makers: list[Maker] = []
        self._names: list[str] = []
        self._known: dict[int, str] = {}
        self._kept: list[Any] = []  # so that no id is given twice
        self._shared: dict[Any, str] = {}
        self._count = 0

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append(self.indent + text)

    def fresh(self) -> str:
        """A name that nothing has."""
        self._count += 1
        return f"v{self._count}"

    def assign(self, expression: str) -> str:
        """A new local variable of this value."""
        name = self.fresh()
        self.line(f"{name} = {expression}")
        return name

    def bound(self, value: Any) -> str:
        """The name of an object that is the same in every instance."""
        found = self._known.get(id(value))
        if found is None:
            found = self._known[id(value)] = self.made(lambda memory: value)
            self._kept.append(value)
        return found

    def once(self, key: Any, make: Callable[[], Any]) -> str:
        """The name of what `make` gives, the same for the same key."""
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = self.bound(make())
        return found

    def made(self, maker: Maker) -> str:
        """The name of what an instance makes of its memory."""
        name = f"b{len(self._names)}"
        self._names.append(name)
        self.makers.append(maker)
        return name

    def text(self) -> str:
        """The whole function."""
        return "\n".join([f"def run({', '.join(['inputs', *self._names])}):", *self.lines, ""])

    def code(self) -> CodeType:
        """The function, compiled."""
        scope: dict[str, Any] = {}
        exec(compile(self.text(), "<a program compiled for numpy>", "exec"), scope)
        code: CodeType = scope["run"].__code__
        return code

    def instance(self, code: CodeType, memory: Any) -> Callable[[Any], Any]:
        """The function on a piece of memory of its own."""
        return FunctionType(code, {}, "run", tuple([make(memory) for make in self.makers]))
