"""Orbits: how Lorenz' weather depends on its start, and a planet's orbit with conserved energy."""

from __future__ import annotations

import tensorken as tk


def lorenz(state: tk.Tensor) -> tk.Tensor:
    """The velocity of Lorenz' model of the weather."""
    x, y, z = state
    return tk.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z])


def runge_kutta(f, state: tk.Tensor, dt: float) -> tk.Tensor:
    """A step of the method of Runge and Kutta of order four."""
    a = f(state)
    b = f(state + 0.5 * dt * a)
    c = f(state + 0.5 * dt * b)
    d = f(state + dt * c)
    return state + dt / 6.0 * (a + 2.0 * b + 2.0 * c + d)


@tk.jit
def weather(start: tk.Tensor) -> tk.Tensor:
    """The state one unit of time later."""
    return tk.fori_loop(0, 100, lambda _, state: runge_kutta(lorenz, state, 0.01), start)


start = tk.tensor([1.0, 2.0, 20.0], dtype="float64")
jacobian = tk.jacfwd(weather)(start)
print(f"Lorenz' state after one unit of time: {weather(start):.6f}")
print("its derivative with respect to the start:")
print(f"{jacobian:.5f}")
print(f"volumes shrink by exp(-41/3): {tk.linalg.det(jacobian) / tk.exp(-41.0 / 3.0):.4f}")
print(f"forward and reverse mode agree: {tk.allclose(jacobian, tk.jacrev(weather)(start))}")


def energy(q: tk.Tensor, p: tk.Tensor) -> tk.Tensor:
    """The Hamiltonian of a planet: its kinetic and its potential energy."""
    return 0.5 * p @ p - 1.0 / tk.linalg.norm(q)


def leapfrog(state, _):
    """A symplectic step of Hamilton's equations, whose right-hand sides are derivatives of the energy."""
    q, p = state
    p = p - 0.005 * tk.grad(energy)(q, p)
    q = q + 0.01 * tk.grad(energy, argnums=1)(q, p)
    p = p - 0.005 * tk.grad(energy)(q, p)
    return (q, p), (energy(q, p), q[0] * p[1] - q[1] * p[0])


q, p = tk.tensor([1.0, 0.0], dtype="float64"), tk.tensor([0.0, 1.2], dtype="float64")
(q_end, p_end), (energies, momenta) = tk.jit(lambda q, p: tk.scan(leapfrog, (q, p), length=1000))(q, p)
print(f"planet at {q_end:.5f} with velocity {p_end:.5f}")
print(f"energy {energy(q, p):.6f}, which varies by {energies.max() - energies.min():.1e}")
print(f"angular momentum varies by less than 1e-12: {momenta.max() - momenta.min() < 1e-12}")


def draw(figure) -> None:
    """Lorenz' attractor, and the distance of two orbits from nearby starts, which grows until they are unrelated."""
    ends = tk.stack([start, start + tk.tensor([1e-6, 0.0, 0.0], dtype="float64")])
    step = tk.vmap(lambda state: runge_kutta(lorenz, state, 0.01))
    orbits = tk.jit(lambda ends: tk.scan(lambda s, _: (step(s), s), ends, length=3000)[1])(ends)
    left, right = figure.subplots(1, 2)
    left.plot(orbits[::2, 0, 0], orbits[::2, 0, 2], linewidth=0.5)
    left.set(xlabel="x", ylabel="z")
    right.semilogy(0.01 * tk.arange(0, 3000, 10), tk.linalg.norm(orbits[:, 0] - orbits[:, 1], axis=-1)[::10])
    right.set(xlabel="time", ylabel="distance")
