"""Waits until jobs have reached a phase or ended."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from openshift_ai_sdk.training import _changes
from openshift_ai_sdk.training._cluster import Cluster
from openshift_ai_sdk.training._driver import Json
from openshift_ai_sdk.training._interrupt import detachable
from openshift_ai_sdk.training._job_ref import JobRef, found_again
from openshift_ai_sdk.training._many import few
from openshift_ai_sdk.training._notify import Observer, notify
from openshift_ai_sdk.training._phases import either
from openshift_ai_sdk.training._status import JobStatus
from openshift_ai_sdk.training._wait_reports import watch_all_reports, watch_reports
from openshift_ai_sdk.training.errors import ClusterUnreachableError, JobTimeoutError, MPIJobFailed, TrainingError
from openshift_ai_sdk.training.models import Phase


async def wait(
    cluster: Cluster,
    ref: JobRef,
    phases: Sequence[str] = (Phase.SUCCEEDED,),
    timeout: float | None = None,
    observer: Observer | None = None,
) -> JobStatus:
    """Return a job's status once it has reached one of some phases. A phase that it has passed counts.

    Raises:
        MPIJobFailed: The job has failed, and that was not waited for.
        JobTimeoutError: It took longer than the timeout, in seconds.
    """
    with detachable(f"{ref} keeps running", f"follow again with {found_again(ref)}.wait_for_completion()"):
        return await await_phase(cluster, ref, phases, timeout, observer)


async def await_phase(
    cluster: Cluster, ref: JobRef, phases: Sequence[str], timeout: float | None, observer: Observer | None
) -> JobStatus:
    """Wait as wait does, without a word when Ctrl-C ends it."""
    deadline = None if timeout is None else cluster.api.driver.monotonic() + timeout
    status = cluster.status_in(ref, None)
    try:
        ref = await cluster.resolve(ref, deadline)
        async with aclosing(watch_reports(cluster, ref, deadline)) as changes:
            async for change in changes:
                if change.type != "CHANGED":
                    continue
                status = cluster.status_in(ref, change.object)
                await notify(cluster, observer, status)
                if any(status.has_been(phase) for phase in phases):
                    return status
                if status.is_finished:
                    if status.is_failed:
                        raise await failure_of(cluster, ref, status)
                    raise TrainingError(f"{ref} finished without reaching {either(phases)}")
    except ClusterUnreachableError:
        if not cluster.api.is_due(deadline):
            raise
    text = f"{ref} did not reach {either(phases)} within {timeout:g} s: {status}"
    if status.cause:
        text += f": {status.cause.summary.rstrip('.')}; job.explain() shows what to do"
    raise JobTimeoutError(f"{text}; the job continues", status)


async def failure_of(cluster: Cluster, ref: JobRef, status: JobStatus) -> MPIJobFailed:
    """Return the error of a job that has failed, with the changes by which clone applies the remedies."""
    job = await cluster.api.find(ref.resource, ref.namespace, ref.name) if status.remedies else None
    return MPIJobFailed(status, [_changes.of_remedy(remedy, job) for remedy in status.remedies])


async def watch_namespaces(
    cluster: Cluster, refs: Sequence[JobRef], deadline: float | None
) -> AsyncGenerator[tuple[JobRef, Json], None]:
    """Yield the reports of jobs until all have ended, or the deadline; namespaces are watched side by side."""
    spaces: dict[str, dict[tuple[str, str, str], JobRef]] = {}
    for ref in refs:
        spaces.setdefault(ref.namespace, {})[ref.namespace, ref.kind, ref.name] = ref
    if len(spaces) == 1:
        (space,) = spaces.items()
        async with aclosing(watch_namespace(cluster, *space, deadline)) as changes:
            async for change in changes:
                yield change
        return
    async with cluster.api.driver.tasks() as tasks:
        through = cluster.through(tasks.driver)

        async def forward(namespace: str, jobs: dict[tuple[str, str, str], JobRef]) -> None:
            async with aclosing(watch_namespace(through, namespace, jobs, deadline)) as changes:
                async for change in changes:
                    await tasks.put(change)

        for namespace, jobs in spaces.items():
            tasks.start(forward(namespace, jobs))
        async with aclosing(tasks.items()) as changes:
            async for change in changes:
                yield change


async def watch_namespace(
    cluster: Cluster, namespace: str, jobs: dict[tuple[str, str, str], JobRef], deadline: float | None
) -> AsyncGenerator[tuple[JobRef, Json], None]:
    """Yield the reports of jobs of a namespace until all have ended, or the deadline."""
    open_ = dict(jobs)
    async with aclosing(watch_all_reports(cluster, namespace, open_, deadline)) as changes:
        async for key, report in changes:
            yield jobs[key], report
            if (report.get("status") or {}).get("completionTime"):
                del open_[key]
                if not open_:
                    return


async def wait_all(
    cluster: Cluster, refs: Sequence[JobRef], timeout: float | None = None, observer: Observer | None = None
) -> AsyncGenerator[JobStatus, None]:
    """Yield the status of each job when it has ended. One watch serves all jobs of a namespace."""
    deadline = None if timeout is None else cluster.api.driver.monotonic() + timeout
    open_ = {(ref.namespace, ref.kind, ref.name) for ref in refs}
    last: dict[tuple[str, str, str], JobStatus] = {}
    jobs = ", ".join([*map(found_again, refs[:3]), *(["..."] if len(refs) > 3 else [])])
    state = f"{len(refs)} jobs keep running" if len(refs) > 1 else f"{refs[0] if refs else 'no job'} keeps running"
    with detachable(state, f"follow again with TrainingClient().wait_for_jobs([{jobs}])"):
        try:
            refs = [await cluster.resolve(ref, deadline) for ref in refs]
            async with aclosing(watch_namespaces(cluster, refs, deadline)) as changes:
                async for ref, report in changes:
                    key = (ref.namespace, ref.kind, ref.name)
                    last[key] = cluster.status_in(ref, report)
                    await notify(cluster, observer, last[key])
                    if last[key].is_finished:
                        open_.discard(key)
                        yield last[key]
        except ClusterUnreachableError:
            if not cluster.api.is_due(deadline):
                raise
    if open_:
        keys = [(ref.namespace, ref.kind, ref.name) for ref in refs]
        statuses = [last.get(key) or cluster.status_in(ref, None) for key, ref in zip(keys, refs, strict=True)]
        late = [status for key, status in zip(keys, statuses, strict=True) if key in open_]
        names = few([f"{status.name} ({status})" for status in late])
        text = (
            f"{len(open_)} of {len(refs)} jobs did not finish within {timeout:g} s: {names}; they continue, and "
            "the error's statuses has those of all jobs"
        )
        raise JobTimeoutError(text, late[0], statuses)
