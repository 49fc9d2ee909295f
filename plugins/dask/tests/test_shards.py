"""Sums over shards: the same bits on clusters of any size as in one process, and one clear line for each error."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from distributed import Client, LocalCluster, get_worker

import tensorken as tk
from tensorken_core import tree
from tensorken_core.errors import ArgumentError
from tensorken_dask import (
    ClusterError,
    InProcess,
    Shards,
    computations,
    connect,
    local_steps,
    map_reduce,
    value_and_grad,
)
from tensorken_dask.computations import Computation


@pytest.fixture(scope="module", params=[1, 3])
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    """A cluster of workers in threads."""
    with connect(f"threads:{request.param}") as client:
        yield client


@pytest.fixture
def empty_client() -> Iterator[Client]:
    """A cluster without workers."""
    cluster: Any = LocalCluster(n_workers=0, processes=False, dashboard_address=":0")
    with cluster, Client(cluster) as client:
        yield client


def load(number: int) -> tuple[Any, Any]:
    """A shard of examples, each of another size."""
    rng = np.random.default_rng(number)
    rows = 5 + number
    return rng.normal(size=(rows, 6)).astype("f"), rng.integers(0, 4, rows).astype("i4")


def loss(parameters: Any, shard: Any) -> Any:
    x, labels = shard
    for w, b in parameters:
        x = tk.tanh(x @ w + b)
    return -tk.take_along_axis(tk.log_softmax(x, -1), labels.reshape(-1, 1), 1).sum()


def parameters() -> Any:
    keys = tk.random.split(tk.random.key(1), 2)
    sizes = [(6, 8), (8, 4)]
    return [
        (tk.random.normal(key, size) * 3.0, tk.zeros(size[1])) for key, size in zip(keys, sizes, strict=True)
    ]


def bits(x: Any) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in tree.leaves(x)]


def test_gradients_have_the_bits_of_one_process_and_the_value_of_all_rows(client: Client) -> None:
    start = parameters()
    here = value_and_grad(loss, InProcess(load, 7))(start)
    there = value_and_grad(loss, Shards(client, load, 7))(start)
    assert bits(here) == bits(there)
    shards = [load(i) for i in range(7)]
    rows = tuple(tk.asarray(np.concatenate(column)) for column in zip(*shards, strict=True))
    value, gradient = tk.value_and_grad(loss)(start, rows)
    assert here[0].item() == pytest.approx(value.item(), rel=1e-5)
    for a, b in zip(tree.leaves(here[1]), tree.leaves(gradient), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-5)


def test_sums_are_in_the_order_of_the_shards(client: Client) -> None:
    """Subtraction tells orders apart: ((0 - 1) - 2) - 3."""
    result = map_reduce(lambda x: x * 1.0, Shards(client, float, 4), lambda a, b: a - b)()
    assert result == -6.0
    joined = map_reduce(str, Shards(client, int, 12), lambda a, b: a + b)()
    assert joined == "01234567891011"


def test_results_are_on_the_backend_in_use_here(client: Client) -> None:
    step = value_and_grad(loss, Shards(client, load, 2), backend="reference")
    start = parameters()
    value, gradient = step(start)
    with tk.use_backend("reference"):
        here = value_and_grad(loss, InProcess(load, 2), backend="reference")(start)
    assert value.backend == "numpy" and gradient[0][0].backend == "numpy"
    assert here[0].backend == "reference"
    assert bits(here) == bits((value, gradient))


def test_further_arguments_and_auxiliary_results_are_passed(client: Client) -> None:
    def objective(w: Any, x: Any, factor: Any) -> Any:
        return (w * x * factor).sum(), {"count": 1, "sum": x.sum()}

    for shards in (
        Shards(client, lambda i: tk.full(2, float(i)), 3),
        InProcess(lambda i: np.full(2, i, "f"), 3),
    ):
        (value, aux), gradient = value_and_grad(objective, shards, has_aux=True)(
            tk.tensor(2.0), tk.tensor(5.0)
        )
        assert (value.item(), gradient.item(), aux["count"], aux["sum"].item()) == (60.0, 30.0, 3, 6.0)


def test_parameters_may_be_trees_of_modules_and_dtypes_survive(client: Client) -> None:
    data = {
        "b": tk.tensor([True, False]),
        "h": tk.ones(2, tk.float16),
        "i": tk.tensor([2**31 - 1]),
        "none": None,
    }
    echoed = map_reduce(lambda shard, x: x, Shards(client, int, 1))(data)
    assert tree.structure(echoed) == tree.structure(data)
    assert [(x.dtype, x.tolist()) for x in tree.leaves(echoed)] == [
        (x.dtype, x.tolist()) for x in tree.leaves(data)
    ]


def test_local_steps_average_the_states(client: Client) -> None:
    def step(state: Any, shard: Any, number: Any) -> Any:
        gradient = tk.grad(loss)(state["w"], shard)
        w = tree.map(lambda p, g: p - 0.1 * g, state["w"], gradient)
        return {"w": w, "steps": state["steps"] + 1, "last": number}

    start = {"w": parameters(), "steps": tk.tensor(0), "last": tk.tensor(-1)}
    here, there = (
        local_steps(step, shards, 3)(start) for shards in (InProcess(load, 4), Shards(client, load, 4))
    )
    assert bits(here) == bits(there)
    assert here["steps"].item() == 3 and here["last"].item() == 2
    alone = [local_steps(step, InProcess(lambda _, i=i: load(i), 1), 3)(start)["w"] for i in range(4)]
    for mean, *each in zip(*map(tree.leaves, (here["w"], *alone)), strict=True):
        np.testing.assert_allclose(
            np.asarray(mean), np.mean([np.asarray(x) for x in each], 0), rtol=1e-4, atol=1e-5
        )


def test_a_shard_is_loaded_once(client: Client, tmp_path: Path) -> None:
    def load(number: int) -> int:
        (tmp_path / f"{number} {uuid4()}").touch()
        return number

    shards = Shards(client, load, 3)
    step = map_reduce(lambda x: x, shards)
    assert [step(), step(), step()] == [3, 3, 3]
    assert map_reduce(lambda x: 2 * x, shards)() == 6
    assert sorted([path.name[0] for path in tmp_path.iterdir()]) == ["0", "1", "2"]
    assert shards.loaded == 3
    assert repr(shards).startswith("<Shards: 3 shards, 3 loaded, ")


class NotesWhereItIsRead:
    """An object that notes the thread that unpickles it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name

    def __call__(self, *arguments: Any) -> int:
        return 1

    def __reduce__(self) -> Any:
        def read(folder: Path, name: str) -> int | Callable[..., int]:
            (folder / f"{name} {threading.current_thread().name} {uuid4()}").touch()
            return (lambda *arguments: 1) if name in ("load", "function") else 1

        return read, (self.folder, self.name)


def test_only_workers_read_functions_and_objects_of_users(client: Client, tmp_path: Path) -> None:
    """The scheduler may lack their modules; it runs in the thread of dask's event loop."""
    load, function, argument = (
        NotesWhereItIsRead(tmp_path, name) for name in ("load", "function", "argument")
    )
    assert map_reduce(function, Shards(client, load, 2))(argument) == 2
    notes = [path.name.split() for path in tmp_path.iterdir()]
    assert {name for name, *_ in notes} == {"load", "function", "argument"}
    assert all("Dask-Default-Threads" in thread for _, thread, *_ in notes), notes


def test_parameters_may_be_large(client: Client) -> None:
    """Without a warning of dask, of more than 10 MB."""
    step = map_reduce(lambda shard, x: x[0] + x[-1], Shards(client, int, 2))
    assert step(tk.ones(3_000_000)).item() == 4.0


def test_shards_are_loaded_by_all_workers(client: Client, tmp_path: Path) -> None:
    """Each load waits for a load on every worker, which comes only if dask gives no worker all shards."""
    count = len(client.nthreads())

    def load(number: int) -> int:
        (tmp_path / get_worker().address.replace("/", "_")).touch()
        deadline = time.monotonic() + 60
        while len(list(tmp_path.iterdir())) < count and time.monotonic() < deadline:
            time.sleep(0.01)
        return number

    assert map_reduce(lambda x: x, Shards(client, load, 6))() == 15
    assert len(list(tmp_path.iterdir())) == count


# ---- errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ZeroDivisionError, TypeError, ValueError, OSError])
def test_an_error_of_the_loss_is_raised_here_and_the_loss_runs_once(
    client: Client, tmp_path: Path, error: type[Exception]
) -> None:
    def wrong(w: Any, x: Any) -> Any:
        (tmp_path / uuid4().hex).touch()
        raise error("of mine")

    with pytest.raises(error, match="of mine"):
        value_and_grad(wrong, Shards(client, load, 1))(tk.tensor(1.0))
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(("error", "times"), [(TypeError, 1), (FileNotFoundError, 4)])
def test_an_error_of_load_is_raised_here_and_os_errors_after_four_times(
    client: Client, tmp_path: Path, error: type[Exception], times: int
) -> None:
    def missing(number: int) -> Any:
        (tmp_path / uuid4().hex).touch()
        raise error(f"shard-{number}.npy")

    with pytest.raises(error, match=r"shard-0\.npy"):
        value_and_grad(loss, Shards(client, missing, 1))(parameters())
    assert len(list(tmp_path.iterdir())) == times


def test_a_shard_that_could_not_be_loaded_at_first_is_loaded(client: Client, tmp_path: Path) -> None:
    def late(number: int) -> Any:
        (tmp_path / uuid4().hex).touch()
        if len(list(tmp_path.iterdir())) < 4:
            raise ConnectionResetError("the file server")
        return number

    assert map_reduce(lambda x: x + 1, Shards(client, late, 1))() == 1


@pytest.mark.parametrize(
    "make", [lambda: InProcess(load, 0), lambda: local_steps(loss, InProcess(load, 1), 0)]
)
def test_counts_are_positive(make: Callable[[], object]) -> None:
    with pytest.raises(ArgumentError, match=r"need one (shard|step) or more, got 0"):
        make()


def test_a_cluster_without_workers_is_named(empty_client: Client) -> None:
    with pytest.raises(
        ClusterError, match=r"has had no workers for 0\.1 s; start some with: dask worker inproc"
    ):
        Shards(empty_client, load, 2, patience=0.1)


def test_waiting_ends_if_all_workers_have_left() -> None:
    cluster: Any = LocalCluster(n_workers=1, processes=False, dashboard_address=":0")
    with cluster, Client(cluster) as client:
        step = map_reduce(lambda x: x, Shards(client, int, 2, patience=0.5))
        assert step() == 1
        cluster.scale(0)
        with pytest.raises(ClusterError, match=r"has had no workers for 0\.5 s"):
            step()


def test_a_wrong_address_is_named() -> None:
    lost = r"there is no scheduler at tcp://127\.0\.0\.1:9; start one with: dask scheduler"
    with pytest.raises(ClusterError, match=lost), connect("tcp://127.0.0.1:9", patience=0.5):
        pass


@pytest.mark.parametrize("where", ["local:0", "local:", "threads:x", "nonsense://x", "tcp://"])
def test_a_malformed_address_is_named(where: str) -> None:
    need = r"need an address, as tcp://HOST:8786, or local:COUNT"
    with pytest.raises(ArgumentError, match=need), connect(where, patience=0.5):
        pass


def test_versions_of_workers_are_checked(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ClusterError, match=r"the scheduler has numpy [\d.]+\w*, need 0\.1 as here"):
        Shards(client, load, 1).prepare(Computation(loss, min, "numpy", {"numpy": "0.1"}))
    with pytest.raises(
        ClusterError, match=r"the worker inproc\S+ lacks tensorken-of-atlantis, need 1\.0 as here"
    ):
        Shards(client, load, 1).prepare(Computation(loss, min, "numpy", {"tensorken-of-atlantis": "1.0"}))


def test_versions_of_workers_that_come_later_are_checked_too(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = map_reduce(lambda x: x, Shards(client, int, 2))
    assert step() == 1
    monkeypatch.setattr(computations, "_installed_versions", lambda names: dict.fromkeys(names, "9"))
    with pytest.raises(ClusterError, match=r"a worker has tensorken 9, need \S+ as here; install the same"):
        step()
