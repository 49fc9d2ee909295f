"""Backends on modules that follow the array API standard: the template of `tensorken new backend --from array-api`.

`tensorken conformance run array-api:mlx.core` examines the module `mlx.core`.
"""

from __future__ import annotations

import importlib
from importlib import resources
from typing import Any

from tensorken_core.errors import UnknownBackendError
from tensorken_core.language.raw import RawTensor

PREFIX = "array-api:"
"""The beginning of the names that users write."""

TEMPLATE = "templates/array-api/src/tensorken_mybackend/backend.py"

LIBRARY = "array_api_strict"
"""The library of the template."""

REQUIRED = "asarray full sum any max reshape permute_dims broadcast_to flip take where astype isdtype iinfo zeros_like"
"""Functions of the standard that the template calls, besides those with the names of ops."""


def accepted(name: str) -> str:
    """The name that the host accepts, for the name that a user writes.

    >>> accepted("array-api:mlx.core"), accepted("numpy")
    ('tensorken_conformance.array_api:module.mlx.core', 'numpy')
    """
    return f"{__name__}:module.{name.removeprefix(PREFIX)}" if name.startswith(PREFIX) else name


def backend_on(module: str) -> RawTensor[Any]:
    """A backend that calls the functions of a module.

    Raises:
        UnknownBackendError: if there is no such module, or it is no namespace of the standard.

    >>> backend_on("numpy").capabilities.dtypes[0]
    'bool'
    """
    try:
        namespace = importlib.import_module(module)
    except ImportError as error:
        raise UnknownBackendError(f"{PREFIX}{module}: {error}") from error
    lacking = [name for name in REQUIRED.split() if not hasattr(namespace, name)]
    if lacking:
        raise UnknownBackendError(
            f"{PREFIX}{module}: it has no {', '.join(lacking)}; the array API standard requires these functions"
        )
    name = "".join([part.capitalize() for part in module.replace("_", ".").split(".")])
    source = resources.files("tensorken_conformance").joinpath(TEMPLATE).read_text("utf-8")
    source = source.replace(f"import {LIBRARY} as xp", f"import {module} as xp").replace("Mybackend", name)
    values: dict[str, Any] = {"__name__": module}
    exec(compile(source, TEMPLATE, "exec"), values)
    made: RawTensor[Any] = values[name]()
    return made


class _Module:
    """The name of a module, of which each attribute is a longer name, and which makes its backend when it is called."""

    def __init__(self, name: str = "") -> None:
        self._name = name

    def __getattr__(self, part: str) -> _Module:
        if part.startswith("__"):
            raise AttributeError(part)
        return _Module(f"{self._name}.{part}" if self._name else part)

    def __call__(self) -> RawTensor[Any]:
        return backend_on(self._name)


module = _Module()
"""`module.mlx.core()` is the backend on the module `mlx.core`."""
