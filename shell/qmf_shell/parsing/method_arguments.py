"""The arguments of a method as the user writes them, and as values of the method's types.

Arguments are in the order of the schema, or written as ``name=value``, or mixed: a word without a name is the first
argument that has no value yet. Maps and lists are JSON; maps at the end that are not given are empty. A word that
begins with a quote is never read as ``name=value``.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence

from qmf.errors import NotFoundError
from qmf.schema import Argument, Method
from qmf.views.arguments import ArgumentError, checked_value
from qmf.views.conditions.words import Word
from qmf.views.text import clean, listing

_NAME = re.compile(r"[A-Za-z_]\w*")
#: Converts a text that names an object into the value to send.
ResolveReference = Callable[[str, Argument], object]


def argument_name(word: Word) -> str | None:
    """The name in a word written ``name=value``, or None."""
    name, equals, _ = word.text[: word.plain].partition("=")
    return name if equals and _NAME.fullmatch(name) else None


def find_method(methods: Sequence[Method], name: str) -> Method | None:
    """The method called `name`; in another case of letters if that is unambiguous."""
    exact = [item for item in methods if item.name == name]
    found = exact or [item for item in methods if item.name.lower() == name.lower()]
    return found[0] if len(found) == 1 else None


def parse_arguments(method: Method, words: Sequence[Word], resolve: ResolveReference) -> dict[str, object]:
    """Arguments by name, checked. Those that are not given and have a default are left out.

    Args:
        method: from the schema.
        words: the words after the method's name.
        resolve: finds the object that a word names.

    Raises:
        ArgumentError: missing, given twice, one too many, or not of its type; names argument, type and value.
        ConstraintError: of its type, but outside of the schema's bounds.
        NotFoundError: the method has no argument of this name.
    """
    texts = _assign(method, words)
    _check_missing(method, texts)
    return {
        item.name: parse_argument(method, item, texts[item.name], resolve)
        for item in method.inputs
        if item.name in texts
    }


def missing_arguments(method: Method, words: Sequence[Word]) -> list[Argument]:
    """The inputs that have neither a value nor a default; maps at the end have one.

    Raises:
        ArgumentError, NotFoundError: as `parse_arguments`, for names.
    """
    texts = _assign(method, words)
    return [item for item in method.inputs if item.name not in texts and item.default is None]


def parse_argument(method: Method, item: Argument, text: str, resolve: ResolveReference) -> object:
    """The value of one argument, checked; raises as `parse_arguments`."""
    if item.type.name == "objId":
        return resolve(text, item)
    return checked_value(item, text, f"argument {item.name!r} of {method.name}")


def signature(method: Method) -> str:
    """How to write a call: ``echo sequence:uint32 body:lstr``; optional arguments are in brackets."""
    parts, optional = [method.name], _last_maps(method)
    for item in method.inputs:
        text = f"{item.name}:{item.type.name}"
        parts.append(text if item.default is None and item not in optional else f"[{text}]")
    return clean(" ".join(parts))


def _assign(method: Method, words: Sequence[Word]) -> dict[str, str]:
    """Texts by the names of the arguments that they are for."""
    inputs = {item.name: item for item in method.inputs}
    texts: dict[str, str] = {}
    for word in words:
        name = argument_name(word)
        text = word.text
        if name is None:
            name = next((item for item in inputs if item not in texts), None)
            if name is None:
                raise ArgumentError(f"{clean(word.text)!r} is one argument too many: {signature(method)}")
        elif name not in inputs:
            raise NotFoundError(f"argument of {clean(method.name)}", name, inputs)
        elif name in texts:
            raise ArgumentError(f"argument {name!r} of {clean(method.name)} is given twice")
        else:
            text = word.text.partition("=")[2]
        texts[name] = text
    for item in _last_maps(method):
        if item.name in texts:
            break
        if item.default is None:
            texts[item.name] = "{}"
    return texts


def _last_maps(method: Method) -> list[Argument]:
    """The maps after the other inputs, the last one first: options and filters, which are mostly empty."""
    found = list(itertools.takewhile(lambda item: item.type.name == "map", reversed(method.inputs)))
    return found if len(found) < len(method.inputs) else []


def _check_missing(method: Method, texts: dict[str, str]) -> None:
    missing = [item for item in method.inputs if item.name not in texts and item.default is None]
    if missing:
        names = listing([f"{item.name} ({item.type.name})" for item in missing], "and")
        raise ArgumentError(f"{names} {'is' if len(missing) == 1 else 'are'} missing: {signature(method)}")
