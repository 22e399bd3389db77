"""Reads the events of a job from its report."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from openshift_ai_sdk.training._cluster import Cluster
from openshift_ai_sdk.training._driver import Json
from openshift_ai_sdk.training._interrupt import detachable
from openshift_ai_sdk.training._job_ref import JobRef, found_again
from openshift_ai_sdk.training._status import JobStatus
from openshift_ai_sdk.training._wait_reports import require, watch_reports
from openshift_ai_sdk.training.models import Event


async def events(cluster: Cluster, ref: JobRef, follow: bool = True) -> AsyncGenerator[Event, None]:
    """Yield the past and the future events of a job until it has ended, each once and in order.

    The events are those of the job's report, which keeps them: none is lost while the API server is away.
    """
    seen: set[Event] = set()
    ref = await cluster.resolve(ref)
    if not follow:
        report = await cluster.report(ref)
        if report is None:
            await require(cluster, ref, known=False, deadline=None)
        for event in new_events(report, seen):
            yield event
        return
    with detachable(f"{ref} keeps running", f"follow again with {found_again(ref)}.stream_events()"):
        async with aclosing(watch_reports(cluster, ref)) as changes:
            async for change in changes:
                if change.type != "CHANGED":
                    continue
                for event in new_events(change.object, seen):
                    yield event
                if (change.object.get("status") or {}).get("completionTime"):
                    return


def new_events(report: Json | None, seen: set[Event]) -> list[Event]:
    """Return the entries of a report's timeline that were not seen yet, and add them to those seen."""
    status = (report or {}).get("status") or {}
    if not status.get("timeline") or report is None:
        return []
    events = [Event.from_entry(entry) for entry in JobStatus.from_report(report).timeline]
    fresh = [event for event in events if event not in seen]
    seen.update(fresh)
    return fresh
