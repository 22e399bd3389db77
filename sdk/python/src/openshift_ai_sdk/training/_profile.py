"""Where the time of a job's ranks goes, by its report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from openshift_ai_sdk.training.models import JobStatus


@dataclass(frozen=True)
class ProfileCall:
    """What the ranks did in a function of MPI.

    Attributes:
        name: The name of the function, such as ``MPI_Allreduce``.
        count: How often the ranks called it.
        time: The time in it, of all ranks.
        bytes: The size of the data that the ranks sent or passed to it.
    """

    name: str
    count: int
    time: timedelta
    bytes: int


@dataclass(frozen=True)
class Profile:
    """Where the time of a job's ranks goes, between ``MPI_Init`` and ``MPI_Finalize``.

    Attributes:
        until: When it was last measured.
        since: When the run began of which it is the profile; None in reports of earlier versions.
        runs: The number of runs of MPI's launcher, such as ``mpirun``, in which ranks were profiled. It is the profile
            of the one that began last. 33 stands for more than 32.
        rank_count: The number of ranks.
        time: The time of all ranks together.
        communication: The part of it in functions of MPI.
        imbalance: How much less the mean rank computes than the one that computes most, from 0 to 1.
        late_rank: The rank that the others may wait for; None if there is none.
        calls: The functions of MPI with the most time, at most 12.
        message_sizes: The number of calls by the size of their data: up to so many bytes, None for larger ones.
        ranks: By rank, its time and the part in functions of MPI: at most 32 ranks, those that differ most from the
            others.

    Example:
        >>> profile = job.get_profile()
        >>> profile.communication / profile.time, profile.calls[0].name, profile.late_rank
        (0.4, 'MPI_Allreduce', 1)
    """

    until: datetime
    since: datetime | None
    runs: int
    rank_count: int
    time: timedelta
    communication: timedelta
    imbalance: float
    late_rank: int | None
    calls: tuple[ProfileCall, ...]
    message_sizes: Mapping[int | None, int]
    ranks: Mapping[int, tuple[timedelta, timedelta]]


def profile(status: JobStatus) -> Profile | None:
    """Return the profile in a status; None if it has none."""
    found = status.profile
    if found is None:
        return None
    return Profile(
        until=found.until,
        since=found.since,
        runs=found.runs or 1,
        rank_count=found.ranks,
        time=timedelta(milliseconds=found.milliseconds),
        communication=timedelta(milliseconds=found.communication_milliseconds),
        imbalance=found.imbalance_percent / 100,
        late_rank=None if found.late_rank is None else found.late_rank.rank,
        calls=tuple(
            ProfileCall(call.call, call.count, timedelta(milliseconds=call.milliseconds), call.bytes)
            for call in found.calls
        ),
        message_sizes={sizes.up_to_bytes: sizes.count for sizes in found.message_sizes},
        ranks={
            rank.rank: (
                timedelta(milliseconds=rank.milliseconds),
                timedelta(milliseconds=rank.communication_milliseconds),
            )
            for rank in found.per_rank
        },
    )
