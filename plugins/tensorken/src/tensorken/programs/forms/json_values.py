"""JSON values: Python values and tree structures as JSON without loss, and back."""

from __future__ import annotations

import base64
import math
import struct
import sys
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from types import ModuleType
from typing import Any

from tensorken_core import tree
from tensorken_core.errors import ProgramError
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.program.program import Program

MAX_DEPTH = 50  # of nested params and keys

CONTAINERS: dict[str, type] = {
    **{kind.__name__: kind for kind in (dict, list, tuple, OrderedDict, defaultdict)},
    "None": type(None),
}
"""Containers with short names; others are named `module:name`."""

_FACTORIES: dict[str, type] = {
    kind.__name__: kind for kind in (list, dict, tuple, int, float, str, set, bool)
}
"""Possible default factories of a defaultdict."""


# ---- values ------------------------------------------------------------------------------------------------


def to_json(value: Any, index_of: Callable[[Program], int], depth: int = 0) -> Any:
    """A value as JSON: a tuple becomes an array; a value that JSON lacks becomes an object with one entry.

    Raises:
        ProgramError: if the value has an unsupported type.
    """
    if value is None or type(value) in (bool, int, str):
        return value
    if depth < MAX_DEPTH:

        def inner(values: Any) -> list[Any]:
            return [to_json(v, index_of, depth + 1) for v in values]

        match value:
            case float():
                return {"float": format_float(value)}
            case tuple() if type(value) is tuple:
                return inner(value)
            case list() if type(value) is list:
                return {"list": inner(value)}
            case dict() if type(value) is dict:
                return {"dict": [inner(pair) for pair in value.items()]}
            case DType():
                return {"dtype": value.name}
            case Program():
                return {"program": index_of(value)}
            case slice():
                return {"slice": inner((value.start, value.stop, value.step))}
            case range():
                return {"range": [value.start, value.stop, value.step]}
            case bytes():
                return {"bytes": base64.b64encode(value).decode()}
            case type() if _FACTORIES.get(value.__name__) is value:
                return {"type": value.__name__}
    raise ProgramError(f"a value of type {type(value).__name__} cannot be saved: {value!r:.60}")


def from_json(data: Any, program_at: Callable[[Any], Program], depth: int = 0) -> Any:
    """The inverse of `to_json`.

    Raises:
        ProgramError: if the data is not a serialized value.
    """
    if data is None or type(data) in (bool, int, str):
        return data
    if depth < MAX_DEPTH:

        def inner(values: Any) -> tuple[Any, ...]:
            return tuple([from_json(v, program_at, depth + 1) for v in values])

        match data:
            case list():
                return inner(data)
            case {"float": str(text), **rest} if not rest:
                return parse_float(text)
            case {"list": list(values), **rest} if not rest:
                return list(inner(values))
            case {"dict": list(pairs), **rest} if not rest:
                return {key: value for key, value in map(inner, pairs)}  # noqa: C416 - a row that is not a pair must fail
            case {"dtype": str(name), **rest} if not rest and name in DTYPES:
                return DTYPES[name]
            case {"program": int(index), **rest} if not rest:
                return program_at(index)
            case {"slice": [_, _, _] as parts, **rest} if not rest:
                return slice(*inner(parts))
            case {"range": [int(start), int(stop), int(step)], **rest} if not rest:
                return range(start, stop, step)
            case {"bytes": str(text), **rest} if not rest:
                return base64.b64decode(text, validate=True)
            case {"type": str(name), **rest} if not rest and name in _FACTORIES:
                return _FACTORIES[name]
    raise ProgramError(f"{data!r:.60} is not a serialized value")


def format_float(value: float) -> str:
    """A float without loss: in hexadecimal, or for a NaN the bits of the double."""
    return f"nan:{struct.pack('>d', value).hex()}" if math.isnan(value) else value.hex()


def parse_float(text: str) -> float:
    """The inverse of `format_float`."""
    if text.startswith("nan:"):
        (value,) = struct.unpack(">d", bytes.fromhex(text.removeprefix("nan:")))
        return float(value)
    return float.fromhex(text)


# ---- structures --------------------------------------------------------------------------------------------


def structure_to_json(structure: tree.Structure, index_of: Callable[[Program], int]) -> list[Any]:
    """The nodes in preorder: None for a leaf, else container, metadata and number of children.

    Raises:
        ProgramError: if a container, or its metadata, cannot be saved.
    """
    return [
        None if node is None else [_name_of(node[0].kind), to_json(node[1], index_of), node[2]]
        for node in structure.nodes
    ]


def structure_from_json(data: Any, program_at: Callable[[Any], Program]) -> tree.Structure:
    """The inverse of `structure_to_json`.

    Raises:
        ProgramError: if the data is not a structure, or a class in it does not exist.
    """
    nodes: list[Any] = []
    missing = 1
    for row in data:
        missing -= 1
        if row is None:
            nodes.append(None)
            continue
        name, metadata, count = row
        nodes.append((_container(name), from_json(metadata, program_at), count))
        if missing < 0 or type(count) is not int or count < 0:
            break
        missing += count
    if missing != 0 or len(nodes) != len(data):
        raise ProgramError("the structure of arguments or results has too few nodes, or too many")
    structure = tree.Structure(tuple(nodes), sum([node is None for node in nodes]))
    if tree.structure(tree.unflatten(structure, range(structure.size))) != structure:
        raise ProgramError(f"the structure {structure!s:.60} is inconsistent")
    hash(structure)  # jit hashes structures
    return structure


def _name_of(kind: type) -> str:
    for name, container in CONTAINERS.items():
        if container is kind:
            return name
    name = f"{kind.__module__}:{kind.__qualname__}"
    if _class_at(name) is not kind:
        raise ProgramError(
            f"the class {kind.__qualname__} cannot be found by that name; define it at the top of a module"
        )
    return name


def _container(name: str) -> tree.Container:
    kind = CONTAINERS.get(name) or _class_at(name)
    container = None if kind is None else tree.container_of(kind)
    if container is None:
        module, _, cls = name.partition(":")
        raise ProgramError(
            f"it needs the class {cls} of {module}, which does not exist or is not a container; import {module} first"
        )
    return container


def _class_at(name: str) -> type | None:
    """A class by module and name; no module is imported, since a file could then run any code."""
    module, _, path = name.partition(":")
    value: Any = sys.modules.get(module)
    for part in path.split("."):
        if not isinstance(value, ModuleType | type):
            return None
        value = vars(value).get(part)  # getattr could run a module's __getattr__, which may import
    return value if isinstance(value, type) else None
