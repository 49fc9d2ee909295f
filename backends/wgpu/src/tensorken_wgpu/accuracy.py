"""Accuracy: the largest errors of ops on a device, measured by one kernel for each dtype.

The backend's own functions rest on sums and products, which all devices round correctly, and on WGSL's `/` and
`sqrt`, for which Vulkan promises in float32 only 2.5 and some 3 units in the last place.  So `/` and `sqrt` are
declared correctly rounded where all measured results are, and else with the promised errors, or the measured ones if
these are larger; functions are declared with the errors of `functions.ERRORS`, or the measured ones if these are
larger.
"""

from __future__ import annotations

import array
import math
import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

from tensorken_wgpu.wgsl.dtypes import FORMATS
from tensorken_wgpu.wgsl.functions import ERRORS
from tensorken_wgpu.wgsl.ops import TYPES, expressions
from tensorken_wgpu.wgsl.templates import NUMBERS, generic_text

if TYPE_CHECKING:
    from tensorken_wgpu.device.device import Device

COUNT = 2048
"""The results of each op that are measured."""

PROMISED = {"div.float32": 3, "sqrt.float32": 3, "div.float64": 1, "sqrt.float64": 1}
"""The errors that are declared at least where a result is not correctly rounded, in representable numbers."""

FAR = 2**16
"""The error of a result that is no number, or farther away than this."""

_WORKGROUP = 64
_BITS = {"float32": "i", "float64": "q"}

OPERANDS: Mapping[str, Callable[[Random], float]] = {
    "positive": lambda random: random.uniform(1, 2) * 2.0 ** random.randint(-100, 100),
    "divisor": lambda random: random.choice((-1, 1)) * random.uniform(1, 2) * 2.0 ** random.randint(-20, 20),
    "exponent": lambda random: random.uniform(-80, 80),
    "angle": lambda random: random.choice((-1, 1)) * random.uniform(1, 2) * 2.0 ** random.randint(-10, 20),
    "base": lambda random: random.uniform(1, 2) * 2.0 ** random.randint(-8, 8),
    "power": lambda random: random.uniform(-10, 10),
}
"""For each kind of operand a draw; all results are normal numbers."""

_OPS: Mapping[str, tuple[tuple[str, ...], Callable[..., float]]] = {
    "div": (("positive", "divisor"), lambda a, b: a / b),
    "sqrt": (("positive",), math.sqrt),
    "exp": (("exponent",), math.exp),
    "exp2": (("exponent",), lambda x: 2.0**x),
    "log": (("positive",), math.log),
    "sin": (("angle",), math.sin),
    "cos": (("angle",), math.cos),
    "pow": (("base", "power"), math.pow),
}
"""For each op its operands and its exact value, which Python computes in float64."""

_EXACT_IN_FLOAT64 = ("div", "sqrt")
"""The ops that are measured in float64, as Python rounds them correctly; the others have errors of their own there."""


def measured_ops(dtype: str) -> tuple[str, ...]:
    """The ops that are measured in a dtype; float16 is computed in float32, and rounded.

    >>> measured_ops("float64"), measured_ops("float16")
    (('div', 'sqrt'), ())
    """
    if dtype == "float32":
        return tuple(_OPS)
    return _EXACT_IN_FLOAT64 if dtype == "float64" else ()


def measure(device: Device, dtypes: Collection[str]) -> dict[str, int]:
    """The largest error of each measured op, such as `exp.float32`, in representable numbers.

    Args:
        device: to be measured.
        dtypes: that the device has.

    Raises:
        BackendError: if the device refuses a kernel, or is lost.
    """
    found: dict[str, int] = {}
    for dtype in dtypes:
        if names := measured_ops(dtype):
            operands = _operands(dtype)
            results = _run(device, dtype, names, operands)
            for i, name in enumerate(names):
                kinds, exact = _OPS[name]
                expected = [exact(*point) for point in zip(*[operands[kind] for kind in kinds], strict=True)]
                actual = results[i * COUNT : (i + 1) * COUNT]
                found[f"{name}.{dtype}"] = largest_distance(actual, expected, dtype)
    return found


def declared(measured: Mapping[str, int]) -> dict[str, int]:
    """The errors to declare for measured ones.

    >>> declared({"div.float32": 1, "sqrt.float32": 0, "exp.float32": 1, "log.float32": 2})
    {'exp': 1, 'exp2': 1, 'log': 1, 'sin': 1, 'cos': 1, 'pow': 1, 'div.float32': 3, 'sqrt.float32': 0, 'log.float32': 2}
    """
    found = dict(ERRORS)
    for key, error in measured.items():
        op = key.partition(".")[0]
        if op not in ERRORS:
            found[key] = max(error, PROMISED[key]) if error else 0
        elif error > ERRORS[op]:
            found[key] = error
    return found


def largest_distance(actual: Collection[float], expected: Collection[float], dtype: str) -> int:
    """The largest number of steps from a result to the nearest number of the dtype to its exact value.

    >>> (
    ...     largest_distance([1.0, 2.0**-149], [1.0 + 2.0**-22, 0.0], "float32"),
    ...     largest_distance([math.nan], [1.0], "float32"),
    ... )
    (2, 65536)
    """
    steps = zip(_positions(actual, dtype), _positions(expected, dtype), strict=True)
    return max([min(abs(a - b), FAR) for a, b in steps])


def _positions(values: Collection[float], dtype: str) -> list[int]:
    """The positions of numbers among all numbers of a dtype, with 0 at 0."""
    data = struct.pack(f"<{len(values)}{FORMATS[dtype]}", *values)
    bits = struct.unpack(f"<{len(values)}{_BITS[dtype]}", data)
    least = -1 << 8 * len(data) // len(values) - 1
    return [n if n >= 0 else least - n for n in bits]


def _operands(dtype: str) -> dict[str, list[float]]:
    """For each kind the same numbers of the dtype each time."""
    random = Random(0)
    return {
        kind: [*array.array(FORMATS[dtype], [draw(random) for _ in range(COUNT)])]
        for kind, draw in OPERANDS.items()
    }


def _run(
    device: Device, dtype: str, names: Collection[str], operands: Mapping[str, Collection[float]]
) -> Sequence[float]:
    """The results of some ops, one after the other, by one kernel."""
    text = generic_text(_template(dtype, names))
    data = b"".join([array.array(FORMATS[dtype], values).tobytes() for values in operands.values()])
    size = len(names) * COUNT * struct.calcsize(FORMATS[dtype])
    x, y = device.upload(data), device.allocate(size)
    pipeline = device.pipeline(text.code, 1, 1)
    device.run(pipeline, device.uniform(text.uniform), [x, y], (-(-COUNT // _WORKGROUP), 1, 1))
    results: Any = device.read(y, size)
    return [*results.cast(FORMATS[dtype])]


def _name(kind: str) -> str:
    """The name of an operand in the kernel, which no function has."""
    return f"{kind}_operand"


def _template(dtype: str, names: Collection[str]) -> str:
    element, written = TYPES[dtype], expressions(dtype)
    kinds = [*OPERANDS]
    loads = [f"let {_name(kind)}: {element} = x[g.x + {i * COUNT}u];" for i, kind in enumerate(kinds)]
    stores = [
        f"y[g.x + {i * COUNT}u] = {written[name](*map(_name, _OPS[name][0]))};"
        for i, name in enumerate(names)
    ]
    return "\n".join(
        [
            NUMBERS,
            f"@group(0) @binding(1) var<storage, read> x: array<{element}>;",
            f"@group(0) @binding(2) var<storage, read_write> y: array<{element}>;",
            f"@compute @workgroup_size({_WORKGROUP})",
            "fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) n: vec3<u32>) {",
            f"if (g.x >= {COUNT}u) {{ return; }}",
            *loads,
            *stores,
            "}",
        ]
    )
