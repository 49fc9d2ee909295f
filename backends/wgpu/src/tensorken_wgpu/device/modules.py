"""Modules: kernels in WGSL given to the driver, without run-time checks where none is needed.

By default wgpu adds checks to a kernel: each index is clamped where the driver does not check it, and each loop counts
its iterations, so that arbitrary kernels can neither access foreign memory nor run forever.  The kernels of this
backend need neither:

* An index of an array in memory is an index expression: a sum of variables with known numbers of values, so its
  largest value is known when it is written (`IndexExpression.end`).  The variables are the counters of loops, the
  number of an invocation behind the check that it has work, the number of a loop's step, and quotients and remainders
  of these.  `Writer.load` writes `min` around an index whose largest value is not below the size of the array; this
  includes all indices that depend on an element of an array, as those of a gather, and the positions of a pad outside
  of its operand.
* The number of a step is below the number of steps: `loops` counts so far, a loop kernel ends there, and a kernel that
  is measured runs step 0.  A stack in memory has as many slices.
* An index of an array that is written must be below its size by the same proof.  A kernel with one that is not
  keeps wgpu's checks (`Kernel.is_proved`).  A scatter, whose rows are elements of an array, first compares the row
  with the size.
* Reductions and scans in `workgroups` have numbers of subgroups as indices.  A subgroup has at least four invocations,
  so all levels of a reduction need fewer than half as many elements as the workgroup has invocations.  Some of their
  loops divide the counter by the size of a subgroup until it is 0.
* Indices of workgroup memory are sums of the number of an invocation in its workgroup, of counters and of constants;
  an array there has as many elements as these sums have values.  An exclusive or, in `attention_kernels`, exchanges
  places among a power of two.  The tables of roots in `fourier` have an element for each j * k that a stage or a pass
  can have.  A scan in `workgroups` reads the elements before those of an invocation, if it is not the first one.
* `radix` has digits and places in workgroup memory as indices: they are taken modulo the size of the array.  The places
  in memory of sorted elements are written with `min`, and so are the positions that `segments` reads.
* Each loop has a counter that goes to a number known before, in steps of at least one.

`TENSORKEN_WGPU_CHECKS=on` keeps wgpu's checks in all kernels, to find out whether one of them makes a difference.  If
wgpu does not have the driver's function, all kernels keep them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorken_core.host.variables import switch

VARIABLE = "TENSORKEN_WGPU_CHECKS"

NO_CHECKS = 0
"""The driver's flags for a module without run-time checks."""


def are_checked() -> bool:
    """Whether the user wants checks in all kernels."""
    return switch(VARIABLE)


def _direct() -> Callable[[Any, str], Any] | None:
    """A function from a device of the driver and a text to a module without checks; None if wgpu does not have the
    driver's function under the expected name.
    """
    try:
        from wgpu.backends.wgpu_native import _api, ffi, lib

        create, module_type = _api.libf.wgpuDeviceCreateShaderModuleTrusted, _api.GPUShaderModule
        kind, no_length = lib.WGPUSType_ShaderSourceWGSL, lib.WGPU_STRLEN
        ffi.typeof("WGPUShaderSourceWGSL *")
    except (ImportError, AttributeError):
        return None

    def unchecked(device: Any, text: str) -> Any:
        data = text.encode()
        code = ffi.new("char []", data)
        source = ffi.new("WGPUShaderSourceWGSL *")
        source.chain.sType = kind
        source.code.data, source.code.length = code, len(data)
        descriptor = ffi.new("WGPUShaderModuleDescriptor *")
        descriptor.nextInChain = ffi.cast("WGPUChainedStruct *", source)
        descriptor.label.length = no_length
        module = create(device._internal, descriptor, NO_CHECKS)
        if module == ffi.NULL:
            raise RuntimeError("the driver has created no shader module")
        return module_type("", module, device)

    return unchecked


DIRECT = _direct()


def create_module(
    device: Any, text: str, is_proved: bool, direct: Callable[[Any, str], Any] | None = DIRECT
) -> Any:
    """A module of the driver.

    Args:
        device: of the driver.
        text: in WGSL.
        is_proved: whether no index is out of range and all loops end, so that no checks are needed.
        direct: creates a module without checks; None if wgpu cannot.

    Raises:
        GPUError: if the driver refuses the text.
    """
    if is_proved and direct is not None and hasattr(device, "_internal") and not are_checked():
        return direct(device, text)
    return device.create_shader_module(code=text)
