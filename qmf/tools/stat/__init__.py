"""`qpid-stat`: statistics of a broker as tables."""
