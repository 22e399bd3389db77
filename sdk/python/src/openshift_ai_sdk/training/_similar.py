"""Suggests names that are similar to one that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, names: Iterable[str]) -> str:
    """Return a suggestion of names that are near one that does not exist; empty if none is."""
    near = difflib.get_close_matches(name, sorted(set(names)), n=3, cutoff=0.7)
    return f"; did you mean {' or '.join(near)}?" if near else ""
