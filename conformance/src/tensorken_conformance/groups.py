"""Check a group of processes: four members each run `python -m tensorken_conformance.groups NAME [OPTION=VALUE ...]`.

The members compute the programs of the law `programs.collectives`, and their gradients, and compare their rows with the
computation on all examples in one process.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

import tensorken as tk
from tensorken.distributed import Group, join
from tensorken_conformance.case import Case
from tensorken_conformance.laws.collectives import EXAMPLES, LENGTH, MODES, PROGRAMS, agree, weighted
from tensorken_core.errors import ArgumentError


def check_group(group: Group, seed: int = 0) -> int:
    """Compute all programs as a member of a group; return the number of results that were compared.

    Raises:
        ArgumentError: if the group does not have four members.
        Failure: if a result differs from that of one process.
    """
    if group.size != EXAMPLES:
        raise ArgumentError(f"check_group: need {EXAMPLES} members, and the group has {group.size}")
    values = np.random.default_rng(seed).uniform(-1.5, 1.5, (EXAMPLES, LENGTH))
    x, count = tk.tensor(values), 0
    for name, (of_example, of_all) in PROGRAMS.items():
        for mode, function in (("threads", of_example), ("threads-of-grad", tk.grad(weighted(of_example)))):
            for compiled in (function, tk.jit(function)):
                got = tk.spread(compiled, group, axis_name="rows")(x[group.rank])
                wanted = MODES[mode][1](of_all, x)[group.rank]
                op = name.replace(" ", "-")
                case = Case("programs.collectives", op, "float64", detail=type(group).__name__)
                agree(case, np.asarray(got), np.asarray(wanted), values)
                count += 1
    return count


def main(arguments: Sequence[str]) -> int:
    """Join a group and check it; the options are those of the group, and `seed` of the values."""
    if not arguments:
        print(__doc__)
        return 2
    name, *pairs = arguments
    options: dict[str, Any] = {}
    for pair in pairs:
        option, _, value = pair.partition("=")
        options[option] = float(value) if option == "timeout" else int(value) if value.isdigit() else value
    seed = options.pop("seed", 0)
    count = check_group(group := join(name, **options), seed)
    print(f"{name}: member {group.rank} of {group.size}: {count} results are those of one process")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
