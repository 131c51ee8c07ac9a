"""`qmf-users`."""
