"""Plots of a training's loss, accuracy and use of resources. They need the extra ``plot``."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openshift_ai_sdk.training.errors import NotSupportedError
from openshift_ai_sdk.training.models import PodUsage, TrainingPoint

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, GREEN, GREY = "#0066cc", "#3e8635", "#d2d2d2"
GIB = float(1 << 30)


class Plot:
    """A plot. A notebook shows it; a script saves it.

    Attributes:
        figure: The figure, to change it with matplotlib.

    Example:
        >>> job.plot().save("training.png")
    """

    def __init__(self, figure: Figure) -> None:
        self.figure = figure

    def save(self, path: str | Path) -> None:
        """Write the plot to a file; the ending determines the format: ``.png``, ``.svg`` or ``.pdf``."""
        self.figure.savefig(path)

    def __repr__(self) -> str:
        return "<Plot>"

    def _repr_png_(self) -> bytes:
        image = io.BytesIO()
        self.figure.savefig(image, format="png")
        return image.getvalue()


def plot(title: str, points: Sequence[TrainingPoint], usage: Sequence[PodUsage] | None) -> Plot:
    """Plot what a training has reported, and below it what its pods use.

    Args:
        title: The plot's title.
        points: What the training has reported.
        usage: What the pods use; None if that is unknown.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise NotSupportedError("plots need matplotlib: pip install 'openshift-ai-sdk[plot]'") from error
    # Inches: the bars of many pods need room.
    heights = [3.2, *([1.2 + 0.25 * max(len(usage), 4)] if usage else [])]
    figure = Figure(figsize=(8, sum(heights)), layout="constrained")
    figure.suptitle(title)
    panels = figure.subfigures(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    draw_progress(panels[0], points)
    if usage:
        draw_usage(panels[1], usage)
    return Plot(figure)


def draw_progress(panel: Any, points: Sequence[TrainingPoint]) -> None:
    """Draw loss and accuracy by epoch, else by step, else by time."""
    axes = panel.subplots()
    with_values = [point for point in points if point.loss is not None or point.accuracy is not None]
    if not with_values:
        axes.text(0.5, 0.5, "The log reports no loss or accuracy", ha="center", va="center", color="#6a6e73")
        axes.set_axis_off()
        return
    by = next(
        (name for name in ("epoch", "step") if all(getattr(point, name) is not None for point in with_values)), None
    )
    by = by or ("time" if all(point.time is not None for point in with_values) else "line")
    places = [number if by == "line" else getattr(point, by) for number, point in enumerate(with_values, 1)]
    axes.set_xlabel(by)
    if by != "time":
        axes.xaxis.get_major_locator().set_params(integer=True)
    for name, colour, ax in (("loss", BLUE, axes), ("accuracy", GREEN, None)):
        values = [getattr(point, name) for point in with_values]
        if all(value is None for value in values):
            continue
        ax = ax or axes.twinx()
        kept = [(place, value) for place, value in zip(places, values, strict=True) if value is not None]
        ax.plot(*zip(*kept, strict=True), color=colour, marker="." if len(kept) < 50 else None)
        ax.set_ylabel(name, color=colour)
        ax.tick_params(axis="y", labelcolor=colour)


def draw_usage(panel: Any, usage: Sequence[PodUsage]) -> None:
    """Draw what each pod uses over what it requests."""
    names = [each.pod for each in usage]
    left, right = panel.subplots(1, 2, sharey=True)
    for axes, label, used, requested in (
        (left, "CPU cores", [each.cpu for each in usage], [each.cpu_requested for each in usage]),
        (
            right,
            "memory, GiB",
            [each.memory / GIB for each in usage],
            [each.memory_requested / GIB for each in usage],
        ),
    ):
        axes.barh(names, requested, color=GREY, label="requested")
        axes.barh(names, used, height=0.4, color=BLUE, label="used")
        axes.set_xlabel(label)
        axes.margins(y=0.01)
    left.invert_yaxis()
    panel.legend(*left.get_legend_handles_labels(), loc="outside upper right", ncols=2, frameon=False)
