"""Hosting: plugins that are found wrongly, described wrongly, or loaded too early."""

from __future__ import annotations

import importlib
import itertools
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tensorken_conformance.faults.fault import Course, fault
from tensorken_core.host.registry import REGISTRY
from tensorken_numpy.backend import Numpy

PLUGIN = """
from tensorken_core.host.plugin import BackendEntry, hookimpl

def load(device=None):
    from tensorken_numpy.backend import Numpy
    return Numpy()

@hookimpl
def tensorken_backend():
    return BackendEntry("faulty", load, summary="numpy, wrongly packed", spec=">=1.0,<2")
"""

METADATA = """Metadata-Version: 2.4
Name: tensorken-faulty
Version: 1.0
Summary: A backend that is wrongly packed
License-Expression: MIT
Requires-Dist: tensorken-core>=0.1,<0.2
Requires-Dist: mpmath
"""


NUMBERS = itertools.count()


@contextmanager
def installed(module: str = PLUGIN, metadata: str = METADATA) -> Iterator[str]:
    """A distribution with one module and these metadata, as if it were installed; the name of its backend.

    Each has another name than those before, as the host remembers what it has loaded.
    """
    name = f"faulty{next(NUMBERS)}"
    with tempfile.TemporaryDirectory() as folder:
        facts = Path(folder, f"tensorken_{name}-1.0.dist-info")
        facts.mkdir()
        Path(folder, f"tensorken_{name}.py").write_text(module.replace("faulty", name), "utf-8")
        (facts / "METADATA").write_text(metadata.replace("faulty", name), "utf-8")
        points = f"[tensorken.backends]\n{name} = tensorken_{name}\n"
        (facts / "entry_points.txt").write_text(points, "utf-8")
        sys.path.insert(0, folder)
        importlib.invalidate_caches()
        REGISTRY.refresh()
        try:
            yield name
        finally:
            sys.path.remove(folder)
            sys.modules.pop(f"tensorken_{name}", None)
            REGISTRY.refresh()


@fault("host.entry-point", "loads")
def other_name() -> Course:
    """The entry point is named otherwise than the backend that it leads to."""
    with installed(PLUGIN.replace('"faulty"', '"flawless"')) as name:
        yield name


@fault("host.metadata", "requirement")
def range_without_end() -> Course:
    """The distribution promises to work with all later versions of the core."""
    with installed(metadata=METADATA.replace(",<0.2", "")) as name:
        yield name


@fault("host.language", "next")
def language_without_end() -> Course:
    """The backend promises to speak versions of the language that are not written yet."""
    with installed(PLUGIN.replace(">=1.0,<2", ">=1.0")) as name:
        yield name


@fault("host.lazy", "describing")
def heavy_import() -> Course:
    """The plugin imports what it computes with when it is described, and not when it is loaded."""
    with installed("import mpmath\n" + PLUGIN) as name:
        yield name


@fault("host.probe", "repr")
class Nameless(Numpy):
    """The backend shows itself by its address."""

    __repr__ = object.__repr__
