"""Routes that are worked out when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from fastapi.routing import APIRoute
from starlette.routing import compile_path, get_name


class LateRoute(APIRoute):
    """A route that knows its path and its methods, and finds out what its endpoint takes when it is first needed.

    That is at its first request, or when the interface is described. To find out means two milliseconds of the
    processor for a route, most of which nobody calls; an application has fifty.

    Args:
        path: of the route.
        endpoint: the function that answers.
        methods: of HTTP.
        name: by which it can be found; None: the endpoint's.
        options: the others of `APIRoute`.
    """

    def __init__(
        self,
        path: str,
        endpoint: Callable[..., Any],
        *,
        methods: Iterable[str] | None = None,
        name: str | None = None,
        **options: Any,
    ) -> None:
        self.path, self.endpoint = path, endpoint
        self.path_regex, self.path_format, self.param_convertors = compile_path(path)
        self.methods = {method.upper() for method in methods or ("GET",)}
        self.name = get_name(endpoint) if name is None else name
        self._rest: dict[str, Any] | None = {"methods": list(self.methods), "name": self.name, **options}

    def __getattr__(self, name: str) -> Any:
        """What is not known yet, when it is asked for."""
        if name.startswith("__") or (options := self.__dict__.get("_rest")) is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        self._rest = None
        try:
            super().__init__(self.path, self.endpoint, **options)
        except Exception:
            self._rest = options  # the next request gets this error, too
            raise
        return getattr(self, name)
