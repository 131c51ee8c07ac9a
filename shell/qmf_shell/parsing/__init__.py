"""From a line of text to a command with its arguments.

`qmf.views.conditions.words` splits the line, `registry` finds the command, `command` describes what a command takes,
and `binding` checks the words against that. `conditions` and `selection` are the language of ``where``, ``sort`` and
so on; `method_arguments` and `option_numbers` turn texts into values. All are pure functions; none knows the bus.
"""
