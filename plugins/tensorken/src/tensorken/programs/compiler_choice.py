"""The choice of compiler plugins by the variable TENSORKEN_COMPILERS."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from tensorken_core.host.discovery import did_you_mean
from tensorken_core.host.variables import refused
from tensorken_core.text import quoted

VARIABLE = "TENSORKEN_COMPILERS"


def chosen_compilers(hooks: Sequence[Any]) -> list[Any]:
    """The hooks of the compilers to call, in order.

    Args:
        hooks: pluggy's hooks of all compiler plugins, in the default order of calls.

    Returns:
        All hooks, if TENSORKEN_COMPILERS is not set; else the hooks of the names in it, separated by commas.  "none"
        stands for no hook; names with a minus sign, such as "-llvm", exclude hooks.

    Raises:
        SettingError: if there is no compiler of a name in the variable.
    """
    text = os.environ.get(VARIABLE)
    if text is None:
        return list(hooks)
    by_name = {short_name(hook.plugin_name): hook for hook in hooks}
    names = [name for part in text.split(",") if (name := part.strip()) not in ("", "none")]
    if names and all([name.startswith("-") for name in names]):
        return [hook for name, hook in by_name.items() if f"-{name}" not in names]
    result = []
    for name in names:
        if name not in by_name:
            installed = f"{', '.join(by_name) or 'none'}{did_you_mean(name, by_name)}"
            raise refused(VARIABLE, f"there is no compiler {quoted(name)}; installed: {installed}")
        result.append(by_name[name])
    return result


def short_name(plugin: str) -> str:
    """The name of a compiler for users: the name of its entry point.

    >>> short_name("plugins:llvm@tensorken-llvm"), short_name("mine")
    ('llvm', 'mine')
    """
    return plugin.partition("@")[0].rpartition(":")[2]
