"""The status of a job, from its report, as text and HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from openshift_ai_sdk.training import _html
from openshift_ai_sdk.training._generated.jobreport import Finding, JobReportStatus, Phase, PodStatus, Remedy, Severity

# How to follow a job that was just created.
FOLLOW = "job.wait_for_completion() waits until it has ended, and job.get_logs(follow=True) shows its output"


class JobStatus(JobReportStatus):
    """The status of a job, as recorded by the operator.

    All fields of the JobReport's status are attributes, among them ``phase``, ``reason``, ``message``, ``workers``,
    ``pods``, ``scheduling``, ``findings``, ``failure``, ``timeline``, ``consumption``, ``training`` and
    ``end_estimate``, which has when a running job is expected to end. Times are in UTC. Before the operator has seen
    the job ``phase`` is None. A status is equal to the name of its phase.

    Example:
        >>> status = job.get_status()
        >>> status.phase, status.workers.summary
        (<Phase.RUNNING: 'Running'>, '4/4')
        >>> status == "Running", status in ["Succeeded", "Failed"]
        (True, False)
    """

    kind: str
    """MPIJob or TrainJob."""
    name: str
    """The job's name."""
    namespace: str
    """The job's namespace."""
    uid: str = ""
    """Distinguishes the job from earlier jobs of the same name."""
    cluster: str = ""
    """The address of the cluster's API server; empty if unknown."""

    @classmethod
    def from_report(cls, report: Mapping[str, Any], cluster: str = "") -> JobStatus:
        """Return the status in a JobReport object of a cluster."""
        ref, status = report["spec"]["jobRef"], dict(report.get("status") or {})
        if complete := status.get("completeLogs"):
            # Anyone who has the address can read the logs: it is in nothing that is printed or stored.
            status["completeLogs"] = {name: value for name, value in complete.items() if name != "index"}
        return cls.model_validate(
            {
                **status,
                "kind": ref["kind"],
                "name": ref["name"],
                "uid": ref["uid"],
                "namespace": report["metadata"]["namespace"],
                "cluster": cluster,
            }
        )

    @property
    def job(self) -> str:
        """The job with its kind, such as ``mpijob/train``."""
        return f"{self.kind.lower()}/{self.name}"

    @property
    def is_finished(self) -> bool:
        """Whether the job has ended, well or not."""
        return self.completion_time is not None

    @property
    def is_failed(self) -> bool:
        """Whether the job has failed."""
        return self.phase == Phase.FAILED

    @property
    def cause(self) -> Finding | None:
        """The first finding: what is wrong with the job; None if nothing is."""
        return self.findings[0] if self.findings else None

    @property
    def blocked_by(self) -> Finding | None:
        """What keeps a job that has not ended from going on, so that waiting does not help; None if nothing does."""
        cause = self.cause
        return cause if cause and cause.severity == Severity.ERROR and not self.is_finished else None

    @property
    def remedies(self) -> list[Remedy]:
        """What to do about the cause, the most promising first."""
        return list(self.cause.remedies) if self.cause else []

    @property
    def launcher(self) -> PodStatus | None:
        """The launcher's latest pod; None before it exists."""
        return self.attempts[-1] if self.attempts else None

    @property
    def attempts(self) -> list[PodStatus]:
        """The launcher's pods, one for each try, the oldest first."""
        return sorted((pod for pod in self.pods if pod.role == "launcher"), key=lambda pod: pod.index)

    @property
    def progress(self) -> float | None:
        """How much of the training is done, from 0 to 1, where the program reports it."""
        return fraction(self.training.progress) if self.training else None

    def __eq__(self, other: object) -> bool:
        # Also a phase as text: ``job.wait_for_completion() == "Succeeded"``.
        return self.phase == other if isinstance(other, str) else super().__eq__(other)

    def __hash__(self) -> int:
        return hash(self.phase)

    def has_been(self, phase: Phase | str) -> bool:
        """Return whether the job is in a phase or has been in it."""
        return self.phase == phase or any(time.phase == phase for time in self.phase_times)

    def __str__(self) -> str:
        if self.phase is None:
            return "Waiting for the operator to see the job"
        text = str(self.phase)
        waits = self.scheduling
        if self.phase == Phase.QUEUED and waits:
            text += f" in {waits.queue}" if waits.queue else ""
            text += f", number {waits.position}" if waits.position is not None else ""
        elif self.phase in (Phase.GANG_SCHEDULING, Phase.PENDING) and waits and waits.wanted:
            text += f" {waits.placed or 0}/{waits.wanted} pods placed"
        elif self.phase == Phase.INITIALIZING and self.workers:
            text += f" {self.workers.summary} workers ready"
        elif self.phase == Phase.RUNNING and self.training:
            values = self.training.model_dump(include={"epoch", "step", "loss", "accuracy", "progress"})
            shown = [
                f"{name} {values[name]}" for name in ("epoch", "step", "loss", "accuracy", "progress") if values[name]
            ]
            text += ": " + ", ".join(shown) if shown else ""
        text += f" ({self.cause.code})" if self.cause else ""
        estimate = self.end_estimate or (waits.estimate if waits else None)
        return text + (f". {estimate.message}" if estimate and estimate.message else "")

    def __repr__(self) -> str:
        return f"<JobStatus of {self.job}: {self}>"

    def _repr_html_(self) -> str:
        return status_as_html(self)


def status_of(
    report: Mapping[str, Any] | None, kind: str, name: str, namespace: str, uid: str, cluster: str
) -> JobStatus:
    """Return the status in a job's report, or an empty one before there is a report."""
    if report is None:
        return JobStatus(kind=kind, name=name, namespace=namespace, uid=uid, cluster=cluster)
    return JobStatus.from_report(report, cluster)


def fraction(text: str | None) -> float | None:
    """Return progress as a number from 0 to 1: programs write 0.4, 40%, 40 or 4/10."""
    if not text:
        return None
    try:
        if "/" in text:
            done, whole = text.split("/", 1)
            value = float(done) / float(whole)
        elif text.rstrip().endswith("%"):
            value = float(text.rstrip().rstrip("%")) / 100
        else:
            value = float(text)
            value = value / 100 if value > 1 else value
    except (ValueError, ZeroDivisionError):
        return None
    return min(max(value, 0.0), 1.0)


def state_as_html(of: JobStatus) -> str:
    """Return a phase with the rest of the status, such as the progress."""
    if of.phase is None:
        return escape(str(of))
    return _html.badge(of.phase) + escape(str(of).removeprefix(str(of.phase)))


def workers_text(of: JobStatus) -> str:
    """Return how many workers are ready, or of a job that has ended how many there were; empty if unknown."""
    if of.workers is None:
        return ""
    if of.is_finished:
        return str(of.workers.wanted)
    return of.workers.summary or f"{of.workers.ready}/{of.workers.wanted}"


def place_of(status: JobStatus) -> str:
    """Return where a job failed, in a sentence; empty if unknown."""
    failure = status.failure
    if failure is None or not failure.pod:
        return ""
    text = f"It began in pod {failure.pod}"
    text += f", with rank {failure.rank}" if failure.rank is not None else ""
    node = next((pod.node for pod in status.pods if pod.name == failure.pod and pod.node), None)
    text += f", on node {node}" if node else ""
    if failure.exit_code is not None:
        text += f"; it ended with code {failure.exit_code}"
        text += f", which is signal {failure.exit_code - 128}" if 128 < failure.exit_code < 192 else ""
    return text + "."


def status_as_html(of: JobStatus, calls: Sequence[str | None] = ()) -> str:
    """Return a job's status: where it is, its phase, its workers, and what is wrong with it.

    Args:
        of: The status.
        calls: For each remedy of the cause the call that applies it, or None.
    """
    follow = f"<p>{escape(FOLLOW)}</p>" if of.phase is None else ""
    rows = [["Phase", state_as_html(of)]]
    if workers_text(of):
        rows.append(["Workers" if of.is_finished else "Workers ready", escape(workers_text(of))])
    if of.message and not (of.findings and of.findings[0].summary == of.message):
        rows.append(["Message", escape(of.message)])
    if of.links:
        rows.append(["Links", ", ".join(_html.link(link.url, link.title) for link in of.links)])
    place = place_of(of)
    causes = "".join(_html.finding(found, calls if number == 0 else ()) for number, found in enumerate(of.findings))
    return title_as_html(of) + _html.table(rows) + (f"<p>{escape(place)}</p>" if place else "") + causes + follow


def not_created_as_html(of: JobStatus) -> str:
    """Return a job that only Python knows."""
    return f"{title_as_html(of)}<p>The job is not created yet; call <code>create()</code>.</p>"


def title_as_html(of: JobStatus) -> str:
    """Return which job it is, and where."""
    return f"<p><b>{escape(of.job)}</b>{_html.where(of.namespace, of.cluster)}</p>"


def jobs_as_html(all_of: Sequence[JobStatus]) -> str:
    """Return a list of jobs as a table; what all jobs have in common is written above it."""
    if not all_of:
        return "<p>There are no jobs.</p>"
    places = {(of.namespace, of.cluster) for of in all_of}
    clusters = {of.cluster for of in all_of}
    namespace, cluster = next(iter(places)) if len(places) == 1 else ("", clusters.pop() if len(clusters) == 1 else "")
    rows = [
        [
            *([] if namespace else [escape(of.namespace or "-")]),
            f'<span style="white-space:nowrap">{escape(of.name)}</span>',
            escape(of.kind),
            state_as_html(of),
            escape(workers_text(of) or "-"),
            escape(of.cause.summary if of.cause else of.message or "-"),
        ]
        for of in all_of
    ]
    header = [*([] if namespace else ["Namespace"]), "Name", "Kind", "Phase", "Workers", "Message"]
    count = "1 job" if len(all_of) == 1 else f"{len(all_of)} jobs"
    return f"<p>{count}{_html.where(namespace, cluster)}</p>" + _html.table(rows, header)
