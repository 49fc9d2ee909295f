"""Hamiltonian Monte Carlo: samples of a correlated normal distribution, as one compiled loop for four chains."""

from __future__ import annotations

import tensorken as tk

MEAN = tk.tensor([1.0, -2.0], dtype="float64")
PRECISION = tk.linalg.inv(tk.tensor([[2.0, 1.2], [1.2, 1.0]], dtype="float64"))
STEP, LEAPS, SAMPLES = 0.3, 6, 500


def log_density(x: tk.Tensor) -> tk.Tensor:
    """The logarithm of the density, up to a constant."""
    return -0.5 * (x - MEAN) @ PRECISION @ (x - MEAN)


slope = tk.grad(log_density)


def leapfrog(_, state):
    """One step of Hamilton's equations."""
    x, p = state
    p = p + 0.5 * STEP * slope(x)
    x = x + STEP * p
    return x, p + 0.5 * STEP * slope(x)


def sample(x: tk.Tensor, key: tk.Tensor) -> tuple[tk.Tensor, tuple[tk.Tensor, tk.Tensor]]:
    """The next sample, and whether it is a new one."""
    for_momentum, for_test = tk.random.split(key)
    p = tk.random.normal(for_momentum, x.shape, x.dtype)
    proposal, p_end = tk.fori_loop(0, LEAPS, leapfrog, (x, p))
    energy = 0.5 * p @ p - log_density(x)
    energy_end = 0.5 * p_end @ p_end - log_density(proposal)
    accepted = tk.log(tk.random.uniform(for_test, (), x.dtype)) < energy - energy_end
    return tk.where(accepted, proposal, x), (x, accepted)


@tk.jit
@tk.vmap
def chain(start: tk.Tensor, key: tk.Tensor) -> tuple[tk.Tensor, tk.Tensor]:
    """All samples of a chain, and the share of new ones."""
    _, (samples, accepted) = tk.scan(sample, start, tk.random.split(key, SAMPLES))
    return samples[50:], accepted.mean()


starts = tk.zeros((4, 2), dtype="float64")
samples, rates = chain(starts, tk.random.split(tk.random.key(0), 4))
print("samples:", samples.shape, "accepted:", f"{rates:.2f}")
print(f"mean {samples.mean(axis=(0, 1)):.2f}, the true one {MEAN:.2f}")
print("covariance, whose true values are 2, 1.2 and 1:")
print(f"{tk.cov(samples.reshape(-1, 2).T):.2f}")
between, within = samples.mean(axis=1).var(axis=0, ddof=1), samples.var(axis=1, ddof=1).mean(axis=0)
print(f"R-hat {tk.sqrt(1 + between / within):.2f}")
