"""Remote objects and events: their values, updates of them, their methods, and queries for them."""
