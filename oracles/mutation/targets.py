"""Targets: the modules whose mutants are drawn together, and the backend that the kit examines."""

from __future__ import annotations

import importlib.util
import random
from dataclasses import dataclass
from pathlib import Path

from oracles.mutation.sites import Mutant, mutants_of
from tensorken_conformance.selftest import mutants as known


@dataclass(frozen=True, slots=True)
class Target:
    """Modules to mutate.

    Attributes:
        packages: the packages whose modules are mutated, without their subpackages.
        backend: the name of the backend that the kit examines.
        compilers: the compiler plugins, as in TENSORKEN_COMPILERS.
        without: modules that declare or print and compute nothing that a backend returns.
        largest: the number of elements of the largest operand with which mutants are compared.
    """

    packages: tuple[str, ...]
    backend: str
    compilers: str = "none"
    without: tuple[str, ...] = ()
    largest: int = 70_000

    @property
    def variables(self) -> dict[str, str]:
        """The variables of the processes that examine a mutant."""
        return {"TENSORKEN_COMPILERS": self.compilers}

    def files(self) -> dict[str, Path]:
        """The files of the modules, by name."""
        found = {}
        for package in self.packages:
            spec = importlib.util.find_spec(package)
            assert spec is not None, package
            for folder in spec.submodule_search_locations or ():
                for file in sorted(Path(folder).glob("*.py")):
                    name = package if file.stem == "__init__" else f"{package}.{file.stem}"
                    if name not in self.without:
                        found[name] = file
        return found

    def mutants(self) -> list[Mutant]:
        """All mutants, without those of the kit's selftest, which laws were written for."""
        everything = [
            mutant
            for module, file in self.files().items()
            for mutant in mutants_of(module, file.read_text("utf-8"))
        ]
        if known.PACKAGE not in self.packages:
            return everything
        listed = {
            (f"{known.PACKAGE}.{m.module}", m.function, m.change.rpartition("-")[0])
            for m in known.mutants().values()
        }
        return [m for m in everything if (m.module, m.function, m.kind) not in listed]

    def drawn(self, count: int, seed: int) -> list[Mutant]:
        """So many mutants: each function is equally likely, then each position in it, then each kind."""
        places: dict[tuple[str, str], dict[int, list[Mutant]]] = {}
        for mutant in self.mutants():
            place = places.setdefault((mutant.module, mutant.function), {})
            place.setdefault(mutant.position, []).append(mutant)
        rng = random.Random(seed)
        found: dict[str, Mutant] = {}
        total = sum(len(group) for place in places.values() for group in place.values())
        while len(found) < min(count, total):
            place = places[rng.choice(list(places))]
            mutant = rng.choice(place[rng.choice(list(place))])
            found[mutant.id] = mutant
        return list(found.values())


TARGETS = {
    "numpy": Target(
        ("tensorken_numpy", "tensorken_numpy.compiled"), "numpy", without=("tensorken_numpy.plugin",)
    ),
    "reference": Target(("tensorken_reference",), "reference", largest=40),
    "lowering": Target(("tensorken.kernels", "tensorken.programs.passes"), "numpy", "llvm"),
    "llvm": Target(("tensorken_llvm",), "numpy", "llvm", without=("tensorken_llvm.showing",)),
    "torch": Target(("tensorken_torch",), "torch"),
}
"""The targets by name."""
