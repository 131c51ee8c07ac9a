"""The options that all commands share which connect to a broker. Loads next to nothing, so that `--help` is quick."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class UrlAction(argparse.Action):
    """Stores or appends the URL of a broker, and hides a password in it from the list of processes.

    `append` of the constructor: the option may be repeated.
    """

    def __init__(self, *args: Any, append: bool = False, **named: Any) -> None:
        super().__init__(*args, **named)
        self._append = append

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        texts = [values] if isinstance(values, str) else list(values or ())
        for text in texts:
            if _has_password(text):
                from qmf.connecting.process_list import hide_argument

                hide_argument(text)
                namespace.shown_password = True
        before = getattr(namespace, self.dest, None) or []
        setattr(namespace, self.dest, [*before, *texts] if self._append or self.nargs else texts[0])


def _has_password(text: str) -> bool:
    # Imported here: --help does not need it.
    from qmf.bus.url import UrlError, parse_url

    try:
        return parse_url(text).password is not None
    except UrlError:
        return "@" in text  # it may have one; the error follows later


def add_connection_options(
    parser: argparse.ArgumentParser | argparse._ArgumentGroup,
    *,
    broker: str | None = None,
    several: bool = False,
) -> None:
    """Add the options that `read_connections` reads.

    Args:
        parser: of the command, or a group of it.
        broker: help of `-b`; None: the command adds the URLs itself, with `UrlAction` and the name ``broker``.
        several: `-b` may be repeated.
    """
    add = parser.add_argument
    if broker is not None:
        add(
            "-b",
            "--broker",
            metavar="URL",
            action=UrlAction,
            append=several,
            default=[] if several else None,
            help=broker,
        )
    add("--context", metavar="NAME", help="connect as this context of the settings file says (or QMF_CONTEXT)")
    add("--domain", metavar="NAME", help="QMF domain (default: default)")
    add("--user", metavar="NAME", help="user to log in as; the password is asked for on a terminal")
    add("--password-file", metavar="FILE", type=Path, help="file with the password (or QMF_PASSWORD)")
    add("--token-file", metavar="FILE", type=Path, help="file with an access token to log in with, read for each login")
    add("--keyring", action="store_true", help="take the password from the keyring of this user")
    add("--ask-password", action="store_true", help="ask for the password even if it is in the environment")
    add("--ca", metavar="FILE", type=Path, help="certificates of the authorities to trust, in PEM, for amqps://")
    add("--cert", metavar="FILE", type=Path, help="certificate to show to the broker, in PEM")
    add("--key", metavar="FILE", type=Path, help="private key of that certificate, if it is not in its file")
    add("--insecure", action="store_true", help="accept any certificate of the broker")
