"""The declared capabilities of a backend hold: no tensor has a dtype that the backend does not support."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import random
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.support import Counting
from tensorken_core.host.plugin import Capabilities
from tensorken_core.host.registry import REGISTRY
from tensorken_core.rewriting.fuse import Fuse
from tensorken_numpy.backend import Numpy

pytestmark = pytest.mark.usefixtures("on_numpy")


class Small(Numpy):
    """A device without float64, int64 and float16, whose programmer trusts in core."""

    capabilities = Capabilities(dtypes=("bool", "int32", "float32"))

    def __repr__(self) -> str:
        return "Small()"


SMALL = Fuse(Small())
BARE = Small()
X = tk.tensor([1.0, 2.0], backend=SMALL)
I = tk.tensor([1, 2], backend=SMALL)
WIDE = tk.tensor([1.0, 2.0], "float64", backend="numpy")
KEY = tk.random.key(0, backend=SMALL)

# fmt: off
REFUSED = {
    "tensor": lambda: tk.tensor([1.0], "float64", backend=SMALL),
    "tensor: nested": lambda: tk.tensor([[1], [2]], "int64", backend=BARE),
    "tensor: buffer": lambda: tk.tensor(np.ones(2), backend=SMALL),
    "asarray": lambda: tk.asarray(np.arange(2), backend=SMALL),
    "asarray: half": lambda: tk.asarray(np.ones(2, "float16"), backend=SMALL),
    "new": lambda: tk.new((2,), [1, 2], "int64", backend=SMALL),
    "full": lambda: tk.full((2,), 1, "float16", backend=SMALL),
    "zeros": lambda: tk.zeros(3, "float64", backend=SMALL),
    "ones": lambda: tk.ones(3, "float64", backend=SMALL),
    "empty": lambda: tk.empty(3, "float64", backend=SMALL),
    "zeros_like": lambda: tk.zeros_like(X, "float64"),
    "full_like": lambda: tk.full_like(X, 2, "int64"),
    "arange": lambda: tk.arange(3, dtype="int64", backend=SMALL),
    "linspace": lambda: tk.linspace(0, 1, 3, dtype="float64", backend=SMALL),
    "randn": lambda: tk.randn((2,), random.Random(0), "float64", backend=SMALL),
    "normal": lambda: tk.random.normal(KEY, (3,), "float64"),
    "uniform": lambda: tk.random.uniform(KEY, (3,), "float16"),
    "bits": lambda: tk.random.bits(KEY, (3,), "int64"),
    "randint": lambda: tk.random.randint(KEY, (3,), 0, 5, "int64"),
    "astype": lambda: X.astype("float64"),
    "astype: function": lambda: tk.astype(I, "int64"),
    "astype: bare": lambda: tk.ones(2, backend=BARE).astype("float16"),
    "sum": lambda: X.sum(dtype="float64"),
    "astype: in grad": lambda: tk.grad(lambda x: x.astype("float64").sum())(X),
    "astype: in vmap": lambda: tk.vmap(lambda x: x.astype("int64"))(X),
    "to": lambda: WIDE.to(SMALL),
}
# fmt: on


@pytest.mark.parametrize("name", REFUSED)
def test_an_unsupported_dtype_is_refused(name):
    with pytest.raises(tk.errors.DTypeError) as caught:
        REFUSED[name]()
    message = str(caught.value)
    assert message.startswith(f"{name.partition(':')[0]}: the backend ")
    assert "Small()" in message
    assert "has no " in message
    assert message.endswith("use one of bool, int32, float32")
    assert "\n" not in message


def test_the_message_has_the_registered_name_of_the_backend():
    named = Fuse(Small())
    REGISTRY.remember(named, "small-gpu", "default")
    with pytest.raises(
        tk.errors.DTypeError, match=r"^zeros: the backend small-gpu has no float64; use one of"
    ):
        tk.zeros(2, "float64", backend=named)


def test_an_unsupported_dtype_is_refused_in_a_pickle():
    data = pickle.dumps(
        tk.ones(2, "float64", backend=Numpy())
    )  # as an object, so that it is unpickled on the default backend
    assert pickle.loads(data).dtype is tk.float64
    with tk.use_backend(SMALL), pytest.raises(tk.errors.DTypeError, match=r"^unpickle: .* has no float64"):
        pickle.loads(data)


def test_an_unsupported_dtype_is_refused_in_other_operands():
    with pytest.raises(TypeError, match=r"add: .*has no float64"):
        X + np.ones(2)
    with pytest.raises(tk.errors.MixedBackendError):
        X + WIDE

    class Growing(Numpy):  # it declares less than its tensors have
        capabilities = Capabilities(dtypes=())

    backend = Growing()
    x, y = tk.ones(2, backend=backend), tk.ones(2, "float64", backend=backend)
    backend.capabilities = Small.capabilities
    with pytest.raises(tk.errors.DTypeError, match=r"^add: the backend .* has no float64; use one of"):
        x + y


def test_supported_dtypes_work():
    assert (I / 2).tolist() == [0.5, 1.0]
    assert (I * 2.5).dtype is tk.float32
    assert X.astype("int32").tolist() == [1, 2]
    assert tk.random.normal(KEY, (3,)).shape == (3,)
    assert tk.grad(lambda x: (x * x).sum())(X).tolist() == [2.0, 4.0]
    assert X.to("numpy").astype("float64").dtype is tk.float64


@pytest.mark.parametrize("wrap", [Fuse, lambda raw: raw])
def test_a_refusal_comes_before_the_backend_is_called(wrap):
    class Counted(Counting):
        capabilities = Capabilities(dtypes=("float32",))
        created = 0

        def new(self, shape: Any, data: Any, dtype: Any) -> Any:
            self.created += 1
            return super().new(shape, data, dtype)

    raw = Counted()
    backend = wrap(raw)
    x = tk.tensor([1.0], backend=backend)
    for call in (lambda: x.astype("float64"), lambda: tk.tensor([1.0], "float64", backend=backend)):
        with pytest.raises(tk.errors.DTypeError):
            call()
    assert raw.calls["cast"] == 0
    assert raw.created == 1


def test_a_backend_that_declares_nothing_is_not_checked():
    class Silent(Numpy):
        capabilities = Capabilities()

    backend = Fuse(Silent())
    assert tk.zeros(2, "float64", backend=backend).astype("int64").dtype is tk.int64


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("dtype", "Capabilities: there is no field 'dtype'; did you mean dtypes?"),
        (
            "precision",
            "Capabilities: there is no field 'precision'; there are dtypes, unsupported, ulp, flushes",
        ),
    ],
)
def test_a_misspelt_field_is_an_error_at_its_construction(name: str, says: str) -> None:
    with pytest.raises(tk.errors.ArgumentError) as error:
        Capabilities(**{name: ("float32",)})
    assert str(error.value).startswith(says)


def test_capabilities_can_be_copied() -> None:
    declared = Capabilities(dtypes=("float32",), ulp={"exp": 1})
    assert copy.deepcopy(declared) == declared == pickle.loads(pickle.dumps(declared))
    assert dataclasses.replace(declared, ulp={}).dtypes == ("float32",)
