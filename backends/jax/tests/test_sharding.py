"""Programs on several devices: XLA divides the work as the placement of the inputs says."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np

from tools.workspace import ROOT


def test_losses_on_four_devices_are_those_of_numpy() -> None:
    environment = {
        **os.environ,
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
        "JAX_PLATFORMS": "cpu",
    }
    command = [sys.executable, str(ROOT / "examples" / "sharding.py")]
    done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    one, data, weights = [[float(x) for x in line.split()[-5:]] for line in done.stdout.splitlines()]
    assert one[-1] < 0.5 * one[0]
    np.testing.assert_allclose(data, one, rtol=0, atol=1e-6)
    np.testing.assert_allclose(weights, one, rtol=0, atol=1e-6)
