"""What to do about a library that is not installed: it comes with an extra of the project (``pyproject.toml``)."""

from __future__ import annotations


def install_hint(extra: str) -> str:
    """What to run to get an extra, as the end of a message: ``pip install '.[web]' in the checkout of the project``.

    A path and not the project's name, because the project is on no package index.
    """
    return f"pip install '.[{extra}]' in the checkout of the project"
