"""The command `tensorken conformance`: its output, exit statuses, and behaviour on different consoles."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from conformance.tests import fake_backends
from conformance.tests.sample_reports import FAILED, report
from tensorken_conformance import check
from tensorken_conformance.backends.loading import load as load_subject
from tensorken_conformance.case import Case, Result
from tensorken_conformance.cli import FORMS, main
from tensorken_conformance.law import LAWS
from tensorken_conformance.progress import Progress
from tensorken_conformance.report.journal import load_either
from tensorken_conformance.report.serial import to_json
from tensorken_conformance.running.options import Options, Run
from tensorken_core.language.op import OPS

CORRECT, FAULTY = f"{fake_backends.MODULE}:Small", f"{fake_backends.MODULE}:FillsWithZeros"

QUICK = ["--in-process", "--select", "values.read-back/full"]

COMMAND = [
    sys.executable,
    "-c",
    "from tensorken_cli.command import main; raise SystemExit(main())",
    "conformance",
]


def command(*arguments: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)), **variables}
    return subprocess.run(
        [*COMMAND, *arguments], cwd=folder, env=environment, capture_output=True, timeout=120
    )


# ---- run ---------------------------------------------------------------------------------------------------


def test_run_of_a_correct_backend(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", CORRECT, *QUICK]) == 0
    out, err = capsys.readouterr()
    assert "0 failed + 0 expected failures + 0 declared unsupported + 0 crashed" in out
    assert "no level - bool, float32 - a part of the laws only" in out
    assert "\x1b" not in out
    assert out.isascii()
    assert err == ""


def test_run_of_a_faulty_backend(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", FAULTY, *QUICK, "--brief"]) == 1
    out, _ = capsys.readouterr()
    assert "values.read-back: A tensor made from a buffer" in out
    assert (
        out.count("      from tensorken_conformance import check\n      check('values.read-back/full/") == 3
    )
    assert " more; " in out


def test_a_backend_that_declares_nothing_has_no_level(capsys: pytest.CaptureFixture[str]) -> None:
    select = ["--select", "values", "--select", "host", "--select", "derivatives", "--smoke", "--budget=0"]
    assert main(["run", f"{fake_backends.MODULE}:WithoutDtypes", "--in-process", *select]) == 1
    assert "no dtypes" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nunpy"], "did you mean: numpy"),
        (["run", "numpy", "--select", "values.elementwize"], "did you mean values.elementwise"),
        (["run", "no_such_module:Mine", "--select", "values.elementwize"], "did you mean values.elementwise"),
        (["run", "numpy", "--json", "no/such/folder/x.json"], "cannot write no/such/folder/x.json"),
        (["run", "numpy", "--json", "."], "cannot write ."),
        (["run", "numpy", "--json", f"{__file__}/x.json"], "no such folder, or not writable"),
        (["run", "numpy", "--json", "-", "--html", "-"], "two reports cannot be in one file, stdout"),
        (["run", "numpy", "--json", "a", "--html", "a"], "two reports cannot be in one file, a"),
        (["explain", "values.cipherr"], "did you mean values.cipher"),
        (["repro", "values.read-back/new/float32/smal"], "values.read-back/new/float32/small"),
        (["repro", "nonsense"], "there is no law 'nonsense'; `tensorken conformance explain GROUP` lists"),
        (["repro", "values.read-back/new/bool/small", "--backend", "nunpy"], "numpy"),
        (["run", f"{fake_backends.MODULE}:Smal"], "did you mean Small"),
        (
            ["run", f"{fake_backends.MODULE}:WithOptions", "--backend-option", "corect=1"],
            "its options: correct, device",
        ),
        (["missing", f"{fake_backends.MODULE}:raises_when_made"], "no adapter"),
        (
            [
                "repro",
                "values.read-back/new/bool/small",
                "--backend",
                f"{fake_backends.MODULE}:raises_when_made",
            ],
            "no adapter",
        ),
        (["missing", "nunpy"], "numpy"),
        (
            ["diff", "old.json", "new.json"],
            "old.json: there is no such file; `tensorken conformance run --json",
        ),
        (["diff", ".", "new.json"], "cannot read .: Is a directory" if sys.platform != "win32" else "."),
        (["matrix", "old.json"], "old.json: there is no such file"),
        (["selftest", "--select", "nonsense"], "nonsense"),
    ],
)
def test_invalid_arguments_print_one_error_line(
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    if arguments[:2] == ["run", "numpy"]:
        arguments = [*arguments, "--in-process"]
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert err.startswith("tensorken conformance: ")
    assert message in err
    assert out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["run"],
        ["walk"],
        ["run", "numpy", "--workers", "0"],
        ["run", "numpy", "--smoke", "--deep"],
        ["run", "numpy", "--backend-option", "fast"],
        ["diff", "old.json", "new.json", "--slower", "1"],
    ],
)
def test_argparse_rejects_arguments(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as error:
        main(arguments)
    assert error.value.code == 2


def test_run_writes_every_report_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {name: tmp_path / f"report.{name}" for name in FORMS}
    options = [text for name, file in files.items() for text in (f"--{name}", str(file))]
    assert main(["run", FAULTY, *QUICK, *options]) == 1
    assert load_either(files["json"]).counts.failed > 0
    assert ElementTree.fromstring(files["junit"].read_text("utf-8")).tag == "testsuites"
    assert files["html"].read_text("utf-8").startswith("<!doctype html>")
    assert files["markdown"].read_text("utf-8").startswith("## ")
    assert json.loads(files["badge"].read_text("utf-8"))["schemaVersion"] == 1
    assert main(["run", CORRECT, *QUICK, "--badge", str(tmp_path / "badge.SVG")]) == 0
    assert (tmp_path / "badge.SVG").read_text("utf-8").startswith("<svg")
    capsys.readouterr()


def test_a_report_on_stdout_is_the_only_output_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", CORRECT, *QUICK, "--json", "-"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["counts"]["failed"] == 0
    assert "cases = " in err


def test_backend_options_are_passed_to_the_backend(capsys: pytest.CaptureFixture[str]) -> None:
    name = f"{fake_backends.MODULE}:WithOptions"
    assert (
        main(["run", name, *QUICK, "--backend-option", "correct=True", "--backend-option", "device=a b"]) == 0
    )
    assert "correct=True, device=a b" in capsys.readouterr().out
    assert main(["run", name, *QUICK]) == 1


# ---- consoles ----------------------------------------------------------------------------------------------


def test_run_in_a_read_only_folder_with_an_ascii_console(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    done = command(
        "run", f"{fake_backends.MODULE}:Verbose", "--select", "values.read-back/full/float32/one",
        folder=tmp_path, PYTHONIOENCODING="ascii:strict", LC_ALL="C",
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert b"snow \\u2603" in done.stdout
    assert done.stdout.isascii()
    assert done.stderr == b""
    assert list(tmp_path.iterdir()) == []


def test_run_of_a_backend_in_the_current_folder(tmp_path: Path) -> None:
    source = "from tensorken_numpy.backend import Numpy\nclass Mine(Numpy): pass\n"
    (tmp_path / "my_own_backend.py").write_text(source)
    select = ["--select", "values.read-back/full/float32"]
    assert command("run", "my_own_backend:Mine", *select, folder=tmp_path).returncode == 0
    assert command("run", "my_own_backend:Mine", *select, "--in-process", folder=tmp_path).returncode == 0
    repro = ["repro", "values.read-back/full/float32/one", "--backend", "my_own_backend:Mine"]
    assert command(*repro, folder=tmp_path).returncode == 0


def test_a_closed_pipe_prints_no_error(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    with subprocess.Popen(
        [*COMMAND, "run", CORRECT, *QUICK],
        cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot send SIGINT to another process")
def test_an_interrupted_run_reports_its_results(tmp_path: Path) -> None:
    file = tmp_path / "part.json"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    arguments = ["run", f"{fake_backends.MODULE}:Slow", "--workers", "1", "--json", str(file)]
    with subprocess.Popen(
        [*COMMAND, *arguments, "--select", "values.read-back"],
        cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        while not (tmp_path / "begun").exists() and process.poll() is None:
            time.sleep(0.02)
        time.sleep(1.0)  # until a few cases are examined
        process.send_signal(signal.SIGINT)
        out = process.stdout.read()
    assert process.returncode == 130
    assert b"PARTIAL: interrupted" in out
    partial = load_either(file)
    assert partial.header.partial == "interrupted"
    assert partial.header.level is None


def start_slow_run(folder: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start a run of a slow backend, and return once its first case runs."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    run = subprocess.Popen(
        [*COMMAND, "run", f"{fake_backends.MODULE}:Slow", "--select", "values.read-back/full", "--in-process"]
        + [*options],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while not (folder / "begun").exists() and run.poll() is None:
        time.sleep(0.05)
    return run


def test_a_killed_run_leaves_its_results_in_the_journal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = start_slow_run(tmp_path, "--json", "report.json")
    journal = tmp_path / "report.jsonl"
    while journal.read_text().count("\n") < 3:
        time.sleep(0.05)
    run.kill()
    run.communicate()
    assert not (tmp_path / "report.json").exists()
    text = journal.read_text()
    journal.write_text(text + '{"case": "values.read-b')  # a kill may cut the last line
    assert main(["matrix", str(journal)]) == 0
    assert "fake_backends" in capsys.readouterr().out
    loaded = load_either(journal)
    assert len(loaded.results) == text.count("\n") - 1
    assert loaded.header.partial == "killed"
    assert {result.case.law for result in loaded.results} == {"values.read-back"}


@pytest.mark.skipif(os.name == "nt", reason="Windows kills a process without a signal")
def test_a_terminated_run_reports_its_results(tmp_path: Path) -> None:
    run = start_slow_run(tmp_path, "--json", "report.json", "--results", "results.jsonl")
    while (tmp_path / "results.jsonl").read_text().count("\n") < 3:
        time.sleep(0.05)
    run.terminate()
    out, _ = run.communicate()
    assert run.returncode == 130, out
    partial = load_either(tmp_path / "report.json")
    assert partial.header.partial == "interrupted"
    written = [result.case for result in load_either(tmp_path / "results.jsonl").results]
    assert (
        len(written) >= len(partial.results) - 1
    )  # the interrupt may come before the last result is written
    assert written == [result.case for result in partial.results][: len(written)]
    assert not (tmp_path / "report.jsonl").exists()


def test_option_results_requires_a_file(tmp_path: Path) -> None:
    assert main(["run", CORRECT, *QUICK, "--results", "-"]) == 2
    assert main(["run", CORRECT, *QUICK, "--results", str(tmp_path)]) == 2


def test_a_complete_run_leaves_only_the_report(tmp_path: Path) -> None:
    assert main(["run", CORRECT, *QUICK, "--json", str(tmp_path / "report.json")]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_progress_is_printed_in_lines_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    err = ""
    with Progress(every=0.01) as progress:
        progress.tell(Result(Case("values.sums", "sum"), "passed", 1))
        progress.begin(Run(Options("numpy"), planned=1344))
        progress.tell(Result(Case("values.sums", "sum"), "failed", 1))
        while "2 of 1,344" not in err or err[-1] != "\n":  # otherwise the time limit ends the test
            time.sleep(0.01)
            err += capsys.readouterr().err
    assert re.search(r"^2 of 1,344 cases, 1 failed, \d+ s, values\.sums$", err, re.M)
    assert capsys.readouterr().out == ""


def test_progress_of_cases_in_this_process_is_printed_between_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A case that listens to its output must not hear the progress."""
    with Progress(in_process=True, every=0.01) as progress:
        time.sleep(0.05)
        assert capsys.readouterr().err == ""
        progress.tell(Result(Case("values.sums", "sum"), "passed", 1))
    assert "1 cases, 0 failed" in capsys.readouterr().err


def test_the_documentation_shows_a_line_of_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    progress = Progress()
    began = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: began + 8.0)
    progress.begin(Run(Options("numpy"), planned=1344))
    for i in range(312):
        progress.tell(Result(Case("values.layouts", "sum"), "passed", i % 4))
    page = Path(__file__).parents[2] / "docs" / "conformance.md"
    assert f"```text\n{progress.line}\n```" in page.read_text(encoding="utf-8")


def test_a_run_knows_the_number_of_its_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    tell = Progress.tell

    def told(progress: Progress, result: Result) -> None:
        tell(progress, result)
        lines.append(progress.line)

    monkeypatch.setattr(Progress, "tell", told)
    for options in (["--in-process"], ["--workers", "1"]):
        lines.clear()
        assert main(["run", CORRECT, "--select", "values.read-back/full", *options]) == 0
        assert re.fullmatch(rf"1 of {len(lines)} cases, 0 failed, \d+ s, values.read-back", lines[0])
        assert lines[-1].startswith(f"{len(lines)} of {len(lines)} cases, 0 failed")


def test_a_terminal_shows_a_bar_except_for_a_debugger(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    for arguments, has_bar in ((["--workers", "1"], True), (["--in-process"], False)):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        assert main(["run", CORRECT, "--select", "values.read-back/full", *arguments]) == 0
        assert ("cases, 0 failed, " in terminal.getvalue()) is has_bar
        assert terminal.getvalue() == "" or terminal.getvalue().endswith("\x1b[2K")  # the bar is erased


# ---- the other commands ------------------------------------------------------------------------------------


def test_repro_examines_one_case(capsys: pytest.CaptureFixture[str]) -> None:
    case = "values.read-back/full/float32/one"
    assert main(["repro", case, "--backend", FAULTY, "--seed", "3"]) == 1
    out, _ = capsys.readouterr()
    assert out.startswith(f"{case}: failed\n")
    assert "seed 3, default depth" in out
    assert f"check('{case}', backend='{FAULTY}', seed=3)" in out
    assert main(["repro", case]) == 0
    assert "backend   numpy" in capsys.readouterr().out


def test_repro_shows_the_traceback_of_an_unexpected_error(capsys: pytest.CaptureFixture[str]) -> None:
    backend = f"{fake_backends.MODULE}:Verbose"
    assert main(["repro", "values.read-back/full/float32/one", "--backend", backend]) == 1
    out, _ = capsys.readouterr()
    assert "Traceback (most recent call last):" in out
    assert "fake_backends.py" in out


def test_the_script_of_a_failure_has_seed_and_depth_and_shows_the_failing_frame(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The numbers of a case depend on the seed and the depth, so the script needs both."""
    case = "values.read-back/full/float32/one"
    main(["repro", case, "--backend", FAULTY, "--seed", "3", "--deep"])
    script = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("check("))
    assert script == f"check('{case}', backend='{FAULTY}', seed=3, depth='deep')"
    exec(f"from tensorken_conformance import check\n{script}", {})
    assert capsys.readouterr().out.startswith("failed: ")
    check(case, f"{fake_backends.MODULE}:Verbose")
    out = capsys.readouterr().out
    assert out.startswith("failed: RuntimeError: snow")
    frames = [line for line in out.splitlines() if line.startswith("  File ")]
    assert "fake_backends.py" in frames[-1]
    with pytest.raises(ValueError, match="has no case"):
        check("values.read-back/full/float32/on", "numpy")


def test_check_loads_the_backend_at_the_given_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorken_conformance.running import debugging

    depths: list[str] = []
    monkeypatch.setattr(debugging, "load", lambda *args: (depths.append(args[-1]), load_subject(*args))[1])
    check("values.read-back/full/float32/one", "numpy", depth="deep")
    assert depths == ["deep"]


def test_repro_reports_a_backend_that_exits_as_crashed(capsys: pytest.CaptureFixture[str]) -> None:
    backend = f"{fake_backends.MODULE}:Exits"
    assert main(["repro", "values.read-back/full/float32/one", "--backend", backend]) == 1
    assert "crashed" in capsys.readouterr().out


def test_explain_describes_a_law(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "values.movement"]) == 0
    out, _ = capsys.readouterr()
    for part in (
        "keeps the bits of each element",
        "L1 core ops",
        "docs/conformance.md#values-movement",
        "flip",
    ):
        assert part in out
    assert main(["explain", "declarations"]) == 0
    out, _ = capsys.readouterr()
    assert out.splitlines()[::2] == [law for law in LAWS if law.startswith("declarations.")]


def test_missing_lists_ops_and_dtypes_by_level(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["missing", "numpy"]) == 0
    assert "missing, without which nothing goes: nothing" in capsys.readouterr().out
    assert main(["missing", "tensorken_core.language.raw:RawTensor"]) == 0
    out, _ = capsys.readouterr()
    assert "lacks float32: needed for L1" in out
    assert "lacks float64: not needed for a level" in out
    assert "exp: required, for L1; a method exp(a)" in out
    assert "where: required, for L1; a method where(a, b, c)" in out
    assert all(f"  {op.name}: required" in out for op in OPS.values() if op.method and op.body is None)
    derived = out.rsplit("no method of its own", 1)[1]
    assert "tanh" in derived


def test_missing_lists_declared_unsupported_ops(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["missing", f"{fake_backends.MODULE}:Refusing"]) == 0
    out, _ = capsys.readouterr()
    assert "exp in float32: it is not needed here (needed for L1)" in out
    assert "erf in float32, float64: no erf (needed for no level)" in out


def test_diff_and_matrix_of_two_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(to_json(report()))
    new.write_text(to_json(report(FAILED)))
    assert main(["diff", str(old), str(new)]) == 1
    assert "new failures" in capsys.readouterr().out
    assert main(["diff", str(new), str(old)]) == 0
    assert main(["diff", str(old), str(old)]) == 0
    capsys.readouterr()
    assert main(["matrix", str(old), str(new)]) == 0
    assert "L4" in capsys.readouterr().out
    page = tmp_path / "matrix.html"
    assert main(["matrix", str(old), str(new), "--html", str(page), "--markdown", "-"]) == 0
    assert capsys.readouterr().out.startswith("| backend |")
    assert page.read_text("utf-8").startswith("<!doctype html>")


def test_the_cli_and_the_pytest_plugin_do_not_import_numpy_or_tensorken(tmp_path: Path) -> None:
    code = (
        "import sys, tensorken_conformance.cli, tensorken_conformance.pytest_plugin;"
        "print([m for m in ('numpy', 'mpmath', 'hypothesis', 'tensorken') if m in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    out = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, check=True
    )
    assert out.stdout.strip() == b"[]"


def test_abbreviated_options_are_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["selftest", "--seed", "7"])
    assert "there is no option --seed; did you mean --seeds or --select?" in capsys.readouterr().err
