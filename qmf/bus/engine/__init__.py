"""AMQP 1.0 without I/O, on proton's engine: links, deliveries, and the events of a connection."""
