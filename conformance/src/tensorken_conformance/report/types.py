"""The types of the values of a report, by schema.json: a file of others may have any value at any place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_KINDS: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "integer": int,
    "number": (int, float),
}


def faults_of(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], at: str = "") -> Iterator[str]:
    """The values of another type than in the schema, and other values than an enumeration has.

    Missing properties and bounds are not examined: a reader knows what it needs.

    Args:
        value: from JSON; it is not nested deeper than the schema, which is followed.
        schema: of the value.
        root: the whole schema, to which `$ref` refers.
        at: the names and indices that lead to the value.
    """
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        yield from faults_of(value, root["$defs"][name], root, at)
        return
    if "oneOf" in schema:
        choices = [[*faults_of(value, choice, root, at)] for choice in schema["oneOf"]]
        yield from min(choices, key=len)
        return
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    if names and not any(_is_a(value, name) for name in names):
        yield f"{at or 'it'} is a {type(value).__name__}, expected {' or '.join(names)}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at} is {value!r:.40}, expected one of {', '.join(map(str, schema['enum']))}"
    if isinstance(value, dict):
        others = schema.get("additionalProperties", {})
        for name, item in value.items():
            inner = schema.get("properties", {}).get(name, others)
            if isinstance(inner, dict):
                yield from faults_of(item, inner, root, f"{at}.{name}" if at else str(name))
    elif isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            yield from faults_of(item, schema["items"], root, f"{at}[{i}]")


def _is_a(value: Any, name: str) -> bool:
    return isinstance(value, _KINDS[name]) and (name == "boolean" or not isinstance(value, bool))
