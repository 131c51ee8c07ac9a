"""Invented values and messages for the encodings: hypothesis strategies."""

from __future__ import annotations

from hypothesis import strategies as st

from qmf.codec import Message, Section

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
#: What one wire value can be, and every decoder gives back as it was.
SCALARS: st.SearchStrategy[object] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False),
    TEXTS,
    st.binary(max_size=40),
    st.uuids(),
    st.text("abc", min_size=200, max_size=400),
)


def values(keys: st.SearchStrategy[str] = TEXTS) -> st.SearchStrategy[object]:
    """Scalars, and maps and lists of them."""
    return st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(keys, inner, max_size=5),
        max_leaves=12,
    )


def maps() -> st.SearchStrategy[dict[str, object]]:
    """Maps with strings as keys."""
    return st.dictionaries(TEXTS, values(), max_size=6)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    """Any message. Ids are of all types that AMQP allows."""
    ids = st.none() | TEXTS | st.uuids() | st.integers(0, 2**64 - 1) | st.binary(max_size=20)
    texts = st.none() | TEXTS
    symbols = st.none() | st.text(st.characters(max_codepoint=127), max_size=20)
    stamps = st.none() | st.integers(-(2**63), 2**63 - 1)
    annotations = st.dictionaries(st.text("abc-", min_size=1, max_size=8), values(), max_size=3)
    section = draw(st.sampled_from(Section))
    bodies: dict[Section, st.SearchStrategy[object]] = {
        Section.NONE: st.none(),
        Section.DATA: st.binary(max_size=300),
        Section.VALUE: values(),
        Section.SEQUENCE: st.lists(values(), max_size=5),
    }
    return Message(
        durable=draw(st.booleans()),
        priority=draw(st.integers(0, 255)),
        ttl=draw(st.none() | st.integers(0, 2**32 - 1).map(lambda ms: ms / 1000)),
        first_acquirer=draw(st.booleans()),
        delivery_count=draw(st.integers(0, 2**32 - 1)),
        message_id=draw(ids),
        user_id=draw(st.none() | st.binary(max_size=20)),
        to=draw(texts),
        subject=draw(texts),
        reply_to=draw(texts),
        correlation_id=draw(ids),
        content_type=draw(symbols),
        content_encoding=draw(symbols),
        absolute_expiry_time=draw(stamps),
        creation_time=draw(stamps),
        group_id=draw(texts),
        group_sequence=draw(st.none() | st.integers(0, 2**32 - 1)),
        reply_to_group_id=draw(texts),
        application_properties=draw(st.dictionaries(TEXTS, SCALARS, max_size=5)),
        delivery_annotations=draw(annotations),
        message_annotations=draw(annotations),
        footer=draw(annotations),
        section=section,
        body=draw(bodies[section]),
    )
