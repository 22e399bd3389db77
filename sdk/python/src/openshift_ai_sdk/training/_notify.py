"""Notifies callbacks and webhooks of the statuses of jobs that are awaited."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from openshift_ai_sdk.training._cluster import Cluster
from openshift_ai_sdk.training._driver import ConnectionLostError
from openshift_ai_sdk.training._generated.jobreport import Finding
from openshift_ai_sdk.training._status import JobStatus
from openshift_ai_sdk.training.errors import JobBlockedError
from openshift_ai_sdk.training.models import Phase

PhaseCallback = Callable[[JobStatus], object]
FindingCallback = Callable[[JobStatus, Finding], object]


@dataclass
class Observer:
    """Receives the statuses of jobs while they are awaited.

    Attributes:
        on_status: Called with each new status.
        on_phase: Called with the status when the phase has changed.
        on_finding: Called with the status and a finding that is new.
        webhook: URL that gets the status as JSON when the phase has changed, or a finding is new.
        raise_if_blocked: Whether a job that cannot go on raises JobBlockedError; otherwise it causes a warning.
    """

    on_status: PhaseCallback | None = None
    on_phase: PhaseCallback | None = None
    on_finding: FindingCallback | None = None
    webhook: str | None = None
    raise_if_blocked: bool = False
    warned: set[tuple[str, str, str, str]] = field(default_factory=set, init=False)
    phases: dict[tuple[str, str, str], Phase | None] = field(default_factory=dict, init=False)
    found: set[tuple[str, str, str, str, str]] = field(default_factory=set, init=False)

    def new_findings(self, status: JobStatus) -> list[Finding]:
        """Return the findings that were not seen before: each code once, and again if its severity changes.

        Figures in the summary, and the pod and rank, may change while the problem is the same.
        """
        new = []
        for finding in status.findings:
            key = (status.kind, status.namespace, status.name, finding.code, str(finding.severity))
            if key not in self.found:
                self.found.add(key)
                new.append(finding)
        return new


async def notify(cluster: Cluster, observer: Observer | None, status: JobStatus) -> None:
    """Notify an observer of a status. A webhook that fails causes a warning only: the job goes on."""
    if observer is None:
        return
    await called(observer.on_status, status)
    job = (status.kind, status.namespace, status.name)
    new = observer.new_findings(status)
    for finding in new:
        await called(observer.on_finding, status, finding)
    is_new_phase = status.phase != observer.phases.get(job)
    if is_new_phase:
        observer.phases[job] = status.phase
        await called(observer.on_phase, status)
    if observer.webhook and (is_new_phase or new):
        await post(cluster, observer.webhook, status, new, "phase" if is_new_phase else "finding")
    warn_if_blocked(observer, status)


def warn_if_blocked(observer: Observer, status: JobStatus) -> None:
    """Warn once of a job that cannot go on, or raise JobBlockedError if the observer wants it."""
    cause = status.blocked_by
    if cause is None:
        return
    if observer.raise_if_blocked:
        raise JobBlockedError(status, cause)
    key = (status.kind, status.namespace, status.name, cause.code)
    if key not in observer.warned:
        observer.warned.add(key)
        warnings.warn(
            f"{status.job} is {status.phase} and cannot go on: {cause.code}: {cause.summary.rstrip('.')}; "
            "job.explain() shows what to do, and waiting continues",
            stacklevel=2,
        )


async def post(cluster: Cluster, url: str, status: JobStatus, new: Sequence[Finding], event: str) -> None:
    """Send a status with the new findings to a webhook; a failure causes a warning.

    The evidence is left out: it has lines of logs.
    """
    body = {
        "event": event,
        "kind": status.kind,
        "name": status.name,
        "namespace": status.namespace,
        "uid": status.uid,
        "phase": str(status.phase),
        "reason": status.reason,
        "message": status.message,
        "cause": status.cause.code if status.cause else None,
        "newFindings": [
            {
                "code": finding.code,
                "severity": str(finding.severity),
                "summary": finding.summary,
                "pod": finding.pod,
                "rank": finding.rank,
            }
            for finding in new
        ],
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


async def called(callback: Callable[..., object] | None, *values: object) -> None:
    """Call a callback, and await what it returns if that can be awaited."""
    if callback is None:
        return
    result = callback(*values)
    if inspect.isawaitable(result):
        awaitable: Awaitable[Any] = result
        await awaitable
