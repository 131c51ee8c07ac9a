"""Push registrations: what a client asks for, as XML and as a value. No I/O.

Source: HornetQ REST interface, "Pushing Messages".
"""

from __future__ import annotations

import enum
import re
from urllib.parse import urlsplit

import attrs
from lxml import etree

from qmf.errors import CallerError
from qmf.web.messages.destinations import Destination, DestinationKind
from qmf.web.scopes import Caller, Proof

#: Bytes of a document, at most.
MAX_DOCUMENT = 64 * 1024

_METHODS = ("POST", "PUT", "PATCH")
_PARAMETER = re.compile(r"\{[^{}]*\}")
#: Of a file, too.
_ID = re.compile(r"(?!\.)[A-Za-z0-9._-]{1,100}\Z")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_VALUE = re.compile(r"[\x20-\x7e\xa0-\xff\t]*\Z")
#: Headers that are not the client's to set.
_NOT_SET = frozenset(("connection", "content-length", "host", "te", "trailer", "transfer-encoding", "upgrade"))


class RegistrationError(CallerError):
    """The document is no registration; the message names what is wrong."""


class UrlRelation(enum.Enum):
    """What the URL of a registration is."""

    URL = "url"  #: messages are sent to it
    TEMPLATE = "template"  #: its one parameter is replaced by the id of each message
    DESTINATION = "destination"  #: a queue or topic of a REST interface like this one


class Scheme(enum.Enum):
    """How this server proves to the URL who it is."""

    BASIC = "basic"
    DIGEST = "digest"


@attrs.frozen
class Credentials:
    """A user and a password."""

    scheme: Scheme
    username: str
    password: str = attrs.field(repr=False)


@attrs.frozen(kw_only=True)
class PushRegistration:
    """A registration.

    Attributes:
        id: unique in its server.
        destination: whose messages are pushed.
        href: where to.
        relation: what `href` is.
        method: of the requests.
        content_type: of messages that have none of their own; None for theirs.
        durable: it outlives the server; of a topic, its subscription is durable.
        selector: condition on the properties of messages; None for all.
        max_retries: attempts to push a message.
        retry_wait: seconds between them.
        disable_on_failure: it is disabled when all attempts have failed; else the message is tried again later.
        enabled: False after that.
        credentials: for the URL, or None.
        headers: sent with each message.
        owner: who has created it, whose rights count for as long as it is there; without scopes, address and session.
            None: whoever has written its file.
    """

    id: str
    destination: Destination
    href: str
    relation: UrlRelation = UrlRelation.URL
    method: str = "POST"
    content_type: str | None = None
    durable: bool = False
    selector: str | None = None
    max_retries: int = 10
    retry_wait: float = 1.0
    disable_on_failure: bool = False
    enabled: bool = True
    credentials: Credentials | None = None
    headers: tuple[tuple[str, str], ...] = attrs.field(default=(), repr=False)
    owner: Caller | None = None


def read_registration(document: bytes, id: str, destination: Destination | None = None) -> PushRegistration:
    """A registration from XML.

    Args:
        document: with the root ``push-registration`` or ``push-topic-registration``.
        id: for one that has none.
        destination: whose messages are pushed; None for a document of the store, which says it, and who the owner is.

    Raises:
        RegistrationError: the document is wrong.
    """
    if len(document) > MAX_DOCUMENT:
        raise RegistrationError(f"the registration is longer than {MAX_DOCUMENT} bytes")
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True
    )
    try:
        root = etree.fromstring(document, parser)
    except etree.XMLSyntaxError as error:
        raise RegistrationError(f"the registration is no XML: {error.msg}") from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise RegistrationError("a registration must not have a document type")
    return _Reader(root).read(id, destination)


class _Reader:
    def __init__(self, root: etree._Element) -> None:
        if root.tag not in ("push-registration", "push-topic-registration"):
            raise RegistrationError(f"the root must be push-registration or push-topic-registration, not {root.tag!r}")
        self._root = root
        self._elements: dict[str, list[etree._Element]] = {}
        for element in root:
            if isinstance(element.tag, str):
                self._elements.setdefault(element.tag, []).append(element)

    def read(self, id: str, destination: Destination | None) -> PushRegistration:
        where = destination or self._destination()
        links = self._elements.pop("link", [])
        if len(links) != 1:
            raise RegistrationError(f"there must be one link, not {len(links)}")
        link = links[0]
        if unknown := set(link.keys()) - {"rel", "href", "type", "method"}:
            raise RegistrationError(f"attribute {min(unknown)!r} of link is not known")
        relation = {item.value: item for item in UrlRelation}.get(link.get("rel") or "", UrlRelation.URL)
        href = self._href(link.get("href"), relation)
        method = (link.get("method") or "POST").upper()
        if method not in _METHODS:
            raise RegistrationError(f"method must be {', '.join(_METHODS)}, not {method!r}")
        content_type = link.get("type")
        if content_type is not None and not _VALUE.match(content_type):
            raise RegistrationError("type of link is no content type")
        registration = PushRegistration(
            id=self._id(id),
            destination=where,
            href=href,
            relation=relation,
            method=method,
            content_type=content_type,
            durable=self._boolean("durable", default=False),
            selector=self._text("selector") or None,
            max_retries=self._number("maxRetries", 10, 1, 1000),
            retry_wait=self._number("retryWaitMillis", 1000, 0, 3_600_000) / 1000,
            disable_on_failure=self._boolean("disableOnFailure", default=False),
            enabled=self._boolean("enabled", default=True),
            credentials=self._credentials(),
            headers=tuple(self._header(element) for element in self._elements.pop("header", [])),
            owner=None if destination else self._owner(),
        )
        for ignored in ("destination", "topic", "sessionCount"):
            self._elements.pop(ignored, None)
        if self._elements:
            raise RegistrationError(f"element {min(self._elements)!r} is not known")
        return registration

    def _id(self, default: str) -> str:
        found = self._root.get("id") or default
        if not _ID.match(found):
            raise RegistrationError(f"id must have 1 to 100 letters, digits, and . _ -, not {found[:100]!r}")
        return found

    def _destination(self) -> Destination:
        topic = self._text("topic")
        found = (
            Destination(DestinationKind.TOPIC, topic)
            if topic
            else Destination(DestinationKind.QUEUE, self._text("destination") or "")
        )
        if not found.is_valid:
            raise RegistrationError("destination or topic must name a node")
        return found

    @staticmethod
    def _href(href: str | None, relation: UrlRelation) -> str:
        if not href:
            raise RegistrationError("link has no href")
        try:
            parts = urlsplit(href)
            valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            valid = False
        if not valid or not href.isprintable():
            raise RegistrationError(f"href must be a URL of http or https, not {href[:200]!r}")
        if parts.username is not None:
            raise RegistrationError("href must have no user and password; there is authentication for them")
        if relation is UrlRelation.TEMPLATE and len(_PARAMETER.findall(href)) != 1:
            raise RegistrationError("href of a template must have one parameter, such as {id}")
        return href

    def _credentials(self) -> Credentials | None:
        found = self._elements.pop("authentication", [])
        if not found:
            return None
        kinds = [element for element in found[0] if isinstance(element.tag, str)]
        schemes = {"basic-auth": Scheme.BASIC, "digest-auth": Scheme.DIGEST}
        if len(found) != 1 or len(kinds) != 1 or kinds[0].tag not in schemes:
            raise RegistrationError("authentication must have one basic-auth or digest-auth")
        username, password = kinds[0].findtext("username"), kinds[0].findtext("password")
        if not username:
            raise RegistrationError("authentication has no username")
        return Credentials(schemes[kinds[0].tag], username, password or "")

    def _owner(self) -> Caller | None:
        found = self._elements.pop("owner", [])
        if not found:
            return None
        proofs = {item.value: item for item in Proof}
        if len(found) != 1 or (proof := proofs.get(found[0].get("proof") or "")) is None:
            raise RegistrationError(f"there must be one owner, with a proof: {', '.join(proofs)}")
        return registration_owner(
            found[0].get("name") or "", proof, frozenset(element.text or "" for element in found[0].iter("group"))
        )

    @staticmethod
    def _header(element: etree._Element) -> tuple[str, str]:
        name, value = element.get("name") or "", (element.text or "").strip()
        if not _TOKEN.match(name) or not _VALUE.match(value) or name.lower() in _NOT_SET:
            raise RegistrationError(f"header {name[:100]!r} cannot be sent")
        return name, value

    def _text(self, name: str) -> str | None:
        found = self._elements.pop(name, [])
        if not found:
            return None
        if len(found) > 1 or len(found[0]):
            raise RegistrationError(f"there must be one {name}, with text")
        return (found[0].text or "").strip()

    def _boolean(self, name: str, *, default: bool) -> bool:
        text = self._text(name)
        if text is None:
            return default
        if text not in ("true", "false", "1", "0"):
            raise RegistrationError(f"{name} must be true or false, not {text[:100]!r}")
        return text in ("true", "1")

    def _number(self, name: str, default: int, least: int, most: int) -> int:
        text = self._text(name)
        if text is None:
            return default
        if not re.fullmatch("[0-9]{1,9}", text) or not least <= int(text) <= most:
            raise RegistrationError(f"{name} must be {least} to {most}, not {text[:100]!r}")
        return int(text)


def registration_owner(name: str, proof: Proof, groups: frozenset[str]) -> Caller:
    """The owner of a registration: as a caller, with what is kept of it."""
    return Caller(name=name, scopes=frozenset(), proof=proof, address="", groups=groups)


def write_registration(registration: PushRegistration, *, secrets: bool) -> bytes:
    """A registration as XML.

    Args:
        registration: what to write.
        secrets: with password, headers and owner; for the store, never for clients.
    """
    topic = registration.destination.kind is DestinationKind.TOPIC
    root = etree.Element("push-topic-registration" if topic else "push-registration", id=registration.id)

    def add(name: str, text: object, parent: etree._Element = root) -> None:
        etree.SubElement(parent, name).text = str(text).lower() if isinstance(text, bool) else str(text)

    add("enabled", registration.enabled)
    add("topic" if topic else "destination", registration.destination.name)
    add("durable", registration.durable)
    if registration.selector is not None:
        add("selector", registration.selector)
    link = etree.SubElement(root, "link", href=registration.href, method=registration.method)
    if registration.relation is not UrlRelation.URL:
        link.set("rel", registration.relation.value)
    if registration.content_type is not None:
        link.set("type", registration.content_type)
    add("maxRetries", registration.max_retries)
    add("retryWaitMillis", round(registration.retry_wait * 1000))
    add("disableOnFailure", registration.disable_on_failure)
    if registration.credentials is not None:
        authentication = etree.SubElement(root, "authentication")
        scheme = etree.SubElement(authentication, f"{registration.credentials.scheme.value}-auth")
        add("username", registration.credentials.username, scheme)
        if secrets:
            add("password", registration.credentials.password, scheme)
    for name, value in registration.headers if secrets else ():
        etree.SubElement(root, "header", name=name).text = value
    if secrets and (owner := registration.owner) is not None:
        element = etree.SubElement(root, "owner", name=owner.name, proof=owner.proof.value)
        for group in sorted(owner.groups):
            add("group", group, element)
    written: bytes = etree.tostring(root, pretty_print=True, encoding="utf-8")
    return written
