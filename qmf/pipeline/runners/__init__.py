"""Where jobs run: in the process of the command (`process`), or on Spark (`spark`). See `runner` for what a job is."""

from __future__ import annotations
