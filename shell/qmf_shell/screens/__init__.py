"""Live screens: tables of objects, events and agents that fill the terminal and that people work in.

`model` holds rows, order, filter, cursor and columns, and knows neither a terminal nor the bus. `pages` fill models
from the session. `drawing` makes lines of styled text of a page, as a pure function; `app` shows them with
prompt_toolkit and reads keys and mouse. `results.LiveScreen` is what commands return.
"""
