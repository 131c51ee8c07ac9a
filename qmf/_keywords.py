"""Options objects behind keyword arguments: options are written once, in a class, and not again in signatures."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar, cast

_P = ParamSpec("_P")
_Self = TypeVar("_Self")
_First = TypeVar("_First")
_Options = TypeVar("_Options")

_Init = Callable[[_Self, _First, _Options], None]
_KeywordInit = Callable[Concatenate[_Self, _First, _P], None]


def keywords_of(
    options: Callable[_P, _Options],
) -> Callable[[_Init[_Self, _First, _Options]], _KeywordInit[_Self, _First, _P]]:
    """Give an ``__init__(self, first, options)`` the fields of the options as keyword arguments.

    Type checkers and `help` see the fields in the signature.

    Args:
        options: the class of the options.

    Returns:
        a decorator.
    """
    make: Callable[..., _Options] = options

    def decorate(init: _Init[_Self, _First, _Options]) -> _KeywordInit[_Self, _First, _P]:
        own = list(inspect.signature(init).parameters.values())[:2]
        signature = inspect.Signature([*own, *inspect.signature(options).parameters.values()], return_annotation=None)
        names = [parameter.name for parameter in own]

        @functools.wraps(init)
        def wrapper(*args: object, **keywords: object) -> None:
            given = signature.bind(*args, **keywords).arguments
            owner, first = (given.pop(name) for name in names)
            init(owner, first, make(**given))

        setattr(wrapper, "__signature__", signature)  # noqa: B010  # functions have no such attribute for type checkers
        return cast("_KeywordInit[_Self, _First, _P]", wrapper)

    return decorate
