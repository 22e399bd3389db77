"""The profile that a job's report keeps."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from openshift_ai_sdk.training import JobStatus, ProfileCall, _profile


def status_of(**fields: Any) -> JobStatus:
    """Return a job's status with some fields."""
    return JobStatus.model_validate({"kind": "MPIJob", "name": "pi", "namespace": "ns", **fields})


def test_a_job_without_a_profile() -> None:
    assert _profile.profile(status_of(phase="Running")) is None


def test_profile() -> None:
    profile = _profile.profile(
        status_of(
            phase="Running",
            profile={
                "until": "2026-01-02T10:03:00Z",
                "since": "2026-01-02T10:01:00Z",
                "runs": 3,
                "ranks": 2,
                "milliseconds": 120000,
                "communicationMilliseconds": 48000,
                "communicationPercent": 40,
                "imbalancePercent": 33,
                "lateRank": {"rank": 1, "waitedMilliseconds": 36000},
                "calls": [{"call": "MPI_Allreduce", "count": 2000, "milliseconds": 47000, "bytes": 16000000}],
                "messageSizes": [{"upToBytes": 64, "count": 2}, {"count": 3}],
                "perRank": [{"rank": 1, "milliseconds": 60000, "communicationMilliseconds": 6000}],
            },
        )
    )
    assert profile is not None
    assert profile.until == datetime(2026, 1, 2, 10, 3, tzinfo=timezone.utc)
    assert (profile.since, profile.runs) == (datetime(2026, 1, 2, 10, 1, tzinfo=timezone.utc), 3)
    assert profile.communication / profile.time == 0.4
    assert (profile.rank_count, profile.imbalance, profile.late_rank) == (2, 0.33, 1)
    assert profile.calls == (ProfileCall("MPI_Allreduce", 2000, timedelta(seconds=47), 16000000),)
    assert profile.message_sizes == {64: 2, None: 3}
    assert profile.ranks == {1: (timedelta(minutes=1), timedelta(seconds=6))}


def test_a_profile_of_balanced_ranks() -> None:
    profile = _profile.profile(
        status_of(
            phase="Running",
            profile={
                "until": "2026-01-02T10:03:00Z",
                "ranks": 1,
                "milliseconds": 1,
                "communicationMilliseconds": 0,
                "communicationPercent": 0,
                "imbalancePercent": 0,
            },
        )
    )
    assert profile is not None
    assert profile.late_rank is None
    assert (profile.since, profile.runs) == (None, 1)
    assert profile.calls == ()
