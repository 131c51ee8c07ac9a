"""The version of the distribution, in one place: the build reads it from here."""

__version__ = "0.1.0"
