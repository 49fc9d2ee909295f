"""Bodies: why an op fails that a backend leaves to its body: an op of the body is inaccurate, or several run as one."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorken.programs.execution import failing_compilers
from tensorken_conformance.case import Case
from tensorken_conformance.law import Law
from tensorken_conformance.laws.elementwise import EXACT, allowed, flushed_to_zero
from tensorken_conformance.oracles import ulp
from tensorken_conformance.subject import Array, Subject, put
from tensorken_core.language.dtypes import DTYPES, DType, float32, float64
from tensorken_core.language.observe import observe, unobserve
from tensorken_core.language.op import OPS, Op, run
from tensorken_core.language.raw import RawTensor
from tensorken_core.tensor.dispatch import apply
from tensorken_core.tensor.tensor import Tensor
from tensorken_numpy.backend import Numpy

LONGEST = 20.0
"""The seconds of a case from which on no cause is searched."""

AS_ONE = "by ops that the library computes as one"
"""The cause of cases that are right if each step is read back."""

NUMPY = Numpy()


class Steps:
    """An observer that runs the ops of a backend one by one: each result is read, and made again from what was read.

    It raises TimeoutError after so many seconds.

    Attributes:
        by_numpy: the elementwise ops whose results are numpy's instead.
        errors: by op, the largest error of a result, whether it is more than the op may have, and where it is.
    """

    def __init__(self, subject: Subject, seconds: float) -> None:
        self.subject, self.end = subject, time.monotonic() + seconds
        self.by_numpy: Sequence[str] = ()
        self.errors: dict[str, tuple[int, bool, str]] = {}

    def __call__(
        self,
        proceed: Callable[..., Any],
        interpreter: Any,
        op: Op,
        operands: Sequence[Any],
        params: tuple[Any, ...],
    ) -> Any:
        if interpreter is not self.subject.backend or op.opaque:
            return proceed(interpreter, op, operands, params)
        if op.body is not None and not interpreter.has(op):
            return RawTensor.interpret(interpreter, op, operands, params)
        if time.monotonic() > self.end:
            raise TimeoutError
        result = proceed(interpreter, op, operands, params)
        results = [self._tensor(y) for y in (result if isinstance(result, tuple) else (result,))]
        values = [self.subject.read(y) for y in results]
        if op.elementwise:
            xs = [self._tensor(x) for x in operands]
            values = [self._compared(op, xs, params, values[0], results[0].dtype)]
        made = [put(interpreter, x, y.dtype).representation for x, y in zip(values, results, strict=True)]
        return tuple(made) if isinstance(result, tuple) else made[0]

    def _tensor(self, x: Any) -> Tensor:
        backend = self.subject.backend
        return Tensor(backend, x, tuple(backend.shape(x)), backend.dtype(x))

    def _compared(
        self, op: Op, operands: Sequence[Tensor], params: tuple[Any, ...], got: Array, dtype: DType
    ) -> Array:
        """The values to go on with; the error of the backend's is noted."""
        columns = [self.subject.read(x) for x in operands]
        given = [put(NUMPY, column, x.dtype) for column, x in zip(columns, operands, strict=True)]
        if dtype.kind == "float" and op.name not in EXACT and not params:
            given = [x.astype(float64) if x.dtype.kind == "float" else x for x in given]
        right = self.subject.read(apply(op, given, params).astype(dtype))
        off = ulp.distance(got, right)
        if dtype.name in self.subject.capabilities.flushes_subnormals:
            off = np.minimum(off, ulp.distance(got, flushed_to_zero(right, dtype)))
        if off.any():
            index, most = int(np.argmax(off)), int(off.max())
            units = (
                f"{most:{',' if most < 1_000_000 else '.1e'}} units"
                if most < ulp.FAR and dtype.kind == "float"
                else "wrong"
            )
            at = ", ".join([f"{np.ravel(column)[index % column.size]:.6g}" for column in columns])
            found = most, most > allowed(self.subject, op, dtype, 2), f"{units} at {at}"
            self.errors[op.name] = max(self.errors.get(op.name, found), found)
        return right if op.name in self.by_numpy else got


def cause_in_body(subject: Subject, law: Law, case: Case, seconds: float) -> tuple[str, str]:
    """Why a failing case on values fails, for an op that the backend does not override.

    The case is examined again with each step of the body read back, and then with numpy's results of those elementwise
    ops that are more off than they may be, or off at all.  `seconds` is the time that the case took.

    Returns:
        The cause, which is the same for all cases that have it, and the end of the case's message; empty if neither run
        is right, or the op has no body on this backend.
    """
    op = OPS.get(case.op)
    if law.group != "values" or seconds > LONGEST or op is None or op.body is None or subject.backend.has(op):
        return "", ""
    steps = Steps(subject, 5.0 + 3.0 * seconds)
    if _holds(law, case, steps):
        contracts = _contracts(subject, DTYPES.get(case.dtype, float32).wide)
        how = "products and sums of several ops as one" if contracts else "several of them as one"
        too = ", and declare `contracts` for programs" if contracts > subject.capabilities.contracts else ""
        return AS_ONE, (
            f"right when each step of its body is read back: the library computes {how}; override {op.name}{too}"
        )
    noted = dict(steps.errors)
    wrong = sorted(
        [name for name in noted if noted[name][1]] or noted, key=lambda name: noted[name], reverse=True
    )
    for steps.by_numpy in [*([name] for name in wrong), wrong]:
        if wrong and _holds(law, case, steps):
            cause = ", and with ".join([f"{name}, which is inaccurate itself" for name in steps.by_numpy])
            return f"with {cause}", f"fails with {cause} ({', '.join([noted[n][2] for n in steps.by_numpy])})"
    return "", ""


def _holds(law: Law, case: Case, steps: Steps) -> bool:
    """Whether the law holds for a case that runs by steps."""
    observe(steps)
    try:
        with warnings.catch_warnings(), failing_compilers():
            warnings.simplefilter("ignore")
            law.check(steps.subject, case)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001, whatever a backend raises
        return False
    finally:
        unobserve(steps)
    return True


def _contracts(subject: Subject, dtype: DType) -> bool:
    """Whether the backend subtracts from products before they are rounded; in float32 if the dtype is no float."""
    dtype = dtype if dtype.kind == "float" else float32
    a = 1.0 + 2.0 ** -((dtype.precision + 1) // 2)
    backend = subject.backend
    with contextlib.suppress(Exception):  # it may lack the dtype
        x, y = [put(backend, np.full(64, v), dtype).representation for v in (a, 2.0 * a - 1.0)]
        product = run(backend, OPS["mul"], [x, x], ())  # a * a rounds to 2 * a - 1
        rest = run(backend, OPS["sub"], [product, y], ())
        return bool(np.any(subject.read(Tensor(backend, rest, (64,), dtype))))
    return False
