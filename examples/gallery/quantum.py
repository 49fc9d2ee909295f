"""A two-level atom on the Bloch sphere: its evolution by matrix exponentials, and a pulse found by gradients."""

from __future__ import annotations

import math

import tensorken as tk

GROUND = tk.tensor([0.0, 0.0, 1.0], dtype="float64")  # the Bloch vector (<X>, <Y>, <Z>)


def evolution(x: tk.Tensor, y: tk.Tensor, detuning: float, time: float) -> tk.Tensor:
    """The rotation of Bloch vectors in a time, for the Hamiltonian (x X + y Y + detuning Z) / 2."""
    z, zero = detuning * tk.ones_like(x), tk.zeros_like(x)
    rows = [tk.stack([zero, -z, y]), tk.stack([z, zero, -x]), tk.stack([-y, x, zero])]
    return tk.linalg.expm(time * tk.stack(rows))


# Rabi's formula gives the population of the excited state under a constant drive.
drive, detuning = tk.tensor(2.0, dtype="float64"), 1.0
rate = math.hypot(2.0, detuning)
for time in (0.5, 1.0, 1.5):
    bloch = evolution(drive, 0.0 * drive, detuning, time) @ GROUND
    formula = (2.0 / rate) ** 2 * math.sin(rate * time / 2) ** 2
    print(f"time {time}: excited {(1.0 - bloch[2]) / 2.0:.8f}, by Rabi's formula {formula:.8f}")

# A pulse of six pieces that brings the atom to an equal superposition although it is detuned.
TARGET = tk.tensor([0.0, 1.0, 0.0], dtype="float64")


def infidelity(pulse: tk.Tensor) -> tk.Tensor:
    """One minus the probability of the target at the end of a pulse, a row of two amplitudes for each piece."""
    bloch, _ = tk.scan(lambda bloch, xy: (evolution(xy[0], xy[1], 1.5, 0.4) @ bloch, None), GROUND, pulse)
    return (1.0 - TARGET @ bloch) / 2.0


step = tk.jit(tk.value_and_grad(infidelity))
pulse = tk.full((6, 2), 0.3, dtype="float64")
for i in range(21):
    value, gradient = step(pulse)
    if i % 5 == 0:
        print(f"step {i:2}: infidelity {value:.5f}")
    pulse = pulse - 4.0 * gradient
print(f"length of the pulse: {tk.linalg.norm(pulse, axis=1)[:3]:.4f} ...")


def draw(figure) -> None:
    """The two amplitudes of the pulse in its six pieces, and the Bloch vector, which moves from Z to Y."""
    left, right = figure.subplots(1, 2)
    left.stairs(pulse[:, 0].tolist(), 0.4 * tk.arange(7), baseline=None, linewidth=1.6, label="of X")
    left.stairs(pulse[:, 1].tolist(), 0.4 * tk.arange(7), baseline=None, linewidth=1.6, label="of Y")
    left.set(xlabel="time", title="pulse")
    left.legend()
    track = [GROUND]
    for x, y in tk.repeat(pulse, 8, axis=0):
        track.append(evolution(x, y, 1.5, 0.05) @ track[-1])
    right.plot(0.05 * tk.arange(49), tk.stack(track), label=["X", "Y", "Z"])
    right.set(xlabel="time", title="Bloch vector", ylim=(-1, 1.1))
    right.legend(loc="lower center", ncols=3, handlelength=1)
