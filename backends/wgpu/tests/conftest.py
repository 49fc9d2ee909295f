"""Without an adapter the tests of the GPU are skipped with a message; REQUIRE_WGPU=1 makes that an error."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tensorken_core.errors import BackendError
from tensorken_wgpu.backend import Wgpu
from tensorken_wgpu.device.adapters import adapter_of
from tensorken_wgpu.device.device import Device


@pytest.fixture(scope="session")
def device() -> Any:
    try:
        return Device(adapter_of(None))
    except BackendError as error:
        if os.environ.get("REQUIRE_WGPU"):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def raw(device: Any) -> Any:
    return Wgpu(device)


@pytest.fixture(scope="session")
def lazy(raw: Any) -> Any:
    from tensorken.lazy.interpreter import Lazy

    return Lazy(raw)
