"""Credentials that are read again."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from openshift_ai_sdk.training import NotLoggedInError
from openshift_ai_sdk.training._credentials import load


def write(path: Path, server: str, token: str) -> None:
    """Write a kubeconfig as oc login does."""
    config = {
        "current-context": server,
        "clusters": [{"name": server, "cluster": {"server": server}}],
        "users": [{"name": "me", "user": {"token": token}}],
        "contexts": [{"name": server, "context": {"cluster": server, "user": "me", "namespace": "mine"}}],
    }
    path.write_text(yaml.safe_dump(config))


def test_a_new_login_is_used(tmp_path: Path) -> None:
    write(tmp_path / "config", "https://one.example.com:6443", "old")
    credentials = load(tmp_path / "config")
    write(tmp_path / "config", "https://one.example.com:6443/", "new")
    credentials.reload()
    assert credentials.token() == "new"


def test_a_login_at_another_cluster_is_not(tmp_path: Path) -> None:
    write(tmp_path / "config", "https://one.example.com:6443", "old")
    credentials = load(tmp_path / "config")
    write(tmp_path / "config", "https://two.example.com:6443", "new")
    with pytest.raises(NotLoggedInError, match=r"logged in at https://two\.example\.com:6443 now: log in again"):
        credentials.reload()
    assert (credentials.host, credentials.token()) == ("https://one.example.com:6443", "old")
