"""Tab completion, and the hints in the toolbar.

`analysis` finds out what the text at the cursor may be: one of the kinds in `kinds`. `suggestions` finds names of this
kind in `data`, which never waits for the network; `hints` describes what is expected. `completer` connects them to
prompt_toolkit.
"""
