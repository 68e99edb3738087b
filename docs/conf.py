"""Sphinx: `python -m sphinx -W -b html docs docs/_build/html`, with the [docs] extra installed."""

from fastml import __version__

project = "fastml"
author = "The fastml developers"
copyright = "2026, The fastml developers"
release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

default_role = "code"
autodoc_typehints = "none"  # the docstrings say it in words
napoleon_google_docstring = False

html_theme = "furo"
html_title = "fastml"
