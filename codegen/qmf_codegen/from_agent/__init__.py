"""Schema files from a live agent: classes are discovered over the bus, assembled by package, and written as XML."""
