"""Printing: the only part that knows terminals.

`screen` decides how; `formatting` writes cells, `layout` finds widths, and `plain`, `terminal` and `jsonlines` are the
three looks.
"""
