"""Says in one line that a C compiler is missing, before pip's many lines about proton, which it cannot compile then."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

#: Set where proton is installed already: nothing is compiled then, this project's own modules included.
NO_NATIVE = "QMF_NO_NATIVE"


class CompilerCheck(MetadataHookInterface):  # type: ignore[misc, unused-ignore]  # hatchling is there while building only
    """Ends the installation where proton could not be compiled."""

    def update(self, metadata: dict[str, Any]) -> None:  # noqa: ARG002 - it only looks
        """See hatchling."""
        if complaint := missing_compiler(os.environ):
            raise SystemExit(complaint)


def missing_compiler(environment: Mapping[str, str]) -> str | None:
    """What to do about a compiler that is not there; `None` if there is one, if none is needed, or on Windows."""
    if os.name == "nt" or environment.get(NO_NATIVE):
        return None
    compilers = ((environment.get("CC") or "cc").split()[0], "cc", "gcc", "clang")
    if any(shutil.which(name, path=environment.get("PATH")) for name in compilers):
        return None
    return (
        "proton, the AMQP engine, is compiled while it installs, and there is no C compiler. On Debian: "
        f"apt-get install gcc libc6-dev python3-dev. Where proton is installed already, set {NO_NATIVE}=1."
    )
