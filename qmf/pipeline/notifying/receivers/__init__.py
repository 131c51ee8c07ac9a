"""Receivers: each kind of integration sends a notification in its own way, and says what came of it."""
