"""Origin: the line of the user's code that called into the library, for messages."""

from __future__ import annotations

import functools
import linecache
import sys
from dataclasses import dataclass
from types import FrameType
from typing import Any

_EXAMPLE = "<doctest "


@dataclass(frozen=True, slots=True)
class Origin:
    """A line of code; `str` returns `FILE:LINE: SOURCE`."""

    file: str
    line: int

    @property
    def is_example(self) -> bool:
        """Whether the line is an example in a docstring."""
        return self.file.startswith(_EXAMPLE)

    def __str__(self) -> str:
        source = linecache.getline(self.file, self.line).strip()
        return f"{self.file}:{self.line}: {source}" if source else f"{self.file}:{self.line}"


def is_ours(frame: FrameType) -> bool:
    """Whether a frame runs code of Tensorken or of one of its plugins, whose packages are named tensorken_..."""
    return _is_library(frame.f_code.co_filename, str(frame.f_globals.get("__name__", "")))


@functools.lru_cache(maxsize=1024)  # each equation of a trace asks for all frames of a call
def _is_library(file: str, module: str) -> bool:
    if file.startswith(_EXAMPLE):  # examples have the `__name__` of the module
        return False
    package = module.partition(".")[0]
    return package == "tensorken" or package.startswith("tensorken_")


def origin_of(frame: FrameType) -> Origin:
    """The current line of a frame."""
    return Origin(frame.f_code.co_filename, frame.f_lineno)


def users_line() -> Origin | None:
    """The innermost line on the stack outside the library; None if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame):
        frame = frame.f_back
    return None if frame is None else origin_of(frame)


_OPERATORS = {
    **dict.fromkeys(("__floordiv__", "__rfloordiv__"), "floor_divide"),
    "__invert__": "invert",
    "__rshift__": "right_shift",
    "__pow__": "pow",
    "__gt__": "greater",
    "__ge__": "greater_equal",
    "__le__": "less_equal",
}
"""The names of operators that are several ops."""

_TRANSFORMS = frozenset({"transforms", "levels", "programs", "compilation", "control_flow"})
"""The packages of functions that call the functions that they are given."""


def users_call() -> tuple[Origin | None, str | None]:
    """The innermost line on the stack outside the library, and the public function that it calls; None if unknown."""
    frame: FrameType | None = sys._getframe(1)
    name: str | None = None
    while frame is not None and is_ours(frame):
        code, package = frame.f_code, str(frame.f_globals.get("__package__"))
        public: Any = frame.f_globals.get("__all__") or getattr(sys.modules.get(package), "__all__", ())
        function, is_transform = code.co_name, package.partition(".")[2] in _TRANSFORMS
        is_method = code.co_qualname == f"Tensor.{function}" and function[0] != "_" and function != "apply"
        if is_method or function in public:
            name = name if name and is_transform else function  # which calls a function of the library
        elif (
            not is_transform
            and "<locals>" not in code.co_qualname
            and (function[0] != "_" or function[:2] == "__")
        ):
            name = _OPERATORS.get(function)  # other functions than those of decorators and private ones
        frame = frame.f_back
    return (None if frame is None else origin_of(frame)), name
