"""Objects of servers other than the API server."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

FETCH = """
import asyncio, sys
from kubernetes import client
from openshift_ai_sdk.training import _driver_asyncio, _driver_blocking
from openshift_ai_sdk.training._credentials import Credentials
from openshift_ai_sdk.training._driver import RefusedError

async def fetch(make):
    driver = make(Credentials(client.Configuration(host="http://127.0.0.1:1")))
    try:
        print((await driver.fetch(sys.argv[1], 1000, 5)).body.decode())
    except RefusedError as error:
        print(error)
    await driver.close()

_driver_blocking.run(fetch(_driver_blocking.BlockingDriver))
asyncio.run(fetch(_driver_asyncio.AsyncDriver))
"""


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"lines")

    def log_message(self, *args: object) -> None:
        pass


@pytest.mark.parametrize("named", [False, True])
def test_the_environment_names_the_authority(tmp_path: Path, named: bool) -> None:
    certificate, key = tmp_path / "ca.crt", tmp_path / "key"
    options = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "2"]
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        key,
        "-out",
        certificate,
        *options,
    ]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"https://localhost:{server.server_address[1]}/part?X-Amz-Signature=5ec2e7"
    found = subprocess.run(
        [sys.executable, "-c", FETCH, url],
        env=os.environ | ({"SSL_CERT_FILE": str(certificate)} if named else {}),
        capture_output=True,
        text=True,
    )
    server.shutdown()
    lines = found.stdout.splitlines()
    assert len(lines) == 2, found.stderr
    for line in lines:
        assert "5ec2e7" not in line
        if named:
            assert line == "lines"
        else:
            assert "is not accepted: self-signed certificate" in line
            assert "SSL_CERT_FILE" in line
