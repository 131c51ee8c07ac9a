"""The broker's clients: their connections, their links, and how they log in."""
