"""Frames: every one that is written can be read, in pieces of any size; what is none is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.broker.protocols.stomp.frames import MAX_HEAD, Frame, FrameError, FrameReader, StompVersion, encode_frame

V1_0, V1_1, V1_2 = StompVersion


def read_all(data: bytes, version: StompVersion = V1_2, piece: int = 1 << 20, max_frame: int = 1 << 20) -> list[Frame]:
    reader = FrameReader(max_frame)
    reader.version = version
    found = []
    for start in range(0, len(data), piece):
        reader.feed(data[start : start + piece])
        while (frame := reader.next_frame()) is not None:
            found.append(frame)
    return found


TEXTS = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=20)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["SEND", "MESSAGE", "CONNECT", "X"]),
            st.dictionaries(TEXTS.filter(bool), TEXTS, max_size=4),
            st.binary(max_size=50),
        ),
        max_size=4,
    ),
    st.integers(1, 40),
)
def test_what_is_written_can_be_read(frames: list[tuple[str, dict[str, str], bytes]], piece: int) -> None:
    expected, data = [], b""
    for command, headers, body in frames:
        if command == "CONNECT":
            headers = {"login": "ann"}
        headers = {**headers, "content-length": str(len(body))}
        expected.append(Frame(command, headers, body))
        data += encode_frame(command, headers.items(), body, V1_2) + b"\n\r\n"
    assert read_all(data, piece=piece) == expected


def test_escapes_are_those_of_the_version() -> None:
    headers = [("a:b", "c\\d\ne\rf:g")]
    assert encode_frame("SEND", headers, b"", V1_2) == b"SEND\na\\cb:c\\\\d\\ne\\rf\\cg\n\n\0"
    assert encode_frame("SEND", headers, b"", V1_1) == b"SEND\na\\cb:c\\\\d\\ne f\\cg\n\n\0"
    assert encode_frame("SEND", headers, b"", V1_0) == b"SEND\na b:c\\d e f:g\n\n\0"
    assert encode_frame("CONNECTED", [("session", "a:b")], b"", V1_2) == b"CONNECTED\nsession:a:b\n\n\0"
    assert read_all(b"SEND\na\\cb:\\\\c\\r\n\n\0", V1_2) == [Frame("SEND", {"a:b": "\\c\r"})]
    assert read_all(b"SEND\na: \\c \n\n\0", V1_0) == [Frame("SEND", {"a": "\\c"})]


def test_lines_may_end_as_in_files_of_windows() -> None:
    assert read_all(b"SEND\r\na:b\r\n\r\nbody\0") == [Frame("SEND", {"a": "b"}, b"body")]


def test_of_repeated_headers_the_first_counts() -> None:
    assert read_all(b"SEND\na:1\na:2\n\n\0") == [Frame("SEND", {"a": "1"})]


def test_a_body_with_a_length_may_have_zeros() -> None:
    assert read_all(b"SEND\ncontent-length:3\n\n\0\0\0\0", piece=1) == [
        Frame("SEND", {"content-length": "3"}, b"\0\0\0")
    ]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"GET / HTTP/1.1\nHost:x\n\n\0", "no command, but 'GET / HTTP/1.1'"),
        (b"send\n\n\0", "no command, but 'send'"),
        (b"SEND\nx\n\n\0", "no header, but 'x'"),
        (b"SEND\n:x\n\n\0", "no header, but ':x'"),
        (b"SEND\na:\\t\n\n\0", "unknown escape"),
        (b"SEND\na:\\", ""),
        (b"SEND\na:\\\n\n\0", "unknown escape"),
        (b"SEND\na:\xff\n\n\0", "headers that are not UTF-8"),
        (b"SEND\ncontent-length:-1\n\n\0", "content-length is no number"),
        (b"SEND\ncontent-length:2\n\nxyz\0", "no NUL behind a body of content-length bytes"),
        (b"SEND\ncontent-length:1001\n\n", "a frame of more than 1000 bytes"),
        (b"SEND\n\n" + b"x" * 1001, "a frame of more than 1000 bytes"),
        (b"SEND\n" + b"x" * MAX_HEAD, f"headers of more than {MAX_HEAD} bytes"),
        (b"SEND\n" + b"a:b\n" * 1001 + b"\n\0", "more than 1000 headers"),
    ],
    ids=range(14),
)
def test_what_is_no_frame(data: bytes, reason: str) -> None:
    if not reason:
        assert read_all(data) == []
        return
    with pytest.raises(FrameError) as caught:
        read_all(data, max_frame=1000)
    assert reason in str(caught.value)


def test_an_escape_that_the_version_does_not_have() -> None:
    with pytest.raises(FrameError, match="unknown escape"):
        read_all(b"SEND\na:\\r\n\n\0", V1_1)


@given(st.binary(max_size=200), st.sampled_from(list(StompVersion)))
def test_any_bytes_are_frames_or_an_error(data: bytes, version: StompVersion) -> None:
    try:
        frames = read_all(data, version, piece=7)
    except FrameError:
        return
    assert all(frame.command.isupper() for frame in frames)
