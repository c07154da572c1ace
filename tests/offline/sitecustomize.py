"""No network for the notebooks under test: a Python that finds this file connects to its own machine alone.

notebooks/conftest.py puts this folder on the path of the notebooks' kernels; what they start inherits it.
"""

import socket

_connect, _connect_ex = socket.socket.connect, socket.socket.connect_ex


def _refuse(address) -> None:
    host = address[0] if isinstance(address, tuple) else ""  # the address of a Unix socket is a path
    if host not in ("", "localhost", "::1") and not str(host).startswith("127."):
        raise OSError(f"a notebook under test wanted to connect to {host}: notebooks need no network")


def connect(self, address):
    _refuse(address)
    return _connect(self, address)


def connect_ex(self, address):
    _refuse(address)
    return _connect_ex(self, address)


socket.socket.connect, socket.socket.connect_ex = connect, connect_ex
