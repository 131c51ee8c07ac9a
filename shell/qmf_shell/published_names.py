"""`qpid-tool` and `qpid-printevents`: Apache's names and options for `qmf-shell` and `qmf-printevents`.

The published options are translated; all options of our commands may be given as well.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence

from qmf._version import __version__
from qmf_shell.exit_codes import OK, USAGE, code_of

#: The default broker of `qpid-tool`, as in the published one.
DEFAULT_BROKER = "localhost"

#: What the published tool shows: times of day, and lists of objects by their beginning and end.
TOOL_SETTINGS = {"time-format": "short", "lists": "qpid-tool"}

_HELP = """\
{prog} {words}: the published name of {ours}.

Its published options:
  --ssl-certificate FILE    the same as --cert
  --ssl-key FILE            the same as --key
  --sasl-mechanism MECH     PLAIN is used with a user, ANONYMOUS without, EXTERNAL with a certificate
  --sasl-service-name NAME  accepted; no mechanism here uses it
  --ha-admin                accepted; has no effect

Options of {ours}:
"""

#: Published options with a value, and what they are here; empty for those without effect.
_TRANSLATED = {
    "--ssl-certificate": "--cert",
    "--ssl-key": "--key",
    "--sasl-mechanism": "",
    "--sasl-service-name": "",
}
_MECHANISMS = {"ANONYMOUS", "PLAIN", "EXTERNAL"}


class _UsageError(Exception):
    """Wrong options; the message says which."""


def tool(argv: Sequence[str] | None = None) -> int:
    """Run `qpid-tool`: the shell for one broker.

    Args:
        argv: ``[OPTIONS] [[user/password@]host[:port]]``; None means the arguments of the process.

    Returns:
        exit code, see `qmf_shell.exit_codes`.
    """
    from qmf_shell.main import build_parser, main

    try:
        words = _translate("qpid-tool", "[OPTIONS] [[user/password@]host[:port]]", "qmf-shell", argv)
        options = build_parser(abbreviations=True).parse_args(words)
    except _UsageError as error:
        return _wrong("qpid-tool", error)
    except SystemExit as end:
        return code_of(end)
    if options.script is not None and not options.broker:
        # What is a script there is an address here.
        words.reverse()
        words.remove(options.script)
        words.reverse()
        words = ["-b", options.script, *words]
    elif not options.broker and not options.context:
        words = ["-b", DEFAULT_BROKER, *words]
    return main(words, abbreviations=True, defaults=TOOL_SETTINGS)


def printevents(argv: Sequence[str] | None = None) -> int:
    """Run `qpid-printevents`: events of brokers, a line each.

    Args:
        argv: ``[OPTIONS] [ADDRESS]...``; None means the arguments of the process.

    Returns:
        exit code, see `qmf_shell.exit_codes`.
    """
    from qmf_shell.printevents import main

    try:
        words = _translate("qpid-printevents", "[OPTIONS] [[user/password@]host[:port]]...", "qmf-printevents", argv)
    except _UsageError as error:
        return _wrong("qpid-printevents", error)
    except SystemExit:
        return OK
    return main(words, abbreviations=True)


def _wrong(prog: str, error: _UsageError) -> int:
    print(f"{prog}: {error} (see {prog} --help)", file=sys.stderr)
    return USAGE


def _translate(prog: str, usage: str, ours: str, argv: Sequence[str] | None) -> list[str]:
    """The words with our options instead of the published ones."""
    words = iter(sys.argv[1:] if argv is None else argv)
    found: list[str] = []
    for word in words:
        if word == "--version":
            print(f"{prog} {__version__}")
            raise SystemExit(OK)
        if word in ("-h", "--help"):
            with contextlib.suppress(BrokenPipeError):  # as argparse: nobody reads on, e.g. `head`
                print(_HELP.format(prog=prog, words=usage, ours=ours), flush=True)
        name, given, value = word.partition("=")
        if name == "--ha-admin":
            continue
        if name not in _TRANSLATED:
            found.append(word)
            continue
        if not given:
            value = next(words, "")
        if not value:
            raise _UsageError(f"{name} needs a value")
        if name == "--sasl-mechanism" and not set(value.split()) & _MECHANISMS:
            raise _UsageError(f"{name}: only {', '.join(sorted(_MECHANISMS))} are supported, not {value!r}")
        if _TRANSLATED[name]:
            found += [_TRANSLATED[name], value]
    if "--key" in found and "--cert" not in found:
        raise _UsageError("missing --ssl-certificate (required by --ssl-key)")
    return found
