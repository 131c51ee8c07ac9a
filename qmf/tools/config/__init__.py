"""`qpid-config`: queues, exchanges and bindings of a broker."""
