"""The plugin, which the host imports at discovery; it adds the op to the op table."""

from __future__ import annotations

from tensorken_core.host.plugin import hookimpl
from tensorken_core.language.op import Op


@hookimpl
def tensorken_ops() -> list[Op]:
    """The ops that this distribution adds."""
    from tensorken_myops.distances import SQUARED_DISTANCES

    return [SQUARED_DISTANCES]
