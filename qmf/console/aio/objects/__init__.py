"""Remote objects and events: their values, updates of them, and their methods."""
