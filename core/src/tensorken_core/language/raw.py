"""RawTensor: the base class of backends: the language, creation and export of values, and ops without derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorken_core.errors import MissingOpError
from tensorken_core.language.capabilities import Capabilities
from tensorken_core.language.declare import primitive
from tensorken_core.language.diffable import Diffable
from tensorken_core.language.dtype_rules import numeric_with
from tensorken_core.language.dtypes import DType
from tensorken_core.language.interpreter import R
from tensorken_core.language.op import Op
from tensorken_core.language.shapes import Axes, Shape, multiplied


class RawTensor(Diffable[R]):
    """The base class of backends.

    A backend implements the methods that have no body.  Shapes, dtypes and params arrive validated and normalised, so a
    method need not check them, and it never broadcasts or promotes.  The backend may override any other op; if it
    does not, the op's body runs.
    """

    broadcasts: bool = False
    """Whether elementwise methods also broadcast operands of size 1 along an axis."""

    compiles_opaque_ops: bool = False
    """Whether `compile` takes programs with opaque ops; else it gets the pieces of a program between these."""

    capabilities: Capabilities = Capabilities()
    """The dtypes, ops and accuracy that this backend declares."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def new(self, shape: Shape, data: Any, dtype: DType) -> R:
        """A tensor from row-major flat data, which is copied.

        Args:
            data: a C-contiguous buffer of the dtype's format (bfloat16: float32), or a sequence (list, range) of Python
                bool, int or float.
        """
        raise NotImplementedError(f"{type(self).__name__} must define new(shape, data, dtype)")

    def full(self, shape: Shape, value: bool | int | float, dtype: DType) -> R:
        """A tensor whose elements are all `value`."""
        raise NotImplementedError(f"{type(self).__name__} must define full(shape, value, dtype)")

    def ravel(self, x: R) -> Any:
        """The elements in row-major order: a new 1-D C-contiguous object with the buffer protocol, or a list."""
        raise NotImplementedError(f"{type(self).__name__} must define ravel(x)")

    def adopt(self, array: Any, copy: bool) -> R | None:
        """A tensor of an array of another library, which is on this device; None if it must be copied by `new`.

        Args:
            array: an object with `__dlpack__`.
            copy: whether to copy the values, on the device; else the tensor shares the array's memory, which the
                caller promises never to change.

        Raises:
            BufferError: if the array does not export its memory.
        """
        return None

    def export(self, x: R) -> Any:
        """An array of this backend's library, with `__dlpack__`, that shares the memory of x; None if there is none."""
        return None

    def placement(self, x: R) -> Any:
        """The devices that hold x, as an object of this backend's library; None if it has no such object."""
        return None

    def has(self, op: Op) -> bool:
        """Whether this backend overrides the op by a method."""
        return self.overrides[op] is not None

    def interpret(self, op: Op, operands: Sequence[R], params: tuple[Any, ...]) -> Any:
        """Run the op's body on this backend."""
        if op.body is None:
            raise MissingOpError(
                f"{op.name}: {type(self).__name__} has no method for it; it is required of a backend"
            )
        tensor = self.tensor_type
        backend = (self,) if op.opaque or not operands else ()
        result = op.body(*backend, *[tensor(self, x) for x in operands], *params)
        return result.representation if op.results == 1 else tuple([y.representation for y in result])

    @primitive(
        shape=multiplied,
        dtype=numeric_with(1),
        body=lambda a, b, axes: (a * b).sum_in_own_dtype(axes, keepdims=True),
        samples=(
            (((2, 3), (2, 3)), ((1,),)),
            (((2, 3, 1), (1, 3, 4)), ((1,),)),
            (((2, 1, 3), (2, 1, 1)), ((0, 2),)),
        ),
    )
    def fused_multiply_add(self, a: R, b: R, axes: Axes) -> R:  # type: ignore[empty-body]
        """sum(a * b, axes); along each axis the sizes are equal, or one is 1 and is repeated.

        It is the only op that broadcasts.  The two shapes and `axes` determine which axes are batched, contracted, or
        present in one operand only.
        """

    def fill_value(self, x: R) -> bool | int | float | None:
        """The value that all elements of x have, if it is known without computing anything."""
        return None

    def deferred_operands(self, x: R) -> Sequence[R]:
        """The operands of the products that x sums, if x is a deferred sum of products; () for any other x."""
        return ()

    def loop(
        self, step: Callable[..., Sequence[Any]], carry: Sequence[Any], inputs: Sequence[Sequence[Any]]
    ) -> tuple[Sequence[Any], list[Sequence[Any]]]:
        """A loop in a body.  All steps are the same ops on the same shapes, so one program can run them.

        Args:
            step: a module-level function from the tensors of the carry and the inputs of the step to the next carry,
                followed by the outputs of the step.
            carry: the initial carry.
            inputs: for each step its inputs: tensors and integers.  If one program runs all steps, an integer
                arrives as an int32 tensor of shape (1,).

        Returns:
            The last carry, and the outputs of each step.
        """
        outputs = []
        for xs in inputs:
            ys = step(*carry, *xs)
            carry, output = ys[: len(carry)], ys[len(carry) :]
            outputs.append(output)
        return carry, outputs

    def settle(self, x: R) -> R:
        """x, with deferred products and sums computed; work that a device delays stays delayed."""
        return x

    def realize(self, x: R) -> R:
        """x, with all delayed work done."""
        return x

    def compile(self, program: Any) -> Callable[[Sequence[R]], Sequence[R]] | None:
        """A function that runs the program, or None if this backend does not compile."""
        return None
