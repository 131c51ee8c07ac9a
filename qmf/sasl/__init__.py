"""SASL (RFC 4422), both sides, without I/O and without a protocol around it: each protocol frames the same exchanges.

`client` chooses the strongest mechanism that both sides have; `server` says what it offers, and who a client is. A
mechanism takes what the peer sent and returns what to send, or the result. Nothing here knows a socket or a frame.
"""
