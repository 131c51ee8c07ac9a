"""Functions made from source text: loops over columns that are known once for all, written out.

The text is kept where tracebacks and debuggers look for it (`linecache`). It is put together from names and numbers of
ours; names that a schema or a peer chose are only ever passed in as values.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping
from typing import Any


def build(name: str, source: str, names: Mapping[str, object], what: str) -> Callable[..., Any]:
    """Compile a function.

    Args:
        name: what the source calls it.
        source: one ``def``.
        names: what it finds as globals.
        what: whose it is, for tracebacks, e.g. ``queue``.

    Returns:
        the function.
    """
    file = f"<{name} of {what}>"
    space: dict[str, Any] = dict(names)
    exec(compile(source, file, "exec"), space)  # our own text, see above
    # Entries without a time are never checked against a disk.
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    function = space[name]
    assert callable(function)
    return function  # type: ignore[no-any-return]
