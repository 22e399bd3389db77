"""The figures that a program printed over time, as the report of its job keeps them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

from openshift_ai_sdk.training.models import JobStatus


@dataclass(frozen=True)
class TrainingCurve:
    """A figure that the program printed, such as its loss, with at most 120 points.

    Attributes:
        name: The name of the figure.
        by: What the points are numbered by: ``step``, ``epoch`` or ``time``.
        points: The place of each point and its value, which can be NaN, oldest first. Times are in UTC.
        latest: The latest value.

    Example:
        >>> loss = job.get_training_curves()["loss"]
        >>> loss.by, loss.points[0], loss.latest
        ('step', (10, 2.31), 0.41)
    """

    name: str
    by: str
    points: tuple[tuple[float | datetime, float], ...]

    @property
    def latest(self) -> float:
        return self.points[-1][1]


def curves(status: JobStatus) -> dict[str, TrainingCurve]:
    """Return the curves in a status by their names."""
    found: dict[str, TrainingCurve] = {}
    for figure in status.curves.figures if status.curves else []:
        by = figure.by.value.lower()
        places = [_place(by, at) for at in figure.at]
        points = tuple(zip(places, (float(value) for value in figure.values), strict=False))
        if points:
            found[figure.name] = TrainingCurve(name=figure.name, by=by, points=points)
    return found


def _place(by: str, at: int) -> float | datetime:
    if by == "time":
        return datetime.fromtimestamp(at, timezone.utc)
    return at / 1000 if by == "epoch" else at
