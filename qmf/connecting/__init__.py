"""How the commands reach their brokers: URLs, named contexts of the settings file, TLS files and passwords.

`add_connection_options` adds the options that all commands share, `read_connections` turns a command line into
`BrokerTarget` objects, each of which makes a bus. Knows neither agents nor consoles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmf._lazy import lazy_exports

if TYPE_CHECKING:
    from qmf.connecting.arguments import UrlAction, add_connection_options
    from qmf.connecting.config_file import config_path, xdg_path
    from qmf.connecting.contexts import ConnectionContext, ContextError, Contexts, contexts_in, read_contexts
    from qmf.connecting.options import (
        Connections,
        context_of_environment,
        password_finder,
        read_connections,
        token_file,
    )
    from qmf.connecting.passwords import PasswordFinder, ask_on_terminal
    from qmf.connecting.secret_files import PasswordError, TokenFile
    from qmf.connecting.targets import BrokerTarget, OptionError, targets_of, targets_of_context
    from qmf.connecting.tls import TlsError, TlsFiles
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "qmf.connecting.arguments": "UrlAction add_connection_options",
            "qmf.connecting.config_file": "config_path xdg_path",
            "qmf.connecting.contexts": "ConnectionContext ContextError Contexts contexts_in read_contexts",
            "qmf.connecting.options": "Connections context_of_environment password_finder read_connections token_file",
            "qmf.connecting.passwords": "PasswordFinder ask_on_terminal",
            "qmf.connecting.secret_files": "PasswordError TokenFile",
            "qmf.connecting.targets": "BrokerTarget OptionError targets_of targets_of_context",
            "qmf.connecting.tls": "TlsError TlsFiles",
        },
    )

__all__ = [
    "BrokerTarget",
    "ConnectionContext",
    "Connections",
    "ContextError",
    "Contexts",
    "OptionError",
    "PasswordError",
    "PasswordFinder",
    "TlsError",
    "TlsFiles",
    "TokenFile",
    "UrlAction",
    "add_connection_options",
    "ask_on_terminal",
    "config_path",
    "context_of_environment",
    "contexts_in",
    "password_finder",
    "read_connections",
    "read_contexts",
    "targets_of",
    "targets_of_context",
    "token_file",
    "xdg_path",
]
