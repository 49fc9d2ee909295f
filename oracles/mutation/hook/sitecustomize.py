"""Import one module from other code than its file; Python runs this file at the start of every process.

The variable MUTATION is the path of a file with the module's name, its code and the path of a mark, marshalled.  The
mark is written when the mutated node runs for the first time.
"""

import builtins
import marshal
import os
import sys
from contextlib import suppress
from importlib.machinery import SourceFileLoader


def install(path):  # type: ignore[no-untyped-def]
    """Install the finder of the module that the file at this path describes."""
    with open(path, "rb") as file:  # noqa: PTH123, pathlib would be imported into every process
        module, code, mark = marshal.load(file)
    is_marked = False

    def runs():  # type: ignore[no-untyped-def]
        nonlocal is_marked
        if not is_marked:
            is_marked = True
            with suppress(OSError):
                os.close(os.open(mark, os.O_CREAT | os.O_WRONLY))

    class Loader(SourceFileLoader):
        """Loads the other code."""

        def get_code(self, fullname):  # type: ignore[no-untyped-def]
            return code

    class Finder:
        """Finds the module where it is, with another loader."""

        @staticmethod
        def find_spec(name, path=None, target=None):  # type: ignore[no-untyped-def]
            if name != module:
                return None
            others = (finder for finder in sys.meta_path if finder is not Finder)
            spec = next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
            if spec is not None:
                spec.loader = Loader(name, spec.origin)
            return spec

    builtins.__mutant_runs__ = runs
    sys.meta_path.insert(0, Finder)


if "MUTATION" in os.environ:
    install(os.environ["MUTATION"])
