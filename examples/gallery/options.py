"""Prices of options by Black and Scholes' formula: their sensitivities, and the implied volatility."""

from __future__ import annotations

import math
from functools import partial

import tensorken as tk


def call(price, strike, rate, volatility, time):
    """The value of the right to buy at the strike."""
    spread = volatility * tk.sqrt(time)
    d1 = (tk.log(price / strike) + (rate + 0.5 * volatility**2) * time) / spread
    return price * tk.special.ndtr(d1) - strike * tk.exp(-rate * time) * tk.special.ndtr(d1 - spread)


market = {"price": 100.0, "strike": 105.0, "rate": 0.03, "volatility": 0.25, "time": 0.75}
market = {name: tk.tensor(value, dtype="float64") for name, value in market.items()}
value, slopes = tk.value_and_grad(lambda market: call(**market))(market)
print(f"value {value:.6f}")
print("delta {price:.6f}, vega {volatility:.6f}, rho {rate:.6f}, theta {time:.6f}".format(**slopes))
curvatures = tk.hessian(lambda market: call(**market))(market)
print(f"gamma {curvatures['price']['price']:.8f}, vanna {curvatures['price']['volatility']:.8f}")

# The implied volatility of several prices, by Newton's method in parallel.
price, rate, time = market["price"], market["rate"], market["time"]
strikes = tk.tensor([90.0, 100.0, 110.0, 120.0], dtype="float64")
quotes = tk.tensor([16.0, 10.2, 6.2, 3.7], dtype="float64")


def implied(strike: tk.Tensor, quote: tk.Tensor) -> tk.Tensor:
    """The volatility for which the formula gives the quoted price."""

    def step(_, volatility):
        error, vega = tk.value_and_grad(lambda v: call(price, strike, rate, v, time) - quote)(volatility)
        return volatility - error / vega

    return tk.fori_loop(0, 8, step, 0.3 * tk.ones_like(strike))


smile = tk.jit(tk.vmap(implied))(strikes, quotes)
print(f"implied volatilities {smile:.6f}")
print("prices of the formula:", call(price, strikes, rate, smile, time).round(8))

# The same price as a mean over simulated paths, and its delta by the gradient of the simulation.
normal = tk.random.normal(tk.random.key(1), (20000,), "float64")


def simulated(price: tk.Tensor) -> tk.Tensor:
    """The discounted mean of what the option pays, over pairs of opposite paths."""
    both = tk.concatenate([normal, -normal])
    end = price * tk.exp((0.03 - 0.5 * 0.25**2) * 0.75 + 0.25 * math.sqrt(0.75) * both)
    return math.exp(-0.03 * 0.75) * tk.maximum(end - 105.0, 0.0).mean()


value, delta = tk.value_and_grad(simulated)(price)
print(f"simulated value {value:.1f}, delta {delta:.2f}")


def draw(figure) -> None:
    """The value of the option by the price of the share, and its slope, for three times to maturity."""
    left, right = figure.subplots(1, 2)
    prices = tk.linspace(70.0, 140.0, 60, dtype="float64")
    for years in (1.0, 0.25, 0.01):
        value = partial(
            call, strike=105.0, rate=0.03, volatility=0.25, time=tk.tensor(years, dtype="float64")
        )
        left.plot(prices, value(prices), label=f"{years:g} years")
        right.plot(prices, tk.vmap(tk.grad(value))(prices))
    left.set(xlabel="price of the share", title="value")
    right.set(xlabel="price of the share", title="delta")
    left.legend()
