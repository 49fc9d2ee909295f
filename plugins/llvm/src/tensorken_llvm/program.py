"""Programs as machine code: kernels in one function, with calls of the backend's ops between."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir

from tensorken.kernels.nests import FusionGroup
from tensorken.kernels.rows import REDUCTIONS
from tensorken.programs.code import Code
from tensorken.programs.compiled import Kernel as ShownKernel
from tensorken.programs.passes.inner_programs import inner_programs
from tensorken.programs.passes.pipeline import optimised
from tensorken_core.host.variables import switch
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import run
from tensorken_core.program.program import Program
from tensorken_llvm import cache
from tensorken_llvm.background import Compilation, is_background
from tensorken_llvm.blas import find_blas
from tensorken_llvm.cache import Entry, loaded
from tensorken_llvm.calls import Caller, Workspaces
from tensorken_llvm.concatenations import Concatenation
from tensorken_llvm.control_flow import ControlFlow, Plans
from tensorken_llvm.convolutions import CONVOLUTION, Convolution, with_convolutions_lowered
from tensorken_llvm.donations import with_own_arrays
from tensorken_llvm.dtypes import NUMPY
from tensorken_llvm.entry import CALLS, Body, Method, kind_of, write_entry
from tensorken_llvm.keys import digest_of, program_key, traced_key
from tensorken_llvm.layouts import (
    Call,
    Place,
    constants_of,
    is_long,
    layout_of,
    literal,
    numbered,
    runs_of_kernels,
)
from tensorken_llvm.machine import assembly_of, object_code, optimised_module, triple
from tensorken_llvm.plans import MAX_CALLS, Kernel, Plan
from tensorken_llvm.products import MatrixProduct
from tensorken_llvm.routines import Routine
from tensorken_llvm.showing import shown_kernels
from tensorken_llvm.target import EXPANDED, Expanded

if TYPE_CHECKING:
    from tensorken_core.language.op import Op
    from tensorken_core.language.raw import RawTensor

_EXPANDED = Expanded()

Run = Callable[[Sequence[Any]], Sequence[Any]]
"""From the inputs of a program, as arrays, to its outputs."""

QUICK_ELEMENTS = 2**16
"""So many elements of a kernel take as much longer in quick code as it takes to optimise the kernel."""

QUICK = "TENSORKEN_LLVM_QUICK"
"""The variable that turns quick code off, with the value 0."""

BACKGROUND_CALLS = 1000
"""How often quick code runs before it is asked again whether optimised code is there."""

QUICK_SUMS = 512
"""The most elements of kernels with sums in quick code, which stays: optimised code adds in another order."""


def compiled_traced(
    program: Program, optimised_program: Callable[[], Program], backend: RawTensor[Any]
) -> Run | None:
    """The machine code of a program before the passes, which do not run if the cache has it.

    Args:
        program: as it was traced.
        optimised_program: returns the program after the passes.
        backend: runs other ops.
    """
    may_be_quick, _ = is_quick_allowed(), is_background()  # refuse wrong variables before anything is found
    found = traced_key(program, backend, may_be_quick) if cache.folder() is not None else None
    if found is None:
        return compiled(optimised_program(), backend)
    name, constants = found
    known = cache.find_name(name)
    entry = None if known is None else cache.find(known[0])
    if known is not None and entry is not None and all([one in constants for one in known[1]]):
        traced = program.changed()  # the program refers to its machine code
        given = functools.cache(lambda: _lowered(optimised(traced, backend)))
        arrays = iter([constants[one] for one in known[1]])
        return MachineProgram(given, _typed(program), _constants(entry, backend, arrays), entry, backend)
    run = compiled(optimised_program(), backend)
    if isinstance(run, MachineProgram) and not run.layout.called:
        digests = [
            digest_of(run.constants[i])
            for i, x in enumerate(run.layout.constants)
            if not isinstance(x, Place)
        ]
        key = program_key(run.program(), is_quick_allowed())
        if key is not None and all([one in constants for one in digests]):
            cache.keep_name(name, key, digests)
    return run


def _lowered(program: Program) -> Program:
    """An optimised program in ops that kernels compute or the backend has."""
    if any([op.name in EXPANDED or op is CONVOLUTION for op in _ops_of(program)]):
        return optimised(with_convolutions_lowered(program, _EXPANDED), _EXPANDED)
    return program


def compiled(program: Program, backend: RawTensor[Any]) -> Run | None:
    """The machine code of a program; None if no kernel would compute any of it."""
    given = program
    program = _lowered(program)
    key = program_key(program, is_quick_allowed())
    entry = None if key is None else cache.find(key)
    if entry is None:
        source = Source(program, backend)
        if not source.plan.has_code:
            return None
        if is_background() and not source.is_quick(is_quick_allowed()):
            run = backend.compile(given)
            if run is not None:
                return BackgroundProgram(source, key, backend, run)
        program, entry = source.compiled(key, is_quick_allowed())
    return machine_program(program, entry, backend)


def machine_program(program: Program, entry: Entry, backend: RawTensor[Any]) -> MachineProgram:
    """The machine code of a program, with its constants.

    Args:
        program: whose equations and constants the layout refers to.
        entry: the machine code.
        backend: runs the other ops.
    """
    known = list(constants_of(program).items())
    numbers = [x for x in entry.layout.constants if not isinstance(x, Place)]
    arrays = iter([known[x][1].outside(known[x][0], backend) for x in numbers])
    return MachineProgram(
        lambda: program, _typed(program), _constants(entry, backend, arrays), entry, backend
    )


def _typed(program: Program) -> Program:
    """The name and the inputs of a program, without what refers to its machine code."""
    return Program(program.inputs, (), (), name=program.name)


def _constants(entry: Entry, backend: RawTensor[Any], arrays: Iterator[Any]) -> list[Any]:
    """The literals and constants of a layout, contiguous.

    Args:
        entry: with the layout.
        backend: makes the literals.
        arrays: the constants, in order.
    """
    return [
        np.asarray(
            backend.full(x.shape, literal(x).value, DTYPES[x.dtype])
            if isinstance(x, Place)
            else next(arrays),
            order="C",
        )
        for x in entry.layout.constants
    ]


def _ops_of(program: Program) -> Iterator[Op]:
    """The ops of a program and of its branches and loops."""
    yield from program.ops
    for inner in inner_programs(program):
        yield from _ops_of(inner)


def is_quick_allowed() -> bool:
    """Whether small programs may have quick code."""
    return switch(QUICK, default=True)


class Source:
    """A program as a plan and LLVM's intermediate representation.

    Args:
        program: in ops that kernels compute or the backend has.
        backend: runs the other ops.

    Attributes:
        program: see above.
        plan: its plan.
    """

    def __init__(self, program: Program, backend: RawTensor[Any]) -> None:
        self.program = program
        self.plan = Plans(backend, find_blas()).plan(program)

    def compiled(self, key: str | None, may_be_quick: bool) -> tuple[Program, Entry]:
        """The compiled program, kept in the cache; and the program whose equations and constants it refers to.

        Args:
            key: of the cache.
            may_be_quick: else it is optimised in any case.
        """
        is_quick, calls = quick_calls(self.plan) if may_be_quick else (False, 0)
        return self.loaded(key, object_code(self.text(calls), is_quick), calls)

    def loaded(self, key: str | None, code: bytes, calls: int = 0) -> tuple[Program, Entry]:
        """The same from the object file.

        Args:
            key: of the cache.
            code: the object file.
            calls: how often its first function runs; 0 if always.
        """
        program = self.program
        layout = layout_of(program, self.plan)
        if layout is None:
            program, key = self.plan.program, None
            layout = layout_of(program, self.plan)
            assert layout is not None
        entry = loaded(code, layout, calls)
        if key is not None:
            cache.keep(key, code, entry)
        return program, entry

    def is_quick(self, may_be_quick: bool) -> bool:
        """Whether quick code is right for the program."""
        return may_be_quick and quick_calls(self.plan)[0]

    def text(self, calls: int = 0) -> str:
        """The module in LLVM's text form.

        Args:
            calls: how often its first function runs; 0 if always.
        """
        module = ir.Module("program")
        module.triple = triple()
        for name, kernels in runs_of_kernels(self.plan).items():
            self._write_entry(module, name, kernels, calls)
            calls = 0
        return str(module)

    def _write_entry(self, module: ir.Module, name: str, kernels: Sequence[Kernel], calls: int) -> None:
        numbers = numbered(self.plan)
        count = len(numbers)
        inputs, called_from = len(self.plan.program.inputs), count - len(self.plan.called)
        used = {numbers[v]: v for kernel in kernels for v in kernel.reads if v in numbers}
        checked = {
            i: (used[i].shape if i < inputs else None, used[i].dtype.name)
            for i in sorted(used)
            if i < inputs or i >= called_from
        }

        def body(part: Sequence[Kernel]) -> Body:
            return lambda b, pointer, stop: self.plan.write(
                b, part, lambda v: pointer(numbers[v]), pointer(count), stop
            )

        parts = [kernels[i : i + MAX_CALLS] for i in range(0, len(kernels), MAX_CALLS)]
        write_entry(module, name, checked, is_long(kernels), [*map(body, parts)], calls)


def quick_calls(plan: Plan) -> tuple[bool, int]:
    """Whether quick code is right for a plan, and after how many calls it is optimised; 0 if never.

    Quick and optimised code have the same results but for sums of floats, which are added in another order, and the
    sign of a maximum that is 0, if there are zeros of both signs.
    """
    kernels = [step.computes for step in plan.steps if isinstance(step, Kernel)]
    written = [one for one in kernels if not isinstance(one, MatrixProduct) or one.is_own]
    work = max([one.work for one in written], default=0)
    if _has_sums(plan):
        return work <= QUICK_SUMS, 0
    calls = QUICK_ELEMENTS // max(work, 1)
    return (True, calls) if calls >= 4 else (False, 0)


def _has_sums(plan: Plan) -> bool:
    """Whether kernels add floats up, also in loops and branches."""

    def has_sums(computes: FusionGroup | Routine) -> bool:
        if isinstance(computes, FusionGroup):
            equations = [plan.lowered.producers[v] for v in computes.values]
            sums = [e for e in equations if e.op.name in REDUCTIONS and e.op.name != "max"]
            return any([e.results[0].dtype.kind == "float" for e in sums])
        if isinstance(computes, ControlFlow):
            return any([_has_sums(inner) for inner in computes.plans])
        return not isinstance(computes, Concatenation | Convolution | MatrixProduct)

    return any([has_sums(step.computes) for step in plan.steps if isinstance(step, Kernel)])


def _plain(x: Any) -> Any:
    """A contiguous array with numpy's own object of its dtype, by which machine code knows it."""
    x = np.require(x, requirements=["C", "A", "E"])
    own = np.dtype(x.dtype.name) if x.dtype.names is None else x.dtype
    return x.view(own) if kind_of(x.dtype) != kind_of(own) and x.dtype == own else x


class _Shown:
    """What people see of a program that is compiled, or will be."""

    def source(self) -> Source:
        """The plan of the program, and the text of its code."""
        raise NotImplementedError

    def texts(self) -> Mapping[str, Callable[[], str]]:
        """The optimised code: LLVM's intermediate representation with the assembly, or the assembly alone."""

        def assembly() -> str:
            return assembly_of(optimised_module(self.source().text()))

        def both() -> str:
            module = optimised_module(self.source().text())
            return f"{module}\n; assembly\n\n{assembly_of(module)}"

        return {"llvm": both, "assembly": assembly}

    def kernels(self) -> list[ShownKernel]:
        """The kernels, the calls of BLAS, and the ops that numpy's backend runs."""
        return shown_kernels(self.source().plan)


class BackgroundProgram(_Shown):
    """A program that the backend runs until another process has written its machine code.

    Args:
        source: the plan and the text of the machine code.
        key: of the cache.
        backend: compiled `run`.
        run: runs the program meanwhile.
    """

    def __init__(self, source: Source, key: str | None, backend: RawTensor[Any], run: Run) -> None:
        self._source, self._key, self._backend = source, key, backend
        self._run = run
        self._compilation: Compilation | None = Compilation(source.text())
        self._lock = threading.Lock()

    def source(self) -> Source:
        return self._source

    def __call__(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """The outputs, as arrays."""
        if self._compilation is not None and self._lock.acquire(blocking=False):
            try:
                self._look()
            finally:
                self._lock.release()
        return self._run(inputs)

    def _look(self) -> None:
        """Run the machine code from now on, if it is there."""
        code = None if self._compilation is None else self._compilation.code()
        if code is not None:
            self._compilation = None
            program, entry = self._source.loaded(self._key, code)
            self._run = machine_program(program, entry, self._backend)


class MachineProgram(_Shown):
    """A program whose kernels are machine code.

    The inputs, the constants, the results and those of called ops are arrays; the arena is one more.

    Args:
        program: returns the program whose equations and constants the layout refers to.
        typed: has the name and the inputs of the program.
        constants: those of the layout, as contiguous arrays.
        entry: the machine code.
        backend: runs the other ops.

    Attributes:
        program: see above.
        constants: see above.
        layout: where values are.
    """

    def __init__(
        self,
        program: Callable[[], Program],
        typed: Program,
        constants: Sequence[Any],
        entry: Entry,
        backend: RawTensor[Any],
    ) -> None:
        self._backend = backend
        self.program, self._typed, self.constants = program, typed, constants
        layout = self.layout = entry.layout
        self._called = [None] * layout.called
        self._outputs = [(y.array, y.shape, y.is_reshaped) for y in layout.outputs]
        self._workspaces = Workspaces(layout)
        self._library = entry.library
        self._methods = {name: Method(entry.library.addresses[name], entry.library) for name in layout.names}
        self._segments = [self._methods[one] if isinstance(one, str) else one for one in layout.segments]
        run = self._methods[layout.names[0]].call
        self._caller = Caller(
            layout, len(typed.inputs), run, self.constants, self._workspaces, self._run_segments
        )
        numbers = {y.array for y in layout.outputs} | {
            x.array for call in layout.segments if isinstance(call, Call) for x in call.operands
        }
        self._unchecked = [  # inputs that machine code need not read
            (i, v.shape, np.asarray(backend.full((), 0, v.dtype)).dtype)
            for i, v in enumerate(typed.inputs)
            if i in numbers
        ]
        self._compilation: Compilation | None = None
        self._run = self._caller.function() if self._caller.can_write else self._run_segments

    def _optimise(self) -> None:
        """Replace quick code, whose calls are used up."""
        left = ctypes.c_int64.from_address(self._library.addresses[CALLS])
        left.value = 2**62  # other threads run quick code meanwhile, and all do if there is an error
        key = program_key(self.program(), is_quick_allowed())
        entry = None if key is None else cache.find(key)
        if entry is None or entry.calls:
            if is_background():
                if self._compilation is None:
                    self._compilation = Compilation(self.source().text())
                code = self._compilation.code()
                if code is None:
                    left.value = BACKGROUND_CALLS
                    return
                _, entry = self.source().loaded(key, code)
            else:
                _, entry = self.source().compiled(key, may_be_quick=False)
        for name, method in self._methods.items():
            method.replace(entry.library.addresses[name], entry.library)
        # Other programs with the same quick code look for the optimised code when they are called.
        left.value = 0

    def source(self) -> Source:
        return Source(self.program(), self._backend)

    # ---- calls ---------------------------------------------------------------------------------------------

    def __call__(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """The outputs, as arrays."""
        return self._run(inputs)

    def write_call(self, code: Code, inputs: Sequence[str]) -> list[str] | None:
        """Write a call into a function that is generated; see `tensorken.programs.execution.Writable`."""
        return self._caller.write(code, inputs) if self._caller.can_write else None

    def _run_segments(self, inputs: Sequence[Any]) -> list[Any]:
        """The outputs for any program, and for any arguments."""
        workspace = self._workspaces.take()
        results, arena = workspace.results(self.layout), workspace.arena
        for i, shape, dtype in self._unchecked:
            if inputs[i].dtype != dtype or inputs[i].shape != shape:
                self._typed.check_inputs(self._backend, inputs, repeats=True)
        if self.layout.donated:
            inputs = with_own_arrays(inputs, self.layout.donated)
        arrays = [*inputs, *self.constants, *results, *self._called, arena]
        for segment in self._segments:
            if not isinstance(segment, Method):
                self._call(segment, arrays)
                continue
            while (found := segment.call(*arrays)) is segment.owner:
                self._optimise()
            if found is not arena:
                self._typed.check_inputs(self._backend, inputs, repeats=True)
                for i, v in enumerate(self._typed.inputs):
                    if np.shape(arrays[i]) != v.shape:
                        arrays[i] = np.broadcast_to(arrays[i], v.shape)
                arrays[:-1] = [x if x is None else _plain(x) for x in arrays[:-1]]
                while segment.call(*arrays) is segment.owner:  # the calls may be used up since
                    self._optimise()
        self._workspaces.give_back(workspace)
        return [
            arrays[i].reshape(shape) if is_reshaped else arrays[i] for i, shape, is_reshaped in self._outputs
        ]

    def _call(self, call: Call, arrays: list[Any]) -> None:
        """Run an op of the backend."""

        def operand(x: Place) -> Any:
            if x.value is not None:
                return self.program().outside(literal(x), self._backend)
            if x.array is not None:
                return arrays[x.array].reshape(x.shape)
            assert x.offset is not None
            dtype = NUMPY[x.dtype]
            size = prod(x.shape) * dtype.itemsize
            return arrays[-1][x.offset : x.offset + size].view(dtype).reshape(x.shape)

        equation = self.program().equations[call.equation]
        overwritten = [arrays[-1], *[arrays[i] for i in self.layout.donated]]
        found = run(self._backend, equation.op, [operand(x) for x in call.operands], equation.params)
        for number, y in zip(call.results, [found] if equation.op.results == 1 else found, strict=True):
            if any([np.may_share_memory(y, x) for x in overwritten]):
                y = y.copy()
            arrays[number] = np.asarray(y)  # numpy's functions return scalars in place of 0-d arrays
