"""A Kalman filter: the state of a moving body from noisy positions, and the noise by maximum likelihood."""

from __future__ import annotations

import numpy as np

import tensorken as tk

DT = 0.5
F = tk.tensor([[1.0, DT], [0.0, 1.0]], dtype="float64")  # position and velocity
Q = tk.tensor([[DT**3 / 3, DT**2 / 2], [DT**2 / 2, DT]], dtype="float64") * 0.1
H = tk.tensor([[1.0, 0.0]], dtype="float64")

rng = np.random.default_rng(4)
velocity = np.cumsum(0.2 * rng.normal(size=40)) + 1.0
truth = tk.asarray(np.cumsum(velocity * DT))
measured = truth + tk.asarray(rng.normal(size=40))


def filtered(noise: tk.Tensor) -> tuple[tk.Tensor, tk.Tensor]:
    """The means of the state after each measurement, and the logarithm of the likelihood of all measurements."""

    def step(carry, z):
        mean, covariance = carry
        mean, covariance = F @ mean, F @ covariance @ F.T + Q
        innovation = z - (H @ mean)[0]
        variance = (H @ covariance @ H.T)[0, 0] + noise
        gain = (covariance @ H.T)[:, 0] / variance
        log_likelihood = -0.5 * (tk.log(2 * tk.pi * variance) + innovation**2 / variance)
        mean = mean + gain * innovation
        covariance = covariance - tk.outer(gain, H @ covariance)
        return (mean, covariance), (mean, log_likelihood)

    start = tk.zeros(2, dtype="float64"), 10.0 * tk.eye(2, dtype="float64")
    _, (means, log_likelihoods) = tk.scan(step, start, measured)
    return means, log_likelihoods.sum()


means, _ = filtered(tk.tensor(1.0, dtype="float64"))
print("position and velocity after 10, 20, 30 and 40 steps:")
print(f"{means[9::10]:.5f}")
print(
    f"error of the measurements {(measured - truth).std():.4f}, of the filter {(means[:, 0] - truth).std():.4f}"
)


def loss(log_noise: tk.Tensor) -> tk.Tensor:
    """The negative log-likelihood of a variance of the noise."""
    return -filtered(tk.exp(log_noise))[1]


slope, curvature = tk.jit(tk.grad(loss)), tk.jit(tk.grad(tk.grad(loss)))
log_noise = tk.tensor(1.0, dtype="float64")
for _ in range(6):  # Newton's method
    log_noise = log_noise - slope(log_noise) / curvature(log_noise)
print(f"most likely variance {tk.exp(log_noise):.6f} with -log-likelihood {loss(log_noise):.6f}")


def draw(figure) -> None:
    """The errors of noisy measurements and of the filter's positions, which are closer to the truth."""
    axes = figure.subplots()
    time = DT * tk.arange(1, 41)
    axes.plot(time, measured - truth, "o", color="C1", label="measured")
    axes.plot(time, means[:, 0] - truth, label="filtered")
    axes.axhline(0.0, color="C2", linestyle="--", label="truth")
    axes.set(xlabel="time", ylabel="error of the position")
    axes.legend(ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.15))
