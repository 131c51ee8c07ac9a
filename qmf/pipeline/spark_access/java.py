"""Finds the Java that Spark would start, and checks its version, before Spark fails with a page of text."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from qmf.pipeline.errors import PipelineError

#: The oldest Java that Spark 4 runs on.
OLDEST = 17

_HINT = (
    f"Spark needs Java {OLDEST} or newer: apt-get install openjdk-17-jre-headless (or dnf install "
    "java-17-openjdk-headless, brew install openjdk@17), or set JAVA_HOME to the folder of an installed one"
)


def check() -> None:
    """Check the Java that Spark finds, in JAVA_HOME or else in the path.

    Raises:
        PipelineError: there is none, it doesn't run, or it is too old; the message says which, and how to install one.
    """
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if program is None:
        raise PipelineError(f"there is no java in the path, and JAVA_HOME is not set. {_HINT}")
    if not os.access(program, os.X_OK):
        raise PipelineError(f"JAVA_HOME is {home}, but there is no program {program}. {_HINT}")
    try:
        run = subprocess.run([program, "-version"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PipelineError(f"{program} does not run: {error}. {_HINT}") from error
    output = run.stderr + run.stdout
    found = re.search(r'version "(?:1\.)?(\d+)', output)
    if run.returncode or not found:
        raise PipelineError(f"{program} does not print its version: {output.strip() or 'no output'}. {_HINT}")
    if int(found[1]) < OLDEST:
        raise PipelineError(f"{program} is Java {found[1]}. {_HINT}")
