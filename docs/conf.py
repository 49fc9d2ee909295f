"""Sphinx's settings for the documentation site; `nox -s docs` stages the pages and runs it (tools/site.py)."""

from __future__ import annotations

import json
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

from tools import signatures, source_links
from tools.image_sizes import with_sizes
from tools.workspace import addresses

project = "Tensorken for Python"
author = "The Tensorken for Python developers"
version = release = version_of("tensorken-core")
repository, documentation = (addresses()[name] for name in ("repository", "documentation"))

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.linkcode",
    "sphinx_copybutton",
    "sphinx_design",
    "notfound.extension",
]
source_suffix = {".md": "myst-nb", ".rst": "restructuredtext"}
exclude_patterns = ["adr/template.md", "extra"]
templates_path = ["_templates"]
html_extra_path = ["extra"]  # files that the site includes unchanged: the reports of the backends
default_role = "py:obj"  # `grad` is a link if the name exists, else code: see `missing` below
nitpicky = True
nitpick_ignore = [
    ("py:class", "tensorken_core.source_line.Origin"),
    ("py:class", "tensorken_core.language.op.Op"),
]  # fields of records
smartquotes_action = "D"  # only dashes: quotes are often code

myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
myst_enable_extensions = ["colon_fence"]
autosummary_generate = False
autodoc_typehints = "none"  # `signature` below has them, as they are written
python_maximum_signature_line_length = 88
napoleon_use_rtype = False
napoleon_preprocess_types = False
toc_object_entries_show_parents = "hide"
linkcode_resolve = source_links.resolver(repository, f"v{release}")

copybutton_exclude = ".linenos, .gp, .go"  # prompts and output are not copied
copybutton_prompt_text = r"\$ "
copybutton_prompt_is_regexp = True
copybutton_selector = "div:not(.highlight-text) > div.highlight > pre"

html_theme = "furo"
html_title = f"{project} {release}"
html_short_title = project
html_favicon = "_static/mark.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = [(file, {"defer": "defer"}) for file in ("versions.js", "focus.js")]
html_search_scorer = str(Path(__file__).with_name("_static") / "ranking.js")
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_baseurl = f"{documentation}/stable/" if documentation else ""
html_theme_options: dict[str, Any] = {
    "navigation_with_keys": True,
    "light_css_variables": {
        "color-brand-primary": "#0b5c8c",
        "color-brand-content": "#0b5c8c",
        "color-brand-visited": "#6b3fa0",
    },
    "dark_css_variables": {
        "color-brand-primary": "#6cb8e6",
        "color-brand-content": "#6cb8e6",
        "color-brand-visited": "#c3a1ea",
    },
}
html_sidebars = {
    "**": [
        "sidebar/mark.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
        "sidebar/versions.html",
    ]
}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
notfound_urls_prefix = f"{urlsplit(documentation).path}/stable/" if documentation else "/"

linkcheck_timeout = 30
linkcheck_workers = 4
linkcheck_anchors_ignore_for_url = [r"https://github\.com/"]  # its pages get their anchors by scripts

SOURCES = json.loads(Path(__file__).with_name("sources.json").read_text(encoding="utf-8"))
"""The file of each page in the repository, by the page's name; the reference is generated and has none."""


def missing(app: Sphinx, env: Any, node: addnodes.pending_xref, content: nodes.Element) -> Any:
    """Resolve a name that Sphinx does not find.

    `tk.sin` is `tensorken.sin`. Other text in backticks need not be a name, such as `x + y`; it becomes code. Only
    explicit references (`:py:func:`, a link) must have a target.
    """
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py" or node.get("refexplicit"):
        return None
    if target.startswith("tk."):
        name = f"tensorken.{target.removeprefix('tk.')}"
        place = node["refdoc"], app.builder, node["reftype"], name
        return env.domains["py"].resolve_xref(env, *place, node, content) or content
    is_type = not isinstance(content, nodes.literal)  # in a signature, such as `Sequence`
    return content if is_type or node["reftype"] in ("obj", "exc") else None


def signature(app: Sphinx, what: str, name: str, value: Any, options: Any, bare: str, result: str) -> Any:
    """Add types to the parameters."""
    return signatures.typed(value) if bare and what in ("function", "method", "class") else None


def as_imported(app: Sphinx, domain: str, kind: str, content: addnodes.desc_content) -> None:
    """Show `tensorken.sin` as users write it, `tk.sin`; names that users import from a module keep its name."""
    for prefix in content.parent.findall(addnodes.desc_addname):
        text = prefix.astext()
        if text.startswith("tensorken."):
            prefix.clear()
            prefix += nodes.Text(f"tk.{text.removeprefix('tensorken.')}")


def page_context(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Link a page to its file in the repository; mend its HTML for screen readers, and for pages that load."""
    if repository and page in SOURCES:
        context["theme_source_edit_link"] = f"{repository}/edit/main/{SOURCES[page]}"
    tree = context["furo_navigation_tree"]
    context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')
    body = context.get("body", "")
    if '<em class="sig-param">' in body:  # a list of parameters has no terms, which HTML's `dl` needs
        body = body.replace('<dd><em class="sig-param">', '<dd role="listitem"><em class="sig-param">')
        body = body.replace('<dl>\n<dd role="listitem">', '<dl role="list">\n<dd role="listitem">')
    if "<img" in body:
        images = {name: Path(app.srcdir, file) for file, name in app.builder.images.items()}
        body = with_sizes(body, images)
    if body:
        context["body"] = body


def setup(app: Sphinx) -> None:
    """Connect the functions above."""
    app.connect("missing-reference", missing)
    app.connect("object-description-transform", as_imported)
    app.connect("html-page-context", page_context, priority=900)  # after the theme
    app.connect("autodoc-process-signature", signature)
