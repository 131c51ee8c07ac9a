"""From a line of text to a command with its arguments.

`qmf.views.conditions.words` splits the line, `registry` finds the command, `command` describes what a command takes,
and `binding` checks the words against that. `selection` is the language of ``where``, ``sort`` and so on, with the
conditions of `qmf.views.conditions`; `method_arguments` and `times` turn texts into values. All are pure
functions; none knows the bus.
"""
