"""Kernels without run-time checks: no index is out of range.  Here each index is checked while a kernel runs."""

from __future__ import annotations

import re
import struct
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from tensorken.kernels.index_expressions import variable
from tensorken.lazy.interpreter import Lazy
from tensorken.programs.ops import STEP_STACK
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS
from tensorken_core.program.program import Equation
from tensorken_wgpu.backend import Wgpu
from tensorken_wgpu.device import modules, pipelines
from tensorken_wgpu.device.adapters import adapter_of
from tensorken_wgpu.device.device import Device
from tensorken_wgpu.device.failures import KernelError
from tensorken_wgpu.device.pipelines import Source
from tensorken_wgpu.execution import programs
from tensorken_wgpu.execution.tuning import VARIABLE as TUNING
from tensorken_wgpu.kernels.kernel import Kernel
from tensorken_wgpu.wgsl.dtypes import SIZES
from tensorken_wgpu.wgsl.single_op import Value
from tensorken_wgpu.wgsl.target import Target
from tensorken_wgpu.wgsl.writer import Writer

HARDWARE = Target(32, 2**27, False)

Patch = pytest.MonkeyPatch

# ---- checking indices ---------------------------------------------------------------------------------------

_ARRAY_IN_MEMORY = re.compile(r"var<storage, \w+> (\w+): array<(.*)>;")
_ARRAY = re.compile(r"var(?:<workgroup>)? (\w+)(?::| =) array<.*, (\d+)>")
_ACCESS = re.compile(r"\b([A-Za-z_]\w*)\[")


def checked(source: Source, kernel: Kernel) -> Source:
    """A kernel that counts its invocations with an index out of range in one more memory, its last binding."""
    text, values = source.text, {}
    for letter, bound in (("x", kernel.reads), ("y", kernel.writes)):
        values.update({f"{letter}{i}": v for i, v in enumerate(bound)})
    sizes = {name: int(size) for name, size in _ARRAY.findall(text)}
    lengths = {e.results[0]: e.params[0] for e in kernel.equations if e.op is STEP_STACK}
    for name, type_name in _ARRAY_IN_MEMORY.findall(text):
        v = values[name]
        bytes_per_access = {"vec4<u64>": 32, "vec4<f64>": 32, "vec4<i64>": 32}.get(type_name)
        if bytes_per_access is None:
            bytes_per_access = SIZES[v.dtype.name] * (4 if type_name.startswith("vec4") else 1)
        sizes[name] = -(-prod(v.shape) * lengths.get(v, 1) * SIZES[v.dtype.name] // bytes_per_access)
    declared = f"@group(0) @binding({1 + source.reads + source.writes})"
    counter = f"""
{declared} var<storage, read_write> wrong_invocations: array<atomic<u32>>;
var<private> is_wrong: u32;
fn checked_index(i: u32, size: u32) -> u32 {{
  is_wrong |= u32(i >= size);
  return min(i, size - 1u);
}}
"""
    main = _with_checks(text, sizes).rstrip()
    assert main.endswith("}")
    main = f"{main[:-1]}  if (is_wrong != 0u) {{ atomicAdd(&wrong_invocations[0], 1u); }}\n}}"
    return Source(main + counter, source.reads, source.writes + 1, is_proved=True)


def _with_checks(text: str, sizes: dict[str, int]) -> str:
    parts, position = [], 0
    for match in _ACCESS.finditer(text):
        if match[1] in sizes and match.start() >= position:
            end, depth = match.end(), 1
            while depth:
                depth += {"[": 1, "]": -1}.get(text[end], 0)
                end += 1
            inner = _with_checks(text[match.end() : end - 1], sizes)
            parts += [text[position : match.end()], f"checked_index({inner}, {sizes[match[1]]}u)]"]
            position = end
    return "".join([*parts, text[position:]])


class CheckedBackend:
    """The backend on a device of its own, whose kernels count indices out of range.

    Args:
        patch: undoes the changes.
        target: for which kernels are written.
        candidate: the number of the candidate that is used where there are several.
    """

    def __init__(self, patch: Patch, target: Target | None = None, candidate: int = 0) -> None:
        self.device = Device(adapter_of(None))
        self.raw = Wgpu(self.device)
        if target is not None:
            self.raw.target = replace(target, has_subgroups=self.raw.target.has_subgroups)
        self.kernels: list[Kernel] = []
        self.used: set[str] = set()
        self._wrong = wrong = self.device.upload(bytes(4))
        write, make_dispatch = programs.LoadedKernel._write, self.device.make_dispatch

        def write_checked(loaded: Any, make: Any) -> None:
            write(loaded, make)
            loaded.source = checked(loaded.source, loaded.kernel)
            self.kernels.append(loaded.kernel)

        def choose(kernel: Kernel) -> Kernel:
            if kernel.choice is None:
                return kernel
            names = [*kernel.choice.kernels]
            name = names[candidate % len(names)]
            self.used.add(name)
            return kernel.choice.kernels[name]

        patch.setattr(programs.LoadedKernel, "_write", write_checked)
        patch.setattr(programs, "best", lambda kernels, device: [*map(choose, kernels)])
        patch.setattr(
            self.device,
            "make_dispatch",
            lambda pipeline, uniform, memories, groups: make_dispatch(
                pipeline, uniform, [*memories, wrong], groups
            ),
        )

    @property
    def count(self) -> int:
        """How many invocations had an index out of range."""
        (count,) = struct.unpack("<I", self.device.read(self._wrong, 4))
        return int(count)

    def check(self, function: Any, arrays: list[Any]) -> None:
        """Check the results of a function, and that no index is out of range."""
        expected = function(*[tk.tensor(x, backend="numpy") for x in arrays])
        lazy = Lazy(self.raw)
        found = tk.jit(function)(*[tk.tensor(x, backend=lazy) for x in arrays])
        np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-3, atol=1e-3)
        assert self.count == 0
        assert self.kernels
        assert all([kernel.is_proved for kernel in self.kernels])


rng = np.random.default_rng(0)


def floats(*shape: int) -> Any:
    return rng.normal(size=shape).astype(np.float32)


def indices(count: int, size: int) -> Any:
    return rng.integers(0, size, count).astype(np.int32)


def attention(q: Any, k: Any, v: Any) -> Any:
    """An attention and the derivative with respect to its keys."""
    y, pullback = tk.vjp(lambda k: tk.softmax(q @ k.mT) @ v, k)
    return tk.concat([y, *pullback(y)])


def network(xs: Any, w: Any, reverse: bool = False) -> Any:
    """A loop that reads slices and writes two stacks."""

    def step(h: Any, x: Any) -> Any:
        h = tk.tanh(h @ w + x)
        return h, (h * 2.0, h.sum(0))

    h, (twice, sums) = tk.scan(step, xs[0], xs, reverse=reverse)
    return twice + sums[:, None] + h


def recurrence(xs: Any, reverse: bool = False) -> Any:
    """A loop of elementwise ops."""
    return tk.scan(lambda h, x: (h * 0.5 + x, h), xs[0], xs, reverse=reverse)[1]


PROGRAMS: dict[str, tuple[Any, list[Any]]] = {
    "vectors": (lambda x: x + 1.0, [floats(2**15)]),
    "softmax": (lambda x: tk.softmax(x, -1), [floats(40, 30)]),
    "long rows": (lambda x: x - x.mean(-1, keepdims=True), [floats(5, 3000)]),
    "sum in parts": (lambda x: x.sum(), [floats(2**17 + 3)]),
    "sum of columns": (lambda x: x.sum(0), [floats(999, 7)]),
    "long product": (lambda a, b: a @ b, [floats(8, 5001), floats(5001, 8)]),
    "convolution": (lambda x, w: tk.convolution(x, w, padding=1), [floats(2, 3, 9, 11), floats(4, 3, 3, 3)]),
    "pads and crops": (lambda x: tk.pad(x, ((2, 3), (1, 0)))[1:-1, ::-1].T + 1.0, [floats(6, 9)]),
    "large pad": (lambda x: tk.pad(x, ((4, 4), (0, 4))) * 2.0, [floats(128, 252)]),
    "joined": (lambda x, y: tk.concat([x, y, x], axis=1) * 2.0, [floats(3, 5), floats(3, 4)]),
    "gathered": (lambda x, i: x[i] + 1.0, [floats(9, 8), indices(20, 9)]),
    "gathered twice": (lambda x, i, j: x[i][:, j], [floats(9, 8), indices(20, 9), indices(5, 8)]),
    "small scatter": (lambda x, i: tk.zeros_like(x[:4]).at[i].add(x), [floats(6, 3), indices(6, 4)]),
    "large scatter": (
        lambda x, i, y: tk.zeros_like(y).at[i].add(x),
        [floats(64, 8), indices(64, 5000), floats(5000, 8)],
    ),
    "sorted": (lambda x: tk.argsort(x, axis=1), [floats(3, 5)]),
    "softmax of long rows": (lambda x: tk.softmax(x, -1), [floats(16, 1024)]),
    "cumulative": (lambda x: tk.cumsum(x, 0), [floats(33, 4)]),
    "cumulative of a line": (lambda x: tk.cumsum(x, 0), [floats(9001)]),
    "cumulative of blocks": (lambda x: tk.cumsum(x, 0), [floats(2**15)]),
    "cumulative of columns": (lambda x: tk.cumsum(x, 0), [floats(999, 7)]),
    "loop": (network, [floats(19, 3, 5), floats(5, 5)]),
    "reversed loop": (lambda xs, w: network(xs, w, reverse=True), [floats(19, 3, 5), floats(5, 5)]),
    "loop of vectors": (network, [floats(2, 128, 128), floats(128, 128) * 0.1]),
    "gradient of a loop": (
        tk.grad(lambda w, xs: (network(xs, w) ** 2).sum()),
        [floats(5, 5), floats(9, 3, 5)],
    ),
    "elementwise loop": (recurrence, [floats(1030, 3)]),
    "reversed elementwise loop": (lambda xs: recurrence(xs, reverse=True), [floats(30, 3)]),
    "transform": (lambda x: tk.abs(tk.fft.fft(x)), [floats(3, 64)]),
    "long transform": (lambda x: tk.abs(tk.fft.ifft(tk.fft.fft(x) * 2.0)), [floats(2**15)]),
    "attention": (attention, [floats(21, 6), floats(37, 6), floats(37, 6)]),
    "gradient": (tk.grad(lambda x: tk.softmax(x @ x, -1)[2].sum()), [floats(33, 33)]),
}


@pytest.mark.parametrize("target", [None, HARDWARE], ids=["this device", "a GPU"])
def test_no_index_is_out_of_range(raw: Any, monkeypatch: Patch, target: Target | None) -> None:
    backend = CheckedBackend(monkeypatch, target)
    for function, arrays in PROGRAMS.values():
        backend.check(function, arrays)


def test_no_index_of_a_tiled_product_is_out_of_range(raw: Any, monkeypatch: Patch) -> None:
    used: set[str] = set()
    for candidate in range(8):
        with monkeypatch.context() as patch:
            backend = CheckedBackend(patch, HARDWARE, candidate)
            backend.check(lambda a, b: tk.exp(a @ b * 0.01), [floats(131, 37), floats(37, 132)])
            if backend.used <= used:
                break
            used |= backend.used
    assert len(used) > 2


def test_indices_from_values_are_clamped(raw: Any, monkeypatch: Patch) -> None:
    """A gather and a pad read out of range on purpose, and select zeros; without `min` the checks see it."""
    x = [float(i) for i in range(1, 7)]
    wanted, far = [0, 5, 6, -1, 2**31 - 1, -(2**31)], [1.0, 6.0, 0.0, 0.0, 0.0, 0.0]

    def run(backend: CheckedBackend) -> None:
        array, places = [backend.raw.new((6,), v, DTYPES[d]) for v, d in ((x, "float32"), (wanted, "int32"))]
        gathered = backend.raw.interpret(OPS["gather"], (array, places), (0,))
        assert [*backend.raw.ravel(gathered)] == far
        padded = backend.raw.interpret(OPS["pad"], (array,), (((2, 1),),))
        assert [*backend.raw.ravel(padded)] == [0.0, 0.0, *x, 0.0]

    with monkeypatch.context() as patch:
        backend = CheckedBackend(patch)
        run(backend)
        assert backend.count == 0
        assert all([re.search(r"x\d\[min\(", kernel.template) for kernel in backend.kernels])
        assert all([kernel.is_proved for kernel in backend.kernels])
    with monkeypatch.context() as patch:
        backend = CheckedBackend(patch)
        patch.setattr(Writer, "_is_below", lambda self, index, size: True)
        run(backend)
        assert backend.count == 7  # four elements of the gather, three of the pad


def test_a_kernel_with_an_unproved_store_keeps_the_checks() -> None:
    v: Any = Value((10,), DTYPES["float32"])
    for size, is_proved in ((10, True), (11, False)):
        writer = Writer({}, {v}, frozenset())
        writer.store(v, [(variable("t", size), "1.0")])
        assert writer.is_proved == is_proved
    writer = Writer({}, {v}, frozenset())
    row = writer.as_index("i", DTYPES["int32"], 10)
    quotient, remainder = row.divided(2, writer)
    for index, is_proved in ((row, False), (quotient, False), (remainder, False)):
        writer.is_proved = True
        writer.store(v, [(index, "1.0")])
        assert writer.is_proved == is_proved


def test_the_checks_see_a_step_after_the_last_one(raw: Any, monkeypatch: Patch) -> None:
    x = tk.tensor(floats(10, 16), backend=Lazy((backend := CheckedBackend(monkeypatch)).raw)).realize()
    queue = backend.device._queue
    add = queue.add
    for function in (
        lambda x: tk.scan(lambda h, row: (tk.flip(h) + row, None), x[0], x)[0],
        lambda x: tk.scan(lambda h, _: (tk.flip(h), h * 2.0), x[0], None, length=10)[1],
    ):
        before = backend.count
        for late, wrong in ((0, 0), (1, 16)):

            def add_late(work: Any, n: int | None = None, late: int = late) -> None:
                add(work, None if n is None else n + late)

            monkeypatch.setattr(queue, "add", add_late)
            tk.jit(function)(x).realize()
            assert backend.count == before + wrong


def test_stores_into_a_stack_are_proved_for_all_steps() -> None:
    values: list[Any] = [Value((10,), DTYPES["float32"]) for _ in range(2)]
    x, v = values
    stack: Any = Equation(STEP_STACK, (x,), (4,), (v,))
    for size, is_proved in ((10, True), (11, False)):
        writer = Writer({v: stack}, {v}, frozenset())
        writer.store(v, [(variable("t", size), "1.0")])
        assert writer.is_proved == is_proved
        assert writer.lines == ["  y0[t + loop_step * #u10#] = 1.0;"]


# ---- modules ------------------------------------------------------------------------------------------------


def test_proved_kernels_have_no_checks_unless_the_user_wants_them(raw: Any, monkeypatch: Patch) -> None:
    created: list[bool] = []
    create = pipelines.create_module

    def counted(device: Any, text: str, is_proved: bool) -> Any:
        def unchecked(device: Any, text: str) -> Any:
            created.append(True)
            return modules.DIRECT(device, text) if modules.DIRECT else device.create_shader_module(code=text)

        return create(device, text, is_proved, unchecked)

    monkeypatch.setattr(pipelines, "create_module", counted)
    monkeypatch.setenv(TUNING, "off")
    x = floats(70, 90)
    results = []
    for setting in (None, "on", "off"):
        if setting is not None:
            monkeypatch.setenv(modules.VARIABLE, setting)
        created.clear()
        lazy = Lazy(Wgpu(Device(adapter_of(None))))
        results.append(tk.jit(lambda x: tk.softmax(x @ x.T, -1))(tk.tensor(x, backend=lazy)).tolist())
        assert bool(created) == (setting != "on")
    assert results[0] == results[1] == results[2]
    created.clear()
    Device(adapter_of(None)).pipeline(UNPROVED, 0, 1)
    assert not created


UNPROVED = """
@group(0) @binding(0) var<uniform> u: vec4<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1) fn main() { y[u.x] = 1u; }
"""


def test_refused_texts_are_errors_without_checks_too(raw: Any) -> None:
    device = Device(adapter_of(None))
    for text in (UNPROVED.replace("1u", "1.5"), "fn", "\u00e9"):
        messages = []
        for is_proved in (False, True):
            with pytest.raises(KernelError) as refused:
                device.pipeline(text, 0, 1, is_proved)
            messages.append(refused.value.reason)
        assert messages[0] == messages[1]
    assert device.pipeline(UNPROVED + "// \u00e9", 0, 1, True).layout.writes == 1
