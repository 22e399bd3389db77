"""Plots of a training's loss, accuracy and use of resources. They need the extra ``plot``."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openshift_ai_sdk.training._curves import TrainingCurve
from openshift_ai_sdk.training._usage_history import UsageHistory
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


def plot(title: str, curves: Mapping[str, TrainingCurve], usage: UsageHistory | Sequence[PodUsage] | None) -> Plot:
    """Plot what a training has reported, and below it what its pods used over time or use at the moment.

    Args:
        title: The plot's title.
        curves: What the training has reported.
        usage: What the job used, or what its pods use; None if that is unknown.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise NotSupportedError("plots need matplotlib: pip install 'openshift-ai-sdk[plot]'") from error
    # Inches: the bars of many pods need room.
    heights = [3.2]
    if isinstance(usage, UsageHistory):
        heights.append(2.4)
    elif usage:
        heights.append(1.2 + 0.25 * max(len(usage), 4))
    figure = Figure(figsize=(8, sum(heights)), layout="constrained")
    figure.suptitle(title)
    panels = figure.subfigures(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    draw_progress(panels[0], curves)
    if isinstance(usage, UsageHistory):
        draw_history(panels[1], usage)
    elif usage:
        draw_usage(panels[1], usage)
    return Plot(figure)


def curves_of(points: Sequence[TrainingPoint]) -> dict[str, TrainingCurve]:
    """Return the loss and the accuracy in lines of a log by epoch, else by step, else by time, else by line."""
    with_values = [point for point in points if point.loss is not None or point.accuracy is not None]
    by = next(
        (name for name in ("epoch", "step", "time") if all(getattr(point, name) is not None for point in with_values)),
        "line",
    )
    found = {}
    for name in ("loss", "accuracy"):
        values = tuple(
            (number if by == "line" else getattr(point, by), getattr(point, name))
            for number, point in enumerate(with_values, 1)
            if getattr(point, name) is not None
        )
        if values:
            found[name] = TrainingCurve(name=name, by=by, points=values)
    return found


def draw_progress(panel: Any, curves: Mapping[str, TrainingCurve]) -> None:
    """Draw loss and accuracy, or the first two figures of a program that reports neither."""
    axes = panel.subplots()
    shown = [curves[name] for name in ("loss", "accuracy") if name in curves] or list(curves.values())[:2]
    # One axis cannot have both epochs and steps.
    shown = [curve for curve in shown if curve.by == shown[0].by]
    if not shown:
        axes.text(0.5, 0.5, "The job reports no loss or accuracy", ha="center", va="center", color="#6a6e73")
        axes.set_axis_off()
        return
    axes.set_xlabel(shown[0].by)
    if shown[0].by != "time":
        axes.xaxis.get_major_locator().set_params(integer=True)
    for number, curve in enumerate(shown):
        ax, colour = (axes.twinx(), GREEN) if number else (axes, BLUE)
        ax.plot(*zip(*curve.points, strict=True), color=colour, marker="." if len(curve.points) < 50 else None)
        ax.set_ylabel(curve.name, color=colour)
        ax.tick_params(axis="y", labelcolor=colour)


def draw_history(panel: Any, usage: UsageHistory) -> None:
    """Draw what all pods together used over time, and their limit."""
    shown = [
        (usage[name], label, unit)
        for name, label, unit in (("CPU", "CPU cores", 1000), ("Memory", "memory, GiB", 1024), ("GPU", "GPUs", 1000))
        if name in usage
    ]
    if not shown:
        return
    for axes, (series, label, unit) in zip(panel.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
        points = series.points or ((usage.since, series.mean), (usage.until, series.mean))
        values = [math.nan if value is None else value / unit for _, value in points]
        axes.plot([at for at, _ in points], values, color=BLUE, label="used")
        if series.limit:
            axes.axhline(series.limit / unit, color=GREY, label="limit")
        axes.set_ylim(bottom=0)
        axes.set_ylabel(label)
        axes.tick_params(axis="x", labelrotation=30)
        if series.limit:
            axes.legend(frameon=False)


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
