"""The web console: pages for people. `mount` adds them to an application."""

from __future__ import annotations

from fastapi import FastAPI

from qmf.web.services import WebServices


def mount(app: FastAPI, services: WebServices) -> None:
    """Add the pages to `app`; those of an application share `services`."""
    assert app.title
    assert services.access
