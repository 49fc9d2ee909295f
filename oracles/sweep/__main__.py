"""Try all cells, print the faults, and write or check docs/sweep.md: `python -m oracles.sweep --help`."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter

from oracles.sweep import known, page
from oracles.sweep.cells import MODE_NAMES
from oracles.sweep.operands import DTYPES
from oracles.sweep.running import every_cell


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--select", default="", help="only functions whose name contains this text")
    parser.add_argument("--dtypes", default=",".join(DTYPES), help="dtypes, separated by commas")
    parser.add_argument("--modes", default=",".join(MODE_NAMES), help="modes, separated by commas")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="how many processes try cells")
    parser.add_argument(
        "--write", action="store_true", help="write docs/sweep.md and the table of open faults"
    )
    parser.add_argument(
        "--check", action="store_true", help="fail if docs/sweep.md or the table of open faults is wrong"
    )
    parser.add_argument("--all", action="store_true", help="print the known faults too")
    options = parser.parse_args()
    os.environ |= {"TENSORKEN_COMPILERS": "none", "TENSORKEN_LLVM_CACHE": "0"}  # machine code is made anew
    found = list(
        every_cell(options.dtypes.split(","), options.modes.split(","), options.select, options.processes)
    )
    faults = known.read()
    new, mended = faults.new(found), faults.mended(found)
    for cell in [cell for cell in found if cell.verdict.kind == "wrong"] if options.all else new:
        print(cell)
    for fault in mended:
        print("mended:", *fault)
    print(dict(Counter(cell.verdict.kind for cell in found)), file=sys.stderr)
    if options.write:
        known.write(found)
        page.FILE.write_text(page.written(found), encoding="utf-8")
    if options.check:
        is_old = page.FILE.read_text(encoding="utf-8") != page.written(found)
        if is_old:
            print("docs/sweep.md is old: run python -m oracles.sweep --write")
        return int(bool(new or mended or is_old))
    return 0


if __name__ == "__main__":
    sys.exit(main())
