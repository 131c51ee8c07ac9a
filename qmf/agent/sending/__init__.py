"""Messages of one agent: encoded, divided by size, numbered, and sent."""
