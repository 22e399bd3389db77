"""What a job used over time, as its report has it."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from openshift_ai_sdk.training import JobStatus, _usage_history


def at(minute: int, second: int = 0) -> datetime:
    """Return a time of the test's hour."""
    return datetime(2026, 1, 2, 10, minute, second, tzinfo=timezone.utc)


def status_of(**status: Any) -> JobStatus:
    """Return a job's status with some fields."""
    return JobStatus.model_validate({"kind": "MPIJob", "name": "pi", "namespace": "ns", **status})


def test_a_job_without_a_report_of_its_agents_has_none() -> None:
    assert _usage_history.history(status_of(phase="Running")) is None


def test_history_has_metrics_pods_and_ranks() -> None:
    status = status_of(
        usage={
            "since": "2026-01-02T10:00:05Z",
            "until": "2026-01-02T10:03:00Z",
            "pointsSince": "2026-01-02T10:00:00Z",
            "pointSeconds": 60,
            "pods": 1,
            "metrics": [
                {"metric": "CPU", "mean": 3800, "p95": 3950, "max": 3990, "limit": 4000, "points": [400, -1, 3900]},
                {"metric": "Memory", "mean": 1500, "p95": 2100, "max": 2150},
                {"metric": "Newer", "mean": 1, "p95": 2, "max": 3},
            ],
            "perPod": [{"pod": "pi-worker-0", "metrics": [{"metric": "CPU", "mean": 1, "p95": 2, "max": 3}]}],
            "perRank": [{"rank": 7, "cpuMillicores": 900, "memoryMiB": 512}],
        }
    )
    usage = _usage_history.history(status)
    assert usage is not None
    assert (usage.since, usage.until) == (at(0, 5), at(3))
    assert list(usage) == ["CPU", "Memory", "Newer"]
    assert usage["CPU"].points == ((at(0), 400), (at(1), None), (at(2), 3900))
    assert (usage["CPU"].limit, usage["Memory"].limit, usage["Memory"].points) == (4000, None, ())
    assert usage.pods["pi-worker-0"]["CPU"].max == 3
    assert usage.ranks == {7: (900, 512)}
