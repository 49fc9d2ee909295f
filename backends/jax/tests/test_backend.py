"""The JAX backend: values, derivatives and loops as on numpy, exchange of arrays, donation, and the user's settings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tensorken as tk
from core.tests.beyond_range import check_numbers_beyond_the_range
from core.tests.bfloat16 import check_rounded_once
from core.tests.each import each_of
from core.tests.small_functions import FUNCTIONS, X, assert_results_of_numpy
from tensorken_core.errors import BackendError, ExchangeError
from tensorken_core.language.op import OPS
from tensorken_core.tensor.dispatch import apply
from tensorken_jax.backend import Jax


@pytest.fixture(autouse=True)
def jax_backend() -> Any:
    """Use the backend within each test."""
    with tk.use_backend("jax"):
        yield


@each_of("name", FUNCTIONS.keys() - {"decompositions"})  # XLA takes long to compile its derivatives
@pytest.mark.parametrize("transform", [lambda f: f, tk.jit], ids=["eager", "jit"])
def test_results_are_those_of_numpy(name: str, transform: Any) -> None:
    assert_results_of_numpy(name, transform)


def test_matrices_have_the_results_of_numpy() -> None:
    f = FUNCTIONS["decompositions"]
    with tk.use_backend("numpy"):
        expected = np.asarray(f(tk.tensor(X)))
    np.testing.assert_allclose(tk.jit(f)(tk.tensor(X)), expected, rtol=1e-11)


def test_matrices_without_a_result_give_nan() -> None:
    indefinite, singular = tk.tensor([[[1.0, 2.0], [2.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]]])
    for f, x in (
        (tk.linalg.cholesky, indefinite),
        (tk.linalg.inv, singular),
        (lambda x: tk.linalg.solve(x, x), singular),
        (tk.linalg.eigvalsh, indefinite * np.inf),
    ):
        assert np.isnan(tk.jit(f)(x)).all()


def test_the_users_settings_stay() -> None:
    before = (jax.config.jax_enable_x64, jax.config.jax_default_matmul_precision)
    x = tk.tensor([2**40], dtype="int64") * 3
    assert x.tolist() == [3 * 2**40]
    assert (tk.tensor([1.0], dtype="float64") + 2.0**-40).item() == 1.0 + 2.0**-40
    assert (jax.config.jax_enable_x64, jax.config.jax_default_matmul_precision) == before
    assert jnp.ones(3).dtype == jnp.float32


@each_of("dtype", ("bool", "int32", "int64", "float16", "float32", "float64"))
def test_arrays_of_jax_go_in_and_out_without_a_copy(dtype: str) -> None:
    with jax.enable_x64(True):
        a = jnp.asarray(X.astype(dtype))
    for x in (tk.from_dlpack(a), tk.asarray(a, copy=False), tk.tensor(a)):
        assert x.array() is a
        assert x.dtype.name == dtype
    y = tk.tensor(X.astype(dtype)).reshape((4, 3))
    assert np.from_dlpack(y).ctypes.data == y.array().unsafe_buffer_pointer()
    with jax.enable_x64(True):
        assert jnp.from_dlpack(y).unsafe_buffer_pointer() == y.array().unsafe_buffer_pointer()


def test_bfloat16_goes_in_and_out_without_a_copy_and_is_rounded_once() -> None:
    a = jnp.asarray([1.5, -0.0, np.inf], jnp.bfloat16)
    for x in (tk.from_dlpack(a), tk.asarray(a, copy=False)):
        assert (x.dtype, x.tolist()) == (tk.bfloat16, [1.5, -0.0, np.inf])
        assert x.array() is a
        assert jnp.from_dlpack(x).dtype == jnp.bfloat16
    check_rounded_once([1.0 + 2.0**-8 + 2.0**-40, -3.4e38, 2.0**62 + 2.0**54, 0.1])


def test_numbers_beyond_the_range_are_infinite() -> None:
    check_numbers_beyond_the_range()


def test_a_traced_array_of_jax_is_an_error() -> None:
    with pytest.raises(
        ExchangeError, match=r"being traced, and has no values; call the function outside of jax.jit"
    ):
        jax.jit(lambda a: tk.asarray(a, copy=False).array())(jnp.ones(3))


def test_a_donated_input_gives_its_memory_unless_it_is_used_elsewhere() -> None:
    update = tk.jit(lambda x: x * 2.0 + 1.0, donate_argnums=0)
    x = tk.tensor(X) + 0.0
    a = x.array()
    x = update(x)
    assert not a.is_deleted()
    pointers = {x.array().unsafe_buffer_pointer()}
    for _ in range(5):
        x = update(x)
        pointers.add(x.array().unsafe_buffer_pointer())
    assert len(pointers) == 1
    np.testing.assert_allclose(x, 64.0 * X + 63.0)


def test_devices() -> None:
    assert "cpu" in tk.devices("jax")
    assert tk.ones(3, backend="jax", device="cpu").tolist() == [1.0, 1.0, 1.0]
    for missing in ("tpu:7", "gpu:1"):
        message = rf"^backend 'jax' has no device '{missing}'; its devices are cpu"
        with pytest.raises(BackendError, match=message):
            tk.use_backend("jax", missing)
        with pytest.raises(BackendError, match=message):
            tk.use_backend(f"jax:{missing}")
        with pytest.raises(BackendError, match=rf"^JAX has no device '{missing}'; its devices are cpu"):
            Jax(missing)


def test_compiled_programs_are_kept_between_processes_on_request(tmp_path: Path) -> None:
    script = (
        "import jax, tensorken as tk; tk.use_backend('jax'); found = []\n"
        "jax.monitoring.register_event_listener(lambda name, **_: found.append(name))\n"
        "assert tk.jit(tk.grad(lambda x: (x @ x).sum()))(tk.ones((2, 2))).tolist() == [[4.0, 4.0], [4.0, 4.0]]\n"
        "print([name.rpartition('/')[2] for name in found if 'cache_' in name and '_use_' not in name])"
    )
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    for expected in ("['cache_misses']", "['cache_hits']"):
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == expected


@each_of("dtype", ("float16", "float32", "float64"))
def test_infinite_maxima_share_the_weight(dtype: str) -> None:
    inf, largest = np.inf, float(np.finfo(dtype).max)
    rows = [
        [inf, 1, inf],
        [inf, largest, -inf],
        [-inf, -inf, -inf],
        [1, np.nan, inf],
        [1, -inf, 3],
        [3, 1, 2],
    ]
    rows += [[largest, -largest, 0], [largest, largest, -inf], [-largest, -inf, -inf]]
    x = np.array(rows, dtype)
    for f in (tk.softmax, tk.log_softmax, tk.logsumexp):
        expected = np.asarray(f(tk.tensor(x, backend="reference"), -1))
        np.testing.assert_allclose(f(tk.tensor(x), -1), expected, rtol=4.0 * np.finfo(dtype).eps, atol=0)
        for shape in ((0, 3), (3, 0)):
            expected = np.asarray(f(tk.zeros(shape, dtype, backend="reference"), -1))
            np.testing.assert_array_equal(f(tk.zeros(shape, dtype), -1), expected)


def test_a_compiled_program_takes_arrays_in_another_placement() -> None:
    f = tk.jit(lambda x: x * 2.0)
    assert [f(tk.tensor(X)).array().devices() for _ in range(3)] == [{jax.devices()[0]}] * 3
    for _ in range(2):
        y = f(tk.with_placement(tk.tensor(X), jax.devices()[1]))
        assert y.array().devices() == {jax.devices()[1]}
        np.testing.assert_array_equal(y, 2.0 * X)


CORRECTED = {
    "exp2/float32": ([127.99998, -105.20202, 12.0],),
    "exp2/float64": (
        [1023.9999999999998, -1021.9999999999999, -625.03673125, 12.0, np.inf, -np.inf, np.nan],
    ),
    "log1p/float64": ([-0.40676366827823895, 1e-16, 1.5e-16, 1e300, 0.0, -0.0, -1.0, -2.0, np.inf, np.nan],),
    "tanh/float64": ([-19.206038389120586, 14.5, 2.0, -0.0, np.inf, -np.inf, np.nan],),
    "sech_squared/float32": ([43.66827392578125, -43.892333984375, 0.0, np.inf, np.nan],),
    "log/float32": ([1e-30, 0.0, -0.0, np.inf, -1.0],),
    "div/float16": ([1e-4, 2e-4, -3e-4], [3.6e-6] * 3),
    "pow/float32": ([0.0, -0.0, 0.0, -0.0, 2.0, -2.0], [0.5, 3.0, -1.0, -3.0, 0.5, 3.0]),
    "remainder/float64": (
        [-1.7976931348623157e308, 7.5, -7.5, 9.0, -9.0],
        [3.1e-290, -2.0, 2.0, -9.0, 9.0],
    ),
    "remainder/float32": ([-1.0, 1.0, np.inf, 1.0, np.nan], [np.inf, -np.inf, 2.0, 0.0, 1.0]),
    "remainder/int32": ([7, -7, 7, -7, 7], [3, 3, -3, -3, 0]),
    "nextafter/float32": (
        [0.0, -0.0, 1e-45, 1e-40, 1.0, np.inf, np.nan],
        [1.0, -1.0, 0.0, 1e-39, 2.0, 0.0, 1.0],
    ),
}
"""Operands for which `jax.numpy` has large errors or wrong results, and the edges of the functions used instead."""


@each_of("name", CORRECTED)
def test_functions_are_those_of_the_reference(name: str) -> None:
    op, dtype = name.split("/")
    units = 4.0 * float(np.finfo(dtype).eps) if op not in ("div", "remainder", "nextafter") else 0.0
    results = [
        np.asarray(apply(OPS[op], [tk.tensor(np.array(x, dtype), backend=backend) for x in CORRECTED[name]]))
        for backend in ("jax", "reference")
    ]
    np.testing.assert_allclose(*results, rtol=units, atol=0)
    np.testing.assert_array_equal(*[np.signbit(x) & ~np.isnan(x) for x in results])


def test_a_power_or_a_logarithm_of_a_subnormal_number_is_that_of_zero() -> None:
    x = tk.tensor(np.full(13, 1e-40, "float32"))
    assert set(np.asarray(tk.log(x)).tolist()) == {-np.inf}
    assert set(np.asarray(x**0.5).tolist()) == {0.0}
