# SPDX-License-Identifier: Apache-2.0
"""Settings of the documentation site. packaging/docs calls Sphinx with this folder as its configuration,
and with the folder of pages that docs/site/pages.py writes as its source.

The settings must suit the newest Sphinx and that of Debian 12 (5.3, with myst-parser 0.18)."""
import os
import re
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "site"))

header = open(os.path.join(here, "..", "include", "embla.h"), encoding="utf-8").read()
version = release = ".".join(re.findall(r"^#define EMBLA_VERSION_\w+ (\d+)$", header, re.M))

project = "Embla"
author = "the authors of Embla"
copyright = author
extensions = ["myst_parser", "names"]
if os.environ.get("EMBLA_DOXYGEN"):  # the folder of doxygen's XML
    extensions.insert(1, "breathe")
    breathe_projects = {"embla": os.environ["EMBLA_DOXYGEN"]}
    breathe_default_project = "embla"
    breathe_domain_by_extension = {"h": "c"}
    breathe_default_members = ("members", "undoc-members")

source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
root_doc = "index"
highlight_language = "none"
smartquotes = False  # -- and 'quotes' are typed
myst_heading_anchors = 4
myst_enable_extensions = []
# Outputs in console blocks and lines of `..` are no tokens of a language. An older Sphinx has no such
# message for the same text.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = "Embla " + release
html_static_path = [os.path.join(here, "site", "static")]
html_css_files = ["embla.css"]
html_copy_source = False
html_show_search_summary = False  # it fetches the pages, which a browser does not do from files
html_show_sourcelink = False
html_show_sphinx = False
html_last_updated_fmt = None
