"""Checkpoints: trees round-trip bit for bit, from every layout and backend, or an error lists the differences."""

from __future__ import annotations

import errno
import json
import math
import os
import random
import signal
import stat
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import tensorken as tk
import tensorken_nn as nn
from tensorken import Tensor
from tensorken_core import tree
from tensorken_core.errors import ArgumentError, BackendError, ScalarRangeError
from tensorken_nn import checkpoints, files
from tensorken_nn.checkpoints import CHECKSUM, CheckpointError, UncheckedWarning, load, metadata, save
from tensorken_nn.files import FileError

LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "as it is": lambda x: x,
    "permuted": lambda x: x.permute((2, 0, 1)),
    "flipped": lambda x: x.flip((0, 2)),
    "broadcast": lambda x: x[:, :1].broadcast_to((2, 5, 4)),
    "cropped": lambda x: x[1:, 1:3, 1:],
    "all at once": lambda x: x.permute((1, 2, 0)).flip((0,))[1:, ::2, None].broadcast_to((2, 2, 3, 2)),
    "a scalar": lambda x: x[0, 1, 2],
    "empty": lambda x: x[:, 3:],
}


@pytest.fixture(params=["numpy", "reference", pytest.param("wgpu", marks=pytest.mark.slow)])
def any_backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """Use each backend that computes values; skipped for a missing GPU."""
    try:
        tk.zeros((), backend=request.param)
    except BackendError as error:
        if os.environ.get("REQUIRE_WGPU"):
            raise
        pytest.skip(str(error))
    with tk.use_backend(request.param):
        yield request.param


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.safetensors"


def samples() -> dict[str, dict[str, Tensor]]:
    """Every layout of every dtype of the backend in use, with numbers that only an exact copy preserves."""
    numbers = [0.1, -0.0, math.inf, -math.inf, math.nan, 1e-7, *[i * 1.37 - 9 for i in range(18)]]
    tensors = {}
    for name in tk.zeros(()).interpreter.base.capabilities.dtypes:  # type: ignore[attr-defined]
        kind = tk.zeros((), name).dtype.kind
        values = numbers if kind == "float" else [i * 77_777 % 31 for i in range(24)]
        x = tk.tensor([value > 0 for value in values] if kind == "bool" else values, name)
        tensors[name] = {layout: make(x.reshape((2, 3, 4))) for layout, make in LAYOUTS.items()}
    return tensors


def bits(x: Tensor) -> tuple[tuple[int, ...], str, bytes]:
    return x.shape, x.dtype.name, np.ascontiguousarray(np.asarray(x)).tobytes()


def trained() -> tuple[Any, Any]:
    """A model and its optimiser state after two steps."""
    model = nn.mlp((3, 4, 2), tk.tanh, key=tk.random.key(0))
    optimizer = nn.Adam(0.1)
    state = optimizer.init(model)
    for _ in range(2):
        gradient = tk.grad(lambda model: (model(tk.ones((5, 3))) ** 2).sum())(model)
        model, state = optimizer.update(model, gradient, state)
    return model, state


# ---- round trips ------------------------------------------------------------------------------------------


def test_every_layout_of_every_dtype_round_trips(any_backend: str, path: Path) -> None:
    saved = samples()
    save(path, saved)
    loaded = load(path, tree.map(Tensor.zeros_like, saved))
    by_others = load_file(path)
    assert {"bool", "int32", "float32"} <= saved.keys()
    for name, layouts in saved.items():
        for layout, x in layouts.items():
            assert bits(loaded[name][layout]) == bits(x), (name, layout)
            assert loaded[name][layout].backend == any_backend
            other = by_others[f"{name}.{layout}"]
            assert (other.shape, str(other.dtype), other.tobytes()) == bits(x), (name, layout)


def test_a_training_state_round_trips_with_steps_and_key(backend: str, path: Path) -> None:
    model, state = trained()
    saved = {"model": model, "optimizer": state, "key": tk.random.key(3), "loss": 0.1, "over": False}
    save(path, saved)
    fresh = nn.mlp((3, 4, 2), tk.tanh, key=tk.random.key(1))
    like = {
        "model": fresh,
        "optimizer": nn.Adam().init(fresh),
        "key": tk.random.key(0),
        "loss": 0.0,
        "over": True,
    }
    loaded = load(path, like)
    assert tree.structure(loaded) == tree.structure(saved)
    assert (loaded["optimizer"].step, loaded["loss"], loaded["over"]) == (2, 0.1, False)
    assert [type(loaded[name]) for name in ("loss", "over")] == [float, bool]
    for x, y in zip(tree.leaves(saved), tree.leaves(loaded), strict=True):
        assert (bits(x) == bits(y)) if isinstance(x, Tensor) else (x == y)


def test_names_are_paths_in_the_tree(path: Path) -> None:
    save(path, {"model": trained()[0], "rest": [1, {"step": 2.0}]})
    assert sorted(load_file(path)) == [
        *("model.layers.0.bias", "model.layers.0.weight", "model.layers.2.bias", "model.layers.2.weight"),
        *("rest.0", "rest.1.step"),
    ]


def test_a_checkpoint_loads_on_another_backend(path: Path) -> None:
    save(path, tk.tensor([[1.5, -2.5]], backend="reference"))
    loaded = load(path, tk.zeros((1, 2), backend="numpy"))
    assert loaded.backend == "numpy" and loaded.tolist() == [[1.5, -2.5]]
    with tk.use_backend("reference"):  # the backend in use does not matter
        assert load(path, loaded).backend == "numpy"


def test_files_of_other_libraries_are_read(path: Path) -> None:
    save_file(
        {"b": np.arange(6, dtype=np.int64).reshape(2, 3), "a": np.array([True, False])}, path, {"by": "numpy"}
    )
    like = {"a": tk.zeros((2,), "bool"), "b": tk.zeros((2, 3), "int64")}
    with pytest.warns(
        UncheckedWarning, match=r"has no checksum, so damage to its numbers cannot be detected; save"
    ):
        loaded = load(path, like)
    assert loaded["a"].tolist() == [True, False] and loaded["b"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert metadata(path) == {"by": "numpy"}


def test_elements_are_aligned(path: Path) -> None:
    save(path, {"a": tk.tensor([True]), "b": tk.tensor([1.0], "float64"), "c": tk.tensor([1], "int32")})
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    assert size % 8 == 0
    assert [header[name]["data_offsets"] for name in "bca"] == [[0, 8], [8, 12], [12, 13]]


def test_metadata_round_trip(path: Path) -> None:
    texts = {"job": "digits", "settings": '{"rate": 1}', "Straße": 'ß"\n\\', "": ""}
    save(path, {"x": tk.ones((2,))}, texts)
    assert metadata(path) == texts
    save(path, {"x": tk.ones((2,))})
    assert metadata(path) == {}


def test_a_tree_without_leaves_round_trips(path: Path) -> None:
    save(path, {"nothing": None, "empty": ()})
    assert load(path, {"nothing": None, "empty": ()}) == {"nothing": None, "empty": ()}


LEAVES = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.sampled_from([tk.ones((2, 1)), tk.zeros((), "int32"), tk.random.key(7)]),
)
KEYS = st.one_of(st.text(max_size=3), st.integers(-9, 9), st.floats(-1, 1), st.tuples(st.integers(0, 1)))
TREES = st.recursive(
    LEAVES,
    lambda children: st.one_of(
        st.lists(children, max_size=3),
        st.tuples(children, st.none()),
        st.dictionaries(KEYS, children, max_size=3),
    ),
    max_leaves=6,
)


@given(saved=TREES)
@settings(max_examples=60)
def test_every_tree_round_trips(saved: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "any.safetensors"
    try:
        save(path, saved)
    except ArgumentError as error:
        if "two paths give the name" in str(error) or "is not valid Unicode" in str(error):
            return
        raise
    loaded = load(path, tree.map(lambda x: x * 0 if isinstance(x, Tensor) else type(x)(), saved))
    assert tree.structure(loaded) == tree.structure(saved)
    for x, y in zip(tree.leaves(saved), tree.leaves(loaded), strict=True):
        assert isinstance(x, Tensor) is isinstance(y, Tensor)
        assert type(x) is type(y) or isinstance(x, Tensor)
        assert bits(x) == bits(y) if isinstance(x, Tensor) else repr(x) == repr(y)


# ---- errors while saving ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("saved", "error", "message"),
    [
        ({"name": "x"}, ArgumentError, "save: name is of type str, need a tensor or a number"),
        ({"a": np.ones(2)}, ArgumentError, "a is of type ndarray"),
        ({"a": [0, 2**63]}, ScalarRangeError, r"save: a\.1: 9223372036854775808 does not fit int64"),
        ({"__metadata__": 1}, ArgumentError, "no leaf may be called __metadata__"),
        (
            {"a.b": 1, "a": {"b": 2}},
            ArgumentError,
            r"two paths give the name 'a\.b', one of them \[\"a\.b\"\]",
        ),
        ({"\udc80": 1}, ArgumentError, "not valid Unicode"),
    ],
)
def test_leaves_that_cannot_be_saved_are_named(
    saved: Any, error: type[Exception], message: str, path: Path
) -> None:
    with pytest.raises(error, match=message):
        save(path, saved)
    assert not list(path.parent.iterdir())


def test_metadata_must_be_strings(path: Path) -> None:
    with pytest.raises(
        ArgumentError, match=r"metadata must be strings by name, got 'rate': 0.1; use json.dumps"
    ):
        save(path, {}, {"rate": 0.1})  # type: ignore[dict-item]


def test_an_error_while_saving_leaves_the_old_file(path: Path) -> None:
    save(path, {"x": 1})
    with pytest.raises(tk.errors.ConcretizationError):
        save(path, {"a": 1.0, "x": tk.symbol("x")})
    assert load(path, {"x": 0}) == {"x": 1}
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_unwritable_paths_are_reported(tmp_path: Path) -> None:
    for unwritable in (tmp_path / "nowhere" / "x", tmp_path):
        with pytest.raises(FileError, match=r"cannot write .*; choose another path"):
            save(unwritable, {"x": 1})
    assert not list(tmp_path.iterdir())


# ---- errors while loading ---------------------------------------------------------------------------------


def test_all_differences_are_listed_at_once(path: Path) -> None:
    save(
        path,
        {"same": tk.ones((2,)), "shape": tk.ones((2, 3)), "dtype": tk.ones((2,)), "extra": 1, "step": 1.0},
    )
    like = {
        "same": tk.zeros((2,)),
        "shape": tk.zeros((3, 2)),
        "dtype": tk.zeros((2,), "int32"),
        "missing": tk.zeros((4,)),
        "step": 0,
    }
    with pytest.raises(CheckpointError) as caught:
        load(path, like)
    assert str(caught.value) == (
        f"load: {path} contains another tree: dtype is float32 (2,), need int32 (2,); it has no missing, float32 (4,); "
        f"shape is float32 (2, 3), need float32 (3, 2); step is float64 (), need int64 (); it has extra, int64 (); "
        f"load it into a tree made with the same settings"
    )


def test_of_many_differences_some_are_listed_and_the_others_counted(path: Path) -> None:
    save(path, [])
    with pytest.raises(
        CheckpointError, match=r"no 0, .*no 4, int64 \(\); 15 more differences; load"
    ) as caught:
        load(path, [0] * 20)
    assert "\n" not in str(caught.value)


def test_unsupported_dtypes_are_named(path: Path) -> None:
    save_file({"x": np.ones(2, np.complex64)}, path)
    with (
        pytest.raises(CheckpointError, match=r"x is C64 \(2,\), need float32 \(2,\)"),
        pytest.warns(UncheckedWarning),
    ):
        load(path, {"x": tk.ones((2,))})


def test_every_truncated_file_is_refused(path: Path) -> None:
    saved = {"x": tk.ones((3,)), "step": 2}
    save(path, saved, {"job": "x"})
    data = path.read_bytes()
    for size in range(len(data)):
        path.write_bytes(data[:size])
        with pytest.raises(
            CheckpointError, match=r"is not a safetensors file, or is damaged: .*; use another"
        ):
            load(path, saved)
    path.write_bytes(data + b"\0")
    with pytest.raises(CheckpointError, match="damaged"):
        load(path, saved)


def test_a_flipped_bit_is_detected(path: Path) -> None:
    """In elements, names and metadata it is an error; elsewhere, as in padding, the tree is loaded correctly."""
    saved = {"x": tk.tensor([1.5, -2.0, math.pi]), "flags": tk.tensor([True, False]), "step": 2}
    like = {"x": tk.zeros((3,)), "flags": tk.zeros((2,), "bool"), "step": 0}
    save(path, saved, {"job": "digits"})
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    harmless: list[int] = []
    flips = [(position, position % 7) for position in range(start)]
    flips += [(position, bit) for position in range(start, len(data)) for bit in range(8)]
    for position, bit in flips:
        path.write_bytes(data[:position] + bytes([data[position] ^ 1 << bit]) + data[position + 1 :])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UncheckedWarning)  # a flip in the checksum's own name
                loaded = load(path, like)
        except CheckpointError:
            continue
        harmless.append(position)
        assert [bits(x) if isinstance(x, Tensor) else x for x in tree.leaves(loaded)] == [
            bits(x) if isinstance(x, Tensor) else x for x in tree.leaves(saved)
        ]
    assert max(harmless, default=0) < start
    assert {data[position : position + 1] for position in harmless} <= {
        b" ",
        *[bytes([c]) for c in CHECKSUM.encode()],
    }


def test_a_file_rewritten_by_another_library_keeps_its_checksum(path: Path) -> None:
    saved = {"b": tk.ones((2,)), "a": tk.zeros((3,), "bool"), "step": 2}
    save(path, saved, {"job": "digits"})
    with safe_open(path, "np") as file:
        texts = file.metadata()
    save_file(load_file(path), path, texts)
    assert load(path, saved)["step"] == 2
    assert metadata(path) == {"job": "digits"}
    save_file({**load_file(path), "step": np.array(3)}, path, texts)
    with pytest.raises(
        CheckpointError, match="its content differs from its checksum; use another checkpoint"
    ):
        load(path, saved)


def test_the_metadata_key_of_the_checksum_is_reserved(path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"save: the metadata key tensorken\.checksum is reserved"):
        save(path, {}, {CHECKSUM: "x"})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x89PNG\r\n\x1a\n and more than eight bytes",
        b"\xff" * 16,
        b"\x02\0\0\0\0\0\0\0[]",
        b"\x03\0\0\0\0\0\0\0{}}",
        b'\x14\0\0\0\0\0\0\0{"__metadata__": [1]}',
        b'\x18\0\0\0\0\0\0\0{"__metadata__":{"a":1}}',
        b"\x04\0\0\0\0\0\0\0\xff\xfe\xfd\xfc",
        b"\xa0\x86\x01\0\0\0\0\0" + b"[" * 100_000,
    ],
)
def test_files_that_are_not_checkpoints_are_refused(data: bytes, path: Path) -> None:
    path.write_bytes(data)
    for read in (lambda: load(path, []), lambda: metadata(path)):
        with pytest.raises(CheckpointError, match=r"model.safetensors is not a safetensors file") as caught:
            read()
        assert "\n" not in str(caught.value)


def test_a_missing_file_is_reported(path: Path) -> None:
    for read in (lambda: load(path, []), lambda: metadata(path)):
        with pytest.raises(FileError, match=r"cannot read .*model\.safetensors: No such file"):
            read()


def test_any_nonzero_byte_of_a_bool_is_true(path: Path) -> None:
    save_file({"x": np.array([False, True, True])}, path)  # without a checksum
    path.write_bytes(path.read_bytes()[:-3] + b"\x00\x02\xff")
    with pytest.warns(UncheckedWarning):
        loaded = load(path, {"x": tk.zeros((3,), "bool")})["x"]
    assert loaded.tolist() == [False, True, True] and loaded.sum().item() == 2


# ---- atomic writes ----------------------------------------------------------------------------------------


def test_a_file_is_flushed_before_it_is_renamed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    sync, replace = os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        calls.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        sync(descriptor)

    def replaced(self: Path, target: Path) -> Path:
        calls.append(f"{self.stat().st_size == size} {target.name}")
        return replace(self, target)

    save(path, {"x": 1})
    size = path.stat().st_size
    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    save(path, {"x": 2})
    assert calls == ["file", "True model.safetensors", "folder"]


@pytest.mark.parametrize(
    ("fails", "error", "kept"),
    [
        ("file", errno.ENOSPC, True),
        ("file", errno.EINVAL, True),
        ("folder", errno.EIO, False),
        ("folder", errno.EINVAL, None),  # file systems that cannot sync a folder
    ],
)
def test_a_failing_disk_leaves_a_complete_file(
    fails: str, error: int, kept: bool | None, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(descriptor: int) -> None:
        if ("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file") == fails:
            raise OSError(error, os.strerror(error))

    save(path, {"x": 1})
    monkeypatch.setattr(os, "fsync", failing)
    if kept is None:
        save(path, {"x": 2})
    else:
        with pytest.raises(FileError, match=rf"cannot write .*: {os.strerror(error)}"):
            save(path, {"x": 2})
    assert load(path, {"x": 0}) == {"x": 1 if kept else 2}
    assert [file.name for file in path.parent.iterdir()] == [path.name]


WRITERS = """
import itertools, os, sys
import tensorken as tk
from tensorken_nn.checkpoints import save
tk.zeros(())  # load the backend before forking
for _ in sys.stdin:
    if not (child := os.fork()):
        for number in itertools.count(1):
            value = tk.full((20_000,), float(number))
            save(sys.argv[1], {"first": value, "last": value * 2, "number": number}, {"number": str(number)})
            if number == 1:
                os.write(1, b"%d\\n" % os.getpid())
    os.waitpid(child, 0)
"""
"""For each input line, fork a process that saves in a loop and prints its process id after the first save."""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the writers are forked processes")
def test_a_killed_writer_leaves_a_complete_file(path: Path) -> None:
    like = {"first": tk.zeros((20_000,)), "last": tk.zeros((20_000,)), "number": 0}
    rng = random.Random(0)
    numbers: list[int] = []
    partial_files: list[int] = []
    command = [sys.executable, "-c", WRITERS, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as writers:
        assert writers.stdin is not None and writers.stdout is not None
        for _ in range(20):
            writers.stdin.write(b"another\n")
            writer = int(writers.stdout.readline())
            time.sleep(rng.uniform(0.0, 0.05))
            os.kill(writer, signal.SIGKILL)
            while _runs(writer):
                time.sleep(0.001)
            loaded = load(path, like)
            number = loaded["number"]
            assert metadata(path) == {"number": str(number)}
            assert set(loaded["first"].tolist()) == {float(number)}
            assert set(loaded["last"].tolist()) == {2.0 * number}
            numbers.append(number)
            partial_files.append(len(list(path.parent.glob(".*.part"))))
    assert len(set(numbers)) > 1 and max(numbers) > 1
    assert set(partial_files) == {0, 1}  # some were killed while saving; each leaves at most one partial file
    save(path, 1)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_only_partial_files_of_killed_writers_are_removed(tmp_path: Path) -> None:
    keep = [
        ".b.safetensors.0123abcd.part",
        ".a.0123abcd.part",
        "[a].txt.part",
        ".[a].zzzzzzzz.part",
        ".x.a.0123abcd.part",
    ]
    for name in [*keep, ".[a].0123abcd.part", ".[a].00000000.part"]:
        (tmp_path / name).write_bytes(b"half")
    with files.atomic_write(tmp_path / "[a]") as file:
        file.write(b"whole")
    assert {file.name for file in tmp_path.iterdir()} == {*keep, "[a]"}
    assert files.read(tmp_path / "[a]") == b"whole"


def test_a_symbolic_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    link, target = tmp_path / "latest", tmp_path / "run" / "model"
    link.symlink_to(target)
    checkpoints.save(link, 1)
    assert link.is_symlink() and load(target, 0) == 1


def test_a_number_made_a_tensor_by_a_compiled_step_loads_as_a_number(tmp_path: Path) -> None:
    model = nn.mlp((2, 3, 1), key=tk.random.key(0))
    adam = nn.Adam(1e-2)
    updated, state = tk.jit(adam.update)(model, model, adam.init(model))
    assert isinstance(state.step, tk.Tensor)
    checkpoints.save(tmp_path / "step", (updated, state))
    again, loaded = checkpoints.load(tmp_path / "step", (model, adam.init(model)._replace(step=0)))
    assert type(loaded.step) is int and loaded.step == 1
    assert again[0].weight.tolist() == updated[0].weight.tolist()
    with pytest.raises(CheckpointError, match="step is int32"):
        checkpoints.load(tmp_path / "step", (model, adam.init(model)._replace(step=0.5)))
