"""Options objects behind arguments: arguments are written once, in a class, and not again in signatures."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar, cast

_P = ParamSpec("_P")
_Self = TypeVar("_Self")
_Options = TypeVar("_Options")

_Init = Callable[[_Self, _Options], None]
_ArgumentsInit = Callable[Concatenate[_Self, _P], None]


def arguments_of(
    options: Callable[_P, _Options],
) -> Callable[[_Init[_Self, _Options]], _ArgumentsInit[_Self, _P]]:
    """Give an ``__init__(self, options)`` the fields of the options as arguments.

    Type checkers and `help` see the fields in the signature.

    Args:
        options: the class of the options.

    Returns:
        a decorator.
    """
    make: Callable[..., _Options] = options

    def decorate(init: _Init[_Self, _Options]) -> _ArgumentsInit[_Self, _P]:
        fields = inspect.signature(options)
        own = next(iter(inspect.signature(init).parameters.values()))

        @functools.wraps(init)
        def wrapper(self: _Self, *args: object, **keywords: object) -> None:
            given = fields.bind(*args, **keywords)
            init(self, make(*given.args, **given.kwargs))

        signature = inspect.Signature([own, *fields.parameters.values()], return_annotation=None)
        setattr(wrapper, "__signature__", signature)  # noqa: B010  # functions have no such attribute for type checkers
        return cast("_ArgumentsInit[_Self, _P]", wrapper)

    return decorate
