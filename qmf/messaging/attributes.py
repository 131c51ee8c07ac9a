"""Attributes that programs may set: those of the API. Another name is a mistake, which must not pass in silence."""

from __future__ import annotations

from qmf.errors import unknown_attribute

_set = object.__setattr__


class FixedAttributes:
    """Base of classes with `__slots__`: setting another attribute names similar ones. Programs' subclasses have any."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute that there is.

        Raises:
            AttributeError: there is no such attribute, or it cannot be set.
        """
        try:
            _set(self, name, value)
        except AttributeError:
            if not hasattr(type(self), name):
                raise unknown_attribute(type(self), name) from None
            raise
