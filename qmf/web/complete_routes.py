"""Puts routers together whose routes lack nothing: prefix, tags, dependencies and responses are their router's."""

from __future__ import annotations

from fastapi import APIRouter


def add_routes(target: APIRouter, part: APIRouter) -> None:
    """Add the routes of a router to another; its lifespan stays with the caller.

    FastAPI's `include_router` can add to routes what the other router has. For that it builds each of them anew, and
    once more for each router between it and the application: two thirds of the time that an application takes to make.
    """
    target.routes.extend(part.routes)
