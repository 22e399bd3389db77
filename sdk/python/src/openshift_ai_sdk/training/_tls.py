"""Tells which failures of a secure connection last, and what to do about them."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

from openshift_ai_sdk.training.errors import TLSError

# Codes of OpenSSL's verification (X509_V_ERR_*).
NOT_IN_FORCE = (9, 10)
WRONG_NAME = (62, 64)

NO_TLS = {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"}
OWN_REFUSED = ("UNKNOWN_CA", "BAD_CERTIFICATE", "UNSUPPORTED_CERTIFICATE", "CERTIFICATE_")
UNREADABLE = {"PEM_LIB", "NO_START_LINE", "NO_CERTIFICATE_OR_CRL_FOUND", "KEY_VALUES_MISMATCH", "BAD_BASE64_DECODE"}


def lasting(error: BaseException, host: str) -> TLSError | None:
    """Return the error to raise at once if a connection fails because of certificates or for want of TLS.

    A failure that may pass, such as a handshake that a restart of the server has cut, returns None.
    """
    for each in wrapped(error):
        # aiohttp's error is of this class, too, but has no details; it wraps the one that has.
        if isinstance(each, ssl.SSLCertVerificationError) and hasattr(each, "verify_message"):
            return TLSError(untrusted(each, host))
        if isinstance(each, ssl.SSLError):
            reason = (getattr(each, "reason", None) or "").upper().replace(" ", "_")
            if reason in NO_TLS:
                return TLSError(
                    f"the cluster at {host} does not use TLS ({reason}): check the port and the scheme (https or "
                    "http) of the server in your kubeconfig, and the proxy if there is one"
                )
            if "ALERT" in reason and any(part in reason for part in OWN_REFUSED):
                return TLSError(
                    f"the cluster at {host} rejects your client certificate ({reason}): it has expired or is another "
                    "cluster's; log in again, for example with oc login"
                )
            if reason in UNREADABLE:
                return TLSError(unreadable(reason, host))
        if isinstance(each, FileNotFoundError | IsADirectoryError):
            return TLSError(unreadable(str(each), host))
    return None


def unreadable(problem: str, host: str) -> str:
    """Return what to do about files with certificates that cannot be read."""
    return (
        f"the certificates for the cluster at {host} cannot be read ({problem}): check certificate-authority, "
        "client-certificate and client-key in your kubeconfig, or log in again"
    )


def untrusted(error: ssl.SSLCertVerificationError, host: str) -> str:
    """Return what is wrong with the certificate of a cluster, and what to do."""
    problem = f"the certificate of the cluster at {host} is not accepted: {error.verify_message}"
    if error.verify_code in NOT_IN_FORCE:
        return f"{problem}; check the clock of this machine, and ask an administrator of the cluster to renew it"
    if error.verify_code in WRONG_NAME:
        return f"{problem}; use the name that the certificate is for, as server or tls-server-name in your kubeconfig"
    return (
        f"{problem}; certificate-authority in your kubeconfig must be that of this cluster: log in again, for example "
        "with oc login --certificate-authority=FILE"
    )


def wrapped(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and all errors that it wraps; libraries keep them in different attributes."""
    pending, seen = [error], set()
    while pending:
        each = pending.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        inner = [each.__cause__, each.__context__, *each.args]
        inner += [getattr(each, name, None) for name in ("reason", "os_error", "certificate_error")]
        pending += [item for item in inner if isinstance(item, BaseException)]
