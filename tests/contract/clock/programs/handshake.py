"""A TLS server and its client, both here; the certificate is valid around the pinned instant only."""

import socket
import ssl
import sys
import threading
import time

from tell import now


def serve(near: socket.socket, folder: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/cert.pem", f"{folder}/key.pem")
    connection, _ = near.accept()
    with context.wrap_socket(connection, server_side=True) as secure:
        secure.sendall(b"hello")


folder = sys.argv[1]
listening = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=serve, args=(listening, folder), daemon=True).start()
context = ssl.create_default_context(cafile=f"{folder}/cert.pem")
with (
    socket.create_connection(listening.getsockname(), timeout=20) as plain,
    context.wrap_socket(plain, server_hostname="localhost") as secure,
):
    assert secure.recv(5) == b"hello"
    found = secure.getpeercert()
assert found
assert ssl.cert_time_to_seconds(str(found["notBefore"])) < time.time()
now(time.time())
