"""Sphinx's settings for the documentation site; `nox -s docs` stages the pages and runs it (tools/site.py)."""

from __future__ import annotations

from importlib.metadata import version as version_of
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

project = "Tensorken for Python"
author = "The Tensorken for Python developers"
version = release = version_of("tensorken-core")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_design",
]
source_suffix = {".md": "myst-nb", ".rst": "restructuredtext"}
exclude_patterns = ["adr/template.md", "extra"]
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
autosummary_generate = False
autodoc_typehints = "none"  # most operands are Any (array-likes); the docstrings are more precise
python_maximum_signature_line_length = 88
napoleon_use_rtype = False
napoleon_preprocess_types = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = f"{project} {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "default"


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
    return content if node["reftype"] in ("obj", "exc") else None


def as_imported(app: Sphinx, domain: str, kind: str, content: addnodes.desc_content) -> None:
    """Show `tensorken.sin` as users write it, `tk.sin`; names that users import from a module keep its name."""
    for prefix in content.parent.findall(addnodes.desc_addname):
        text = prefix.astext()
        if text.startswith("tensorken."):
            prefix.clear()
            prefix += nodes.Text(f"tk.{text.removeprefix('tensorken.')}")


def setup(app: Sphinx) -> None:
    """Connect the functions above."""
    app.connect("missing-reference", missing)
    app.connect("object-description-transform", as_imported)
