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

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["adr/template.md", "extra"]
html_extra_path = ["extra"]  # what the site has as it is: the reports of our own backends
default_role = "py:obj"  # `grad` is a link where there is such a name, else code: see `missing` below
nitpicky = True
nitpick_ignore = [
    ("py:class", "tensorken_core.source_line.Origin"),
    ("py:class", "tensorken_core.language.op.Op"),
]  # fields of records
smartquotes_action = "D"  # dashes alone: quotes are often code

myst_heading_anchors = 3
autosummary_generate = False
autodoc_typehints = "none"  # most operands are Any: all that becomes a tensor; the docstring says more
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
    """What a name becomes that Sphinx does not find.

    `tk.sin` is `tensorken.sin`. What stands in backticks need not be a name at all, so it is code then: `x + y`. Only
    what was written as a reference (`:py:func:`, a link) must lead somewhere.
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
    """Show `tensorken.sin` as users write it: `tk.sin`; what they import from a module keeps the module's name."""
    for prefix in content.parent.findall(addnodes.desc_addname):
        text = prefix.astext()
        if text.startswith("tensorken."):
            prefix.clear()
            prefix += nodes.Text(f"tk.{text.removeprefix('tensorken.')}")


def setup(app: Sphinx) -> None:
    """Connect the functions above."""
    app.connect("missing-reference", missing)
    app.connect("object-description-transform", as_imported)
