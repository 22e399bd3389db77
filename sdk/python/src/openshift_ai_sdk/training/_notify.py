"""Notifies callbacks and webhooks of the statuses of jobs that are awaited."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from openshift_ai_sdk.training._cluster import Cluster
from openshift_ai_sdk.training._driver import ConnectionLostError
from openshift_ai_sdk.training._status import JobStatus
from openshift_ai_sdk.training.errors import JobBlockedError
from openshift_ai_sdk.training.models import Phase

PhaseCallback = Callable[[JobStatus], object]


@dataclass
class Observer:
    """Receives the statuses of jobs while they are awaited.

    Attributes:
        on_status: Called with each new status.
        on_phase: Called with the status when the phase has changed.
        webhook: URL that gets the status as JSON when the phase has changed.
        raise_if_blocked: Whether a job that cannot go on raises JobBlockedError; otherwise it causes a warning.
    """

    on_status: PhaseCallback | None = None
    on_phase: PhaseCallback | None = None
    webhook: str | None = None
    raise_if_blocked: bool = False
    warned: set[tuple[str, str, str, str]] = field(default_factory=set, init=False)
    phases: dict[tuple[str, str, str], Phase | None] = field(default_factory=dict, init=False)


async def notify(cluster: Cluster, observer: Observer | None, status: JobStatus) -> None:
    """Notify an observer of a status. A webhook that fails causes a warning only: the job goes on."""
    if observer is None:
        return
    await called(observer.on_status, status)
    job = (status.kind, status.namespace, status.name)
    if cause := status.blocked_by:
        if observer.raise_if_blocked:
            raise JobBlockedError(status, cause)
        if (*job, cause.code) not in observer.warned:
            observer.warned.add((*job, cause.code))
            warnings.warn(
                f"{status.job} is {status.phase} and cannot go on: {cause.code}: {cause.summary.rstrip('.')}; "
                "job.explain() shows what to do, and waiting continues",
                stacklevel=2,
            )
    if status.phase == observer.phases.get(job):
        return
    observer.phases[job] = status.phase
    await called(observer.on_phase, status)
    if observer.webhook:
        await post(cluster, observer.webhook, status)


async def post(cluster: Cluster, url: str, status: JobStatus) -> None:
    """Send a status to a webhook; a failure causes a warning."""
    body = {
        "kind": status.kind,
        "name": status.name,
        "namespace": status.namespace,
        "uid": status.uid,
        "phase": str(status.phase),
        "reason": status.reason,
        "message": status.message,
        "cause": status.cause.code if status.cause else None,
    }
    problem = ""
    parts = urlsplit(url)
    host, rest = parts.netloc.rpartition("@")[2], url.partition("//")[2].removeprefix(parts.netloc) or url
    for pause, _ in zip(cluster.api.retry.pauses(), range(4), strict=False):
        try:
            code = await cluster.api.driver.post(url, body, timeout=10)
            if code < 300:
                return
            problem = f"it answers {code}"
            if code < 500 and code != 429:
                break
        except ConnectionLostError as error:
            # The path often is a secret.
            problem = str(error) if rest not in str(error) else "it does not answer"
        await cluster.api.driver.sleep(pause)
    warnings.warn(
        f"the webhook at {host} was not notified that {status.job} is {status.phase}: {problem}", stacklevel=2
    )


async def called(callback: PhaseCallback | None, status: JobStatus) -> None:
    """Call a callback, and await what it returns if that can be awaited."""
    if callback is None:
        return
    result = callback(status)
    if inspect.isawaitable(result):
        awaitable: Awaitable[Any] = result
        await awaitable
