"""`qmf-shell`, a shell for operators of systems managed by QMF, and the programs `qmf-printevents` and `qmf-stat`.

The way of a line: `modes` reads it, `parsing` finds the command and checks its arguments, the command in `commands`
uses the bus through `session` and `objects` and returns a value of `results`, and `render` prints this value.
`completion` analyses a line that is still being typed.

Imports go one way: commands and modes may import objects and completion, these may import session, session may import
parsing, and parsing may import results. `render` is imported only by the modes, the programs and `objects.export`.
"""
