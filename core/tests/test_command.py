"""The command `tensorken`, run in a child process, in an installation made for the test.

The installation is a folder with the test's plugins and copies of core and pluggy; `-S` hides what
else is installed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pluggy
import pytest
import shtab

import tensorken_cli
import tensorken_core
from core.tests.each import each_of
from tensorken_cli import colours, print_table
from tensorken_cli.command import main
from tensorken_core.host.backend_choice import DISTRIBUTIONS

BACKEND = """
from tensorken_core.host.plugin import BackendEntry, hookimpl

@hookimpl
def tensorken_backend():
    def load(device=None):
        from tensorken_core.language.raw import RawTensor
        class Toy(RawTensor): pass
        return Toy()
    return BackendEntry({name!r}, load{more})
"""

COMMAND = """
import os, signal, sys, time

def main(arguments):
    print("called with", arguments)
    return len(arguments)

def fails(arguments):
    raise RuntimeError("out of \\N{GREEK SMALL LETTER OMEGA}\\nand more")

def refuses(arguments):
    from tensorken_core.errors import ShapeError
    raise ShapeError("shapes do not fit\\n  second line")

def waits(arguments):
    print("ready", flush=True)
    time.sleep(60)

def imported(arguments):
    print(sorted(name for name in sys.modules if name.startswith("fake_")))
"""


class Installation:
    """A folder that a Python finds packages in."""

    def __init__(self, folder: Path, core_and_pluggy: Path) -> None:
        self.folder = folder
        self.path = os.pathsep.join(map(str, (folder, core_and_pluggy)))

    def install(
        self, distribution: str, entry_points: str = "", version: str = "1.0", needs: str = "", **modules: str
    ) -> None:
        info = self.folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
        if needs:
            metadata += f"Requires-Dist: tensorken-core{needs}\n"
        (info / "METADATA").write_text(metadata, encoding="utf-8")
        (info / "entry_points.txt").write_text(textwrap.dedent(entry_points), encoding="utf-8")
        for name, source in modules.items():
            (self.folder / f"{name}.py").write_text(source, encoding="utf-8")

    def backend(self, name: str, version: str = "1.0", needs: str = "", more: str = "") -> None:
        module = f"fake_{name}"
        point = f"[tensorken.backends]\n{name} = {module}\n"
        distribution = DISTRIBUTIONS.get(name, f"dist-{name}")
        self.install(distribution, point, version, needs, **{module: BACKEND.format(name=name, more=more)})

    def commands(self) -> None:
        points = "\n".join(
            f"{name} = fake_commands:{name}" for name in ("main", "fails", "refuses", "waits", "imported")
        )
        self.install("dist-commands", f"[tensorken.commands]\n{points}\n", fake_commands=COMMAND)

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-S", "-m", "tensorken_cli", *arguments]

    def environment(self, **variables: str) -> dict[str, str]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("TENSORKEN_", "PYTHON"))}
        return {**inherited, "PYTHONPATH": self.path, "PYTHONIOENCODING": "ascii", **variables}

    def run(self, *arguments: str, status: int = 0, **variables: str) -> str:
        """Run the command; returns stdout followed by stderr; fails if the exit status is not the expected one."""
        done = subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment(**variables),
            capture_output=True,
            encoding="ascii",
            check=False,
        )
        assert done.returncode == status, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="session")
def core_and_pluggy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("core")
    for package in (tensorken_core, tensorken_cli, pluggy):
        source = Path(package.__file__).parent  # type: ignore[arg-type]
        shutil.copytree(source, folder / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture
def here(core_and_pluggy: Path, tmp_path: Path) -> Installation:
    made = Installation(tmp_path, core_and_pluggy)
    made.install("tensorken-core", version="1.4.2")
    return made


def lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


# ---- tensorken backends ------------------------------------------------------------------------------------


@pytest.mark.feature(201)
def test_the_list_shows_faults_and_the_default(here: Installation) -> None:
    here.backend("numpy", version="1.4.2", needs=">=1.4,<2")
    here.backend("old", version="0.3", needs="<1")
    here.backend("young", needs=">=2")
    here.install("acme", "[tensorken.backends]\ntwin = a\n")
    here.install("bolt", "[tensorken.backends]\ntwin = b\nodd = not a module\n")
    assert lines(here.run("backends")) == [
        "name distribution version needs core status",
        "numpy * tensorken-numpy 1.4.2 >=1.4,<2 available",
        "odd bolt 1.0 any broken: its entry point 'not a module' is no module or module:attribute; "
        "update it, pip install -U bolt",
        "old dist-old 0.3 <1 incompatible: it needs tensorken-core <1, this is 1.4.2; pip install -U dist-old",
        "twin acme 1.0 any clash: bolt brings it, too; write twin@acme for this one",
        "twin bolt 1.0 any clash: acme brings it, too; write twin@bolt for this one",
        "young dist-young 1.0 >=2 incompatible: it needs tensorken-core >=2, this is 1.4.2; "
        "pip install -U tensorken-core",
        "",
        "* default: numpy (the default: the first installed of numpy, reference, wgpu, jax, torch, string)",
    ]


def test_probing_loads_each_backend_and_survives_failures(here: Installation) -> None:
    here.backend("numpy")
    here.install("bad", "[tensorken.backends]\nbad = fake_bad\n", fake_bad="raise RuntimeError('no luck')")
    here.install("exits", "[tensorken.backends]\nexits = fake_exits\n", fake_exits="raise SystemExit(4)")
    unprobed, probed = lines(here.run("backends")), lines(here.run("backends", "--probe"))
    assert unprobed[1:4] == [
        "bad bad 1.0 any available",
        "exits exits 1.0 any available",
        "numpy * tensorken-numpy 1.0 any available",
    ]
    assert probed[1].startswith("bad bad 1.0 any broken: RuntimeError: no luck; update it, ")
    assert probed[2].startswith("exits exits 1.0 any broken: it called sys.exit(4); ")
    assert probed[3] == "numpy * tensorken-numpy 1.0 any loads; devices: cpu"


ENDINGS = {
    "exits": (
        "import os; os._exit(5)",
        "it ended its process (exit status 5) while it was loaded; update it, ",
    ),
    "hangs": ("import threading; threading.Event().wait()", "it was not loaded within 10 s; update it, pip "),
    "leaves": (
        "import atexit, time; atexit.register(time.sleep, 60)",
        "no function that is marked @hookimpl and named ",
    ),
    "asks": ("input()", "EOFError: EOF when reading a line; update it, "),
    **(
        {}
        if sys.platform == "win32"
        else {"dies": ("import os; os.abort()", "it ended its process (SIGABRT) ")}
    ),
}


@pytest.mark.slow
def test_probing_finds_plugins_that_end_the_process_or_never_return(here: Installation) -> None:
    here.backend("numpy")
    for name, (source, _) in ENDINGS.items():
        here.install(name, f"[tensorken.backends]\n{name} = fake_{name}\n", **{f"fake_{name}": source})
    told = lines(here.run("backends", "--probe", "--limit", "10"))
    for name, (_, expected) in ENDINGS.items():
        assert sum([line.startswith(name) and expected in line for line in told]) == 1
    assert "tensorken: backend hangs (hangs) takes more than 5 s to load; it is given 10 s" in told
    assert any([line.startswith("numpy") and "loads" in line for line in told])


def test_the_doctor_finds_plugins_of_every_group_that_end_the_process(here: Installation) -> None:
    here.backend("numpy")
    for group in ("backends", "plugins", "namespace"):
        points = f"[tensorken.{group}]\n{group} = fake_{group}:x\n"
        here.install(f"dist-{group}", points, **{f"fake_{group}": "import os; os._exit(5)"})
    mend = here.run("doctor", status=1).split("to fix:\n")[1]
    assert [line.partition(";")[0] for line in lines(mend)] == [
        f"{group} (dist-{group} 1.0): it ended its process (exit status 5) while it was loaded"
        for group in ("backends", "plugins", "namespace")
    ]


@pytest.mark.parametrize("choice", ["ends", "ends,numpy", "os:abort", "sys:exit"])
def test_the_doctor_survives_plugins_that_crash(here: Installation, choice: str) -> None:
    here.backend("numpy")
    here.install("ends", "[tensorken.backends]\nends = fake_ends\n", fake_ends="import os; os._exit(5)")
    told = here.run("doctor", status=1, TENSORKEN_BACKEND=choice)
    assert "in use: nothing\nto fix:\n" in told
    assert ("backend 'sys:exit' cannot be loaded: it called sys.exit(None)" in told) == (choice == "sys:exit")
    assert ("the backend in use cannot be loaded: it ended its process" in told) == (choice != "sys:exit")


def test_probing_reports_the_devices_of_backends(here: Installation) -> None:
    here.backend(
        "gpu", more=", devices=('left', 'right'), facts=lambda d: {'driver': f'of {d}', 'memory': 80}"
    )
    here.backend("shy", more=", devices=('left',), facts=lambda d: 1 / 0")
    told = lines(here.run("backends", "--probe", TENSORKEN_BACKEND="gpu"))
    assert told[1] == "gpu * dist-gpu 1.0 any loads; devices: left, right"
    assert told[3:12] == [
        "",
        "gpu:0 is left",
        "driver of left",
        "memory 80",
        "",
        "gpu:1 is right",
        "driver of right",
        "memory 80",
        "",
    ]
    assert told[12] == "shy:0 is left"
    assert told[13].startswith("error backend 'shy' of dist-shy 1.0 cannot be loaded: ZeroDivisionError: ")
    data = json.loads(here.run("backends", "--probe", "--json", TENSORKEN_BACKEND="gpu"))
    assert data["backends"][0]["facts"]["right"] == {"driver": "of right", "memory": "80"}


def test_json_has_the_same_content(here: Installation) -> None:
    here.backend("numpy", needs=">=1,<2")
    here.install("bad", "[tensorken.backends]\nbad = fake_bad\n", fake_bad="raise RuntimeError('no luck')")
    plain = json.loads(here.run("backends", "--json", TENSORKEN_BACKEND="numpy:0"))
    assert plain["default"] == {"name": "numpy", "device": "0", "why": "TENSORKEN_BACKEND='numpy:0'"}
    assert (plain["schema"], plain["core"], plain["language"], plain["error"]) == (3, "1.4.2", "1.0", None)
    assert plain["backends"][1] == {
        "name": "numpy",
        "distribution": "tensorken-numpy",
        "version": "1.0",
        "needs": ">=1,<2",
        "status": "available",
        "reason": "",
        "devices": None,
        "facts": None,
    }
    probed = json.loads(here.run("backends", "--json", "--probe", TENSORKEN_BACKEND="nunpy"))
    assert probed["default"] is None
    assert probed["error"].startswith("unknown backend 'nunpy'\n  did you mean: numpy\n")
    assert [(b["status"], b["devices"]) for b in probed["backends"]] == [
        ("broken", None),
        ("available", ["cpu"]),
    ]
    assert [b["facts"] for b in probed["backends"]] == [None, {"cpu": {}}]


@pytest.mark.feature(204)
@pytest.mark.parametrize(
    ("variable", "last"),
    [
        ("numpy", "* default: numpy (TENSORKEN_BACKEND='numpy')"),
        ("wgpu,numpy", "* default: numpy (TENSORKEN_BACKEND='wgpu,numpy')"),
        ("fake_numpy:x", "* default: fake_numpy:x (TENSORKEN_BACKEND='fake_numpy:x')"),
        ("nunpy", "  chosen by TENSORKEN_BACKEND='nunpy'"),
    ],
)
def test_the_list_gives_the_reason_for_the_default(here: Installation, variable: str, last: str) -> None:
    here.backend("numpy")
    assert here.run("backends", TENSORKEN_BACKEND=variable).splitlines()[-1] == last


def test_without_backends_the_list_suggests_an_installation(here: Installation) -> None:
    assert "pip install tensorken-numpy" in here.run("backends")


# ---- tensorken doctor --------------------------------------------------------------------------------------


def test_the_doctor_finds_no_fault_in_a_healthy_installation(here: Installation) -> None:
    here.backend("numpy")
    here.commands()
    plugin = "from tensorken_core.host.plugin import hookimpl\n"
    plugin += "@hookimpl\ndef tensorken_report_header(): return 'report: fine'"
    here.install("report", "[tensorken.plugins]\nreport = fake_report\n", fake_report=plugin)
    here.install("tool", "[tensorken.namespace]\ntool = fake_tool:tool\n", fake_tool="tool = 1")
    told = lines(here.run("doctor", TENSORKEN_BACKEND="numpy"))
    assert told[0].startswith("Python 3.")
    assert told[2] == "core 1.4.2, language 1.0"
    assert told[3] == "variables TENSORKEN_BACKEND='numpy'"
    assert "numpy tensorken-numpy 1.0 loads" in told
    assert "report report 1.0 loads" in told
    assert "tool tool 1.0 loads" in told
    assert "report: fine" in told
    assert "main dist-commands 1.0 available" in told
    assert told[-2:] == ["in use: numpy (TENSORKEN_BACKEND='numpy')", "nothing to fix"]


def test_the_doctor_names_every_fault_and_its_remedy(here: Installation) -> None:
    here.backend("numpy")
    here.install("bad", "[tensorken.backends]\nbad = fake_bad\n", fake_bad="import no_such_dependency")
    here.install("odd", "[tensorken.namespace]\nodd = fake_odd:nothing\n", fake_odd="")
    here.install("worse", "[tensorken.plugins]\nworse = fake_worse\n", fake_worse="1 / 0")
    here.install("unreadable", "[tensorken.backends]\nno equals sign\n")
    told = here.run("doctor", status=1, TENSORKEN_BACKEND="bad,numpy", TENSORKEN_BACKENDS="x")
    in_use, mend = told[told.index("in use:") :].split("to fix:\n")
    assert in_use == "in use: numpy (TENSORKEN_BACKEND='bad,numpy')\n"
    expected = [
        "unknown variable TENSORKEN_BACKENDS; did you mean TENSORKEN_BACKEND?",
        "bad (bad 1.0): ModuleNotFoundError: No module named 'no_such_dependency'; install no_such_dependency",
        "worse (worse 1.0): ZeroDivisionError: division by zero; update it, pip install -U worse, or ",
        "odd (odd 1.0): AttributeError: module 'fake_odd' has no attribute 'nothing'; update it, pip install",
        "the metadata in ",
        "TENSORKEN_BACKEND='bad,numpy': using numpy, since backend 'bad' of bad 1.0 cannot be loaded: ",
    ]
    for line, start in zip(lines(mend), expected, strict=True):
        assert line.startswith(start)


def test_a_backend_without_a_device_is_unavailable_and_no_fault(here: Installation) -> None:
    here.backend("numpy")
    here.backend("gpu", more=", devices=lambda: []")
    told = lines(here.run("doctor"))
    assert "gpu dist-gpu 1.0 unavailable: backend 'gpu' finds no device on this machine" in told
    assert told[-1] == "nothing to fix"
    probed = lines(here.run("backends", "--probe"))
    assert probed[1].startswith("gpu dist-gpu 1.0 any unavailable: ")
    assert "finds no device" in here.run("doctor", status=1, TENSORKEN_BACKEND="gpu")


@pytest.mark.parametrize("variable", ["", "bad", "no-such", "numpy:9"])
def test_the_doctor_fails_if_the_chosen_backend_cannot_be_used(here: Installation, variable: str) -> None:
    here.install("bad", "[tensorken.backends]\nbad = fake_bad\n", fake_bad="1 / 0")
    if variable:
        here.backend("numpy")
    assert "in use: nothing\nto fix:\n" in here.run("doctor", status=1, TENSORKEN_BACKEND=variable)


# ---- subcommands of plugins --------------------------------------------------------------------------------


def test_a_subcommand_gets_its_arguments_and_gives_the_exit_status(here: Installation) -> None:
    here.commands()
    assert here.run("main", "--flag", "-h", "x", status=3) == "called with ['--flag', '-h', 'x']\n"
    assert here.run("MAIN") == "called with []\n"
    assert here.run("help", "main", status=1) == "called with ['--help']\n"
    assert here.run("help") == here.run("--help")
    assert here.run("main@dist-commands") == "called with []\n"


def test_only_the_chosen_subcommand_is_loaded(here: Installation) -> None:
    here.commands()
    here.backend("numpy")
    here.install("bad", "[tensorken.commands]\nbad = fake_bad:main\n", fake_bad="1 / 0")
    assert here.run("imported") == "['fake_commands']\n"
    told = here.run("bad", status=1)
    assert told.startswith("tensorken: command 'bad' of bad 1.0 cannot be loaded: ZeroDivisionError: ")
    assert len(told.splitlines()) == 1


def test_a_subcommand_that_is_not_a_function_or_for_another_core_is_refused_in_one_line(
    here: Installation,
) -> None:
    here.install("odd", "[tensorken.commands]\nodd = fake_odd\n", fake_odd="")
    here.install("old", "[tensorken.commands]\nold = fake_old:main\n", "1.0", "<1", fake_old="1 / 0")
    for name, expected in (("odd", "which is not a function"), ("old", "it needs tensorken-core <1")):
        told = here.run(name, status=1)
        assert expected in told
        assert len(told.splitlines()) == 1


def test_a_subcommand_that_fails_shows_no_traceback(here: Installation) -> None:
    here.commands()
    assert here.run("fails", status=1) == (
        "tensorken: fails: RuntimeError: out of \\u03c9; TENSORKEN_TRACE_PLUGINS=1 shows where\n"
    )
    assert here.run("refuses", status=1) == "tensorken: shapes do not fit\n  second line\n"
    done = subprocess.run(
        here.command("fails"),
        env=here.environment(TENSORKEN_TRACE_PLUGINS="1"),
        capture_output=True,
        encoding="ascii",
        check=False,
    )
    assert "Traceback (most recent call last)" in done.stderr
    assert "fake_commands.py" in done.stderr


def test_two_distributions_with_one_subcommand_clash(here: Installation) -> None:
    for name in ("acme", "bolt"):
        here.install(name, f"[tensorken.commands]\ndo = fake_{name}:main\n", **{f"fake_{name}": COMMAND})
    assert "do comes from 2 distributions; write do@acme or do@bolt" in here.run("do", status=2)
    assert here.run("do@acme") == "called with []\n"


def test_a_known_missing_subcommand_suggests_an_installation(here: Installation) -> None:
    expected = (
        "tensorken: train is a subcommand of tensorken-nn, which is not installed: pip install tensorken-nn\n"
    )
    assert here.run("train", "digits", status=2) == expected


def test_an_unknown_subcommand_gives_near_matches(here: Installation) -> None:
    here.commands()
    for typo, meant in (("backend", "backends"), ("doktor", "doctor"), ("tran", "train"), ("mian", "main")):
        assert f"did you mean {meant}" in here.run(typo, status=2)
    assert (
        here.run("xyz", status=2) == "tensorken: there is no subcommand 'xyz' (tensorken --help lists them)\n"
    )


# ---- the command itself ------------------------------------------------------------------------------------


DOCSTRINGS = [
    # a module's source, and the description of its subcommand in the help
    ('"""Greet somebody."""\n1 / 0', "greet somebody (from dist 1.0)"),
    ("# a comment\n\nr'''\nAPI keys: 100% of them.\n\nMore.'''", "API keys: 100% of them (from dist 1.0)"),
    ("import os\n'''No docstring.'''", "from dist 1.0"),
    ('"""Not closed', "from dist 1.0"),
    ('f"{1 / 0}"', "from dist 1.0"),
    ("", "from dist 1.0"),
    (None, "from dist 1.0"),
]


def test_help_describes_the_subcommands_of_plugins_and_imports_none(here: Installation) -> None:
    points = []
    for i, (source, _) in enumerate(DOCSTRINGS):
        package = here.folder / f"fake_{i}"
        package.mkdir()
        (package / "__init__.py").write_text("1 / 0", encoding="utf-8")
        if source is not None:
            (package / "tool.py").write_text(source, encoding="utf-8")
        points.append(f"do{i} = fake_{i}.tool:main")
    points.append("backends = fake_0.tool:main")  # has no place in the list, since it cannot run
    here.install("dist", "\n".join(["[tensorken.commands]", *points]))
    for arguments in ([], ["--help"]):
        told = lines(here.run(*arguments, COLUMNS="120"))
        assert told[0].startswith("usage: tensorken")
        assert told[told.index("subcommands:") + 1 :][: len(DOCSTRINGS) + 1] == [
            *[f"do{i} {text}" for i, (_, text) in enumerate(DOCSTRINGS)],
            "backends list the installed backends; nothing is imported",
        ]


SWITCHES = [
    # environment variables, whether stdout is a terminal, and whether there are colours
    ({}, True, True),
    ({}, False, False),
    ({"NO_COLOR": "1"}, True, False),
    ({"NO_COLOR": ""}, True, True),
    ({"TERM": "dumb"}, True, False),
    ({"FORCE_COLOR": "1"}, False, True),
    ({"FORCE_COLOR": "1", "TERM": "dumb"}, False, True),
    ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
]


@each_of(("variables", "terminal", "expected"), SWITCHES)
def test_colours_are_for_terminals_unless_a_variable_says_otherwise(
    capsys: pytest.CaptureFixture[str], variables: dict[str, str], terminal: bool, expected: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("NO_COLOR", "FORCE_COLOR"):
            patch.delenv(name, raising=False)
        for name, value in {"TERM": "xterm", "COLUMNS": "120", **variables}.items():
            patch.setenv(name, value)
        patch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
        assert colours(sys.stdout) is expected
        for arguments in (["--help"], ["backends"], ["backends", "--help"]):
            with contextlib.suppress(SystemExit):
                main(arguments)
            assert ("\x1b[" in capsys.readouterr().out) is expected, arguments


def test_without_rich_a_terminal_gets_the_plain_output(here: Installation) -> None:
    here.backend("numpy")
    for arguments in (["backends"], ["--help"]):
        plain = here.run(*arguments)
        if sys.version_info < (3, 14) or arguments != ["--help"]:  # argparse has colours since 3.14
            assert here.run(*arguments, FORCE_COLOR="1") == plain


def test_a_coloured_table_has_the_same_cells(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [("name", "status"), ("numpy", "loads; devices: cpu"), ("bad", "broken: [no] luck")]
    monkeypatch.setenv("COLUMNS", "100")
    said = []
    for variable in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setenv(variable, "1")
        print_table(rows, header=True)
        text = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)
        said.append([line.split() for line in text.splitlines() if line.strip(" \u2500-")])
    assert said[0] == said[1]


# ---- completion --------------------------------------------------------------------------------------------

COMPLETED = [
    # the words of a line, the last of which is completed, and words that are proposed
    (["tensorken", "do"], {"doctor"}),
    (["tensorken", "backends", "--p"], {"--probe"}),
    (["tensorken", "completion", "f"], {"fish"}),
    (["tensorken", "toy", "--b"], {"--backend"}),
    (["tensorken", "toy", "--backend", ""], {"gpu", "numpy"}),
    (["tensorken", "toy", "--out", "a-fo"], {"a-folder"}),
]

TOY = """
def add_arguments(parser):
    parser.add_argument("--backend", metavar="NAME")
    parser.add_argument("--out", metavar="FOLDER")

def main(arguments):
    raise RuntimeError("a completion runs no plugin")
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_subcommands_options_and_backends(here: Installation) -> None:
    for name in ("numpy", "gpu"):
        here.backend(name)
    here.install("toy", "[tensorken.commands]\ntoy = fake_toy:main\n", fake_toy=TOY)
    here.install("bad", "[tensorken.commands]\nbad = fake_bad:main\n", fake_bad="1 / 0")
    odd = "main = add_arguments = lambda *arguments: 1 / 0"
    here.install("odd", "[tensorken.commands]\nodd = fake_odd:main\n", fake_odd=odd)
    (here.folder / "a-folder").mkdir()
    shutil.copytree(Path(shtab.__file__).parent, here.folder / "shtab")
    said = here.run("completion", "bash")
    for name, cause in (("bad", "command 'bad' of bad 1.0 cannot be loaded: "), ("odd", "")):
        assert f"tensorken: subcommand {name} is left out: {cause}ZeroDivisionError" in said
    script = said.partition("tensorken: subcommand")[0]
    script += f'\ntensorken() {{ {shlex.join(here.command())} "$@"; }}\n'
    for words, _ in COMPLETED:
        script += f"COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}; COMPREPLY=()\n"
        script += '_shtab_tensorken tensorken "${COMP_WORDS[COMP_CWORD]}"; echo "${COMPREPLY[*]}"\n'
    done = subprocess.run(
        ["bash"],
        input=script,
        cwd=here.folder,
        env=here.environment(),
        capture_output=True,
        encoding="ascii",
        check=True,
    )
    assert done.stderr == ""
    for line, (words, expected) in zip(done.stdout.splitlines(), COMPLETED, strict=True):
        assert expected <= set(line.split()), words


def test_completion_without_shtab_says_how_to_install_it(here: Installation) -> None:
    said = here.run("completion", "zsh", status=1)
    assert said.endswith('pip install "tensorken[completion]"\n') and len(said.splitlines()) == 1


# ---- the command itself, continued -------------------------------------------------------------------------


def test_the_versions_in_a_line_and_in_one_json_object(here: Installation) -> None:
    here.backend("numpy", version="1.2")
    here.commands()
    python = ".".join(map(str, sys.version_info[:3]))
    line = f"tensorken (not installed), tensorken-core 1.4.2, language 1.0, Python {python}"
    assert here.run("--version").startswith(line)
    here.install("tensorken", version="1.5")
    assert here.run("--version").startswith(line.replace("(not installed)", "1.5"))
    data = json.loads(here.run("--version", "--json"))
    assert (data["tensorken"], data["core"], data["language"]) == ("1.5", "1.4.2", "1.0")
    assert data["plugins"] == {"dist-commands": "1.0", "tensorken-numpy": "1.2"}
    assert data["python"]["version"].startswith(python) and data["platform"]


WRONG = [
    # the arguments, the rest of the line with the error, and the command whose --help the second line names
    ("--colour", "there is no option --colour", "tensorken"),
    ("--versio", "there is no option --versio; did you mean --version?", "tensorken"),
    ("--json", "--json needs --version or a subcommand", "tensorken"),
    ("backends --jsn", "there is no option --jsn; did you mean --json?", "tensorken backends"),
    ("backends -probe=1", "there is no option -probe; did you mean --probe?", "tensorken backends"),
    ("backends --json --names", "--names: not allowed with argument --json", "tensorken backends"),
    ("doctor x", "unexpected argument 'x'", "tensorken doctor"),
    ("doctor --limit -1", "--limit: must be a number of seconds above 0, got '-1'", "tensorken doctor"),
    ("completion bahs", "there is no shell 'bahs'; did you mean bash?", "tensorken completion"),
    ("completion 5", "there is no shell '5'; choose from bash, zsh, fish, tcsh", "tensorken completion"),
]


@each_of(("arguments", "message", "command"), WRONG)
def test_wrong_arguments_give_two_lines_and_status_2(
    capsys: pytest.CaptureFixture[str], arguments: str, message: str, command: str
) -> None:
    with pytest.raises(SystemExit) as exit:
        main(arguments.split())
    assert exit.value.code == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"{command}: {message}\n  '{command} --help' lists the arguments\n")


def test_unprintable_names_are_escaped(here: Installation) -> None:
    here.install(
        "dist", "[tensorken.backends]\n\u03c9-gpu = fake\n[tensorken.commands]\n\u03c9 = fake:main\n"
    )
    assert "\\u03c9-gpu" in here.run("backends")
    assert "\\u03c9" in here.run("--help")
    assert json.loads(here.run("backends", "--json"))["backends"][0]["name"] == "\u03c9-gpu"


HOSTILE = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202e"
"""It clears a terminal, changes its title and its colour, and reverses the direction of the text."""


def test_texts_of_plugins_command_no_terminal(here: Installation) -> None:
    module = (
        f'"""Do it.{HOSTILE}"""\n'
        "from tensorken_core.host.plugin import hookimpl\n"
        "@hookimpl\n"
        f"def tensorken_report_header(): return [{HOSTILE!r}, 'two\\nlines']\n"
        "def main(arguments): ...\n"
    )
    here.install(
        f"dist{HOSTILE}",
        f"[tensorken.backends]\nmine{HOSTILE} = fake_hostile\n"
        f"[tensorken.plugins]\nmine{HOSTILE} = fake_hostile\n"
        f"[tensorken.commands]\nmine{HOSTILE} = fake_hostile:main\n",
        version="1.0",
        fake_hostile=module,
    )
    here.backend(
        "gpu", more=f", devices=('left',), facts=lambda d: {{{HOSTILE!r}: {HOSTILE!r} + '\\nforged  broken'}}"
    )
    here.backend("shy", more=f", devices=('left{HOSTILE}',)")
    here.install(
        "dist-raises",
        "[tensorken.backends]\nraises = fake_raises\n",
        fake_raises=f"raise RuntimeError({HOSTILE!r})",
    )
    for *arguments, status in (
        ("backends", 0),
        ("backends", "--probe", 0),
        ("backends", "--probe", "raises", 1),
        ("backends", "--probe", HOSTILE, 1),
        ("doctor", 1),
        ("--help", 0),
        (HOSTILE, 2),
        (f"mine{HOSTILE}", 0),
        ("backends", f"--{HOSTILE}", 2),
    ):
        told = here.run(*map(str, arguments), status=int(status), TENSORKEN_BACKEND="gpu")
        assert "".join(told.split("\n")).isprintable(), arguments
        assert not [line for line in told.splitlines() if line.strip().startswith("forged")]


def test_a_shell_gets_only_names_that_it_does_not_expand(here: Installation) -> None:
    here.install(
        "dist", "[tensorken.backends]\n$(touch owned) = fake\n`touch owned` = fake\nplain-1 = fake\n"
    )
    assert here.run("backends", "--names") == "plain-1\n"


def test_a_named_backend_alone_is_probed(here: Installation) -> None:
    here.backend("gpu", more=", devices=('left', 'right')")
    here.install(
        "dist-bad", "[tensorken.backends]\nbad = fake_bad\n", fake_bad="raise RuntimeError('no driver')"
    )
    told = lines(here.run("backends", "--probe", "gpu", TENSORKEN_BACKEND="gpu"))
    assert told[1] == "gpu * dist-gpu 1.0 any loads; devices: left, right"
    assert "bad" not in "".join(told)
    assert "no driver" in here.run(
        "backends", "--probe", "gpu", "bad", "GPU", status=1, TENSORKEN_BACKEND="gpu"
    )
    told = here.run("backends", "--probe", "gpx", status=1, TENSORKEN_BACKEND="gpu")
    assert told.startswith("tensorken: unknown backend 'gpx'\n  did you mean: gpu\n")
    data = json.loads(here.run("backends", "--json", "--probe", "gpu@dist-gpu", TENSORKEN_BACKEND="gpu"))
    assert [backend["devices"] for backend in data["backends"]] == [["left", "right"]]


def test_a_closed_pipe_is_not_an_error(here: Installation) -> None:
    for i in range(30):
        here.backend(f"toy{i}")
    for arguments in (["backends"], ["--help"]):
        process = subprocess.Popen(
            here.command(*arguments), env=here.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 1
        process.stderr.close()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to one process")
def test_ctrl_c_ends_with_a_clean_line_and_130(here: Installation) -> None:
    here.commands()
    process = subprocess.Popen(
        here.command("waits"), env=here.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout
    assert process.stdout.readline() == b"ready\n"
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=30)
    assert (process.returncode, told) == (130, b"tensorken: interrupted\n")
