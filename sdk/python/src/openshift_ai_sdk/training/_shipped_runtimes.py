"""The runtimes that the project ships: a cluster need not have them to create others from them."""

from __future__ import annotations

import json
import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from openshift_ai_sdk.training._driver import Json
from openshift_ai_sdk.training._similar import nearest
from openshift_ai_sdk.training.errors import JobNotFoundError

# What the reference of a shipped runtime begins with.
SHIPPED = "shipped/"
FILE = Path(__file__).parent / "_generated" / "shipped_runtimes.json"
# The images of the project, as hack/release.sh replaces their tags.
OWN_IMAGE = re.compile(r"(quay\.io/opendatahub/(?:mpijob-agent|mpi-sample-[a-z0-9]+)):latest")
# A release, as Python writes its version: 0.2.0 or 0.2.0rc1.
RELEASE = re.compile(r"(\d+\.\d+\.\d+)(?:(a|b|rc)(\d+))?")
STAGES = {"a": "alpha", "b": "beta", "rc": "rc"}


def shipped(name: str) -> Json:
    """Return the shipped runtime of a name, with the images of this version.

    Raises:
        JobNotFoundError: There is none of that name.
    """
    runtimes: dict[str, Json] = json.loads(with_release(FILE.read_text(), release()))
    if name not in runtimes:
        there = f"shipped are {', '.join(runtimes)}"
        raise JobNotFoundError(f"shipped runtime {name!r} does not exist{nearest(name, runtimes)}; {there}")
    return runtimes[name]


def shipped_for(implementation: str) -> str:
    """Return the name of the shipped runtime of an MPI implementation."""
    return f"mpi-{implementation.lower()}"


def with_release(text: str, tag: str | None) -> str:
    """Return manifests with the images of a release."""
    return OWN_IMAGE.sub(rf"\1:{tag}", text) if tag else text


def release() -> str | None:
    """Return the release of this package as images are tagged; None for a tree of source code, which is none."""
    try:
        installed = distribution("openshift-ai-sdk")
    except PackageNotFoundError:
        return None
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    if "dir_info" in origin or "vcs_info" in origin:
        return None
    return tag_of(installed.version)


def tag_of(version: str) -> str | None:
    """Return the tag of a release by its version in Python; None if it is no release.

    Example:
        >>> tag_of("0.2.0"), tag_of("0.2.0rc1"), tag_of("0.2.0.dev3")
        ('v0.2.0', 'v0.2.0-rc.1', None)
    """
    found = RELEASE.fullmatch(version)
    if found is None:
        return None
    return f"v{found[1]}" + (f"-{STAGES[found[2]]}.{found[3]}" if found[2] else "")
