"""What the options of `add_connection_options` mean together.

A command line names brokers by `-b`, or a context by `--context`. Without either, the environment variable QMF_CONTEXT
counts, then the `context` of the settings file, then the command's default. Options override what a context says.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

from qmf.connecting.config_file import config_path
from qmf.connecting.contexts import CONTEXT_VARIABLE, ConnectionContext, Contexts, read_contexts
from qmf.connecting.passwords import PASSWORD_VARIABLE, PasswordFinder, ask_on_terminal
from qmf.connecting.secret_files import TokenFile, read_secret
from qmf.connecting.targets import BrokerTarget, OptionError, targets_of
from qmf.connecting.tls import NO_FILES, TlsFiles

_SHOWN_PASSWORD = (
    "a password in a URL on the command line can be read by other users of this machine, and stays in the shell's "
    f"history: use --user with --password-file, --keyring, {PASSWORD_VARIABLE} or the prompt"
)


@attrs.frozen(kw_only=True)
class Connections:
    """What a command line says about connecting.

    Attributes:
        targets: the brokers; none where the command's default is no broker.
        context: the context that is used, or None.
    """

    targets: tuple[BrokerTarget, ...] = ()
    context: ConnectionContext | None = None

    @property
    def target(self) -> BrokerTarget:
        """The broker of a command that connects to one.

        Raises:
            OptionError: the context has several.
        """
        if len(self.targets) != 1:
            where = "" if self.context is None else f"context {self.context.name} has {len(self.targets)} brokers: "
            raise OptionError(f"{where}name one broker with -b")
        return self.targets[0]


def read_connections(
    options: argparse.Namespace,
    *,
    prog: str,
    default: str | None = None,
    brokers: Sequence[str] = (),
    contexts: Contexts | None = None,
    environ: Mapping[str, str] = os.environ,
    ask: Callable[[str], str | None] = ask_on_terminal,
) -> Connections:
    """The brokers of a command line.

    Args:
        options: of a parser with `add_connection_options`.
        prog: name of the command, for the warnings, which go to the standard error output.
        default: URL of the broker if nothing names one; None for no broker.
        brokers: URLs to use before `default`, from a setting.
        contexts: those of the settings file; None: they are read if the command line names no broker.
        environ: the environment.
        ask: asks for a password.

    Raises:
        OptionError, UrlError, PasswordError, TlsError: as of `targets_of`; or `-b` and `--context` together.
        ContextError, NotFoundError: the settings file is wrong, or has no such context.
    """

    def warn(text: str) -> None:
        print(f"{prog}: warning: {text}", file=sys.stderr)

    if getattr(options, "shown_password", False):
        warn(_SHOWN_PASSWORD)
    urls, context = _urls(options, contexts, environ, brokers)
    if not urls and default is not None:
        urls = [default]
    tls = _tls(options, context)
    if tls.insecure:
        warn("the identity of the broker is not checked (--insecure)")
    if not urls:
        if tls.given or options.user:
            raise OptionError(f"{', '.join(tls.given) or '--user'}: name a broker as well")
        if options.token_file:
            raise OptionError("--token-file: name a broker as well")
        return Connections()
    targets = targets_of(
        urls,
        user=options.user or (context.user if context else None),
        tls=tls,
        domain=options.domain or (context.domain if context else None),
        passwords=password_finder(options, context, environ, ask, warn),
        token=token_file(options.token_file, context, warn),
    )
    return Connections(targets=targets, context=context)


def _tls(options: argparse.Namespace, context: ConnectionContext | None) -> TlsFiles:
    """The files of TLS of a command line, and of a context where this names none."""
    tls = context.tls if context is not None else NO_FILES
    return tls.override(TlsFiles(ca=options.ca, cert=options.cert, key=options.key, insecure=options.insecure))


def token_file(given: Path | None, context: ConnectionContext | None, warn: Callable[[str], None]) -> TokenFile | None:
    """The file with an access token that an option or a context names, which can be read now; None without one.

    Raises:
        PasswordError: it cannot be read, or its first line is empty.
    """
    path = given or (context.token_file if context else None)
    if path is None:
        return None
    read_secret(path, "token", warn)
    return TokenFile(path)


def password_finder(
    options: argparse.Namespace,
    context: ConnectionContext | None,
    environ: Mapping[str, str],
    ask: Callable[[str], str | None],
    warn: Callable[[str], None],
) -> PasswordFinder:
    """Finds passwords where the options of a command line, and then a context, say that they are."""
    return PasswordFinder(
        environ,
        file=options.password_file or (context.password_file if context else None),
        keyring=options.keyring or (context is not None and context.keyring),
        always_ask=options.ask_password,
        ask=ask,
        warn=warn,
    )


def _urls(
    options: argparse.Namespace, contexts: Contexts | None, environ: Mapping[str, str], brokers: Sequence[str]
) -> tuple[Sequence[str], ConnectionContext | None]:
    """The brokers that are named by the command line, a context or a setting, and the context, if it is that."""
    given = [options.broker] if isinstance(options.broker, str) else options.broker
    if given:
        if options.context is not None:
            raise OptionError("--context and a URL of a broker: give one of them")
        return given, None
    context = _context(options.context, contexts, environ, usual=bool(brokers))
    return (brokers, None) if context is None else (context.urls, context)


def _context(
    name: str | None, contexts: Contexts | None, environ: Mapping[str, str], *, usual: bool
) -> ConnectionContext | None:
    """The context to use; `usual`: the settings name brokers, so that the default context does not count."""
    found = read_contexts(config_path(environ)) if contexts is None else contexts
    named = context_of_environment(name, environ, lambda: found)
    if named is not None:
        return named
    return None if found.default is None or usual else found.find(found.default)


def context_of_environment(
    name: str | None, environ: Mapping[str, str], contexts: Callable[[], Contexts]
) -> ConnectionContext | None:
    """The context called `name`, or as the variable QMF_CONTEXT says; None if neither names one.

    Args:
        name: of a command line, or None.
        environ: the environment.
        contexts: reads those that exist, where they are needed.

    Raises:
        ContextError, NotFoundError: the settings file is wrong, or has no such context.
    """
    name = name or environ.get(CONTEXT_VARIABLE) or None
    return None if name is None else contexts().find(name)
