"""Reads the logs in the report of a job that has ended (internal/logs/archive.go)."""

from __future__ import annotations

import binascii
import zlib
from base64 import b64decode
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, NamedTuple

# How many bytes of text a report contains at most, compressed.
MOST_TEXT = 2 << 20


class KeptLine(NamedTuple):
    """A line of a log in a report. The time is None if it is unknown."""

    pod: str
    time: datetime | None
    text: str


class DamagedLogsError(ValueError):
    """The logs in a report cannot be read."""

    def __init__(self) -> None:
        super().__init__("the logs in the job's report are damaged")


def unpack(logs: Mapping[str, Any]) -> list[KeptLine]:
    """Return the lines in the field ``status.logs`` of a report, in the order of time."""
    data = logs.get("data")
    if not data:
        return []
    try:
        gzip = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        text = gzip.decompress(b64decode(data, validate=True), MOST_TEXT + 1)
    except (binascii.Error, TypeError, ValueError, zlib.error):
        raise DamagedLogsError from None
    if not gzip.eof or len(text) > MOST_TEXT:
        raise DamagedLogsError
    return [line_of(line) for line in text.decode(errors="replace").split("\n")[:-1]]


def line_of(text: str) -> KeptLine:
    """Return a line of the text in a report.

    Example:
        >>> line_of("2026-11-21T10:00:00.500000000Z [train-worker-0] epoch 1").text
        'epoch 1'
    """
    stamp, _, rest = text.partition(" [")
    pod, found, line = rest.partition("] ")
    try:
        # Nanoseconds are cut to microseconds.
        time = datetime.strptime(stamp[:26], "%Y-%m-%dT%H:%M:%S.%f").replace(tzinfo=timezone.utc)
    except ValueError:
        raise DamagedLogsError from None
    if not found:
        raise DamagedLogsError
    return KeptLine(pod, time, line)


def missing_in(logs: Mapping[str, Any]) -> str:
    """Return what the logs in a report lack; empty if nothing is missing."""
    notes = []
    for name, text in (
        ("podsCut", "only the last log lines of {} are kept"),
        ("podsUnread", "the logs of {} could not be read when the job ended"),
    ):
        if count := logs.get(name):
            notes.append(text.format("1 pod" if count == 1 else f"{count} pods"))
    return "; ".join([*notes, *([logs["omitted"]] if logs.get("omitted") else [])])
