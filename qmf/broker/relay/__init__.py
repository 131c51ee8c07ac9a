"""Relay: messages to ``name@domain`` wait in a queue for each domain, and are forwarded to the broker of the domain."""
