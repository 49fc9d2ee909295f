"""A power with one repeated exponent of 0.5 is a square root: of -inf it is NaN, and the standard requires inf."""

import array_api_strict as xp

x, half = xp.asarray([-xp.inf, -xp.inf]), xp.asarray([0.5, 0.5])
assert xp.all(xp.pow(x, half) == xp.inf)
assert xp.all(xp.pow(x, xp.broadcast_to(xp.asarray(0.5), (2,))) == xp.inf)
