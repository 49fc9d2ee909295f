"""Machine code: modules of LLVM's intermediate representation, compiled for the CPU that runs.

There are two ways to compile.  `optimised` code has vectors and registers.  `quick` code is what LLVM writes without
any optimisation, in a tenth of the time: right for a program that computes few elements.
"""

from __future__ import annotations

import functools
import itertools
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from tensorken_core.host.variables import value_of
from tensorken_llvm import cpu_names

CPU = "TENSORKEN_LLVM_CPU"
"""The variable with the CPU to compile for, such as `x86-64` or `haswell`; by default the one that runs."""

_lock = threading.RLock()  # LLVM's context is shared

if hasattr(os, "register_at_fork"):  # a forked process has no thread that would release the lock
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)

_numbers = itertools.count()  # of libraries

LIBRARIES = 128
"""How many libraries one linker loads; it keeps some memory for each, even after that is unloaded."""

_symbols: dict[str, int | Callable[[], int]] = {}

IS_VERIFIED = False
"""Whether LLVM checks each module before it compiles it; the tests do."""


@functools.cache
def cpu() -> tuple[str, str]:
    """The name of the CPU to compile for, and what else it can do, as LLVM names it.

    Raises:
        SettingError: if TENSORKEN_LLVM_CPU is no CPU that LLVM knows.
    """
    chosen = value_of(CPU)
    if chosen:
        cpu_names.check(CPU, chosen)
        return chosen, ""
    return llvm.get_host_cpu_name(), str(llvm.get_host_cpu_features().flatten())


@functools.cache
def triple() -> str:
    """The architecture and the operating system, as LLVM names them."""
    return str(llvm.get_process_triple())


@functools.cache
def target_machine(level: int = 2) -> Any:
    """The CPU that runs, for passes and the emission of code at a level of optimisation."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    name, features = cpu()
    target = llvm.Target.from_triple(triple())
    return target.create_target_machine(cpu=name, features=features, opt=level, jit=True)


def target_features() -> Mapping[str, bool]:
    """What the CPU to compile for can do; empty if it is not the one that runs."""
    return {} if value_of(CPU) else llvm.get_host_cpu_features()


def description() -> str:
    """The versions of LLVM and llvmlite, and the CPU with its widest vectors."""
    version = ".".join(map(str, llvm.llvm_version_info))
    known = target_features()
    widest = {"avx512f": 512, "avx": 256, "sse2": 128, "neon": 128}
    bits = next((f", vectors of {size} bits" for name, size in widest.items() if known.get(name)), "")
    return f"LLVM {version} (llvmlite {llvmlite.__version__}), {cpu()[0]}{bits}"


@dataclass(frozen=True, eq=False)
class Library:
    """Compiled functions.

    Attributes:
        tracker: owns the machine code, which is unloaded with it.
        addresses: of the functions, by name.
        owned: other objects that live as long.
    """

    tracker: Any
    addresses: Mapping[str, int]
    owned: list[Any] = field(default_factory=list)


def define_symbol(name: str, address: int | Callable[[], int]) -> None:
    """Let machine code refer to an address by a name: code that is stored must not contain addresses.

    Args:
        name: of a function.
        address: of it, or a function that finds the address when code with this name is loaded.
    """
    _symbols[name] = address


def object_code(text: str, is_quick: bool) -> bytes:
    """Machine code, as an object file.

    Args:
        text: a module in LLVM's text form.
        is_quick: whether to save time now or in each call.
    """
    with _lock:
        if is_quick:
            parsed = _parsed(text)
            _drop_unused(parsed)
            return bytes(target_machine(0).emit_object(parsed))
        return bytes(target_machine().emit_object(optimised_module(text)))


def assembly_of(module: Any) -> str:
    """The assembly of an optimised module."""
    with _lock:
        return str(target_machine().emit_assembly(module))


def load(code: bytes, names: Sequence[str]) -> Library:
    """Functions of an object file.

    Args:
        code: the object file.
        names: of the functions whose addresses are needed.
    """
    builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
    for name in names:
        builder.export_symbol(name)
    with _lock:  # finding an address may start the pool of threads, once
        for name, address in _symbols.items():
            if name not in names and name.encode() in code:
                builder.import_symbol(name, address() if callable(address) else address)
        number = next(_numbers)
        tracker = builder.link(_linker(number // LIBRARIES), f"library {number}")
    return Library(tracker, {name: tracker[name] for name in names})


def load_text(text: str, names: Sequence[str]) -> Mapping[str, int]:
    """The addresses of functions of a module in LLVM's text form, which are never unloaded."""
    library = load(object_code(f'target triple = "{triple()}"\n{text}', is_quick=True), names)
    library.tracker.detach()
    return library.addresses


@functools.lru_cache(maxsize=1)
def _linker(number: int) -> Any:
    """One of LLVM's linkers in this process, which lives as long as one of its libraries.

    JITLink keeps the code and data of an object near each other; for Windows there is only the older linker.
    """
    return llvm.create_lljit_compiler(target_machine(), use_jit_link=sys.platform != "win32")


def _parsed(text: str) -> Any:
    parsed = llvm.parse_assembly(text)
    if IS_VERIFIED:
        parsed.verify()
    return parsed


def optimised_module(text: str) -> Any:
    """A module of LLVM's text form, optimised for the CPU that runs."""
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.loop_unrolling = True
    options.slp_vectorization = False  # moves between vectors and scalars cost small loops more than it saves
    with _lock:
        parsed = _parsed(text)
        builder = llvm.create_pass_builder(target_machine(), options)
        passes = builder.getModulePassManager()
        passes.add_always_inliner_pass()  # variants for vectors, which have callers now
        passes.run(parsed, builder)
        _drop_unused(parsed)
    return parsed


def _drop_unused(module: Any) -> None:
    """Remove variants for vectors without callers: functions with a dot in their names are called within the module."""
    variants = [
        f for f in module.functions if "." in f.name and not f.is_declaration and f.linkage.name == "external"
    ]
    if not variants:  # llvmlite keeps some kilobytes for each run of passes
        return
    for function in variants:
        function.linkage = "internal"
    options = llvm.create_pipeline_tuning_options(speed_level=0)
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(target_machine(), options))
