"""Forked processes: their errors, and that they end with their own status."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")

SCRIPT = """
import os, sys, time
import tensorken as tk
from tensorken_wgpu.device.adapters import adapter_of
from tensorken_wgpu.device.device import Device

device = Device(adapter_of(None))
tk.use_backend("wgpu")
x = tk.ones(4) + 1.0
x.tolist()
waits = x * 3.0
child = os.fork()
if not child:
    def used():
        with tk.use_backend("wgpu"):
            return (tk.ones(3) + 1.0).tolist()
    for ask in (x.tolist, waits.tolist, used, device.reopened, lambda: Device(adapter_of(None))):
        try:
            print(ask())
        except tk.errors.BackendError as error:
            print(type(error).__name__, error)
    print((tk.ones(2, backend="numpy") + 1.0).tolist())
    del x, waits, device
    sys.exit(3)
for _ in range(600):
    ended, status = os.waitpid(child, os.WNOHANG)
    if ended:
        print("ended", os.waitstatus_to_exitcode(status))
        break
    time.sleep(0.1)
else:
    os.kill(child, 9)
    print("hung")
print((waits + x).tolist())
"""


def test_a_forked_process_reports_an_error_and_ends_with_its_status(device: Any) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, encoding="utf-8", check=True)
    refused = (
        f"LostDeviceError wgpu: {device.name} and tensors on it cannot be used here, as this process was forked from "
        "one that used it; start processes with multiprocessing's `spawn`"
    )
    assert done.stdout.splitlines() == [*[refused] * 5, "[2.0, 2.0]", "ended 3", "[8.0, 8.0, 8.0, 8.0]"]
    for word in ("Traceback", "Exception ignored"):  # drivers may print other lines
        assert word not in done.stderr, done.stderr
