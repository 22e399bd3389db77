"""Reads the progress of a training from its log by the same rules as the operator (internal/logs)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from openshift_ai_sdk.training._generated.patterns import PATTERNS, PROGRESS_NAMES
from openshift_ai_sdk.training._status import fraction
from openshift_ai_sdk.training.models import LogLine, TrainingHistory, TrainingPoint

LONGEST_VALUE = 32
# How much of a line is looked at.
ENOUGH = 4096

RANK_TAG, PAIR, IN_WORDS = (re.compile(PATTERNS[name], re.ASCII) for name in ("rankTag", "pair", "inWords"))


def parse(line: str) -> dict[str, str]:
    """Return the values in a line by their names: epoch, step, loss, accuracy and progress.

    Example:
        >>> parse("epoch=3 loss=0.25")
        {'epoch': '3', 'loss': '0.25'}
    """
    line = line.strip()
    # The agent's own lines, such as "no progress: 1 of 2 ranks wait".
    if line.startswith("mpi-agent: "):
        return {}
    if tag := RANK_TAG.match(line):
        if tag[1] != "0":
            return {}
        line = line[tag.end() :]
    values: dict[str, str] = {}
    at = line.find("{")
    if not (at >= 0 and line.endswith("}") and _read_json(values, line[at:])):
        _read_pairs(values, line[:ENOUGH])
        _read_words(values, line[:ENOUGH])
    # A step alone may be about anything.
    return values if set(values) - {"step"} else {}


def _set(values: dict[str, str], name: str, value: str) -> None:
    known = PROGRESS_NAMES.get(name.lower())
    if known is not None and value and len(value) <= LONGEST_VALUE:
        values.setdefault(known, value)


def _read_json(values: dict[str, str], text: str) -> bool:
    try:
        # Numbers stay as they are written.
        found: Any = json.loads(text, parse_int=_Number, parse_float=_Number, parse_constant=_Number)
    except ValueError:
        return False
    if not isinstance(found, Mapping):
        return False
    if isinstance(found.get("training"), Mapping):
        found = found["training"]
    for name in PROGRESS_NAMES:
        if isinstance(found.get(name), str):
            _set(values, name, found[name].strip())
    return True


class _Number(str):
    """A number in JSON as it is written."""


def _read_pairs(values: dict[str, str], line: str) -> None:
    at = 0
    while found := PAIR.search(line, at):
        _set(values, found[1], found[2].rstrip(",._"))
        # What ends one pair may begin the next one.
        at = found.end(2)


def _read_words(values: dict[str, str], line: str) -> None:
    at = 0
    while found := IN_WORDS.search(line, at):
        # One of the two alternatives matches: an epoch, or a figure.
        name, value = (1, 2) if found[1] else (3, 4)
        _set(values, found[name], found[value])
        # What ends one figure may begin the next one.
        at = found.end(value)


def history(lines: Iterable[LogLine]) -> TrainingHistory:
    """Return the values in the lines of a log, in their order; lines of ranks other than 0 are left out."""
    points = []
    for line in lines:
        values = parse(line.text) if line.rank in (None, 0) else {}
        if values:
            numbers = {name: _number(values.get(name)) for name in ("epoch", "step", "loss", "accuracy")}
            points.append(TrainingPoint(time=line.time, progress=fraction(values.get("progress")), **numbers))
    return TrainingHistory(points)


def finite(text: str | None) -> float | None:
    """Return a value as a number; None if it is none, infinite or NaN."""
    number = _number(text)
    return number if number is not None and math.isfinite(number) else None


def _number(text: str | None) -> float | None:
    """Return a value as programs print it: 3, 3/10, 97.5% or 1,234.5; None if it is none."""
    if text is None:
        return None
    share = 0.01 if text.endswith("%") else 1.0
    try:
        return float(text.rstrip("%").partition("/")[0].replace(",", "")) * share
    except ValueError:
        return None
