"""The type variable of content: a class without a type in brackets, such as `Message`, stands for any content."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import TypeVar

    ContentT = TypeVar("ContentT", default=Any)
else:
    from typing import TypeVar

    ContentT = TypeVar("ContentT")

__all__ = ["ContentT"]
