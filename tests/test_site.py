"""The documentation site: its pages, and the checks of the built site. Sphinx runs in `nox -s docs`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tools import certificates, figures, reference, search, site, source_links, versions, walkthrough
from tools.image_sizes import with_sizes
from tools.public_modules import public_modules
from tools.reference_topics import TOPICS
from tools.workspace import ROOT

EXAMPLE = '''"""An example: of itself.

    python example.py

More of it.
"""

from __future__ import annotations

STEP = 2


def title(text: str) -> None:
    """Print a heading."""
    print(f"\\n{text}\\n{'-' * len(text)}")


# ---- a part ----------------------------------------------------------------------------------------------------


def first() -> None:
    """What comes first."""
    title("First")
    x = 1
    print(x + STEP)

    # A word about the second.
    title("Second")
    print("-")


if __name__ == "__main__":
    print("All of it")
    first()
'''


def test_an_example_becomes_a_page(tmp_path: Path) -> None:
    example = tmp_path / "example.py"
    example.write_text(EXAMPLE, encoding="utf-8")
    assert walkthrough.page(example).split("\n\n") == [
        "# All of it",
        "An example: of itself.",
        "```sh\n$ python example.py\n```",
        "More of it.",
        "```python\nSTEP = 2\n```",
        "## A part",
        "### First",
        "What comes first.",
        "```python\nx = 1\nprint(x + STEP)\n```",
        "```text\n3\n```",
        "### Second",
        "A word about the second.",
        '```python\nprint("-")\n```',
        "```text\n-\n```\n",
    ]


@pytest.mark.parametrize("name", site.EXAMPLES)
def test_the_page_of_an_example_has_all_its_output(name: str) -> None:
    example = ROOT / "examples" / f"{name}.py"
    page = walkthrough.page(example)
    for line in walkthrough.output_of(example).splitlines():
        assert line in page or set(line) == {"-"}, line


def test_the_gallery_lists_every_program() -> None:
    page = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    assert [name for name in (*site.EXAMPLES, *site.GALLERY) if f"](../examples/{name}.py)" not in page] == []


def test_every_example_has_a_figure_with_a_description() -> None:
    names = (*site.EXAMPLES, *site.GALLERY)
    assert [name for name in names if not figures.description(ROOT / "examples" / f"{name}.py")] == []


def test_links_lead_to_where_pages_are_staged() -> None:
    source = ROOT / "docs" / "adr" / "README.md"
    places = {
        source: Path("adr/README.md"),
        ROOT / "CONTRIBUTING.md": Path("project/contributing.md"),
        ROOT / "README.md": Path("../README.md"),
    }

    def moved(text: str) -> str:
        return site.rewrite_links(text, source, places)

    assert moved("[a](../../CONTRIBUTING.md#b)") == "[a](../project/contributing.md#b)"
    assert moved("[a](../../README.md)") == "[a](../index.md)"
    assert moved("the [licence](../../LICENSE)") == "the licence (`LICENSE`)"
    assert moved("[a](https://example.org) [b](#c)") == "[a](https://example.org) [b](#c)"
    assert moved("![a](_static/a.svg)") == "![a](_static/a.svg)"
    assert moved("`tk.tree.map` `tk.grad`") == (
        "{py:obj}`tk.tree.map <tensorken.tree.map>` {py:obj}`tk.grad <tensorken.grad>`"
    )
    assert moved("[all of `tk.sin`](https://example.org)") == "[all of `tk.sin`](https://example.org)"
    assert moved("`tk.sin` `tk.no_such_name`") == "{py:obj}`tk.sin <tensorken.sin>` `tk.no_such_name`"
    assert moved("```text\n`tk.sin` [a](nowhere.md)\n```") == "```text\n`tk.sin` [a](nowhere.md)\n```"
    with pytest.raises(
        LookupError, match=r"docs/adr/README\.md: the target nowhere\.md of a link does not exist"
    ):
        moved("[a](nowhere.md)")


def test_existing_reports_become_part_of_the_site(tmp_path: Path) -> None:
    reports, pages = tmp_path / "reports", tmp_path / "pages"
    reports.mkdir()
    (pages / "conformance").mkdir(parents=True)
    page = pages / "conformance" / "backends.md"
    page.write_text("# Reports\n", encoding="utf-8")
    for name in ("numpy.html", "numpy.json"):
        (reports / name).write_text(name, encoding="utf-8")
    site.stage_reports(reports, pages)
    assert [path.name for path in (pages / "extra" / "reports").iterdir()] == ["numpy.html"]
    assert page.read_text(encoding="utf-8").endswith('* <a href="../reports/numpy.html">numpy</a>\n')


def test_a_site_without_reports_links_none(tmp_path: Path) -> None:
    page = tmp_path / "conformance" / "backends.md"
    page.parent.mkdir()
    page.write_text("# Reports\n", encoding="utf-8")
    site.stage_reports(tmp_path / "missing", tmp_path)
    assert page.read_text(encoding="utf-8") == "# Reports\n"
    assert (tmp_path / "extra" / "reports").is_dir()  # Sphinx needs it


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ('<script src="https://cdn.example/x.js"></script>', ["https://cdn.example/x.js"]),
        ('<link rel="stylesheet" href="//fonts.example/x.css">', ["//fonts.example/x.css"]),
        ('<img src="_static/x.png"><a href="https://example.org">there</a>', []),
    ],
)
def test_external_addresses_of_a_page_are_found(html: str, found: list[str]) -> None:
    assert site.external_addresses(html) == found


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ('<img src="a.svg">', 1),
        ('<img alt="" src="a.svg">', 1),
        ('<img alt="_images/a.svg" src="_images/a.svg">', 1),
        ('<img alt="A line." src="a.svg">', 0),
    ],
)
def test_images_without_a_text_are_found(html: str, found: int) -> None:
    assert len(site.silent_images(html)) == found


def test_images_get_the_sizes_of_their_files(tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("points.svg", "pixels.svg", "view.svg", "report.png")}
    files["points.svg"].write_text('<?xml?><svg width="360pt" height="216pt" viewBox="0 0 360 216">')
    files["pixels.svg"].write_text(
        '<svg viewBox="0 0 9 9" height="20" width="30px"><rect width="1" height="1"/>'
    )
    files["view.svg"].write_text('<svg viewBox="0 0 9 9"><rect width="1" height="1"/>')
    files["report.png"].write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\4\0\0\0\2\1")
    page = '<p><img alt="x" src="../_images/{}" /></p>'
    for name, size in (
        ("points.svg", 'width="480" height="288" '),
        ("pixels.svg", 'width="30" height="20" '),
        ("report.png", 'width="1024" height="513" '),
        ("view.svg", ""),
        ("another.svg", ""),
    ):
        image = page.format(name)
        assert with_sizes(image, files) == image.replace("<img ", f"<img {size}")
        assert len(site.unsized_images(with_sizes(image, files))) == (not size)
    image = '<img width="40" height="40" src="points.svg">'
    assert with_sizes(image, files) == image


def test_the_op_table_has_a_row_for_each_op() -> None:
    page = reference.pages()["ops"]
    rows = dict(re.findall(r"^   \* - ``(\w+)(\(.*)``$", page, re.MULTILINE))
    assert rows.keys() == {name for name, op in reference.OPS.items() if op.higher_order is None}
    assert (rows["gather"], rows["where"]) == ("(x, indices, axis)", "(condition, a, b)")


@pytest.mark.parametrize(
    ("name", "dtypes", "derivatives"),
    [
        ("sin", "float", "x"),
        ("add", "int, float", "a, b"),
        ("eq", "all to bool", "none"),
        ("argmax", "all to int32", "none"),
        ("bitwise_and", "int", "none"),
        ("where", "all", "a, b"),
        ("gather", "all", "x"),
        ("cast", "all to any", "x"),
        ("concatenate", "all", "all operands"),
    ],
)
def test_the_op_table_has_dtypes_and_derivatives(name: str, dtypes: str, derivatives: str) -> None:
    op = reference.OPS[name]
    assert reference.accepted(op) == dtypes
    assert reference.derivatives(op, reference.operand_names(op)) == derivatives


def test_a_folder_without_a_site_is_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "kept.txt"
    kept.write_text("mine", encoding="utf-8")
    assert site.main([str(tmp_path)]) == 1
    assert "is not empty and not a site" in capsys.readouterr().err
    assert kept.exists()


def test_every_public_name_has_one_entry_in_the_reference() -> None:
    pages = reference.pages()
    alone = {owner.page for owner in [*public_modules(), *reference.plugins()]}
    shared = {name for topic in TOPICS for name in topic.modules}
    assert shared <= alone
    assert alone - shared <= pages.keys()
    entries = re.findall(r"^\.\. auto(?:function|class):: (\w+)$", "\n".join(pages.values()), re.MULTILINE)
    assert {"vmap", "Linear", "cross_entropy", "Adam"} <= set(entries)
    on_page = re.findall(r"autofunction:: (\w+)", pages["derivatives"])
    assert on_page[:2] == ["grad", "value_and_grad"] and "hvp" in on_page


def test_a_module_among_public_names_links_to_its_page() -> None:
    page = reference.pages()["tensorken_nn"]
    assert "The module :py:mod:`tensorken_nn.checkpoints`." in page
    assert "<module" not in page  # its repr has a path of this machine


# ---- certificates ------------------------------------------------------------------------------------------


def report(backend: str, **changes: object) -> str:
    header = {
        "backend": backend,
        "level": 3,
        "symbolic": False,
        "depth": "default",
        "device": "cpu",
        "date": "2027-01-31T10:00:00+00:00",
        "kit": "0.1.0",
        "partial": "",
        "select": [],
        "compilers": [],
    }
    counts = {"cases": 9, "passed": 8, "failed": 0, "expected": 1, "unsupported": 0, "crashed": 0}
    return json.dumps(
        {"header": header | changes, "counts": counts, "capabilities": {"dtypes": ["bool", "float32"]}}
    )


def test_reports_take_the_place_of_recorded_certificates(tmp_path: Path) -> None:
    names = {"numpy": {}, "jax": {"partial": "interrupted"}, "torch": {"compilers": ["llvm"]}}
    for name, changes in names.items():
        (tmp_path / f"{name}.json").write_text(report(name, **changes), encoding="utf-8")
    recorded, found = certificates.certificates(tmp_path / "none"), certificates.certificates(tmp_path)
    assert recorded.keys() == {file.stem for file in (ROOT / "docs" / "backends").glob("*.md")}
    assert list(found) == list(recorded)  # in the order of the front page
    assert {name for name in found if found[name] != recorded[name]} == {"numpy"}
    facts = certificates.facts(found["numpy"], "../reports/numpy.html")
    assert "L3 differentiation: 9 cases, 1 failed as expected" in facts
    assert "| dtypes | `bool`, `float32` |" in facts and "2027-01-31" in facts and "numpy.html" in facts


def test_a_failed_case_takes_the_level_from_the_badge(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(report("mine").replace('"failed": 0', '"failed": 2'), encoding="utf-8")
    certificate = certificates.read(file)
    assert certificate is not None
    assert '<span>mine</span><span class="level-none">no level</span>' in certificates.badge(certificate, "a")


# ---- source, versions and search ---------------------------------------------------------------------------


def test_functions_link_to_their_source() -> None:
    info = {"module": "tensorken", "fullname": "grad"}
    here, there = (source_links.resolver(repository, "v1") for repository in ("", "https://example.org/a"))
    path, first, last = source_links.source_of("tensorken", "grad") or ("", 0, 0)
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    assert lines[first - 1] == "def grad(" and lines[last - 1].startswith("    return ")
    assert here("py", info) == f"../source/{path}.html#L-{first}"
    assert there("py", info) == f"https://example.org/a/blob/v1/{path}#L{first}-L{last}"
    assert here("py", {"module": "tensorken", "fullname": "pi"}) is None


def test_versions_list_each_other_and_the_newest_is_stable(tmp_path: Path) -> None:
    built, pages = tmp_path / "site", tmp_path / "pages"
    built.mkdir()
    for name in ("index.html", "404.html", "objects.inv"):
        (built / name).write_text(name, encoding="utf-8")
    for name in ("0.9.0", "0.10.0", "0.11.0rc1", "0.9.0"):
        (built / "index.html").write_text(name, encoding="utf-8")
        names = versions.add(built, pages, name, "https://example.org/a")
    assert names == ["0.11.0rc1", "0.10.0", "0.9.0"]
    assert (pages / "stable" / "index.html").read_text(encoding="utf-8") == "0.10.0"
    listed = json.loads((pages / "0.9.0" / "versions.json").read_text(encoding="utf-8"))
    assert [row["url"] for row in listed] == ["../0.11.0rc1/", "../0.10.0/", "../0.9.0/"]
    assert "<loc>https://example.org/a/stable/index.html</loc>" in (pages / "sitemap.xml").read_text("utf-8")
    assert "404.html" not in (pages / "sitemap.xml").read_text("utf-8")
    assert "Sitemap: https://example.org/a/sitemap.xml" in (pages / "robots.txt").read_text("utf-8")


def test_each_answer_is_a_section_of_its_page() -> None:
    """A heading that changes takes its questions along; `nox -s docs` asks the search itself."""
    answers = {answer for found in search.QUESTIONS.values() for answer in found if "#" in answer}
    missing = []
    for page, section in sorted(answer.split("#") for answer in answers):
        file = ROOT / "docs" / f"{page}.md"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        headings = [line.lstrip("# ").lower() for line in lines if line.startswith("#")]
        if lines and section not in [re.sub(r"[^a-z0-9]+", "-", text).strip("-") for text in headings]:
            missing.append(f"{page}#{section}")
    assert missing == []
