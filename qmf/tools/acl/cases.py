"""Questions to rules, as users write them: of the command line, and in files of cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from qmf.acl.rules import Lookup
from qmf.acl.words import ALIASES, BROKER, LIMITS, Vocabulary
from qmf.errors import CallerError, NotFoundError


class CaseError(CallerError):
    """A question, or a line of a file of cases, is wrong; the text says what and where."""


@attrs.frozen
class Case:
    """A line of a file of cases.

    Attributes:
        line: in the file, from 1.
        allowed: what is expected.
        lookup: the question.
    """

    line: int
    allowed: bool
    lookup: Lookup


def parse_lookup(words: Sequence[str], vocabulary: Vocabulary = BROKER) -> Lookup:
    """A question: user, action, type of object, then the name of the object or ``name=``, and properties.

    Args:
        words: such as ``bob@QPID create queue name=q durable=true``.
        vocabulary: of the file that is asked.

    Raises:
        CaseError: a word is missing or unknown.
    """
    if len(words) < 3:
        raise CaseError("needs a user, an action and a type of object, such as: bob@QPID create queue name=q")
    user, action, object_type, *rest = words
    if (action, object_type) not in vocabulary.lookups:
        kinds = [f"{known} {kind}" for known, kind in vocabulary.lookups]
        raise CaseError(str(NotFoundError("operation", f"{action} {object_type}", kinds)))
    name, properties = "", dict[str, str]()
    for word in rest:
        key, equals, value = word.partition("=")
        if not equals or key == "name":
            name = value if equals else word
        else:
            properties[_lookup_property(key, vocabulary)] = value
    return Lookup(user, action, object_type, name, properties, publishing=action == "publish")


def _lookup_property(name: str, vocabulary: Vocabulary) -> str:
    if name in vocabulary.lookup_properties:
        return name
    name = ALIASES.get(name, name)
    if name in LIMITS:
        return LIMITS[name].property
    raise CaseError(str(NotFoundError("property", name, vocabulary.lookup_properties)))


def parse_cases(text: str, file: str, vocabulary: Vocabulary = BROKER) -> Iterator[Case]:
    """The lines of a file: ``allow`` or ``deny``, then a question.

    Raises:
        CaseError: with file and line.
    """
    for number, line in enumerate(text.split("\n"), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if words[0] not in ("allow", "deny"):
            raise CaseError(f"{file}:{number}: begins with {words[0]!r}, not with allow or deny")
        try:
            yield Case(number, words[0] == "allow", parse_lookup(words[1:], vocabulary))
        except CaseError as error:
            raise CaseError(f"{file}:{number}: {error}") from None
