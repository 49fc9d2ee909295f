"""The nox sessions: `nox -l` lists them; `python run.py SESSION` installs nox and runs one."""

from __future__ import annotations

import contextlib
import datetime
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import nox

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))  # nox loads this file by its path

from tools import array_api as public_suite  # noqa: E402
from tools.workspace import OPTIONAL, distributions  # noqa: E402

PROJECT = nox.project.load_toml(ROOT / "pyproject.toml")
TENSORKEN = nox.project.load_toml(ROOT / "plugins" / "tensorken" / "pyproject.toml")
CURRENT = f"{sys.version_info.major}.{sys.version_info.minor}"
PYTHONS = sorted(
    {*nox.project.python_versions(TENSORKEN), CURRENT},
    key=lambda version: [int(part) for part in version.split(".")],
)
NEWEST = [version for version in PYTHONS if version == CURRENT or shutil.which(f"python{version}")][-1]
# folder name of a distribution -> its extras in a full environment
WITH_EXTRAS = {"nn": "[plot]", "core": "[completion,rich]"}
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

# XLA's optimisations take seconds for a program, and those of tests run once.
FAST_XLA = {"XLA_FLAGS": "--xla_backend_optimization_level=0"}
PARALLEL = ["--numprocesses=auto", "--dist=loadscope", "--max-worker-restart=0"]
QUICK = [*PARALLEL, "-m", "not slow and not nightly", "--hypothesis-profile=few"]
SHARES = 16  # of the quick tests: on the newest Python, each commit runs one share
COMPILED = [  # tests whose programs a compiler plugin may run
    "core/tests/test_nesting.py",
    "plugins/nn/tests",
    "plugins/tensorken/tests/test_control_flow.py",
    "plugins/tensorken/tests/test_jit.py",
]
IS_X86 = platform.machine() in ("x86_64", "AMD64")
LESSER_CPUS = ["x86-64", "haswell"] if IS_X86 else []  # whose instructions most processors have
LIMITS = ["--timeout=300", "--timeout-method=thread"]  # code may swallow an exception raised by a signal
NIGHTLY = (
    *("random", "jax", "torch", "dask", "mpi", "digits", "places", "llvm", "kit", "selftest", "mutants"),
    *("sweep", "gpu-kernels", "lowest", "start", "site", "large", "scoreboard"),
)
MUTANTS = (  # target, depth and number of mutants
    ("numpy", "smoke", 200),
    ("numpy", "default", 40),
    *((target, "smoke", 100) for target in ("reference", "lowering", "llvm")),
)
OF_REFERENCE = ("dask", "mpi")  # optional distributions with pages in the reference
FIRST_PARTY = [folder.name for folder in distributions() if folder.parent.name == "backends"]

nox.needs_version = ">=2025.11.12"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"
nox.options.error_on_missing_interpreters = False
nox.options.download_python = "never"
nox.options.sessions = ["lint", "typing", "features", "docs", "tests"]

# Without cached bytecode, each process that a test starts would compile all its imports, which takes a second.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# uv does not read pip's settings.
if "PIP_FIND_LINKS" in os.environ:
    os.environ.setdefault("UV_FIND_LINKS", ",".join(os.environ["PIP_FIND_LINKS"].split()))

# pyenv puts only its selected interpreters on the PATH; add all that are installed.
pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
with contextlib.suppress(PermissionError):  # the folder may belong to another user
    os.environ["PATH"] = os.pathsep.join(
        [os.environ["PATH"], *map(str, sorted(pyenv.glob("3.*/bin"), reverse=True))]
    )


def requirements(*groups: str) -> list[str]:
    """The requirements of these dependency groups of pyproject.toml."""
    return list(nox.project.dependency_groups(PROJECT, *groups))


def editable(*, extras: bool = True, optional: Sequence[str] = (), isolated: bool = False) -> list[str]:
    """The arguments of pip that install every distribution from its source folder, with these optional ones.

    Unless `isolated`, pip builds them with the tools that are installed.
    """
    found = [*distributions(), *(ROOT / OPTIONAL[name] for name in optional)]
    folders = [f"{folder}{WITH_EXTRAS.get(folder.name, '') if extras else ''}" for folder in found]
    options = [] if isolated else ["--no-build-isolation"]
    return [*options, *(argument for folder in folders for argument in ("--editable", folder))]


def head(checkout: Path) -> str:
    """The commit of a checkout; empty without git."""
    command = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    git = (
        subprocess.run(command, capture_output=True, text=True, check=False) if shutil.which("git") else None
    )
    return git.stdout.strip() if git and git.returncode == 0 else ""


def install_workspace(
    session: nox.Session, *groups: str, extras: bool = True, optional: Sequence[str] = ()
) -> None:
    """Install the distributions and the requirements of the groups into the session's environment."""
    session.install(*requirements("build", *groups))
    session.install(*editable(extras=extras, optional=optional))


def install_lowest(session: nox.Session) -> None:
    """Install the distributions with the lowest versions of other packages that they accept, and the tests' tools."""
    session.install(*requirements("places"))  # uv: pip cannot choose the lowest versions
    pip = ("uv", "pip", "install", "--quiet")
    lowest = ("--resolution=lowest-direct", "--upgrade")  # or uv keeps the versions of an earlier run
    session.run(*pip, *lowest, *editable(optional=["jax", "dask", "mpi"], isolated=True))
    session.run(*pip, *requirements("test", "mpi"))  # it keeps the versions that are installed


def run_pytest(
    session: nox.Session, configuration: str, *arguments: str, environment: dict[str, str] | None = None
) -> None:
    """Run pytest in a configuration of the machine: a name of tools/configurations.py."""
    command = ["python", "-m", "tools.configurations", configuration, "pytest", *arguments]
    session.run(*command, env=environment)


@nox.session
def demo(session: nox.Session) -> None:
    """Train the digit classifier: the arguments are those of `tensorken train digits`."""
    install_workspace(session)
    session.run("tensorken", "train", "digits", *session.posargs)


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run all tests but the nightly ones on Python 3.11, and a sixteenth of the quick ones on the newest Python."""
    install_workspace(session, "test")
    if session.posargs:
        run_pytest(session, "own", *LIMITS, *session.posargs)
        return
    if session.python == PYTHONS[0]:
        run_pytest(session, "own", *LIMITS, *PARALLEL, "-m", "not nightly", "--hypothesis-profile=few")
    if session.python == NEWEST:
        number = int(head(ROOT)[:8] or "0", 16)  # another configuration and share for each commit
        run_pytest(session, f"foreign:{number}", *LIMITS, *QUICK, f"--share={number % SHARES}/{SHARES}")
    elif session.python != PYTHONS[0]:
        sources = [str(folder / "src") for folder in distributions()]  # docstrings; it imports all modules
        run_pytest(session, "own", *LIMITS, *sources)


@nox.session
@nox.parametrize(
    "python,part",
    [
        *(nox.param(PYTHONS[0], part, id=part) for part in NIGHTLY),
        *(nox.param(version, "tests", id=f"tests-{version}") for version in PYTHONS[1:]),
    ],
)
def nightly(session: nox.Session, part: str) -> None:
    """Run what the checks of a commit skip, in parts, `nox -s "nightly(kit)"` one of them; all take hours.

    random: the nightly tests, and many examples of the random ones; arguments go to pytest
    jax: all random programs, compared with JAX, and the kit's smoke cases on the JAX backend
    torch: all cases of the kit on the PyTorch backend, its slowest tests, and recorded numbers of PyTorch and optax
    dask: trainings on a cluster whose workers are killed
    mpi: all tests of groups of MPI, and the kit's programs in four processes with several seeds
    digits: the tests of pages and docstrings, with other last digits of every number
    places: the quick tests in another place of the file system
    llvm: the tests and the kit with compiled programs, also for lesser processors
    kit: all cases of the kit on every backend
    sweep: every public function with every dtype in every mode, compared with docs/sweep.md
    gpu-kernels: the tests of the wgpu backend and the kit, with the kernels for GPUs on any adapter
    large: functions of positions, counts and sums of more than 2**31 elements, one at a time, each in 16 GB
    scoreboard: the kit on the libraries of the scoreboard, each in its environment; arguments are their names
    site: the pages of the documentation in a browser, and their links to other sites; arguments are pages
    selftest: the kit's seeded faults with 20 seeds, which examine all cases of correct backends, and all its mutants
    mutants: faults generated from the day's seed, in each target, and the share of them that the kit finds
    lowest: the quick tests, with the oldest versions that our distributions accept
    start: the first steps of users and authors, from empty environments, on each Python
    tests: all tests, on the other versions of Python
    """
    if part == "lowest":
        install_lowest(session)
        run_pytest(session, "any", *LIMITS, *(session.posargs or QUICK))
        return
    if part == "start":
        session.install(*requirements("release"))
        session.run("python", "-m", "tools.first_steps", *[f"python{python}" for python in PYTHONS])
        return
    if part == "site":
        check_site(session)
        return
    if part == "scoreboard":
        install_workspace(session)
        session.run("python", "-m", "tools.scoreboard", *session.posargs, env=ONE_THREAD)
        return
    needed = {
        "jax": ["jax"],
        "sweep": ["jax"],
        "mpi": ["mpi"],
        "places": ["places"],
        "torch": ["bench-torch", "optax"],
    }
    groups = needed.get(part, [])
    install_workspace(session, "test", *groups, optional=[part] if part in OPTIONAL else [])
    if part == "random":
        selection = session.posargs or [
            "-m",
            "nightly and not large or hypothesis",
            "--hypothesis-profile=many",
            *PARALLEL,
        ]
        run_pytest(session, "any", "--timeout=3600", *selection)
    elif part == "jax":
        compare_with_jax(session, "--timeout=3600")
        examine(session, "jax", "--smoke")
    elif part == "torch":
        run_pytest(session, "own", *LIMITS, "-m", "nightly", "backends/torch")
        examine(session, "torch")
        session.run("python", "-m", "oracles.record_layers", "--check")
        session.run("python", "-m", "oracles.record_training", "--check")
    elif part == "dask":
        run_pytest(session, "own", *LIMITS, "plugins/dask")
    elif part == "mpi":
        run_pytest(session, "own", *LIMITS, "plugins/mpi")
        root = ["--allow-run-as-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        members = ["mpirun", *root, "--oversubscribe", "-n", "4", "python", "-m"]
        for seed in range(5):
            session.run(*members, "tensorken_conformance.groups", "mpi", f"seed={seed}", env=ONE_THREAD)
    elif part == "digits":
        sources = [str(folder / "src") for folder in distributions()]
        examples = ["-m", "not slow", "tests/test_pages.py", "tests/test_readme.py", *sources]
        run_pytest(session, "own", *LIMITS, *PARALLEL, "-p", "tools.last_digits", *examples)
    elif part == "places":
        session.run("python", "-m", "tools.places", "any", *LIMITS, *QUICK, env=ONE_THREAD)
    elif part == "llvm":
        compiled = {"TEST_COMPILERS": "llvm"}
        run_pytest(session, "own", "--timeout=3600", *PARALLEL, *COMPILED, environment=compiled)
        for cpu in LESSER_CPUS:
            lesser = {"TENSORKEN_LLVM_CPU": cpu}
            run_pytest(session, "own", "--timeout=3600", *PARALLEL, "plugins/llvm/tests", environment=lesser)
        examine(session, "numpy", compiler="llvm")
        laws = [f"--select={law}" for law in ("values.elementwise", "values.layouts", "programs")]
        examine(session, "numpy", *laws, compiler="llvm", optimised=True)
    elif part == "kit":
        for name in FIRST_PARTY:
            examine(session, name)
    elif part == "sweep":
        session.run("python", "-m", "oracles.sweep", "--check", env=ONE_THREAD)
    elif part == "gpu-kernels":
        kernels = {"TENSORKEN_WGPU_KERNELS": "gpu"}
        run_pytest(session, "own", *LIMITS, *PARALLEL, "backends/wgpu", environment=kernels)
        session.env.update(kernels)
        examine(session, "wgpu")
    elif part == "large":
        run_pytest(session, "own", "--timeout=3600", "-m", "large", "plugins/tensorken/tests/test_large.py")
    elif part == "selftest":
        for options in (["--seeds=20"], ["--deep"]):
            session.run("tensorken", "conformance", "selftest", *options, env=ONE_THREAD)
    elif part == "mutants":
        seed = datetime.date.today().toordinal()
        for target, depth, count in MUTANTS:
            draw = [f"--target={target}", f"--depth={depth}", f"--mutants={count}", f"--seed={seed}"]
            several = f"--processes={os.cpu_count()}"
            session.run("python", "-m", "oracles.mutation", *draw, several, *session.posargs)
    else:
        all_tests = ["-m", "not nightly", "--hypothesis-profile=some"]
        run_pytest(session, "any", "--timeout=600", *PARALLEL, *all_tests)


@nox.session(venv_backend="none")
def dev(session: nox.Session) -> None:
    """Create .venv: one editable environment with the distributions and all tools."""
    create_environment(session, "dev")


@nox.session(name="dev-bench", venv_backend="none")
def dev_bench(session: nox.Session) -> None:
    """Create .venv as `dev` does, and add the libraries of the benchmarks: JAX, tinygrad, autograd and dask."""
    create_environment(session, "dev", "bench", optional=["jax", "dask"])


def create_environment(session: nox.Session, *groups: str, optional: Sequence[str] = ()) -> None:
    """Create .venv with these dependency groups and all distributions but the optional ones that are not named."""
    folder = ROOT / ".venv"
    python = folder.joinpath(*(("Scripts", "python.exe") if sys.platform == "win32" else ("bin", "python")))
    session.run(sys.executable, "-m", "virtualenv", "--quiet", str(folder))
    pip = (str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    session.run(*pip, *requirements(*groups))
    session.run(*pip, *editable(optional=optional))
    session.log(f"ready: {python.relative_to(ROOT)}")


@nox.session
def typing(session: nox.Session) -> None:
    """Check the types: mypy --strict on core, the backends and the tools, and pyright on calls of users."""
    install_workspace(session, "typing", "pyright", extras=False)
    session.install("nox")
    session.run("mypy", *session.posargs)
    session.run("mypy", "noxfile.py", "run.py", "tools")
    session.run("basedpyright")


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, format and import contracts."""
    session.install(*requirements("lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    sources = os.pathsep.join([str(folder / "src") for folder in distributions(optional=True)])
    session.run("lint-imports", env={"PYTHONPATH": sources, "PYTHONUTF8": "1"})  # it prints non-ASCII text
    session.run("python", "-m", "tools.architecture")
    session.run("python", "-m", "tools.portability")
    session.run("python", "-m", "tools.prose")
    session.run("python", "-m", "tools.changelog", "--check")
    session.run("python", "-m", "tools.repository", "--check")
    session.run("python", "-m", "tools.conda", "--check")


@nox.session(name="format")
def format_(session: nox.Session) -> None:
    """Format the code and apply ruff's fixes."""
    session.install(*requirements("lint"))
    session.run("ruff", "check", "--fix", ".")
    session.run("ruff", "format", ".")


@nox.session
def features(session: nox.Session) -> None:
    """Print the rows of docs/features.toml that no test covers."""
    session.run("python", "-m", "tools.features", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation site into site/; `tests` runs the examples in docstrings and pages."""
    install_workspace(session, "docs", optional=list(OF_REFERENCE))
    session.run("python", "-m", "tools.site", *session.posargs)


def check_site(session: nox.Session) -> None:
    """Build the site, and check its pages in Chromium: that of the system, or else one that playwright downloads."""
    install_workspace(session, "site", optional=list(OF_REFERENCE))
    session.run("python", "-m", "tools.site")
    if not (shutil.which("chromium") or shutil.which("google-chrome")):
        session.run("playwright", "install", "--with-deps", "chromium")
    session.run("python", "-m", "tools.site_checks", *session.posargs)
    if not session.posargs:
        session.run("python", "-m", "tools.site", "--links")


@nox.session
def wheels(session: nox.Session) -> None:
    """Build wheels of all distributions and their requirements into dist/, for installation without a network."""
    session.install("pip", *requirements("build"))
    session.run("python", "-m", "tools.wheels", *(session.posargs or ["dist"]))


@nox.session
def changelog(session: nox.Session) -> None:
    """Print the changes since the last release; `-- --release` writes them into CHANGELOG.md."""
    session.install(*requirements("changelog"))
    session.run("python", "-m", "tools.changelog", *session.posargs)


@nox.session
def release(session: nox.Session) -> None:
    """Build and check the files of a release; `-- --dry-run` installs them on each Python and certifies a backend."""
    session.install(*requirements("release"))
    pythons = [python for python in PYTHONS if shutil.which(f"python{python}")]
    chosen = [f"--python=python{python}" for python in pythons]
    session.run("python", "-m", "tools.conda", "--render")
    session.run("python", "-m", "tools.release", *chosen, *session.posargs)


@nox.session
def lock(session: nox.Session) -> None:
    """Write the versions of all packages that GitHub's workflows install into .github/constraints.txt."""
    session.install(*requirements("places"))
    session.run("python", "-m", "tools.lock")


@nox.session
def audit(session: nox.Session) -> None:
    """Ask the index for known vulnerabilities of the packages in .github/constraints.txt."""
    session.install(*requirements("audit"))
    locked = ["--requirement", str(ROOT / ".github" / "constraints.txt")]
    session.run("pip-audit", "--strict", "--disable-pip", "--no-deps", *locked, *session.posargs)


@nox.session
def readme(session: nox.Session) -> None:
    """Run the README's commands in a copy of the workspace, with an empty home folder."""
    session.install("pip")
    session.run("python", "-m", "tools.readme", *session.posargs)


@nox.session
def coverage(session: nox.Session) -> None:
    """Run all tests and list the lines that none of them reached."""
    install_workspace(session, "test", "coverage")
    session.run("coverage", "run", "-m", "pytest", *session.posargs, env=ONE_THREAD)
    session.run("coverage", "report")


@nox.session
def jax(session: nox.Session) -> None:
    """Test the JAX backend, and compare derivatives and 20 random programs with JAX; the arguments go to pytest."""
    install_workspace(session, "test", "jax", extras=False, optional=["jax"])
    compare_with_jax(session, *(session.posargs or ["-m", "not nightly"]))
    if not session.posargs:
        arguments = [*LIMITS, *PARALLEL, "-m", "not nightly", "backends/jax"]
        run_pytest(session, "own", *arguments, environment=FAST_XLA)


def compare_with_jax(session: nox.Session, *arguments: str) -> None:
    """Run `oracles/`, in an environment that has JAX."""
    session.run("pytest", "oracles", "--numprocesses=auto", *arguments, env={**FAST_XLA, **ONE_THREAD})


@nox.session
def torch(session: nox.Session) -> None:
    """Test the PyTorch backend, and run the kit's smoke cases on it; the arguments go to pytest."""
    install_workspace(session, "test", "bench-torch", extras=False, optional=["torch"])
    arguments = session.posargs or [*LIMITS, *PARALLEL, "-m", "not nightly", "backends/torch"]
    run_pytest(session, "own", *arguments)
    if not session.posargs:
        examine(session, "torch", "--smoke")


@nox.session
def distributed(session: nox.Session) -> None:
    """Test groups of processes, and training on dask clusters that lose workers; the arguments go to pytest."""
    install_workspace(session, "test", "mpi", extras=False, optional=["mpi", "dask"])
    arguments = session.posargs or [*LIMITS, *PARALLEL, "-m", "not nightly", "plugins/mpi", "plugins/dask"]
    run_pytest(session, "own", *arguments)


@nox.session
def conformance(session: nox.Session) -> None:
    """Run the kit's smoke cases on our backends, and its selftest; `-- NAME` runs all cases on one backend."""
    install_workspace(session, extras=False)
    for name in session.posargs or FIRST_PARTY:
        examine(session, name, *([] if session.posargs else ["--smoke"]))
    if not session.posargs:
        for name in ("numpy", "reference"):  # the cases that find the seeded faults
            select = ["--select", "finders", "--brief", f"--workers={os.cpu_count()}"]
            session.run("tensorken", "conformance", "run", name, *select, env=ONE_THREAD)
        session.run("tensorken", "conformance", "selftest", env=ONE_THREAD)


def examine(
    session: nox.Session, backend: str, *options: str, compiler: str = "", optimised: bool = False
) -> None:
    """Run the conformance kit on a backend, with a compiler plugin or none; the reports go into reports/.

    tensorken-llvm optimises small programs at once only if `optimised`.
    """
    reports = ROOT / "reports"
    reports.mkdir(exist_ok=True)
    name = f"{backend}+{compiler}" if compiler else backend
    if optimised:
        name += "-optimised"
    files = [f"--{form}={reports / name}.{form}" for form in ("json", "html")]
    workers = f"--workers={os.cpu_count()}"
    environment = {**ONE_THREAD, "TENSORKEN_COMPILERS": compiler or "none"}
    if optimised:
        environment["TENSORKEN_LLVM_QUICK"] = "0"
    run = ("tensorken", "conformance", "run", backend, workers, "--budget=0")
    session.run(*run, *options, *files, env=environment)


@nox.session
def llvm(session: nox.Session) -> None:
    """Run the tests of compiled programs, and the kit on numpy, with the compiler of tensorken-llvm."""
    install_workspace(session, "test")
    arguments = session.posargs or [*LIMITS, *QUICK, *COMPILED]
    run_pytest(session, "own", *arguments, environment={"TEST_COMPILERS": "llvm"})
    for optimised in (False, True):
        examine(session, "numpy", "--smoke", compiler="llvm", optimised=optimised)


@nox.session(name="array-api")
def array_api(session: nox.Session) -> None:
    """Run array-api-tests from the checkout that ARRAY_API_TESTS_DIR names; the arguments go to pytest.

    TENSORKEN_BACKEND chooses the backend.
    """
    suite = Path(os.environ.get("ARRAY_API_TESTS_DIR") or "array-api-tests").resolve()
    if not (suite / "array_api_tests").is_dir():
        session.error(
            f"no array-api-tests in {suite}; set ARRAY_API_TESTS_DIR to a checkout, made by "
            f"git clone --recurse-submodules https://github.com/data-apis/array-api-tests"
        )
    revision = public_suite.revision()
    commit = head(suite) if (suite / ".git").exists() else ""
    if commit and commit != revision:
        session.error(
            f"{suite} is at {commit}, docs/array-api.md describes {revision}; run git checkout --recurse-submodules "
            f"{revision}"
        )
    backend = os.environ.get("TENSORKEN_BACKEND", "numpy").partition(":")[0]
    groups = {"jax": ["jax"], "torch": ["bench-torch"]}.get(backend, [])
    # not the group test, whose array-api-stubs hide the suite's own stubs
    install_workspace(session, *groups, extras=False, optional=[backend] if backend in OPTIONAL else [])
    session.install("-r", str(suite / "requirements.txt"))
    session.run("python", "-m", "tools.array_api", str(suite), *session.posargs, env=ONE_THREAD)


@nox.session
def bench(session: nox.Session) -> None:
    """Run the benchmarks and write docs/performance.md; `-- --check` compares them with benchmarks/bounds.toml."""
    install_workspace(session, "bench", optional=["dask"])
    # PyTorch is optional: the page says if it is missing.
    session.install(*requirements("bench-torch"), success_codes=range(256))
    session.run("python", str(Path("benchmarks", "run.py")), *session.posargs)
