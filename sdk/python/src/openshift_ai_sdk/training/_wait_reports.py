"""Watches the reports of jobs that are awaited, and notices jobs that do not exist."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing

from openshift_ai_sdk.training._cluster import NOT_CREATED, Cluster
from openshift_ai_sdk.training._driver import Json
from openshift_ai_sdk.training._job_ref import JobRef
from openshift_ai_sdk.training._kinds import JOB_REPORT, KINDS
from openshift_ai_sdk.training._watch import LONGEST_SILENCE, Change, watch
from openshift_ai_sdk.training.errors import JobNotFoundError

# For how many seconds a job that has no report is awaited at first before it is looked up again.
FIRST_LOOK = 5.0


async def watch_reports(cluster: Cluster, ref: JobRef, deadline: float | None = None) -> AsyncGenerator[Change, None]:
    """Yield SYNCED and the changes of a job's reports, until the deadline, by Driver.monotonic.

    While there is no report, the job itself is looked up once in a while: reports can be deleted, too.

    Raises:
        JobNotFoundError: There is neither such a job nor its report.
    """
    known = has_report = False
    looks = pauses_without_a_report()

    def silence() -> float:
        return LONGEST_SILENCE if has_report else next(looks)

    watched = cluster.reports.watch(ref.namespace, (ref.kind, ref.name), ref.labels, deadline, silence)
    async with aclosing(watched) as changes:
        async for change in changes:
            if change.type == "SYNCED":
                if not has_report:
                    await require(cluster, ref, known, deadline)
                known = True
                yield change
            elif ref.is_meant(change.object):
                has_report = change.type == "CHANGED"
                yield change


async def watch_all_reports(
    cluster: Cluster, namespace: str, wanted: Mapping[tuple[str, str, str], JobRef], deadline: float | None
) -> AsyncGenerator[tuple[tuple[str, str, str], Json], None]:
    """Yield the reports of some jobs of a namespace as watch_reports does, with the keys of the jobs."""
    known = False
    reported: set[tuple[str, str, str]] = set()
    looks = pauses_without_a_report()

    def silence() -> float:
        return LONGEST_SILENCE if reported.issuperset(wanted) else next(looks)

    async with aclosing(watch(cluster.api, JOB_REPORT, namespace, "", deadline, silence=silence)) as changes:
        async for change in changes:
            if change.type == "SYNCED":
                missing = [ref for key, ref in wanted.items() if key not in reported]
                await require_all(cluster, missing, known, deadline)
                known = True
                continue
            job = change.object["spec"]["jobRef"]
            key = (namespace, job["kind"], job["name"])
            if key not in wanted or not wanted[key].is_meant(change.object):
                continue
            if change.type == "CHANGED":
                reported.add(key)
                yield key, change.object
            else:
                reported.discard(key)


async def require(cluster: Cluster, ref: JobRef, known: bool, deadline: float | None) -> None:
    """Raise JobNotFoundError if there is no such job. It was there before if it is known."""
    item = await cluster.api.find(ref.resource, ref.namespace, ref.name, deadline)
    if item is not None and (not ref.uid or item["metadata"]["uid"] == ref.uid):
        return
    if await cluster.report(ref, deadline) is None:
        if known or ref.uid:
            raise deleted_without_a_report(ref)
        raise await cluster.not_found(ref.name, ref.namespace, NOT_CREATED)


async def require_all(cluster: Cluster, refs: Sequence[JobRef], known: bool, deadline: float | None) -> None:
    """Raise JobNotFoundError if a job does not exist. One list serves all jobs of a kind and namespace."""
    for kind, namespace in {(ref.kind, ref.namespace): None for ref in refs}:
        items, _ = await cluster.api.list(KINDS[kind], namespace, deadline=deadline)
        uids = {item["metadata"]["name"]: item["metadata"]["uid"] for item in items}
        for ref in refs:
            if ref.kind != kind or ref.namespace != namespace:
                continue
            is_gone = ref.name not in uids or (ref.uid and uids[ref.name] != ref.uid)
            if is_gone and await cluster.report(ref, deadline) is None:
                raise (
                    deleted_without_a_report(ref)
                    if known or ref.uid
                    else await cluster.not_found(ref.name, namespace, NOT_CREATED)
                )


def pauses_without_a_report() -> Iterator[float]:
    """Yield how long a job that has no report is awaited before it is looked up again, in seconds."""
    pause = FIRST_LOOK
    while True:
        yield pause
        # Below a minute, after which a bookmark ends the silence of a watch.
        pause = min(2 * pause, 40.0)


def deleted_without_a_report(ref: JobRef) -> JobNotFoundError:
    """Return the error for a job that is gone without a report."""
    return JobNotFoundError(
        f"{ref} in the namespace {ref.namespace} was deleted before the operator recorded anything about it; create it "
        "again if you still need it"
    )
