"""Hosting: plugins with wrong entry points or metadata, or that import too early."""

from __future__ import annotations

import importlib
import itertools
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tensorken_conformance.faults.fault import Place, fault
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
    """Install a distribution with one module and these metadata for a while; yields the name of its backend.

    Each has a new name, since the host caches the plugins that it has loaded.
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
def other_name() -> Place:
    """The entry point has another name than its backend."""
    return installed(PLUGIN.replace('"faulty"', '"flawless"'))


@fault("host.metadata", "requirement")
def range_without_end() -> Place:
    """The distribution claims to work with all later versions of the core."""
    return installed(metadata=METADATA.replace(",<0.2", ""))


@fault("host.language", "next")
def language_without_end() -> Place:
    """The backend claims to support versions of the language that do not exist yet."""
    return installed(PLUGIN.replace(">=1.0,<2", ">=1.0"))


@fault("host.lazy", "describing")
def heavy_import() -> Place:
    """The plugin imports its numeric library when it is described, instead of when it is loaded."""
    return installed("import mpmath\n" + PLUGIN)


@fault("host.probe", "repr")
class Nameless(Numpy):
    """The repr of the backend is its address."""

    __repr__ = object.__repr__
