"""The ways of running: `repl` at a terminal, `batch` for -c, files and pipes. `executor` runs one line for both."""
