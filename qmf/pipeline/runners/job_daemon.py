"""As `worker_daemon`, for jobs, whose tasks do not use pandas."""

from __future__ import annotations

from qmf.pipeline.runners.worker_daemon import main

if __name__ == "__main__":
    main(pandas=False)
