"""A bus without a network, for tests: `MemoryBus`, connected to others by a `MemoryExchange`.

It passes the same conformance tests as `AmqpBus`, and fails on request: `MemoryExchange.stop`, `drop` and `refuse`.
Buses on one exchange may belong to different loops in different threads; messages are handed over to the loop of the
receiver.
"""
