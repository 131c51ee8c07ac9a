"""The AMQP 1.0 driver of the `Bus` interface: a client's connection, its links, and how they are kept up."""
