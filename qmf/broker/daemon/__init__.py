"""`qmf-broker`, the broker as a program."""
