"""`qmf-shell`: an operator's view of a live system over QMF. `qmf-printevents` and `qmf-stat` are its small sisters.

The way of a line: `parsing` splits it, `registry` finds the command, `binding` checks its arguments, the command's
handler (`commands`) asks the bus through `session.source` and returns a value of `results`, and `render` prints it.
`conditions`, `selection` and `filtering` are the language of ``where``. `repl` and `batch` are the two ways of running;
`completion` understands a line that is still being typed, `suggestions` and `hints` say what could come next.
"""
