"""`qpid-route`: links between brokers, and the routes on them, by the methods of their agents."""
