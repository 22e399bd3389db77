"""Errors of the API server as errors of this package: what failed, and what to do next."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from openshift_ai_sdk.training._driver import Json, Request
from openshift_ai_sdk.training.errors import (
    APIError,
    JobExistsError,
    JobNotFoundError,
    JobRefusedError,
    NamespaceNotFoundError,
    NotLoggedInError,
    NotSupportedError,
    PermissionDeniedError,
    Problem,
    TLSError,
    TrainingError,
)


def status_in(body: bytes) -> Json:
    """Return the Status object of an error response; for a path that is not served, the response is plain text."""
    try:
        status = json.loads(body)
    except ValueError:
        return {}
    return status if isinstance(status, dict) else {}


# How the API server reports what a ValidatingAdmissionPolicy refuses.
POLICY = re.compile(r"ValidatingAdmissionPolicy '(?P<name>[^']+)' with binding '[^']+' denied request: ")
DENIED = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\S+) resource "(?P<resource>[^"]*)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]*)")?'
)
# The roles that allow changes which mpijob-user does not include.
OTHER_ROLES = {
    "pods": "edit",
    "workloads.kueue.x-k8s.io": "kueue-workload-editor-role",
    "trainingruntimes.trainer.kubeflow.org": "admin (or mpijob-admin)",
    # A binding in a namespace does not grant what all namespaces have.
    "clustertrainingruntimes.trainer.kubeflow.org": "cluster-admin (or mpijob-admin in a ClusterRoleBinding)",
}


def error_of(code: int, status: Mapping[str, Any], request: Request, host: str) -> TrainingError:
    """Return the error for an answer of the API server."""
    message = str(status.get("message") or f"{request.method} {request.path} was answered with {code}")
    reason = str(status.get("reason") or "")
    details = status.get("details") or {}
    if code == 401:
        return NotLoggedInError(
            f"the cluster at {host} does not accept your login (401 Unauthorized): it has expired or was revoked; "
            "log in again, for example with oc login"
        )
    if code == 403:
        return forbidden(message)
    if code == 404:
        if not details.get("name"):
            return NotSupportedError(
                f"the cluster does not serve {request.path}: the operator, or the project that owns the kind, "
                "is not installed"
            )
        if details.get("kind") == "namespaces":
            name = details["name"]
            return NamespaceNotFoundError(
                f"the namespace {name!r} does not exist on {host}: name another one, for example with "
                f"TrainingClient(namespace=...), or create it with kubectl create namespace {name}"
            )
        return JobNotFoundError(message)
    if code == 409 and reason == "AlreadyExists":
        get = f"get it with MPIJob.get({details['name']!r})" if details.get("name") else "get it"
        return JobExistsError(f"{message}: take another name, delete that one first, or {get}")
    if code == 400 and not status:
        return TLSError(
            f"the server at {host} rejects {request.method} {request.path} (400): if it is an API server, the address "
            "needs https; check the server in your kubeconfig"
        )
    if code in (400, 422):
        _, strict, unknown = message.partition("strict decoding error: ")
        causes = [
            Problem(str(cause.get("field", "")), reason_of(str(cause.get("message", ""))))
            for cause in details.get("causes") or []
        ]
        if strict:
            return JobRefusedError(f"the job has unknown fields: {unknown}")
        name = details.get("name") or "the job"
        # The API server names them in any order.
        problems = sorted(set(causes), key=lambda problem: (problem.field, problem.message))
        return JobRefusedError(f"{name} is invalid:" if problems else message, problems)
    return APIError(code, reason, message)


def reason_of(message: str) -> str:
    """Return a reason of the API server in one line. What a policy of this project refuses names no policy."""
    text = " ".join(message.split())
    denied = POLICY.match(text)
    if denied is None:
        return text
    reason = text[denied.end() :]
    return reason if denied["name"].startswith("mpijob-") else f"{reason} (ValidatingAdmissionPolicy {denied['name']})"


def forbidden(message: str) -> TrainingError:
    """Return the error for 403: a missing right, or the message of a quota or webhook."""
    found = DENIED.search(message)
    if found is None:
        return JobRefusedError(message)
    if found["user"] == "system:anonymous":
        return NotLoggedInError(
            "the cluster got no credentials from you: log in, for example with oc login, and check that the program "
            "that your kubeconfig names for them works"
        )
    group = found["group"]
    resource = found["resource"] + (f".{group}" if group else "")
    place = f"in the namespace {found['namespace']}" if found["namespace"] else "in the whole cluster"
    reads = found["verb"] in ("get", "list", "watch")
    role = "view (or mpijob-viewer)" if reads else OTHER_ROLES.get(resource, "edit (or mpijob-user)")
    return PermissionDeniedError(
        f"you ({found['user']}) may not {found['verb']} {resource} {place}: ask an administrator of the cluster "
        f"for the role {role}"
    )
