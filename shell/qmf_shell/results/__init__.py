"""What commands return: values, not text. `render` turns them into text for people, or into JSON or CSV for programs.

`result` has tables, plots, streams and so on, whose contents are `qmf.views.cells`. Knows no terminal
and no bus.
"""
