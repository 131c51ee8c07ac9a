"""The session with the bus.

`backend` is the interface to the bus, with the values that it returns; `console_backend` implements it over
`qmf.console`, `multi_backend` joins several. `context` is what every command gets: the backend, `short_ids`, `recent`
events and heartbeats, settings, `prompts`. `opening` makes it. `name_cache` has the names that Tab completes.
"""
