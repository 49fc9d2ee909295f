"""Jobs of other distributions: found by their entry points, imported when they are used, refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorken_core.errors import ArgumentError
from tensorken_nn.cli import main
from tensorken_nn.jobs.installed import Jobs
from tensorken_nn.jobs.job import Job
from tensorken_nn.jobs.table import OWN

MODULE = """
from tensorken_nn.jobs.job import Job
from tensorken_nn.jobs.digits import Settings, prepare
JOB = Job("a job of another distribution", Settings, prepare)
"""


def install(folder: Path, distribution: str, *lines: str) -> None:
    """Add the metadata of a distribution with these entry points to a folder."""
    info = folder / f"{distribution}-1.0.dist-info"
    info.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n"
    (info / "METADATA").write_text(metadata, encoding="utf-8")
    points = "\n".join(["[tensorken.jobs]", *lines, ""])
    (info / "entry_points.txt").write_text(points, encoding="utf-8")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path with a module that has a job."""
    (tmp_path / "other_job.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_a_job_of_another_distribution_is_listed_after_ours(site: Path) -> None:
    install(site, "good", "other = other_job:JOB")
    jobs = Jobs(OWN)
    assert [*jobs] == [*OWN, "other"] and len(jobs) == len(OWN) + 1
    assert "other" in jobs and "another" not in jobs
    assert jobs["other"].summary == "a job of another distribution"
    assert jobs.get("another") is None
    assert dict(jobs) == {**OWN, "other": jobs["other"]}


def test_equal_names_are_told_apart_by_their_distributions(site: Path) -> None:
    install(site, "one", "other = other_job:JOB", "digits = other_job:JOB")
    install(site, "two", "other = other_job:JOB")
    jobs = Jobs(OWN)
    assert [*jobs][len(OWN) :] == ["digits@one", "other@one", "other@two"]
    assert jobs["digits"] is OWN["digits"]
    assert isinstance(jobs["digits@one"], Job) and jobs["digits@one"] is not OWN["digits"]


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        ("no_such_module:JOB", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("other_job:NONE", "AttributeError: module 'other_job' has no attribute 'NONE'"),
        ("other_job:Settings", "other_job:Settings is a type, not a tensorken_nn.jobs.Job"),
    ],
)
def test_a_broken_job_is_one_line_and_harms_no_other(site: Path, value: str, cause: str) -> None:
    install(site, "bad", f"broken = {value}")
    jobs = Jobs(OWN)
    reason = f"cannot be used: {cause}; update or uninstall bad"
    assert [(name, job.summary) for name, job in jobs.items() if name not in OWN] == [("broken", reason)]
    with pytest.raises(ArgumentError) as raised:
        jobs["broken"].prepare(jobs["broken"].settings())
    assert str(raised.value) == f"train: the job broken of bad {reason}"


def test_the_command_trains_it(
    site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(site, "good", "other = other_job:JOB")
    install(site, "bad", "broken = no_such_module:JOB")
    monkeypatch.setattr("tensorken_nn.cli.JOBS", Jobs(OWN))
    assert main([]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "other a job of another distribution" in words
    assert "broken cannot be used: ModuleNotFoundError: No module named 'no_such_module'; " in words
    out = str(site / "run")
    assert main(["other", "--epochs", "1", "--limit", "60", "--hidden", "4", "--quiet", "--out", out]) == 0
    with pytest.raises(SystemExit, match="2"):
        main(["othr"])
    assert "there is no job 'othr'; did you mean other?" in capsys.readouterr().err
