"""Links to pages about a job."""

from __future__ import annotations

import pytest

from openshift_ai_sdk.training import JobStatus


@pytest.mark.parametrize(
    ("url", "html"),
    [
        (
            "https://mlflow.example.com/?a=1&b='x'",
            '<a href="https://mlflow.example.com/?a=1&amp;b=&#x27;x&#x27;" target="_blank" '
            'rel="noopener noreferrer">MLflow</a>',
        ),
        ("javascript:alert(1)", "MLflow"),
        (
            'https://x"><b>',
            '<a href="https://x&quot;&gt;&lt;b&gt;" target="_blank" rel="noopener noreferrer">MLflow</a>',
        ),
    ],
)
def test_links_of_a_job_are_shown(url: str, html: str) -> None:
    status = JobStatus.model_validate(
        {
            "kind": "MPIJob",
            "name": "a",
            "namespace": "b",
            "phase": "Running",
            "links": [{"title": "MLflow", "url": url}],
        }
    )
    assert (status.links[0].title, status.links[0].url) == ("MLflow", url)
    assert f">{html}</td>" in status._repr_html_()
