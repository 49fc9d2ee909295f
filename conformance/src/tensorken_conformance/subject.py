"""Subject: the backend under test, with and without the interpreters around it; it makes operands and reads results."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeVar

import numpy as np

import tensorken as tk
from tensorken.lazy.interpreter import Lazy
from tensorken_conformance.call_counter import CallCounter
from tensorken_conformance.case import Case, Failure
from tensorken_conformance.numbers.host_arrays import flat_buffer
from tensorken_core.errors import BackendError
from tensorken_core.host.registry import REGISTRY, SELECTION
from tensorken_core.language.capabilities import Capabilities
from tensorken_core.language.dtypes import DTYPES, DType, bfloat16
from tensorken_core.language.op import Op
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.rewriting.fuse import Fuse
from tensorken_core.tensor.dispatch import apply
from tensorken_core.tensor.tensor import Tensor

Array = np.ndarray[Any, Any]

Depth = Literal["smoke", "default", "deep"]

T = TypeVar("T")


class Subject:
    """The backend under test.

    Args:
        interpreter: the backend; if it is wrapped in `Fuse`, so are derivatives and programs on it.
        name: the name of the backend in reports.
        seed: the seed of all random numbers.
        depth: `smoke`, `default` or `deep`, for more and more cases.

    Attributes:
        backend: the bare backend.
        call_counter: the backend with a count of the ops that it ran; laws on single ops use it.
        stack: the interpreter of users: the call counter, in `Fuse` if the backend is.
        capabilities: what the backend declares.
        shown: by law the number of failing cases.

    Raises:
        BackendError: if the capabilities are of another class.
    """

    def __init__(
        self, interpreter: RawTensor[Any], name: str, seed: int = 0, depth: Depth = "default"
    ) -> None:
        fused = isinstance(interpreter, Fuse)
        self.backend: RawTensor[Any] = interpreter.raw if isinstance(interpreter, Fuse) else interpreter
        self.call_counter = CallCounter(self.backend)
        self.stack: RawTensor[Any] = Fuse(self.call_counter) if fused else self.call_counter
        self.name, self.seed, self.depth = name, seed, depth
        self.shown: Counter[str] = Counter()
        self.capabilities = self.backend.capabilities
        if not isinstance(self.capabilities, Capabilities):
            raise BackendError(
                f"{name}: its capabilities are a {type(self.capabilities).__name__}; declare Capabilities(dtypes=...)"
            )
        for layer in (self.call_counter, self.stack, self.backend):
            REGISTRY.remember(layer, name, "default")

    @staticmethod
    def select(name: str, seed: int = 0, depth: Depth = "default") -> Subject:
        """The subject of a backend's name, or of `module:attribute`; BackendError if it cannot be loaded."""
        return Subject(SELECTION.resolve(name), name, seed, depth)

    @property
    def is_selectable(self) -> bool:
        """Whether another process can load the backend by its name."""
        try:
            return SELECTION.resolve(self.name) is not None
        except BackendError:
            return False

    # ---- operands and results ------------------------------------------------------------------------------

    def random(self, case: Case) -> random.Random:
        """The generator of the random numbers of a case."""
        return random.Random(f"{self.seed} {case.id}")

    def tensor(self, values: Array, dtype: DType, interpreter: RawTensor[Any] | None = None) -> Tensor:
        """A tensor of these values, by default on the call counter."""
        return put(self.call_counter if interpreter is None else interpreter, values, dtype)

    def wrap(self, representation: Any, shape: Shape, dtype: DType) -> Tensor:
        """A representation of the call counter, as a tensor."""
        return Tensor(self.call_counter, representation, shape, dtype)

    @staticmethod
    def run(op: Op, operands: Sequence[Tensor], params: tuple[Any, ...] = ()) -> Any:
        """Run an op; Failure if a result does not have the shape and the dtype of the op's rules."""
        result = apply(op, operands, params)
        for y in result if isinstance(result, tuple) else (result,):
            require_facts(op.name, y, y.shape, y.dtype)
        return result

    @staticmethod
    def results(op: Op, operands: Sequence[Tensor], params: tuple[Any, ...] = ()) -> list[Tensor]:
        """The results of an op as a list, also if there is only one; see `run`."""
        result = Subject.run(op, operands, params)
        return list(result) if isinstance(result, tuple) else [result]

    def read(self, x: Tensor) -> Array:
        """The values of a tensor; Failure if their number or their format is wrong."""
        flat = x.interpreter.ravel(x.representation)  # type: ignore[attr-defined]
        if isinstance(flat, list):
            values = _in_dtype(flat, x.dtype)
        else:
            values = np.array(memoryview(flat), copy=True)
            expected = "float32" if x.dtype is bfloat16 else x.dtype.name  # the dtype of bfloat16 buffers
            if values.dtype != np.dtype(expected):
                raise Failure(f"ravel: expected a buffer of {expected}, got {values.dtype}")
            if x.dtype is bfloat16:
                values = _in_dtype(values, x.dtype)
        if values.shape != (x.size,):
            raise Failure(f"ravel: expected {x.size} values in one dimension, got shape {values.shape}")
        return values.reshape(x.shape)

    def apart(self, x: Tensor) -> Tensor:
        """The tensor; in a smoke run it is computed before it is used.

        A backend that compiles programs of several ops then compiles a movement and the next op apart, and each of
        them once for all laws, instead of each pair of them.
        """
        return x.realize() if self.depth == "smoke" else x

    def together(self, results: Iterable[T]) -> Iterable[T]:
        """These results in turn; in a smoke run all of them are made first, and a lazy backend computes them at once.

        It then compiles one program for a case.
        """
        if self.depth != "smoke":
            return results
        found = list(results)
        if isinstance(self.backend, Lazy):
            self.backend.flush()
        return found

    def sampled(self, dtypes: list[DType]) -> list[DType]:
        """These dtypes; in a smoke run only one of them, preferably float32 or int32."""
        if self.depth != "smoke":
            return dtypes
        return sorted(dtypes, key=lambda dtype: dtype.name not in ("float32", "int32"))[:1]

    def dtypes(self) -> list[DType]:
        """The dtypes that the backend declares."""
        return [dtype for name, dtype in DTYPES.items() if name in self.capabilities.dtypes]


def put(interpreter: RawTensor[Any], values: Array, dtype: DType) -> Tensor:
    """A tensor of these values on an interpreter, made from a new buffer."""
    flat = flat_buffer(np.array(values, dtype.name))
    return Tensor(interpreter, interpreter.new(values.shape, flat, dtype), values.shape, dtype)


def put_parts(interpreter: RawTensor[Any], parts: Iterable[Array], dtype: DType) -> Tensor:
    """A tensor of these numbers, or of complex numbers with these real and imaginary parts."""
    tensors = [put(interpreter, part, dtype) for part in parts]
    return tk.complex(*tensors) if len(tensors) == 2 else tensors[0]


def parts_of(y: Tensor) -> list[Tensor]:
    """The real and the imaginary parts of complex numbers; of others the numbers themselves."""
    return [y.real, y.imag] if y.dtype.kind == "complex" else [y]


def require_facts(says: str, x: Tensor, shape: Shape, dtype: DType) -> None:
    """Require a tensor to have a shape and a dtype, also as its backend reports them.

    Raises:
        Failure: if it does not; `says` is the beginning of the message.
    """
    interpreter: Any = x.interpreter
    reported = tuple(interpreter.shape(x.representation)), interpreter.dtype(x.representation)
    if reported != (shape, dtype):
        raise Failure(
            f"{says}: expected {dtype} {shape}, got {reported[1]} {reported[0]} by shape() and dtype()"
        )
    if (x.shape, x.dtype) != (shape, dtype):
        raise Failure(f"{says}: expected {dtype} {shape}, got {x.dtype} {x.shape}")


def _in_dtype(flat: Any, dtype: DType) -> Array:
    """The numbers that a backend returns; each must be a number of the dtype, since backends have to round."""
    with np.errstate(over="ignore"):
        values: Array = np.array(flat, dtype.name)
    if dtype.kind == "float":
        wide = np.array(flat, np.float64)
        beside = ~((wide == values) | np.isnan(wide))
        if beside.any():
            raise Failure(f"ravel: expected numbers of {dtype}, got {wide[beside][0]!r}, which is none")
    return values
