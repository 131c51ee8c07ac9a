"""Push registrations as XML and as values."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.web.messages.destinations import Destination, DestinationKind
from qmf.web.messages.push.registration import (
    Credentials,
    PushRegistration,
    RegistrationError,
    Scheme,
    UrlRelation,
    read_registration,
    registration_owner,
    write_registration,
)
from qmf.web.scopes import Proof

ORDERS = Destination(DestinationKind.QUEUE, "orders")
TEXT = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=20).map(str.strip).filter(bool)


def document(link: str, *more: str) -> str:
    return f"<push-registration>{link}{''.join(more)}</push-registration>"


@given(
    st.builds(
        PushRegistration,
        id=st.from_regex(r"[A-Za-z0-9_-]{1,20}", fullmatch=True),
        destination=st.builds(Destination, st.sampled_from(DestinationKind), st.sampled_from(["a", "a b/c"])),
        href=st.just("http://example.com/{id}"),
        relation=st.sampled_from(UrlRelation),
        method=st.sampled_from(["POST", "PUT"]),
        content_type=st.none() | st.just("application/json"),
        durable=st.booleans(),
        selector=st.none() | TEXT,
        max_retries=st.integers(1, 1000),
        retry_wait=st.integers(0, 10_000).map(lambda number: number / 1000),
        disable_on_failure=st.booleans(),
        enabled=st.booleans(),
        credentials=st.none() | st.builds(Credentials, st.sampled_from(Scheme), TEXT, TEXT),
        owner=st.none() | st.builds(registration_owner, TEXT, st.sampled_from(Proof), st.frozensets(TEXT, max_size=3)),
        headers=st.lists(st.tuples(st.just("X-A"), TEXT), max_size=3).map(tuple),
    )
)
def test_what_is_written_is_read(registration: PushRegistration) -> None:
    assert read_registration(write_registration(registration, secrets=True), "other") == registration


def test_the_documents_of_the_published_interface() -> None:
    found = read_registration(
        b"""<push-registration><durable>false</durable><selector><![CDATA[
        SomeAttribute > 1
        ]]></selector>
        <link rel="push" href="http://somewhere.com" type="application/json" method="PUT"/>
        <maxRetries>5</maxRetries><retryWaitMillis>1000</retryWaitMillis><disableOnFailure>true</disableOnFailure>
        </push-registration>""",
        "1",
        ORDERS,
    )
    assert found == PushRegistration(
        id="1",
        destination=ORDERS,
        href="http://somewhere.com",
        method="PUT",
        content_type="application/json",
        selector="SomeAttribute > 1",
        max_retries=5,
        disable_on_failure=True,
    )
    found = read_registration(
        b"""<push-topic-registration id="112"><destination>mine</destination><durable>true</durable>
        <link rel="template" href="http://somewhere.com/resources/{id}/messages" method="PUT"/>
        <topic>foo</topic></push-topic-registration>""",
        "1",
    )
    assert (found.id, found.destination, found.relation) == (
        "112",
        Destination(DestinationKind.TOPIC, "foo"),
        UrlRelation.TEMPLATE,
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no XML"),
        ("<a/>", "the root must be push-registration"),
        ("<push-registration/>", "there must be one link, not 0"),
        ("<push-registration><link/></push-registration>", "link has no href"),
        ('<push-registration><link href="ftp://a"/></push-registration>', "must be a URL of http or https"),
        ('<push-registration><link href="http://u:p@a"/></push-registration>', "must have no user and password"),
        ('<push-registration><link href="http://a" rel="template"/></push-registration>', "must have one parameter"),
        ('<push-registration><link href="http://a" method="GET"/></push-registration>', "method must be POST"),
        (document('<link href="http://a"/>', "<durable>maybe</durable>"), "durable must be true or false"),
        (document('<link href="http://a"/>', "<maxRetries>-1</maxRetries>"), "maxRetries must be 1 to 1000"),
        (document('<link href="http://a"/>', "<nonsense/>"), "element 'nonsense' is not known"),
        (document('<link href="http://a"/>', '<header name="Host">b</header>'), "header 'Host' cannot be sent"),
        (document('<link href="http://a"/>', "<authentication/>"), "basic-auth or digest-auth"),
        ('<push-registration id="../a"><link href="http://a"/></push-registration>', "id must have"),
        (
            '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]>'
            '<push-registration><link href="http://a"/><selector>&b;</selector></push-registration>',
            "must not have a document type",
        ),
    ],
)
def test_what_is_wrong_with_a_document(text: str, reason: str) -> None:
    with pytest.raises(RegistrationError, match=re.escape(reason)):
        read_registration(text.encode(), "1", ORDERS)
