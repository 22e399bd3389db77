"""Which job is meant, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from openshift_ai_sdk.training._driver import Json
from openshift_ai_sdk.training._kinds import KINDS, TRAIN_JOB, Resource
from openshift_ai_sdk.training._status import JobStatus, status_of

LABEL_JOB = "mpi.opendatahub.io/job-name"
LABEL_KIND = "mpi.opendatahub.io/job-kind"


@dataclass(frozen=True)
class JobRef:
    """One job. Without a uid it is whichever job has the name."""

    kind: str
    namespace: str
    name: str
    uid: str = ""

    @property
    def resource(self) -> Resource:
        """Where the API server serves the job."""
        return KINDS[self.kind]

    @property
    def labels(self) -> str:
        """The selector of the job's report."""
        return f"{LABEL_JOB}={self.name[:63].rstrip('-._')},{LABEL_KIND}={self.kind}"

    def is_meant(self, report: Json) -> bool:
        """Return whether a report is about this job."""
        ref = report["spec"]["jobRef"]
        return ref["name"] == self.name and ref["kind"] == self.kind and (not self.uid or ref["uid"] == self.uid)

    def __str__(self) -> str:
        return f"{self.kind.lower()}/{self.name}"


@dataclass
class Found:
    """A job with its report. The object is None if the job is deleted, the report None before there is one.

    Attributes:
        replaced: Whether the job is deleted, and another one has its name now.
    """

    ref: JobRef
    object: Json | None
    report: Json | None
    cluster: str = ""
    replaced: bool = False

    @cached_property
    def status(self) -> JobStatus:
        """The job's status. It is decoded when it is first needed: a list of many jobs does not need it."""
        ref = self.ref
        return status_of(self.report, ref.kind, ref.name, ref.namespace, ref.uid, self.cluster)

    def is_in(self, phase: str) -> bool:
        """Return whether the job is in a phase."""
        return self.report is not None and bool((self.report.get("status") or {}).get("phase") == phase)


def gone_job(report: Json, cluster: str) -> Found:
    """Return a job that only its report is left of."""
    ref = report["spec"]["jobRef"]
    return Found(JobRef(ref["kind"], report["metadata"]["namespace"], ref["name"], ref["uid"]), None, report, cluster)


def selector_of(ref: JobRef) -> str:
    """Return the selector of a job's pods."""
    if ref.kind == TRAIN_JOB.kind:
        return f"jobset.sigs.k8s.io/jobset-name={ref.name}"
    return f"training.kubeflow.org/operator-name=mpi-operator,training.kubeflow.org/job-name={ref.name}"


def found_again(ref: JobRef) -> str:
    """Return the call that returns a job."""
    return f"MPIJob.get({ref.name!r}, {ref.namespace!r})"


def is_finished(job: Json) -> bool:
    """Return whether a job is finished according to its conditions."""
    conditions = (job.get("status") or {}).get("conditions") or []
    return any(each["status"] == "True" and each["type"] in ("Succeeded", "Failed", "Complete") for each in conditions)
