"""Users of a broker or of `qmf-web`, and what their passwords are checked with: a file, kept by `qmf-users`."""
