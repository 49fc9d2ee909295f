"""Count what the kernels of the wgpu backend do on a GPU, and write the table of docs/backends/wgpu.md.

Each program of `PROGRAMS` is lowered for a GPU, without one, and `wgsl_counts` counts the text of its kernels.  A test
compares the page with the table; `python -m tools.kernel_counts` writes it, and with `--print NAME` it prints the text
of a program's kernels.  To add a row, add a program.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import tensorken as tk
from tensorken.control_flow.scan_op import SCAN
from tensorken.kernels.positions import with_positions
from tensorken.programs.passes.pipeline import optimised
from tensorken_core.language.capabilities import Capabilities
from tensorken_core.language.op import Op
from tensorken_numpy.backend import Numpy
from tensorken_wgpu.backend import Wgpu
from tensorken_wgpu.execution.planning import plan
from tensorken_wgpu.kernels.kernel import Kernel
from tensorken_wgpu.wgsl.target import Target
from tensorken_wgpu.wgsl.templates import specialised_text
from tools.wgsl_counts import Counts, counts_of
from tools.workspace import ROOT

PAGE = ROOT / "docs" / "backends" / "wgpu.md"

HEAD = (
    "| program | kernel | workgroups | invocations | bytes read | bytes written | multiply-adds | shared reads "
    "| shared writes | exchanges | barriers | shared KiB |"
)

TARGET = Target(
    bindings=16, binding_size=2**31, is_software=False, workgroup_memory=48 * 1024, has_subgroups=True
)
"""A GPU."""

SUBGROUP_SIZE = 32


@dataclass(frozen=True, slots=True)
class Case:
    """A program.

    Attributes:
        function: that is lowered.
        shapes: of its arguments, of float32.
        candidate: the tile of a matrix product, by the begin of its name; the first candidate if it is empty.
    """

    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    candidate: str = ""


def _product(a: Any, b: Any) -> Any:
    return a @ b


def _layer_norm(x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / tk.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)


_SQUARE = ((4096, 4096), (4096, 4096))

PROGRAMS: dict[str, Case] = {
    "product of 4096×4096, blocks of 128×128, 16 deep": Case(_product, _SQUARE, "block 128x128 of 8x8, 16"),
    "the same, 8 deep": Case(_product, _SQUARE, "block 128x128 of 8x8, 8"),
    "the same, blocks of 64×64 of 8×8": Case(_product, _SQUARE, "block 64x64 of 8x8"),
    "the same, blocks of 64×64 of 4×4": Case(_product, _SQUARE, "block 64x64 of 4x4"),
    "the same, blocks of 32×32": Case(_product, _SQUARE, "block 32x32"),
    "product of 8×4096 and 4096×4096": Case(_product, ((8, 4096), (4096, 4096))),
    "batch of 96 products of 256×64 and 64×256": Case(_product, ((96, 256, 64), (96, 64, 256))),
    "product of 512×4096 and 4096×512": Case(_product, ((512, 4096), (4096, 512))),
    "gradient of a weight: 784×65536 and 65536×128": Case(lambda x, y: x.T @ y, ((65536, 784), (65536, 128))),
    "layer: `relu(x @ w + b)`, 1024×1024": Case(
        lambda x, w, b: tk.relu(x @ w + b), ((1024, 1024), (1024, 1024), (1024,))
    ),
    "elementwise: `exp(x) * 2 + y`": Case(lambda x, y: tk.exp(x) * 2.0 + y, ((4096, 4096), (4096, 4096))),
    "sum of each row of 4096": Case(lambda x: x.sum(-1), ((4096, 4096),)),
    "sum of each column": Case(lambda x: x.sum(0), ((4096, 4096),)),
    "sum of all": Case(lambda x: x.sum(), ((4096, 4096),)),
    "softmax of rows of 4096": Case(lambda x: tk.softmax(x, -1), ((4096, 4096),)),
    "layer norm of rows of 1024": Case(_layer_norm, ((4096, 1024),)),
    "attention of 96 heads, 1024 queries, 64 features": Case(
        lambda q, k, v: tk.softmax(q @ k.mT * 0.125, -1) @ v, ((96, 1024, 64),) * 3
    ),
    "cumulative sum of rows of 4096": Case(lambda x: tk.cumsum(x, -1), ((4096, 4096),)),
    "sort of rows of 1024": Case(lambda x: tk.sort(x, -1), ((1024, 1024),)),
    "Fourier transform of rows of 1024": Case(lambda x: tk.fft.fft(x), ((1024, 1024),)),
}
"""The rows of the table; a program has one for each of its kernels."""


class WithoutDevice(Wgpu):
    """The backend's ops, and kernels for a device that is not there.

    Args:
        target: the device.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.capabilities = Capabilities(dtypes=("bool", "int32", "uint32", "float32"))

    def __repr__(self) -> str:
        return "WithoutDevice"

    @property
    def scan(self) -> Op | None:
        return SCAN


def kernels_of(case: Case, target: Target = TARGET) -> list[Kernel]:
    """The kernels of a program on a GPU."""
    numpy = tk.Lazy(Numpy())
    arguments = [tk.zeros(shape, backend=numpy) for shape in case.shapes]
    backend = WithoutDevice(target)
    program = with_positions(optimised(tk.trace(case.function)(*arguments), backend), backend)
    return [_chosen(step.kernel, case.candidate) for step in plan(program, target).steps]


def _chosen(kernel: Kernel, candidate: str) -> Kernel:
    if not candidate or kernel.choice is None:
        return kernel
    (found,) = [chosen for name, chosen in kernel.choice.kernels.items() if name.startswith(candidate)]
    return found


def text_of(kernel: Kernel) -> str:
    """The text of a kernel, with its numbers."""
    return specialised_text(kernel.template).code


def counted(kernel: Kernel) -> Counts:
    """What a workgroup of a kernel does."""
    return counts_of(text_of(kernel), kernel.workgroups, SUBGROUP_SIZE)


def lines(programs: dict[str, Case] = PROGRAMS) -> Iterator[str]:
    """The lines of the table."""
    for name, case in programs.items():
        kernels = kernels_of(case)
        for number, kernel in enumerate(kernels):
            place = f"{number + 1} of {len(kernels)}" if len(kernels) > 1 else ""
            cells = [name if number == 0 else "", place, *_cells(kernel)]
            yield f"| {' | '.join(cells)} |"


def _cells(kernel: Kernel) -> list[str]:
    found, workgroups = counted(kernel), prod(kernel.workgroups)
    elements = max([prod(v.shape) for v in (*kernel.reads, *kernel.writes)])
    per_element = [found.loads * workgroups / elements, found.stores * workgroups / elements]
    per_invocation = [found.multiply_adds, found.shared_reads, found.shared_writes, found.exchanges]
    return [
        str(workgroups),
        str(found.size),
        *[number(x) for x in per_element],
        *[number(x / found.size) for x in per_invocation],
        number(found.barriers),
        number(found.workgroup_memory / 1024),
    ]


def number(x: float) -> str:
    """A number with three digits, integers with all.

    >>> number(0.0), number(4096.0), number(0.00390625), number(12.345)
    ('0', '4096', '0.00391', '12.3')
    """
    return str(round(x)) if x == round(x) else f"{x:.3g}"


def published() -> list[str]:
    """The lines of the table on the page."""
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(HEAD + "\n")
    found = []
    for line in rest.splitlines()[1:]:
        if not line.startswith("|"):
            break
        found.append(line)
    return found


def write(table: Sequence[str]) -> None:
    """Replace the table of the page."""
    text = PAGE.read_text(encoding="utf-8")
    numbers = HEAD.count("|") - 3
    whole = "\n".join([HEAD, "|" + " --- |" * 2 + " --: |" * numbers, *table])
    pattern = re.escape(HEAD) + r"\n(?:\|.*\n)*"
    PAGE.write_text(re.sub(pattern, lambda _: whole + "\n", text), encoding="utf-8", newline="\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the table, or print kernels."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.kernel_counts", description="count what kernels of a GPU do"
    )
    parser.add_argument(
        "--print", metavar="NAME", choices=[*PROGRAMS], help="print the kernels of this program"
    )
    options = parser.parse_args(arguments)
    if options.print:
        print("\n\n".join(map(text_of, kernels_of(PROGRAMS[options.print]))))
    else:
        write([*lines()])


if __name__ == "__main__":
    main()
