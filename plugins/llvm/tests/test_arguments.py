"""Arguments of compiled programs that are no contiguous arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

import tensorken as tk
from tensorken.programs.passes.pipeline import optimised
from tensorken_llvm.entry import MAX_INLINE
from tensorken_llvm.program import MachineProgram, compiled
from tensorken_numpy.backend import Numpy

NUMPY = Numpy()


def machine_program(f: Any, *xs: Any) -> MachineProgram:
    """A function as machine code."""
    program = optimised(tk.trace(f)(*[tk.tensor(np.asarray(x), backend=NUMPY) for x in xs]), NUMPY)
    found = compiled(program, NUMPY)
    assert isinstance(found, MachineProgram)
    return found


def test_scalars_of_numpy_are_arguments() -> None:
    """numpy computes scalars in place of 0-d arrays, and a scalar has no flags and no pointer to its elements."""
    code = machine_program(lambda x, y: x * 2.0 + y, np.float32(3.0), np.zeros(3, "float32"))
    for _ in range(100):
        scalar = np.float32(3.0) * np.float32(1.0)
        np.testing.assert_array_equal(code([scalar, np.ones(3, "float32")])[0], [7.0, 7.0, 7.0])


def test_scalars_that_a_called_op_computes_are_read() -> None:
    x = np.float64(0.25)
    code = machine_program(lambda x: tk.exp(tk.cumsum(x.reshape(1))[0] ** x) * 2.0, x)
    np.testing.assert_allclose(code([np.asarray(x)])[0], np.exp(0.25**0.25) * 2.0, rtol=1e-14)


def test_subclasses_of_arrays_are_arguments() -> None:
    class Array(np.ndarray):
        pass

    x = np.arange(6.0).view(Array)
    np.testing.assert_array_equal(
        machine_program(lambda x: x + 1.0, np.asarray(x))([x])[0], np.arange(1.0, 7.0)
    )


def test_strided_and_unaligned_arrays_are_arguments() -> None:
    code = machine_program(lambda x: x * 2.0, np.zeros(5))
    unaligned = np.frombuffer(b"\0" + np.arange(5.0).tobytes(), np.float64, offset=1)
    assert not unaligned.flags.aligned
    for x in (np.arange(10.0)[::2], np.arange(5.0)[::-1], unaligned, np.broadcast_to(np.float64(3.0), 5)):
        np.testing.assert_array_equal(code([x])[0], x * 2.0)


def test_each_of_many_arguments_is_checked() -> None:
    arrays = [np.full((3, 4) if i % 2 else 5, i, "float32") for i in range(MAX_INLINE + 4)]

    def f(*xs: Any) -> Any:
        return [x * 2.0 for x in xs]

    code = machine_program(f, *arrays)
    for i in range(len(arrays)):
        shape = arrays[i].shape
        for other in (np.broadcast_to(np.float32(7), shape), np.full((*shape, 2), 7, "float32")[..., 0]):
            found = code([*arrays[:i], other, *arrays[i + 1 :]])
            for j, y in enumerate(found):
                np.testing.assert_array_equal(y, (other if i == j else arrays[j]) * 2)
