"""Why a job fails or waits, and what to do about it: what the operator has recorded, as text, HTML and changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from openshift_ai_sdk.training._changes import of_remedy
from openshift_ai_sdk.training._job_ref import Found
from openshift_ai_sdk.training._links import documentation
from openshift_ai_sdk.training._status import place_of, status_as_html
from openshift_ai_sdk.training.errors import call_of, describe
from openshift_ai_sdk.training.models import Finding, JobStatus, Remedy


@dataclass(frozen=True)
class Explanation:
    """Why a job fails or waits, and what to do.

    Attributes:
        status: The job's status.
        by_remedy: For each remedy of the cause the changes by which ``clone`` applies it; None where a remedy is no
            change of the job.

    Example:
        >>> explanation = job.explain()
        >>> print(explanation)
        mpijob/train: Failed (OutOfMemory)
        ...
        >>> if explanation.changes:
        ...     job.clone(**explanation.changes[0])
    """

    status: JobStatus
    by_remedy: list[dict[str, Any] | None]

    @property
    def changes(self) -> list[dict[str, Any]]:
        """The changes by which ``clone`` applies remedies, the most promising first; empty if none is a change."""
        return [each for each in self.by_remedy if each is not None]

    @property
    def cause(self) -> Finding | None:
        """What is wrong; None if nothing is."""
        return self.status.cause

    @property
    def remedies(self) -> list[Remedy]:
        """What to do, the most promising first."""
        return self.status.remedies

    @property
    def documentation(self) -> str | None:
        """The URL of the page that explains the cause, on GitHub or in ``$MPIJOB_DOCS_URL``; None without a cause."""
        return None if self.cause is None else documentation(self.cause.code)

    def __str__(self) -> str:
        lines = [f"{self.status.job}: {self.status}"]
        cause = self.cause
        if cause is None:
            return "\n".join([*lines, *([f"  {self.status.message}"] if self.status.message else [])])
        lines += ["", "Why", f"  {cause.code}: {cause.summary}"]
        where = place_of(self.status)
        lines += [f"  {where}"] if where else []
        lines += [f"  - {evidence}" for evidence in cause.evidence]
        if self.remedies:
            lines += ["", "What to do"]
        for number, (remedy, change) in enumerate(zip(self.remedies, self.by_remedy, strict=True), 1):
            lines += describe(number, remedy, change)
        lines += ["", f"More: {self.documentation}"]
        if len(self.status.findings) > 1:
            lines += ["", "Also seen"]
            lines += [f"  - {finding.code}: {finding.summary}" for finding in self.status.findings[1:]]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Explanation of {self.status.job}: {self.status}>"

    def _repr_html_(self) -> str:
        return status_as_html(self.status, list(map(call_of, self.by_remedy)))


def explain(found: Found) -> Explanation:
    """Return the explanation of a job."""
    status = found.status
    return Explanation(status, [of_remedy(remedy, found.object) for remedy in status.remedies])
