"""Links within a broker: what comes into a queue is moved or copied to another queue, or to an exchange."""
