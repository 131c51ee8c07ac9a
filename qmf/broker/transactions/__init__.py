"""Transactions: what is sent and settled within one takes effect at its end, or not at all."""
