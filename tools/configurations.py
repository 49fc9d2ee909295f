"""Test configurations: BLAS kernels, numpy loops and thread counts, to emulate other processors.

    python -m tools.configurations                                    lists the configurations of this processor
    python -m tools.configurations Sandybridge,no-AVX2,1 pytest core  runs a command in a configuration
    python -m tools.configurations foreign:7 pytest core              chooses a configuration by number

`own` is the default of this machine, or of the environment variables, with one thread. `any` is any other
configuration, and `foreign` one with both kernels and loops of another processor; without a number, they change
daily. The environment variable TEST_CONFIGURATION overrides the choice.
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
"""The kernels of OpenBLAS, as in OPENBLAS_CORETYPE, and the processor features that they need.

OpenBLAS does not check them: kernels that the processor cannot run end in an illegal instruction.  Some versions have
kernels that overrun their stack on some processors; `tensorken_numpy.blas` knows them.
"""

LOOPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"all": (), "no-AVX512": ("AVX512", "X86_V4"), "no-AVX2": ("AVX512", "X86_V4", "AVX2", "FMA3", "X86_V3")}
)
"""numpy's loops, and prefixes of the features that NPY_DISABLE_CPU_FEATURES must disable.

A feature is disabled with all features that need it: without only AVX2, numpy would still use AVX-512. numpy refuses to
start if a feature of its baseline is named, and warns of one for which it has no loops; the names depend on its
version.
"""

THREADS = (1, 2)

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Configuration:
    """A configuration that emulates another processor.

    Attributes:
        kernels: the kernels of OpenBLAS, a name of `KERNELS`, or `own` for its default.
        loops: the loops of numpy, a name of `LOOPS`.
        threads: the number of BLAS threads.
    """

    kernels: str = "own"
    loops: str = "all"
    threads: int = 1

    @property
    def name(self) -> str:
        """The name on the command line and in TEST_CONFIGURATION.

        >>> Configuration("Haswell", "no-AVX512", 2).name
        'Haswell,no-AVX512,2'
        """
        return f"{self.kernels},{self.loops},{self.threads}"


OWN = Configuration()


@dataclass(frozen=True, slots=True)
class Processor:
    """A processor as numpy and OpenBLAS see it.

    Attributes:
        features: the features of the processor, by numpy's names.
        dispatched: the features beyond its baseline for which numpy has loops.
        kernels: the default kernels of OpenBLAS; empty if numpy uses another BLAS.
        faulty: kernels that end the process on this processor; no configuration has them.
    """

    features: frozenset[str]
    dispatched: tuple[str, ...]
    kernels: str
    faulty: frozenset[str] = frozenset()

    @classmethod
    def here(cls) -> Processor:
        """The processor of this machine, in the environment of this process."""
        import threadpoolctl
        from numpy._core import _multiarray_umath as numpy  # type: ignore[attr-defined]

        from tensorken_numpy.blas import faulty_kernels

        features = frozenset(name for name, present in numpy.__cpu_features__.items() if present)
        libraries = [
            library for library in threadpoolctl.threadpool_info() if library["internal_api"] == "openblas"
        ]
        kernels = next((str(library["architecture"]) for library in libraries), "")
        return cls(features, tuple(numpy.__cpu_dispatch__), kernels, faulty_kernels())

    def supported(self) -> list[str]:
        """The kernels of OpenBLAS that the processor can run, the fastest first."""
        return [
            name for name, needed in KERNELS.items() if needed <= self.features and name not in self.faulty
        ]

    def disabled(self, loops: str) -> tuple[str, ...]:
        """The features that NPY_DISABLE_CPU_FEATURES must disable for these loops.

        >>> Processor(frozenset(), ("X86_V3", "X86_V4", "AVX512_ICL"), "").disabled("no-AVX512")
        ('X86_V4', 'AVX512_ICL')
        """
        prefixes = LOOPS[loops]
        return tuple(name for name in self.dispatched if prefixes and name.startswith(prefixes))

    def configurations(self) -> tuple[Configuration, ...]:
        """The distinct configurations that this processor supports, `OWN` first."""
        kernels = self.supported() if self.kernels else []
        loops = ["all"]
        for name in LOOPS:
            if self.features.intersection(self.disabled(name)) - set(self.disabled(loops[-1])):
                loops.append(name)
        every = itertools.starmap(Configuration, itertools.product(["own", *kernels], loops, THREADS))
        return tuple(c for c in every if c == OWN or c.kernels != self.kernels)

    def foreign(self) -> tuple[Configuration, ...]:
        """The configurations with other kernels and other loops, or as close to that as possible."""
        other, own_features = self.configurations()[1:], KERNELS.get(self.kernels)
        kernels = [c for c in other if c.kernels != "own" and KERNELS[c.kernels] != own_features]
        loops = [c for c in other if c.loops != "all"]
        return tuple([c for c in kernels if c in loops] or kernels or loops or other)

    def environment(self, configuration: Configuration) -> dict[str, str]:
        """The environment variables of a configuration; `own` and `all` leave them unset where that is right."""
        variables = dict.fromkeys(THREAD_VARIABLES, str(configuration.threads))
        if configuration.kernels != "own":
            variables["OPENBLAS_CORETYPE"] = configuration.kernels
        elif self.kernels in self.faulty:
            variables["OPENBLAS_CORETYPE"] = self.supported()[0]
        if disabled := self.disabled(configuration.loops):
            variables["NPY_DISABLE_CPU_FEATURES"] = " ".join(disabled)
        return {**variables, VARIABLE: configuration.name}


def choose(name: str, processor: Processor) -> Configuration:
    """The configuration of a name; `any:7` and `foreign:7` are number 7, counted cyclically, `any` changes daily.

    Raises:
        ValueError: if the processor does not support it, or the name is unknown.
    """
    group, _, number = name.partition(":")
    groups = {"any": processor.configurations()[1:], "foreign": processor.foreign(), "own": (OWN,)}
    if group in groups:
        index = int(number) if number else datetime.datetime.now(datetime.UTC).date().toordinal()
        return groups[group][index % len(groups[group])]
    kernels = ["own", *processor.supported()]
    for configuration in itertools.starmap(Configuration, itertools.product(kernels, LOOPS, THREADS)):
        if configuration.name == name:
            return configuration
    raise ValueError(
        f"{name}: not a configuration of this processor, which supports one of {', '.join(kernels)}; "
        f"one of {', '.join(LOOPS)}; {' or '.join(map(str, THREADS))} threads; as in {OWN.name}"
    )


def header() -> str:
    """A line that describes the configuration of this process."""
    kernels = os.environ.get("OPENBLAS_CORETYPE", "own")
    without = os.environ.get("NPY_DISABLE_CPU_FEATURES", "none")
    threads = os.environ.get("OPENBLAS_NUM_THREADS", "all")
    repeat = f"; to repeat: {VARIABLE}={os.environ[VARIABLE]}" if VARIABLE in os.environ else ""
    return (
        f"configuration: BLAS kernels {kernels}, disabled numpy features {without}, threads {threads}{repeat}"
    )


def main(arguments: list[str] | None = None) -> int:
    """List the configurations, or run a command in one; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.configurations")
    parser.add_argument(
        "name", nargs="?", help="own, any, foreign, any:NUMBER, foreign:NUMBER, or as in the list"
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, help="the command to run in it")
    options = parser.parse_args(arguments)
    processor = Processor.here()
    if options.name is None:
        foreign = processor.foreign()
        for configuration in processor.configurations():
            print(f"{configuration.name:24}{'foreign' if configuration in foreign else ''}".rstrip())
        return 0
    try:
        choice = choose(os.environ.get(VARIABLE) or options.name, processor)
    except ValueError as error:
        parser.error(str(error))
    environment = {**os.environ, **processor.environment(choice)}
    if os.name == "posix":  # replace this process, so that Ctrl-C reaches the command
        os.execvpe(options.command[0], options.command, environment)
    return subprocess.run(options.command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
