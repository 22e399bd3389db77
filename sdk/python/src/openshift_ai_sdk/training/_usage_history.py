"""What a job used over time, by its report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from openshift_ai_sdk.training._generated.jobreport import Usage, UsageMetric
from openshift_ai_sdk.training.models import JobStatus


@dataclass(frozen=True)
class UsageSeries:
    """What was measured of a metric.

    CPU is in thousandths of a core and GPU in thousandths of a GPU; Memory and GPUMemory are in MiB; Network and IO in
    KiB per second; MajorFaults are per minute; Throttled and the pressures are shares of time in thousandths.

    Attributes:
        metric: The name of the metric, such as ``CPU``.
        mean: The mean by time.
        p95: The value that was not exceeded for 95 % of the time.
        max: The maximum.
        limit: The most that can be used; None if there is no limit.
        points: When each point begins, and its mean; None if nothing was measured.
    """

    metric: str
    mean: int
    p95: int
    max: int
    limit: int | None = None
    points: tuple[tuple[datetime, int | None], ...] = ()


@dataclass(frozen=True)
class UsageHistory(Mapping[str, UsageSeries]):
    """What a job used over time: its metrics by name, for all pods together.

    Attributes:
        since: When the measurement began, in UTC.
        until: When it was last reported.
        pods: The metrics of each pod by name: at most 32 pods, those that differ most from the others. Only the memory
            of the pod that reaches its limit first has points.
        ranks: By rank, the mean of the CPU in thousandths of a core and the maximum of the memory in MiB: at most 32
            ranks, those that differ most from the others.

    Example:
        >>> usage = job.get_usage_history()
        >>> usage["Memory"].max
        2150
        >>> usage.pods["train-worker-0"]["CPU"].mean
        1990
    """

    since: datetime
    until: datetime
    pods: Mapping[str, Mapping[str, UsageSeries]]
    ranks: Mapping[int, tuple[int, int]]
    _metrics: Mapping[str, UsageSeries]

    def __getitem__(self, metric: str) -> UsageSeries:
        return self._metrics[metric]

    def __iter__(self) -> Iterator[str]:
        return iter(self._metrics)

    def __len__(self) -> int:
        return len(self._metrics)


def history(status: JobStatus) -> UsageHistory | None:
    """Return the usage in a status; None if it has none."""
    usage = status.usage
    if usage is None:
        return None
    return UsageHistory(
        since=usage.since,
        until=usage.until,
        pods={pod.pod: series(pod.metrics, usage) for pod in usage.per_pod},
        ranks={rank.rank: (rank.cpu_millicores, rank.memory_mi_b) for rank in usage.per_rank},
        _metrics=series(usage.metrics, usage),
    )


def series(metrics: list[UsageMetric], usage: Usage) -> dict[str, UsageSeries]:
    """Return metrics by name, with the times of their points."""
    step = timedelta(seconds=usage.point_seconds)
    return {
        metric.metric.value: UsageSeries(
            metric=metric.metric.value,
            mean=metric.mean,
            p95=metric.p95,
            max=metric.max,
            limit=metric.limit or None,
            points=tuple(
                (usage.points_since + number * step, point if point >= 0 else None)
                for number, point in enumerate(metric.points)
            ),
        )
        for metric in metrics
    }
