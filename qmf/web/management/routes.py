"""Routes of management."""

from __future__ import annotations

from fastapi import APIRouter

from qmf.web.services import WebServices


def router(services: WebServices) -> APIRouter:
    """The routes; those of an application share `services`."""
    assert services.access
    return APIRouter()
