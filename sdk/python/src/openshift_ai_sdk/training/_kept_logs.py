"""Reads the logs in the report of a job that has ended (internal/logs/archive.go)."""

from __future__ import annotations

import binascii
import json
import re
import zlib
from base64 import b64decode
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any, NamedTuple

# How many bytes of text a report contains at most, compressed.
MOST_TEXT = 2 << 20
# The same of an object with complete logs, of its compressed data, and of their index.
MOST_PART_TEXT, MOST_PART_DATA, MOST_INDEX = 8 << 20, 1 << 20, 16 << 20

LINE = re.compile(r"([^\n]*)\n")


class KeptLine(NamedTuple):
    """A line of a log in a report. The time is None if it is unknown."""

    pod: str
    time: datetime | None
    text: str


class DamagedLogsError(ValueError):
    """Logs that were kept cannot be read."""

    def __init__(self, where: str = "the logs in the job's report") -> None:
        super().__init__(f"{where} are damaged")


class Part(NamedTuple):
    """An object with lines of the complete log of a pod, and the times of the first and the last one."""

    url: str
    first: datetime
    last: datetime
    lines: int


def unpack(logs: Mapping[str, Any]) -> list[KeptLine]:
    """Return the lines in the field ``status.logs`` of a report, in the order of time."""
    data = logs.get("data")
    if not data:
        return []
    try:
        return lines_in(b64decode(data, validate=True), MOST_TEXT)
    except (binascii.Error, TypeError, ValueError):
        raise DamagedLogsError from None


def lines_in(data: bytes, most: int = MOST_PART_TEXT) -> list[KeptLine]:
    """Return the lines in compressed text of at most so many bytes."""
    return list(each_line(data, most))


def each_line(data: bytes, most: int = MOST_PART_TEXT) -> Iterator[KeptLine]:
    """Yield the lines in compressed text of at most so many bytes; of many lines, few are in memory."""
    try:
        gzip = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        text = gzip.decompress(data, most + 1)
    except zlib.error:
        raise DamagedLogsError from None
    if not gzip.eof or len(text) > most:
        raise DamagedLogsError
    for line in LINE.finditer(text.decode(errors="replace")):
        yield line_of(line[1])


def parse_index(data: bytes) -> list[tuple[str, list[Part]]]:
    """Return the pods in the index of a job's complete logs, with the parts of each (internal/logs/index.go)."""
    try:
        return [
            (
                str(pod["name"]),
                [Part(str(p["url"]), moment(p["first"]), moment(p["last"]), int(p["lines"])) for p in pod["parts"]],
            )
            for pod in json.loads(data)["pods"]
        ]
    except (KeyError, TypeError, ValueError):
        raise DamagedLogsError("the complete logs") from None


def moment(text: str) -> datetime:
    """Return a time in UTC, with or without a fraction of a second.

    Example:
        >>> moment("2026-11-21T10:00:00.5Z").microsecond
        500000
    """
    second, _, fraction = text.removesuffix("Z").partition(".")
    time = datetime.strptime(second, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)
    # Nanoseconds are cut to microseconds.
    return time.replace(microsecond=int(fraction[:6].ljust(6, "0")))


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


def missing_in_complete(logs: Mapping[str, Any]) -> str:
    """Return what the complete logs of a job lack; empty if nothing is missing."""
    notes = []
    for name, text in (("podsCut", "lines of {} may be missing"), ("podsUnread", "the logs of {} could not be read")):
        if count := logs.get(name):
            notes.append(text.format("1 pod" if count == 1 else f"{count} pods"))
    return "; ".join([*notes, *([logs["message"]] if logs.get("message") else [])])


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
