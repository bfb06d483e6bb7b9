"""Settings of the documentation site: ``make docs`` builds it in build/site."""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is loaded: small examples are faster, and the same everywhere
import thresher

project = "thresher"
author = "The thresher developers"
project_copyright = f"2026, {author}"
version = release = thresher.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinx-mathjax-offline",
]
exclude_patterns = ["gallery/*.ipynb", "gallery/*.py", "gallery/*.md5", "gallery/*.json", "gallery/*.zip"]
templates_path = ["_templates"]
default_role = "code"

# Pages are Markdown, and also read well on a code host.
myst_enable_extensions = ["colon_fence", "dollarmath", "fieldlist"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]  # the gallery has a class among its settings

# The reference comes from the docstrings.
autosummary_generate = True
toc_object_entries_show_parents = "hide"
autosummary_imported_members = True
autodoc_typehints = "none"  # the docstrings say it in words
autodoc_mock_imports = ["dask", "distributed", "mlflow", "pyspark"]
numpydoc_show_class_members = False  # the template of a class shows them in full

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "within_subsection_order": "FileNameSortKey",
    "doc_module": ("thresher",),
    "backreferences_dir": "gallery/backreferences",
    "download_all_examples": False,
    "write_computation_times": False,
    "abort_on_example_error": True,
    "remove_config_comments": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "thresher"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "thresher"},
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "github-light",
    "pygments_dark_style": "github-dark",
}
html_sidebars = {"index": [], "tutorial": [], "changelog": [], "faq": [], "glossary": []}
html_context = {"default_mode": "auto"}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def skip_scikit_learn(app, what, name, member, skip, options):
    """Methods that scikit-learn adds are documented there."""
    return True if (getattr(member, "__module__", None) or "").startswith("sklearn.") else None


def setup(app):
    app.connect("autodoc-skip-member", skip_scikit_learn)
