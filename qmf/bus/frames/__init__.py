"""Frames of AMQP 1.0 as bytes, between the socket and the engine: what the engine's library does not tell of them.

A walker (`walker.py`, compiled `walker.c`) finds the few frames that matter among all that pass; `performatives.py`
reads and writes fields of them. This package knows nothing of links, sockets and proton.
"""
