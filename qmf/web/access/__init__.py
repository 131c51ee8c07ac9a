"""Who may: users, sessions, API tokens with scopes; checks of origin and host; limits; the log of calls and refusals.

The parts know no QMF. `access` decides who a client is, `guards` are the ASGI middlewares in front of all routes.
"""
