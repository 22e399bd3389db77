"""Models of what is read about jobs: findings, events, log lines and training. The status is in _status.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import overload

from openshift_ai_sdk.training import _html
from openshift_ai_sdk.training._generated.jobreport import (
    Consumption,
    Failure,
    Finding,
    Phase,
    PodStatus,
    Remedy,
    SchedulingStatus,
    Severity,
    TimelineEntry,
    Training,
)
from openshift_ai_sdk.training._resource_rules import fields_of, problems_of_fields
from openshift_ai_sdk.training._status import JobStatus
from openshift_ai_sdk.training.errors import InvalidJobError

__all__ = [
    "Consumption",
    "Event",
    "Failure",
    "Finding",
    "JobStatus",
    "LogLine",
    "Logs",
    "Phase",
    "PodStatus",
    "PodUsage",
    "Remedy",
    "ResourceRequirements",
    "SchedulingStatus",
    "Severity",
    "Training",
    "TrainingHistory",
    "TrainingPoint",
]


@dataclass(frozen=True)
class ResourceRequirements:
    """What each worker asks for.

    CPUs are a request. Memory and devices are a request and a limit: a pod that uses more memory is killed alone,
    rather than others on its node with it.

    Attributes:
        cpu: Cores, such as ``4``, ``0.5`` or ``"500m"``; None asks for none.
        memory: Bytes with a unit, such as ``"16Gi"``; None asks for none.
        gpu: GPUs, 0 or more.
        gpu_resource: The name of a GPU in the cluster.
        other: Further resources by name, such as ``{"rdma/hca": 1}``.

    Raises:
        InvalidJobError: With everything that is not an amount of a resource.

    Example:
        >>> ResourceRequirements(cpu=8, memory="64Gi", gpu=1)
        ResourceRequirements(cpu=8, memory='64Gi', gpu=1, gpu_resource='nvidia.com/gpu', other={})
    """

    cpu: int | float | str | None = None
    memory: str | None = None
    gpu: int = 0
    gpu_resource: str = "nvidia.com/gpu"
    other: Mapping[str, int | str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if problems := problems_of_fields("", vars(self)):
            raise InvalidJobError(problems)

    @classmethod
    def from_mapping(cls, resources: Mapping[str, int | float | str]) -> ResourceRequirements:
        """Return the resources of a mapping as Kubernetes writes it.

        Example:
            >>> ResourceRequirements.from_mapping({"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "2"}).gpu
            2
        """
        return cls(**fields_of(resources))


@dataclass(frozen=True)
class Event:
    """An event of a job.

    Attributes:
        time: When it happened, or when the operator saw it, in UTC.
        name: The event in one word, such as ``Created``, ``Running`` or ``Failed``.
        detail: Details; may be empty.
    """

    time: datetime
    name: str
    detail: str = ""

    @classmethod
    def from_entry(cls, entry: TimelineEntry) -> Event:
        """Return an entry of a JobReport's timeline as an event."""
        return cls(entry.time, entry.event, entry.detail or "")

    def __str__(self) -> str:
        return f"{self.time:%H:%M:%S} {self.name}" + (f": {self.detail}" if self.detail else "")


@dataclass(frozen=True)
class LogLine:
    """A line of a pod's log.

    Attributes:
        text: The line without its rank's tag.
        pod: The pod in whose log it is.
        role: ``launcher`` or ``worker``: where it was written. A rank's line in the launcher's log was usually written
            by a worker.
        index: The worker's number, or the launcher's try, from 0.
        rank: The rank that wrote it; None if unknown.
        time: When it was written, by the clock of the pod's node; None for lines that only the record has kept.
    """

    text: str
    pod: str
    role: str
    index: int = 0
    rank: int | None = None
    time: datetime | None = None

    def __str__(self) -> str:
        place = f"worker-{self.index}" if self.role == "worker" else self.role
        if self.role == "launcher" and self.index:
            place += f"#{self.index + 1}"
        return f"[{place}{'' if self.rank is None else f' r{self.rank}'}] {self.text}"


class Logs(Sequence[LogLine]):
    """Lines of a job's logs. Printed, they are the text; each is a LogLine with the pod, rank and time.

    Text is searched for in all lines: ``"loss" in logs``.

    Example:
        >>> logs = job.get_logs(ranks="0")
        >>> print(logs)
        epoch 1 loss 0.42
        >>> logs[0].rank
        0
    """

    def __init__(self, lines: Sequence[LogLine]) -> None:
        self._lines = tuple(lines)

    @overload
    def __getitem__(self, index: int) -> LogLine: ...

    @overload
    def __getitem__(self, index: slice) -> Logs: ...

    def __getitem__(self, index: int | slice) -> LogLine | Logs:
        return Logs(self._lines[index]) if isinstance(index, slice) else self._lines[index]

    def __len__(self) -> int:
        return len(self._lines)

    def __contains__(self, item: object) -> bool:
        return item in str(self) if isinstance(item, str) else item in self._lines

    def __iter__(self) -> Iterator[LogLine]:
        return iter(self._lines)

    def __str__(self) -> str:
        return "\n".join(line.text for line in self._lines)

    def __repr__(self) -> str:
        return f"<Logs: {len(self)} lines>"

    def _repr_html_(self) -> str:
        return _html.logs([line.text for line in self._lines])


@dataclass(frozen=True)
class TrainingPoint:
    """What a training reported in one line of its log.

    Attributes:
        time: When the line was written, in UTC; None if unknown.
        epoch: The epoch, from the program's own first number on.
        step: The step or iteration.
        loss: The loss.
        accuracy: The accuracy as the program prints it; ``97%`` is 0.97.
        progress: How much of the training is done, from 0 to 1.
    """

    time: datetime | None = None
    epoch: float | None = None
    step: float | None = None
    loss: float | None = None
    accuracy: float | None = None
    progress: float | None = None


class TrainingHistory(list[TrainingPoint]):
    """What a training has reported, line by line. A notebook shows it as a table.

    Example:
        >>> history = job.get_training_history()
        >>> [point.loss for point in history]
        [0.92, 0.41, 0.23]
    """

    def __repr__(self) -> str:
        return f"<TrainingHistory: {len(self)} entries>"

    def _repr_html_(self) -> str:
        return history_as_html(self)


def history_as_html(points: Iterable[TrainingPoint]) -> str:
    """Return what a training has reported as a table, with the columns that have values."""
    rows = [
        [
            f"{point.time:%H:%M:%S}" if point.time else "",
            *("" if value is None else f"{value:g}" for value in (point.epoch, point.step, point.loss, point.accuracy)),
        ]
        for point in points
    ]
    if not rows:
        return "<p>The log reports no epoch, loss or accuracy.</p>"
    names = ["Time", "Epoch", "Step", "Loss", "Accuracy"]
    used = [column for column in range(len(names)) if any(row[column] for row in rows)]
    return _html.table([[row[column] for column in used] for row in rows], [names[column] for column in used])


@dataclass(frozen=True)
class PodUsage:
    """What a pod uses at the moment, and what it requests.

    Attributes:
        pod: The pod's name.
        cpu: Cores in use.
        cpu_requested: Cores that are requested; 0 if none are.
        memory: Memory in use, in bytes.
        memory_requested: Memory that is requested, in bytes; 0 if none is.
    """

    pod: str
    cpu: float
    cpu_requested: float
    memory: float
    memory_requested: float
