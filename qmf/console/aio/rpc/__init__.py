"""Requests to agents, and the answers that belong to them."""
