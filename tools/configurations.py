"""The configurations that the tests must pass in: BLAS kernels, numpy's loops and threads, as on other processors.

    python -m tools.configurations                                    lists those that this processor can take
    python -m tools.configurations Sandybridge,no-AVX2,1 pytest core  runs a command in one of them
    python -m tools.configurations foreign:7 pytest core              chooses it by a number

`own` is what this machine does by itself, or by the variables that its owner has set, with one thread; `any` is any
other, and `foreign` one whose kernels and loops both are another processor's; without a number it is another each day.
Where the environment variable TEST_CONFIGURATION names one, it is that one.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

VARIABLE = "TEST_CONFIGURATION"

KERNELS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "SkylakeX": frozenset({"AVX2", "FMA3", "AVX512F", "AVX512CD", "AVX512BW", "AVX512DQ", "AVX512VL"}),
        "Haswell": frozenset({"AVX2", "FMA3"}),
        "Zen": frozenset({"AVX2", "FMA3"}),
        "Sandybridge": frozenset({"AVX"}),
    }
)
"""The kernels of OpenBLAS that OPENBLAS_CORETYPE names, and what a processor must have to run them.

OpenBLAS does not ask: kernels that the processor cannot run end in an illegal instruction.
"""

LOOPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"all": (), "no-AVX512": ("AVX512", "X86_V4"), "no-AVX2": ("AVX512", "X86_V4", "AVX2", "FMA3", "X86_V3")}
)
"""numpy's loops, and how the features begin that NPY_DISABLE_CPU_FEATURES takes away.

Without AVX2 alone numpy would still use AVX-512, so what needs a feature is taken away with it.  numpy refuses to start
if a feature of its baseline is named, and warns of one that it has no loops for; its versions name them differently.
"""

THREADS = (1, 2)

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Configuration:
    """What another processor would do, on this one.

    Attributes:
        kernels: the kernels of OpenBLAS, a name of `KERNELS`, or `own`: those that it takes by itself.
        loops: the loops of numpy, a name of `LOOPS`.
        threads: how many threads BLAS has.
    """

    kernels: str = "own"
    loops: str = "all"
    threads: int = 1

    @property
    def name(self) -> str:
        """What the command line and TEST_CONFIGURATION call it.

        >>> Configuration("Haswell", "no-AVX512", 2).name
        'Haswell,no-AVX512,2'
        """
        return f"{self.kernels},{self.loops},{self.threads}"


OWN = Configuration()


@dataclass(frozen=True, slots=True)
class Processor:
    """What numpy and OpenBLAS make of a processor.

    Attributes:
        features: what the processor has, by numpy's names.
        dispatched: the features that numpy has loops for, beyond its baseline.
        kernels: the kernels that OpenBLAS takes by itself; empty if numpy has another BLAS.
    """

    features: frozenset[str]
    dispatched: tuple[str, ...]
    kernels: str

    @classmethod
    def here(cls) -> Processor:
        """The one of this machine, as the environment of this process leaves it."""
        import threadpoolctl
        from numpy._core import _multiarray_umath as numpy  # type: ignore[attr-defined]

        features = frozenset(name for name, present in numpy.__cpu_features__.items() if present)
        libraries = [
            library for library in threadpoolctl.threadpool_info() if library["internal_api"] == "openblas"
        ]
        kernels = next((str(library["architecture"]) for library in libraries), "")
        return cls(features, tuple(numpy.__cpu_dispatch__), kernels)

    def disabled(self, loops: str) -> tuple[str, ...]:
        """The features that NPY_DISABLE_CPU_FEATURES takes away, for some of the loops.

        >>> Processor(frozenset(), ("X86_V3", "X86_V4", "AVX512_ICL"), "").disabled("no-AVX512")
        ('X86_V4', 'AVX512_ICL')
        """
        begins = LOOPS[loops]
        return tuple(name for name in self.dispatched if begins and name.startswith(begins))

    def configurations(self) -> tuple[Configuration, ...]:
        """Those that this processor can take and that differ, `OWN` first."""
        kernels = [name for name, needed in KERNELS.items() if self.kernels and needed <= self.features]
        loops = ["all"]
        for name in LOOPS:
            if self.features.intersection(self.disabled(name)) - set(self.disabled(loops[-1])):
                loops.append(name)
        every = itertools.starmap(Configuration, itertools.product(["own", *kernels], loops, THREADS))
        return tuple(one for one in every if one == OWN or one.kernels != self.kernels)

    def foreign(self) -> tuple[Configuration, ...]:
        """Those of another processor: other kernels and other loops, as far as there are any."""
        other, ours = self.configurations()[1:], KERNELS.get(self.kernels)
        kernels = [one for one in other if one.kernels != "own" and KERNELS[one.kernels] != ours]
        loops = [one for one in other if one.loops != "all"]
        return tuple([one for one in kernels if one in loops] or kernels or loops or other)

    def environment(self, configuration: Configuration) -> dict[str, str]:
        """The variables that make a process take a configuration; with `own` and `all`, others stay as they are."""
        variables = dict.fromkeys(THREAD_VARIABLES, str(configuration.threads))
        if configuration.kernels != "own":
            variables["OPENBLAS_CORETYPE"] = configuration.kernels
        if disabled := self.disabled(configuration.loops):
            variables["NPY_DISABLE_CPU_FEATURES"] = " ".join(disabled)
        return {**variables, VARIABLE: configuration.name}


def choose(name: str, processor: Processor) -> Configuration:
    """The configuration of a name; `any:7` and `foreign:7` are the seventh of these, counted round, `any` today's.

    Raises:
        ValueError: the processor cannot take it, or nothing is called so.
    """
    group, _, number = name.partition(":")
    groups = {"any": processor.configurations()[1:], "foreign": processor.foreign(), "own": (OWN,)}
    if group in groups:
        place = int(number) if number else datetime.datetime.now(datetime.UTC).date().toordinal()
        return groups[group][place % len(groups[group])]
    kernels = ["own", *(one for one, needed in KERNELS.items() if needed <= processor.features)]
    for one in itertools.starmap(Configuration, itertools.product(kernels, LOOPS, THREADS)):
        if one.name == name:
            return one
    raise ValueError(
        f"{name}: not a configuration of this processor, which takes one of {', '.join(kernels)}; "
        f"one of {', '.join(LOOPS)}; {' or '.join(map(str, THREADS))} threads; as in {OWN.name}"
    )


def header() -> str:
    """A line on what this process computes with, as its environment says."""
    kernels = os.environ.get("OPENBLAS_CORETYPE", "own")
    without = os.environ.get("NPY_DISABLE_CPU_FEATURES", "none")
    threads = os.environ.get("OPENBLAS_NUM_THREADS", "all")
    again = f"; again: {VARIABLE}={os.environ[VARIABLE]}" if VARIABLE in os.environ else ""
    return f"configuration: BLAS kernels {kernels}, features taken from numpy {without}, threads {threads}{again}"


def main(arguments: list[str] | None = None) -> int:
    """List the configurations, or run a command in one; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.configurations")
    parser.add_argument(
        "name", nargs="?", help="own, any, foreign, any:NUMBER, foreign:NUMBER, or as in the list"
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, help="what to run in it")
    given = parser.parse_args(arguments)
    processor = Processor.here()
    if given.name is None:
        foreign = processor.foreign()
        for one in processor.configurations():
            print(f"{one.name:24}{'foreign' if one in foreign else ''}".rstrip())
        return 0
    try:
        chosen = choose(os.environ.get(VARIABLE) or given.name, processor)
    except ValueError as error:
        parser.error(str(error))
    environment = {**os.environ, **processor.environment(chosen)}
    if os.name == "posix":  # the command takes this one's place, so Ctrl-C is its own
        os.execvpe(given.command[0], given.command, environment)
    return subprocess.run(given.command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
