"""An S3 server, for lakes in an object store."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import attrs


@attrs.frozen
class ObjectStore:
    """A bucket.

    Attributes:
        url: of the bucket.
        options: how a lake reaches it.
    """

    url: str
    options: dict[str, str]


_SERVER = """
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(*server.get_host_and_port(), flush=True)
input()
"""


@contextmanager
def s3_store(bucket: str = "lakes") -> Iterator[ObjectStore]:
    """A bucket on a server in a process of its own, on a port of 127.0.0.1 that is free.

    Not in a thread: readers that wait for it may hold the interpreter's lock.
    """
    command = [sys.executable, "-c", _SERVER]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            host, port = server.stdout.readline().split()
            endpoint = f"http://{host}:{port}"
            request = urllib.request.Request(f"{endpoint}/{bucket}", method="PUT")
            urllib.request.urlopen(request).close()
            yield ObjectStore(
                f"s3://{bucket}",
                {
                    "aws_endpoint_url": endpoint,
                    "aws_access_key_id": "test",
                    "aws_secret_access_key": "test",
                    "aws_region": "us-east-1",
                    "aws_allow_http": "true",
                },
            )
        finally:
            server.kill()
