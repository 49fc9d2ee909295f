"""Tuning: the fastest of several kernels is measured once for similar shapes, and kept in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorken_core.errors import BackendError
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS
from tensorken_wgpu import tuning
from tensorken_wgpu.kernels import Kernel
from tensorken_wgpu.planning import plan
from tensorken_wgpu.programs import LoadedProgram
from tensorken_wgpu.single_op import Value, single
from tensorken_wgpu.target import Target
from tensorken_wgpu.tuning import Tuning, best, cache_file

HARDWARE = Target(32, 2**27, False)


class Named:
    """A device of which only the name is used."""

    name = "some GPU"


def kernel(rows: int = 32, inner: int = 64, columns: int = 32) -> Kernel:
    """The kernel of a product planned for a GPU, with a choice."""
    shapes = (rows, inner, 1), (1, inner, columns)
    program: Any = single(OPS["fused_multiply_add"], [Value(s, DTYPES["float32"]) for s in shapes], ((1,),))
    (step,) = plan(program, HARDWARE).steps
    return step.kernel


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels measured so far; the last one of each choice is the fastest."""
    measured: list[str] = []

    def measure(kernel: Kernel, device: Any) -> float:
        measured.append(kernel.template)
        return 1.0 / len(measured)

    monkeypatch.setattr(tuning, "measure", measure)
    return measured


def last(kernel: Kernel) -> Kernel:
    assert kernel.choice is not None
    return [*kernel.choice.kernels.values()][-1]


def test_the_fastest_is_measured_once_and_kept_in_the_file(tmp_path: Path, times: list[str]) -> None:
    path, device, found = tmp_path / "deep" / "tuning.json", Named(), kernel()
    first = Tuning(path)
    assert found.choice is not None
    assert 2 <= len(found.choice.kernels) <= 6
    assert first.best(found, device) is last(found)  # type: ignore[arg-type]
    assert len(times) == len(found.choice.kernels)
    similar = kernel(36, 68, 60)
    assert first.best(similar, device) is last(similar)  # type: ignore[arg-type]
    assert Tuning(path).best(found, device) is last(found)  # type: ignore[arg-type]
    assert len(times) == len(found.choice.kernels)
    other = kernel(32, 128, 32)
    Tuning(path).best(other, device)  # type: ignore[arg-type]
    assert len(times) == 2 * len(found.choice.kernels)
    assert len(json.loads(path.read_text())["some GPU"]) == 2
    assert [x.name for x in path.parent.iterdir()] == ["tuning.json"]


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"some GPU": 3}', '{"some GPU": {"x": 3}}', "\ufffd"])
def test_a_damaged_file_is_replaced(tmp_path: Path, times: list[str], text: str) -> None:
    path, found = tmp_path / "tuning.json", kernel()
    path.write_text(text, encoding="utf-16")
    assert Tuning(path).best(found, Named()) is last(found)  # type: ignore[arg-type]
    path.write_text(text)
    assert Tuning(path).best(found, Named()) is last(found)  # type: ignore[arg-type]
    assert found.choice is not None
    assert found.choice.key in json.loads(path.read_text())["some GPU"]


def test_an_unwritable_folder_is_ignored(tmp_path: Path, times: list[str]) -> None:
    (tmp_path / "file").write_text("")
    found = kernel()
    for path in (tmp_path / "file" / "tuning.json", tmp_path, None):
        assert Tuning(path).best(found, Named()) is last(found)  # type: ignore[arg-type]


def test_kernels_that_the_device_refuses_are_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    found = kernel()

    def refuse(kernel: Kernel, device: Any) -> float:
        if kernel is last(found):
            raise BackendError("too much workgroup memory")
        return 1.0

    monkeypatch.setattr(tuning, "measure", refuse)
    assert Tuning(None).best(found, Named()).template == found.template  # type: ignore[arg-type]


def test_tuning_can_be_turned_off(monkeypatch: pytest.MonkeyPatch, times: list[str]) -> None:
    found = kernel()
    for value in ("off", "0", " Off "):
        monkeypatch.setenv(tuning.VARIABLE, value)
        assert best(found, Named()) is found  # type: ignore[arg-type]
    assert not times


def test_the_file_is_in_the_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(variable, str(tmp_path))
    assert cache_file() == tmp_path / "tensorken" / "wgpu-tuning.json"


def test_a_program_runs_the_fastest_kernel(raw: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tuning.json"
    monkeypatch.setattr(tuning, "_default", lambda: Tuning(path))
    monkeypatch.delenv(tuning.VARIABLE, raising=False)
    shapes = (32, 64, 1), (1, 64, 32)
    program: Any = single(OPS["fused_multiply_add"], [Value(s, DTYPES["float32"]) for s in shapes], ((1,),))
    planned = plan(program, HARDWARE)
    (choice,) = [step.kernel.choice for step in planned.steps]
    a, b = [np.random.default_rng(i).normal(size=s).astype(np.float32) for i, s in enumerate(shapes)]
    ready = LoadedProgram(program.inputs, {}, program.outputs, planned, raw.device, raw.target)
    (y,) = ready([raw.new(x.shape, x.ravel(), DTYPES["float32"]) for x in (a, b)])
    np.testing.assert_allclose(raw.ravel(y), (a[:, :, 0] @ b[0]).ravel(), atol=1e-4)
    (name,) = json.loads(path.read_text())[raw.device.name].values()
    assert choice is not None
    (run,) = ready._steps
    assert run.kernel is choice.kernels[name]
