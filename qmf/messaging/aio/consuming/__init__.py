"""Consumers: a handler for each message of an address, with retries, dead letters and an orderly end."""
