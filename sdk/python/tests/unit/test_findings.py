"""Callbacks and webhooks for findings, with an API server in memory."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from smallapi import SmallAPI

from openshift_ai_sdk.training import Finding, JobBlockedError, JobStatus, MPIJobFailed

GROWING = {
    "code": "MemoryGrowing",
    "severity": "Warning",
    "summary": "The memory of worker 1 grows by 1 GiB per hour.",
    "evidence": ["a line of a log"],
    "pod": "train-worker-1",
    "rank": 1,
}
PULL = {"code": "ImagePullFailed", "severity": "Error", "summary": "The image cannot be pulled."}


@pytest.fixture
def hook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A webhook: its URL, and what was sent to it."""
    sent: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/", sent
    server.shutdown()
    server.server_close()


def make(client: Any, name: str = "train") -> Any:
    return client.create_job(name, container_image="image", command="train.py")


class Changes:
    """Writes the next report of a job as soon as the one before was seen, and notes the calls."""

    def __init__(self, small: SmallAPI, job: Any, reports: list[tuple[str, list[dict[str, Any]]]]) -> None:
        self.small, self.job, self.reports = small, job, reports
        self.calls: list[tuple[str, str, str]] = []

    def write(self) -> None:
        phase, findings = self.reports.pop(0)
        self.small.report(self.job, phase, findings=findings, message=str(len(self.reports)))

    def on_finding(self, status: JobStatus, finding: Finding) -> None:
        self.calls.append((str(status.phase), finding.code, finding.severity.value))


def wait_through(changes: Changes, wait: Any) -> None:
    """Wait while the reports follow each other."""
    changes.write()

    def go_on() -> None:
        changes.write()
        if changes.reports:
            threading.Timer(0.2, go_on).start()

    threading.Timer(0.5, go_on).start()
    wait()


@pytest.mark.parametrize("waiter", ["job", "client", "jobs"])
def test_each_new_finding_is_reported_once(small_client: Any, small: SmallAPI, waiter: str) -> None:
    job = make(small_client)
    later = {**GROWING, "summary": "The memory of worker 2 grows by 2 GiB per hour.", "pod": "train-worker-2"}
    worse = {**GROWING, "severity": "Error"}
    nan = {"code": "LossNotFinite", "severity": "Warning", "summary": "The loss is NaN."}
    changes = Changes(
        small,
        job,
        [
            ("Running", []),
            ("Running", [GROWING]),
            ("Running", [later]),
            ("Running", []),
            ("Running", [GROWING, nan]),
            ("Succeeded", [worse, nan]),
        ],
    )
    options = {"timeout": 20, "on_finding": changes.on_finding}
    waits = {
        "job": lambda: job.wait_for_completion(**options),
        "client": lambda: small_client.wait_for_job("train", **options),
        "jobs": lambda: small_client.wait_for_jobs([job], **options),
    }
    wait_through(changes, waits[waiter])
    assert changes.calls == [
        ("Running", "MemoryGrowing", "Warning"),
        ("Running", "LossNotFinite", "Warning"),
        ("Succeeded", "MemoryGrowing", "Error"),
    ]


def test_the_causes_of_a_failure_and_of_a_blocked_job_are_reported(small_client: Any, small: SmallAPI) -> None:
    told: list[str] = []

    def on_finding(status: JobStatus, finding: Finding) -> None:
        told.append(f"{status.name} {status.phase} {finding.code}")

    failed, blocked = make(small_client, "failed"), make(small_client, "blocked")
    small.report(failed, "Failed", findings=[PULL])
    small.report(blocked, "Initializing", findings=[PULL])
    with pytest.raises(MPIJobFailed):
        failed.wait_for_completion(timeout=20, on_finding=on_finding)
    with pytest.raises(JobBlockedError):
        blocked.wait_for_phase("Running", timeout=20, on_finding=on_finding, raise_if_blocked=True)
    assert told == ["failed Failed ImagePullFailed", "blocked Initializing ImagePullFailed"]


def test_jobs_of_one_call_have_findings_of_their_own(small_client: Any, small: SmallAPI) -> None:
    told: list[str] = []
    jobs = [make(small_client, name) for name in ("one", "two")]
    for job in jobs:
        small.report(job, "Succeeded", findings=[GROWING])
    small_client.wait_for_jobs(jobs, timeout=20, on_finding=lambda status, finding: told.append(status.name))
    assert sorted(told) == ["one", "two"]


def test_a_webhook_gets_new_findings(
    small_client: Any, small: SmallAPI, hook: tuple[str, list[dict[str, Any]]]
) -> None:
    url, sent = hook
    changes = Changes(
        small,
        make(small_client),
        [("Running", []), ("Running", [GROWING]), ("Running", [GROWING]), ("Succeeded", [GROWING])],
    )
    wait_through(changes, lambda: changes.job.wait_for_completion(timeout=20, webhook=url))
    seen = [(each["event"], each["phase"], [finding["code"] for finding in each["newFindings"]]) for each in sent]
    assert seen == [
        ("phase", "Running", []),
        ("finding", "Running", ["MemoryGrowing"]),
        ("phase", "Succeeded", []),
    ]
    assert sent[1]["newFindings"] == [{name: value for name, value in GROWING.items() if name != "evidence"}]
