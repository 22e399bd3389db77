"""Phases as users name them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from openshift_ai_sdk.training.errors import Problem
from openshift_ai_sdk.training.models import Phase


def problems_of_phases(until: object, field: str = "until") -> list[Problem]:
    """Check phases by their names, in any case."""
    known = {phase.value.lower() for phase in Phase}
    unknown = [word for word in words_in(until) if str(word).lower() not in known]
    allowed = ", ".join(phase.value for phase in Phase)
    return [Problem(field, f"{word!r} is not a phase; use {allowed}") for word in unknown]


def parse_phases(until: str | Sequence[str]) -> list[Phase]:
    """Return phases by their names, which were checked."""
    known = {phase.value.lower(): phase for phase in Phase}
    return [known[str(word).lower()] for word in words_in(until)]


def words_in(until: object) -> list[object]:
    """Return the words of a list, or a word alone."""
    return list(until) if until and isinstance(until, list | tuple | set | frozenset) else [until]


def either(phases: Iterable[str]) -> str:
    """Return phases as text."""
    return " or ".join(str(phase) for phase in phases)
