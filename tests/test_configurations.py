"""Test configurations: a process computes with the kernels, loops and threads of its configuration."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from core.tests.each import each_of
from tools import configurations
from tools.configurations import KERNELS, LOOPS, OWN, VARIABLE, Configuration, Processor
from tools.workspace import ROOT

BASELINE = {"SSE", "SSE2", "AVX"}
WITH_AVX2 = BASELINE | {"AVX2", "FMA3", "X86_V3"}
WITH_AVX512 = WITH_AVX2 | KERNELS["SkylakeX"] | {"X86_V4", "AVX512_ICL"}
NUMPY_2_4 = ("X86_V3", "X86_V4", "AVX512_ICL", "AVX512_SPR")
NUMPY_2_0 = ("FMA3", "AVX2", "AVX512F", "AVX512CD", "AVX512_SKX")

PROCESSORS = {
    "AVX-512": Processor(frozenset(WITH_AVX512), NUMPY_2_4, "SkylakeX"),
    "AVX-512, kernels chosen by the user": Processor(frozenset(WITH_AVX512), NUMPY_2_4, "Haswell"),
    "AVX2": Processor(frozenset(WITH_AVX2), NUMPY_2_4, "Zen"),
    "AVX2, an older numpy": Processor(frozenset(WITH_AVX2), NUMPY_2_0, "Haswell"),
    "AVX": Processor(frozenset(BASELINE), NUMPY_2_4, "Sandybridge"),
    "another BLAS": Processor(frozenset(WITH_AVX2), NUMPY_2_4, ""),
    "Zen 4": Processor(frozenset(WITH_AVX512), NUMPY_2_4, "SkylakeX", frozenset({"Haswell", "Zen"})),
    "Zen 4 that hides AVX-512": Processor(
        frozenset(WITH_AVX2), NUMPY_2_4, "Zen", frozenset({"Haswell", "Zen"})
    ),
    "ARM": Processor(frozenset({"NEON", "ASIMD"}), ("ASIMDHP", "SVE"), "neoversen1"),
}

EFFECT = """
import json, numpy, threadpoolctl
from numpy._core import _multiarray_umath as of_numpy
libraries = threadpoolctl.threadpool_info()
numpy.ones((64, 64)) @ numpy.ones((64, 64))
print(json.dumps([
    [[one["architecture"], one["num_threads"]] for one in libraries if one["internal_api"] == "openblas"],
    [name for name in of_numpy.__cpu_dispatch__ if of_numpy.__cpu_features__[name]],
]))
"""


def in_configuration(name: str, *command: str) -> str:
    """The output of a command in a configuration."""
    environment = {key: value for key, value in os.environ.items() if key != VARIABLE}
    full = [sys.executable, "-m", "tools.configurations", name, *command]
    return subprocess.run(
        full, cwd=ROOT, env=environment, stdout=subprocess.PIPE, encoding="utf-8", check=True
    ).stdout


def test_a_process_computes_with_its_configuration() -> None:
    """If numpy's OpenBLAS lacks kernels, it uses those of the next older processor, such as Haswell's for a Zen."""
    here = Processor.here()
    processors = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    every = {one for one in here.configurations() if one != OWN}
    covered: set[object] = set()
    for one in sorted(every, key=lambda one: (-one.threads, one.name)):
        if covered >= {one.kernels, one.loops, one.threads}:
            continue
        covered |= {one.kernels, one.loops, one.threads}
        libraries, loops = json.loads(in_configuration(one.name, sys.executable, "-W", "error", "-c", EFFECT))
        assert not set(loops) & set(here.disabled(one.loops)), one
        for kernels, threads in libraries:
            assert threads == min(one.threads, processors), one
            if one.kernels != "own":
                assert kernels == one.kernels or KERNELS[kernels] == KERNELS[one.kernels], one
    assert covered >= {part for one in every for part in (one.kernels, one.loops)}


@each_of(("name", "kernels", "loops"), [
    ("AVX-512", {"Haswell", "Zen", "Sandybridge"}, {"no-AVX512", "no-AVX2"}),
    ("AVX-512, kernels chosen by the user", {"SkylakeX", "Sandybridge"}, {"no-AVX512", "no-AVX2"}),
    ("AVX2", {"Sandybridge"}, {"no-AVX2"}),
    ("AVX2, an older numpy", {"Sandybridge"}, {"no-AVX2"}),
    ("AVX", {"own"}, {"all"}),
    ("another BLAS", {"own"}, {"no-AVX2"}),
    ("Zen 4", {"Sandybridge"}, {"no-AVX512", "no-AVX2"}),
    ("Zen 4 that hides AVX-512", {"Sandybridge"}, {"no-AVX2"}),
    ("ARM", {"own"}, {"all"}),
])  # fmt: skip
def test_a_foreign_configuration_is_another_processors(name: str, kernels: set[str], loops: set[str]) -> None:
    """If no other processor can be emulated, the number of threads differs."""
    foreign = PROCESSORS[name].foreign()
    assert {one.kernels for one in foreign} == kernels
    assert {one.loops for one in foreign} == loops
    assert OWN not in foreign
    assert foreign


@each_of("processor", PROCESSORS.values())
def test_no_configuration_asks_for_what_the_processor_or_numpy_lacks(processor: Processor) -> None:
    every = processor.configurations()
    assert every[0] == OWN
    assert len(set(every)) == len(every)
    for one in every:
        assert KERNELS.get(one.kernels, frozenset()) <= processor.features
        variables = processor.environment(one)
        assert set(variables.get("NPY_DISABLE_CPU_FEATURES", "").split()) <= set(processor.dispatched)
        assert variables[VARIABLE] == one.name
    for group in ("any", "foreign"):
        chosen = [configurations.choose(f"{group}:{number}", processor) for number in range(2 * len(every))]
        assert set(chosen) == set(every[1:] if group == "any" else processor.foreign())


def test_dependent_features_are_disabled_together() -> None:
    processor = PROCESSORS["AVX-512"]
    assert processor.disabled("no-AVX2") == NUMPY_2_4
    assert processor.disabled("no-AVX512") == NUMPY_2_4[1:]
    assert PROCESSORS["AVX2, an older numpy"].disabled("no-AVX512") == NUMPY_2_0[2:]


@each_of("name", ["Skylake,all,1", "SkylakeX,all,1", "Zen,all", "Zen,none,1", "others"])
def test_unsupported_configurations_are_refused(name: str) -> None:
    with pytest.raises(
        ValueError, match=f"^{name}: not a .* of own, Haswell, Zen, Sandybridge; .*; as in own,all,1$"
    ):
        configurations.choose(name, PROCESSORS["AVX2"])


def test_every_name_selects_its_configuration() -> None:
    for processor in PROCESSORS.values():
        for one in processor.configurations():
            assert configurations.choose(one.name, processor) == one
    for loops in LOOPS:
        one = Configuration("own", loops, 2)
        assert configurations.choose(one.name, PROCESSORS["ARM"]) == one


def test_the_header_describes_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in PROCESSORS["AVX-512"].environment(Configuration("Zen", "no-AVX2", 2)).items():
        monkeypatch.setenv(name, value)
    assert configurations.header() == (
        "configuration: BLAS kernels Zen, disabled numpy features X86_V3 X86_V4 AVX512_ICL AVX512_SPR, threads 2; "
        "to repeat: TEST_CONFIGURATION=Zen,no-AVX2,2"
    )


def test_a_failing_command_fails() -> None:
    with pytest.raises(subprocess.CalledProcessError) as failed:
        in_configuration("own", sys.executable, "-c", "raise SystemExit(3)")
    assert failed.value.returncode == 3


def test_an_unknown_configuration_is_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "others")
    with pytest.raises(SystemExit, match="2"):
        configurations.main(["own", sys.executable, "--version"])
    assert "error: others: not a configuration of this processor" in capsys.readouterr().err


def test_the_variable_decides() -> None:
    """Even if a session chooses another."""
    printed = f"import os; print(os.environ[{VARIABLE!r}], os.environ['OPENBLAS_NUM_THREADS'])"
    command = [sys.executable, "-m", "tools.configurations", "foreign", sys.executable, "-c", printed]
    environment = {**os.environ, VARIABLE: "own,all,2"}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True)
    assert done.stdout.split() == [b"own,all,2", b"2"]


def test_the_list_marks_the_foreign(capsys: pytest.CaptureFixture[str]) -> None:
    assert configurations.main([]) == 0
    here = Processor.here()
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines] == [one.name for one in here.configurations()]
    assert [line[0] for line in lines if line[1:] == ["foreign"]] == [one.name for one in here.foreign()]


@each_of("name", ["Zen 4", "Zen 4 that hides AVX-512"])
def test_no_configuration_has_kernels_that_end_the_process(name: str) -> None:
    processor = PROCESSORS[name]
    for configuration in processor.configurations():
        chosen = processor.environment(configuration).get("OPENBLAS_CORETYPE", processor.kernels)
        assert chosen not in processor.faulty
    assert processor.environment(OWN).get("OPENBLAS_CORETYPE") == (
        "Sandybridge" if processor.kernels == "Zen" else None
    )
    for kernels in processor.faulty:
        with pytest.raises(ValueError, match="not a configuration of this processor"):
            configurations.choose(f"{kernels},all,1", processor)


def test_products_do_not_end_the_process_in_any_configuration() -> None:
    product = "import numpy as np; assert (np.ones((5000, 36)).T @ np.ones((5000, 40)) == 5000).all()"
    kernels = {one.kernels: one for one in Processor.here().configurations() if one.threads == 1}
    for one in kernels.values():
        in_configuration(one.name, sys.executable, "-c", product)
