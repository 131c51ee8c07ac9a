"""Long names in HTML: their beginning is shown, all of it when it is pointed at, and a button copies it."""

from __future__ import annotations

import html

from qmf.web.pages.views.long_texts import cut


def cut_html(text: str) -> str:
    """A text as HTML; of a long one the beginning, with all of it as its title and on a button that copies it."""
    shown = cut(text)
    if shown == text:
        return html.escape(text)
    full = html.escape(text)
    return (
        f'<span title="{full}">{html.escape(shown)}</span>'
        f'<button type="button" class="qmf-mini" data-copy="{full}">Copy</button>'
    )
