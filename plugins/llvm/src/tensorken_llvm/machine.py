"""Machine code: modules of LLVM's intermediate representation, compiled for the CPU that runs."""

from __future__ import annotations

import functools
import threading
from dataclasses import dataclass
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from tensorken_llvm.cache import cached

_lock = threading.Lock()  # LLVM's context is shared


def new_target_machine() -> Any:
    """The CPU that runs."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=features(),
        opt=2,
        jit=True,
    )


def description() -> str:
    """The versions of LLVM and llvmlite, and the CPU with its widest vectors."""
    version = ".".join(map(str, llvm.llvm_version_info))
    known = llvm.get_host_cpu_features()
    widest = {"avx512f": 512, "avx": 256, "sse2": 128, "neon": 128}
    bits = next((f", vectors of {size} bits" for name, size in widest.items() if known.get(name)), "")
    return f"LLVM {version} (llvmlite {llvmlite.__version__}), {llvm.get_host_cpu_name()}{bits}"


@functools.cache
def target_machine() -> Any:
    """The CPU that runs, for passes and the emission of code; an engine has one of its own, which dies with it."""
    return new_target_machine()


@dataclass(frozen=True, eq=False)
class Library:
    """Compiled functions.

    Attributes:
        engine: owns the machine code.
        addresses: of the functions, by name.
    """

    engine: Any
    addresses: dict[str, int]


def compile_module(module: Any, names: list[str]) -> Library:
    """Compile a module.

    Args:
        module: of `llvmlite.ir`.
        names: of the functions whose addresses are needed.
    """
    text = str(module)
    with _lock:
        key = "\n".join(
            [llvm.get_host_cpu_name(), features(), str(llvm.llvm_version_info), llvmlite.__version__, text]
        )
        return _loaded(cached(key, lambda: target_machine().emit_object(optimised(text))), names)


def features() -> str:
    """What the CPU can do, as LLVM names it."""
    return str(llvm.get_host_cpu_features().flatten())


def optimised(text: str) -> Any:
    """A module of LLVM's text form, parsed, verified and optimised for the CPU that runs."""
    parsed = llvm.parse_assembly(text)
    parsed.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = True
    builder = llvm.create_pass_builder(target_machine(), options)
    passes = builder.getModulePassManager()
    passes.add_always_inliner_pass()  # variants for vectors, which have callers now
    passes.run(parsed, builder)
    return parsed


def _loaded(code: bytes, names: list[str]) -> Library:
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), new_target_machine(), use_lmm=True)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return Library(engine, {name: engine.get_function_address(name) for name in names})
