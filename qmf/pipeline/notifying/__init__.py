"""Notifications: what happens with alerts once the rules gave them, with the terms of Prometheus' Alertmanager."""
