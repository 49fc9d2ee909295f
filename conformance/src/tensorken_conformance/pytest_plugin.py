"""The pytest plugin of the kit: inactive without `--tensorken-backend NAME` or the fixture `tensorken_law`.

`pytest --pyargs tensorken_conformance --tensorken-backend NAME` runs a test for each law and op.  To have these tests
among those of a backend, add a file with these lines:

    def test_conformance(tensorken_law):
        tensorken_law.check()

and the backend's name in the settings of pytest (`tensorken_backend = "mine"` in `[tool.pytest.ini_options]`).

Every pytest process imports this module at its start; heavy imports are in pytest_laws.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tensorken_conformance.pytest_laws import LawTest

FIXTURE = "tensorken_law"

TEMPLATES = Path(__file__).with_name("templates")
"""The projects of `tensorken new`; their tests are not tests of the kit."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, all of which begin with `--tensorken-`."""
    group = parser.getgroup("tensorken", "conformance of a Tensorken backend")
    group.addoption(
        "--tensorken-backend", metavar="NAME", help="examine this backend; a name or module:attribute"
    )
    group.addoption(
        "--tensorken-seed", type=int, default=0, metavar="N", help="seed of the random operands; default: 0"
    )
    group.addoption(
        "--tensorken-depth",
        choices=("smoke", "default", "deep"),
        default="default",
        help="smoke, default or deep, for more and more cases",
    )
    group.addoption(
        "--tensorken-select",
        action="append",
        default=[],
        metavar="LAW",
        help="a law, a group of laws, or the beginning of the id of cases; may be repeated",
    )
    parser.addini("tensorken_backend", "the backend to examine without --tensorken-backend", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Reject an unknown backend at the start, like any invalid option."""
    name = config.getoption("tensorken_backend")
    if name and not config.getoption("version") and not config.getoption("help"):
        from tensorken_conformance.backends.loading import load
        from tensorken_core.errors import BackendError, UnknownBackendError

        try:
            load(name)
        except UnknownBackendError as error:
            says = "; ".join(line.strip() for line in str(error).splitlines())
            raise pytest.UsageError(f"--tensorken-backend: {says}") from None
        except BackendError:
            return  # the tests report a backend that does not load


def pytest_report_header(config: pytest.Config) -> str | None:
    """The examined backend, in the header of the report."""
    name = backend_of(config)
    if not name:
        return None
    seed, depth = config.getoption("tensorken_seed"), config.getoption("tensorken_depth")
    return f"tensorken: backend {name}, seed {seed}, {depth} depth"


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    """The expected failures that match none of the selected tests."""
    laws = sys.modules.get("tensorken_conformance.pytest_laws")
    return laws.remarks(config, backend_of(config)) if laws is not None else []


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the tests of the templates."""
    return True if collection_path == TEMPLATES else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test for each law and op from each function with the fixture."""
    if FIXTURE in metafunc.fixturenames:
        from tensorken_conformance.pytest_laws import law_tests

        tests = law_tests(metafunc.config, backend_of(metafunc.config))
        metafunc.parametrize(FIXTURE, tests, ids=[test.id for test in tests], indirect=True)


@pytest.fixture
def tensorken_law(request: pytest.FixtureRequest) -> LawTest:
    """The cases of a law on one op, for a test: `tensorken_law.check()`."""
    found: LawTest = request.param
    return found


def backend_of(config: pytest.Config) -> str:
    """The name of the backend to examine; empty if none is."""
    return str(config.getoption("tensorken_backend") or config.getini("tensorken_backend") or "")
