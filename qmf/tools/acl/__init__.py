"""`qmf-acl`: looks at files of access control without a broker."""

from __future__ import annotations
