"""Requests of consoles: access control, queries, method calls, subscriptions, discovery."""
