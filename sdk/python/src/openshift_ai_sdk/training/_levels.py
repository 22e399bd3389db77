"""Finds the level of log lines by the same rules as the operator and the command line (internal/logs)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from openshift_ai_sdk.training._generated.patterns import (
    DECLARED_LEVELS,
    LEVEL_PHRASES,
    LEVEL_SIGNS,
    LEVEL_TAGS,
    LEVELS,
    PATTERNS,
)

NONE, WARNING, ERROR = 0, LEVELS.index("warning"), LEVELS.index("error")
# How much of a line is looked at, and within how much of its beginning a tag stands.
ENOUGH = 1000
EARLY = 80

KLOG_HEAD, DECLARED = (re.compile(PATTERNS[name], re.ASCII) for name in ("klogHead", "declared"))
WORD = re.compile(r"\w+", re.ASCII)
KLOG_LEVELS = {"I": LEVELS.index("info"), "W": WARNING, "E": ERROR, "F": ERROR}


def parse_level(name: object) -> int:
    """Return the number of a level by its name.

    Example:
        >>> parse_level("warning") > parse_level("info")
        True
    """
    level = DECLARED_LEVELS.get(name.lower()) if isinstance(name, str) else None
    if level is None:
        raise ValueError(f"{name!r} is not allowed; use 'debug', 'info', 'warning' or 'error'")
    return LEVELS.index(level)


def level_of(line: str) -> int:
    """Return the level of a line: the one that a logger wrote, or else that of words for errors; NONE without any.

    Example:
        >>> LEVELS[level_of("ValueError: bad")]
        'error'
    """
    line = line[:ENOUGH]
    if KLOG_HEAD.match(line):
        return KLOG_LEVELS[line[0]]
    declared = DECLARED.search(line)
    if declared and (level := DECLARED_LEVELS.get(declared[1].lower())):
        return LEVELS.index(level)
    worst = NONE
    for word in WORD.finditer(line):
        text = word[0]
        if text in LEVEL_TAGS and word.start() < EARLY:
            return LEVELS.index(LEVEL_TAGS[text])
        if text in LEVEL_SIGNS:
            worst = max(worst, LEVELS.index(LEVEL_SIGNS[text]))
        elif text.endswith(("Error", "Exception")):
            worst = ERROR
    return ERROR if any(phrase in line for phrase in LEVEL_PHRASES) else worst


@dataclass
class Levels:
    """Gives the lines of a log their levels. Indented lines go on with the rank's line before, as in a traceback."""

    before: dict[int | None, int] = field(default_factory=dict)

    def of(self, rank: int | None, text: str) -> int:
        """Return the level of the next line."""
        level = level_of(text)
        if level == NONE and text.startswith(" "):
            return self.before.get(rank, NONE)
        self.before[rank] = level
        return level
