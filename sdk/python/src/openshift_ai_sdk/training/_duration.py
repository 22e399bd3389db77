"""Durations as users write them."""

from __future__ import annotations

import math
import re
from datetime import timedelta

Duration = str | float | timedelta

DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|d|h|m|s)")
UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_duration(value: Duration) -> float:
    """Return a duration in seconds; text is such as ``90s``, ``1h30m`` or ``2d``.

    Raises:
        ValueError: It is not a duration, or it is below 0.

    Example:
        >>> parse_duration("1h30m")
        5400.0
    """
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, str):
        parts = DURATION_PART.findall(value)
        if not parts or "".join(number + unit for number, unit in parts) != value:
            raise ValueError(f"{value!r} is not a duration; use seconds, or text such as '30s', '4h' or '1h30m'")
        seconds = sum(float(number) * UNITS[unit] for number, unit in parts)
    elif isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r} is not a duration; use seconds, or text such as '30s', '4h' or '1h30m'")
    else:
        seconds = float(value)
    if seconds < 0 or not math.isfinite(seconds):
        raise ValueError(f"{value!r} is not allowed; use 0 or more")
    return seconds


def is_duration(value: Duration, least: float, longest: float) -> bool:
    """Return whether a value is a duration between two numbers of seconds."""
    try:
        return least <= parse_duration(value) <= longest
    except ValueError:
        return False
