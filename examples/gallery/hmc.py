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


def draw(figure) -> None:
    """Samples of four chains within the contours of the density, and the path of one proposal."""
    axes = figure.subplots()
    grid = tk.meshgrid(
        tk.linspace(-3.5, 5.5, 60, dtype="float64"), tk.linspace(-5.5, 1.5, 60, dtype="float64")
    )
    density = tk.exp(tk.vmap(tk.vmap(log_density))(tk.stack(grid, axis=-1)))
    axes.plot(samples[:, ::8, 0].ravel(), samples[:, ::8, 1].ravel(), "o", markersize=2, alpha=0.6)
    axes.contour(*grid, density, levels=4, colors="C2", linewidths=1)
    path = [(samples[0, 0], tk.tensor([1.5, -0.5], dtype="float64"))]
    for _ in range(LEAPS):
        path.append(leapfrog(None, path[-1]))
    places = tk.stack([place for place, _ in path])
    axes.plot(places[:, 0], places[:, 1], "o-", color="C1", label="path of a proposal")
    axes.legend()
