"""`python -m tensorken_cli`: the same as the command `tensorken`."""

from __future__ import annotations

import sys

from tensorken_cli.command import main

if __name__ == "__main__":
    sys.exit(main())
