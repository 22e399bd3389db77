"""Names where a job is shown outside Python: on the command line and in the dashboard."""

from __future__ import annotations

import os
import shutil
import sys
from urllib.parse import quote

from openshift_ai_sdk.training._cluster import Cluster
from openshift_ai_sdk.training._driver import Request
from openshift_ai_sdk.training._job_ref import JobRef
from openshift_ai_sdk.training._kinds import Resource
from openshift_ai_sdk.training.errors import TrainingError

CONSOLE_LINK = Resource("console.openshift.io/v1", "ConsoleLink", "consolelinks")
# The entry of the dashboard in OpenShift's application menu, whose href is the dashboard's URL.
CONSOLE_LINK_NAME = "mpijob-dashboard"
# Names the dashboard's URL where there is no OpenShift console.
VARIABLE = "MPIJOB_DASHBOARD_URL"
# Names a copy of the documentation site, for clusters without access to the default.
DOCS_VARIABLE = "MPIJOB_DOCS_URL"
# The folder of the documentation's pages in the repository.
DOCS = "https://github.com/opendatahub-io/mpijob/blob/main/docs"
# The longest time that a job's creation waits for the URL, in seconds.
PATIENCE = 5.0


async def dashboard(cluster: Cluster) -> str | None:
    """Return the URL of the dashboard, which is looked up once; None if it is unknown."""
    if url := os.environ.get(VARIABLE):
        return url.rstrip("/")
    if cluster.dashboard is None:
        request = Request("GET", CONSOLE_LINK.path(None, CONSOLE_LINK_NAME))
        try:
            link = await cluster.api.call(request, cluster.api.driver.monotonic() + PATIENCE)
            cluster.dashboard = str(link["spec"]["href"]).rstrip("/")
        except TrainingError:
            cluster.dashboard = ""
    return cluster.dashboard or None


def page(url: str, ref: JobRef) -> str:
    """Return the URL of a job's page in the dashboard."""
    return f"{url}/projects/{quote(ref.namespace)}/{ref.kind.lower()}/{quote(ref.name)}"


def documentation(code: str) -> str:
    """Return the URL of the page that explains the code of a finding."""
    site = os.environ.get(DOCS_VARIABLE, "").rstrip("/")
    page = f"{site}/troubleshooting.html" if site else f"{DOCS}/troubleshooting.md"
    return f"{page}#{code.lower()}"


def command(ref: JobRef) -> str:
    """Return the command that describes a job: with oc, or with kubectl where only that is installed."""
    program = "kubectl" if shutil.which("kubectl") and not shutil.which("oc") else "oc"
    return f"{program} odh mpijob describe {ref.name} -n {ref.namespace}"


def is_interactive() -> bool:
    """Return whether a user reads the output: in a notebook, a Python shell or a terminal."""
    shell = sys.modules.get("IPython")
    if shell is not None and shell.get_ipython() is not None:
        return True
    return hasattr(sys, "ps1") or sys.stdout.isatty()


def announcement(ref: JobRef, url: str | None) -> str:
    """Return the text that is printed when a job was created."""
    lines = [f"{ref} created in {ref.namespace}", f"  {command(ref)}"]
    return "\n".join([*lines, *([f"  {page(url, ref)}"] if url else [])])
