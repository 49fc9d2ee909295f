"""Code: the statements of a Python function that is generated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Code:
    """The statements of a function that is generated, with its constants, which are globals of the function."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._constants: dict[str, Any] = {}
        self._names: dict[int, str] = {}
        self._variables = 0

    def constant(self, value: Any) -> str:
        """The name of an object; a literal for None and strings."""
        if value is None or type(value) is str:
            return repr(value)
        name = self._names.setdefault(id(value), f"c{len(self._names)}")
        self._constants[name] = value
        return name

    def variable(self) -> str:
        """The name of a new variable."""
        self._variables += 1
        return f"v{self._variables}"

    def variables(self, count: int) -> list[str]:
        """The names of new variables."""
        return [self.variable() for _ in range(count)]

    def function(self, head: str, title: str) -> Callable[..., Any]:
        """The function; `title` is its file in tracebacks."""
        scope = dict(self._constants)
        text = "\n    ".join([f"def function({head}):", *self.lines])
        exec(compile(text, f"<{title}>", "exec"), scope)
        function: Callable[..., Any] = scope.pop("function")  # removed, since it would refer to itself
        return function
