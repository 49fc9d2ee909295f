"""The table of counts on the backend's page is that of the current kernels, and its counts are what kernels do."""

from __future__ import annotations

import re
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

import tensorken as tk
from core.tests.each import each_of
from tensorken_wgpu.kernels.kernel import Kernel
from tensorken_wgpu.wgsl.dtypes import size_of
from tensorken_wgpu.wgsl.templates import specialised_text
from tools import kernel_counts
from tools.kernel_counts import Case, kernels_of
from tools.wgsl_counts import counts_of


def test_the_page_has_the_counts_of_the_kernels() -> None:
    found = [*kernel_counts.lines()]
    assert kernel_counts.published() == found, "run: python -m tools.kernel_counts"


COUNTING = """
var<private> accesses: array<u32, 3>;
@group(0) @binding({}) var<storage, read_write> counted: array<atomic<u32>>;
fn access(i: u32, kind: u32) -> u32 {{
  accesses[kind] += 1u;
  return i;
}}
"""


def counting(text: str, binding: int) -> str:
    """A kernel that counts loads, stores, and accesses of workgroup memory in one more memory."""
    arrays = re.findall(r"var<(storage, read_write|storage, read|workgroup)> (\w+): array", text)
    kinds = {name: ["storage, read", "storage, read_write", "workgroup"].index(kind) for kind, name in arrays}
    parts, position = [], 0
    for match in re.finditer(r"\b(\w+)\[", text):
        if match[1] in kinds:
            end, depth = match.end(), 1
            while depth:
                depth += {"[": 1, "]": -1}.get(text[end], 0)
                end += 1
            parts += [
                text[position : match.end()],
                f"access({text[match.end() : end - 1]}, {kinds[match[1]]}u)]",
            ]
            position = end
    whole = "".join([*parts, text[position:]]).rstrip()
    added = "".join([f"atomicAdd(&counted[{i}], accesses[{i}]); " for i in range(3)])
    return f"{whole[:-1]}  {added}\n}}\n{COUNTING.format(binding)}"


def accesses(kernel: Kernel, raw: Any) -> list[int]:
    """The loads, stores, and accesses of workgroup memory of all invocations, counted on the device."""
    device, text = raw.device, specialised_text(kernel.template)
    bindings = (*kernel.reads, *kernel.writes)
    counted = device.upload(bytes(12))
    memories = [device.upload(bytes(size_of(v))) for v in bindings]
    source = counting(text.code, 1 + len(bindings))
    pipeline = device.pipeline(source, len(kernel.reads), len(kernel.writes) + 1)
    device.run(pipeline, device.uniform(text.uniform), [*memories, counted], kernel.workgroups)
    return [int(n) for n in np.frombuffer(device.read(counted, 12), np.uint32)]


CASES = {
    "product": Case(lambda a, b: a @ b, ((64, 48), (48, 64))),
    "sum of all": Case(lambda x: x.sum(), ((2**17,),)),
    "layer norm": Case(kernel_counts.PROGRAMS["layer norm of rows of 1024"].function, ((8, 320),)),
    "cumulative sum": Case(lambda x: tk.cumsum(x, -1), ((4, 4096),)),
}


@each_of("name", CASES)
def test_counts_are_those_of_the_device(name: str, raw: Any) -> None:
    """In kernels without subgroups, whose size depends on the device."""
    target = replace(kernel_counts.TARGET, has_subgroups=False)
    for kernel in kernels_of(CASES[name], target):
        text, workgroups = specialised_text(kernel.template).code, prod(kernel.workgroups)
        found = counts_of(text, kernel.workgroups, 32)
        loads, stores, shared = accesses(kernel, raw)
        declared = dict(re.findall(r"var<storage, \w+> (\w)0: array<(\w+)", text))
        bytes_of = {"f32": 4, "vec4": 16}
        assert found.loads * workgroups == loads * bytes_of[declared["x"]]
        assert found.stores * workgroups == stores * bytes_of[declared["y"]]
        assert (found.shared_reads + found.shared_writes) * workgroups == shared


LINES = [  # statements, and how often the 64 invocations read x0
    ("let a = x0[l];", 64),
    ("if (l < 10u) { let a = x0[l]; }", 10),
    ("if (l < 10u) {\n let a = x0[l];\n }\n else if (l < 12u) {\n let a = x0[l] + x0[0u];\n }", 14),
    ("let i = l * 2u;\n if (i >= 100u) { return; }\n let a = x0[i];", 50),
    ("for (var i = l; i < 100u; i += 64u) {\n let a = x0[i];\n }", 100),
    (
        "for (var i = 0u; i < 3u; i += 1u) {\n for (var j = 0u; j < 5u; j += 2u) {\n let a = x0[i];\n }\n }",
        64 * 9,
    ),
    (
        "for (var i = 0u; i < 9u; i += 1u) {\n let j = i + 1u;\n if (j < 9u) {\n let a = x0[j];\n }\n }",
        64 * 8,
    ),
    ("for (var s = 32u; s > 0u; s /= 2u) {\n if (l < s) {\n let a = x0[l];\n }\n }", 63),
    ("for (var d = 1u; d < min(subgroup_size, 64u); d *= 2u) {\n let a = x0[lane];\n }", 64 * 5),
    ("let v = x0[l];\n if (v > 1.0) {\n let a = x0[l];\n }", 128),  # unknown conditions are true
]


@each_of(("statements", "reads"), LINES)
def test_branches_and_loops_count_for_invocations_that_run_them(statements: str, reads: int) -> None:
    text = (
        "@group(0) @binding(1) var<storage, read> x0: array<f32>;\n@compute @workgroup_size(64)\n"
        f"fn main(@builtin(local_invocation_index) l: u32) {{\n{statements}\n}}"
    )
    assert counts_of(text, (1, 1, 1), 32).loads == 4 * reads
