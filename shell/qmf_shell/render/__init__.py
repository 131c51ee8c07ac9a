"""Printing: the only part that knows terminals.

`screen` decides how; `formatting` writes cells, `layout` finds widths, `lines` draws for people (with the colours of
`paint`, and `plot` for lines over time), `jsonlines` and `csvlines` write for programs. `live` draws pictures in place,
`progress` says how far long work is, `pager` shows what is longer than the terminal.
"""
