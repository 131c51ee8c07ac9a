"""The styles of live screens: of the 16 colours of the palette, so that they follow the theme of the terminal."""

from __future__ import annotations

from prompt_toolkit.styles import Style

COLOURS = Style.from_dict(
    {
        "title": "reverse bold",
        "tab": "ansicyan",
        "tab.current": "reverse ansicyan",
        "head": "bold",
        "head.sort": "bold underline ansicyan",
        "id": "ansigreen",
        "name": "bold",
        "faint": "ansibrightblack",
        "rate": "ansicyan",
        "changed": "bold ansiyellow",
        "new": "bold ansigreen",
        "gone": "ansibrightblack strike",
        "lost": "ansired",
        "warning": "bold ansiyellow",
        "critical": "bold ansiwhite bg:ansired",
        "error": "ansired",
        "notice": "ansicyan",
        "cursor": "fg:ansidefault bg:ansidefault reverse",
        "key": "bold ansicyan",
        "bad": "bold ansiwhite bg:ansired",
        "message": "bold ansiyellow",
        "input": "bold",
    }
)
PLAIN = Style.from_dict(
    {
        "title": "reverse",
        "tab.current": "reverse",
        "head": "underline",
        "head.sort": "bold underline",
        "cursor": "reverse",
        "changed": "bold",
        "new": "bold",
        "warning": "bold",
        "critical": "bold",
        "key": "bold",
        "bad": "reverse bold",
    }
)
