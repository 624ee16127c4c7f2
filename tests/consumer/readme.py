#!/usr/bin/env python3
"""readme.py extract README FOLDER: writes the C++ blocks of README, as they stand, to FOLDER/example1.cc and so on.
readme.py squares PROGRAM: runs the channel example and looks at its output.
readme.py serve PROGRAM: runs the server example and talks to it as good and bad clients do."""

import ctypes
import fcntl
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

ADDRESS = ("127.0.0.1", 8080)
PATIENCE = 60  # seconds


def extract(readme, folder):
    blocks = re.findall(r"^```cpp\n(.*?)^```$", Path(readme).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4, f"{len(blocks)} C++ examples; this test knows four"
    for number, code in enumerate(blocks, 1):
        Path(folder, f"example{number}.cc").write_text(code, encoding="utf-8")


def squares(program):
    lines = subprocess.run([program], check=True, capture_output=True, text=True, timeout=PATIENCE).stdout.split()
    values = [int(line) for line in lines if line != "slow"]  # which takes the place of a value
    assert len(lines) == 100, lines
    assert len(set(values)) == len(values) and set(values) <= {i * i for i in range(100)}, lines


def enter_own_network():
    """The example's port may be taken on this machine. Without the right to do this, it has to be free."""
    user, network = 0x10000000, 0x40000000  # CLONE_NEWUSER, CLONE_NEWNET
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(network) != 0 and libc.unshare(user | network) != 0:
        print("no network namespace: using port 8080 of this machine")
        return
    up, set_flags = 0x1, 0x8914  # IFF_UP, SIOCSIFFLAGS
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, set_flags, struct.pack("16sH14s", b"lo", up, b""))


def connect():
    return socket.create_connection(ADDRESS, timeout=PATIENCE)


def connect_first(server):
    end = time.monotonic() + PATIENCE
    while True:
        assert server.poll() is None, f"the server has ended: {server.returncode}"
        try:
            return connect()
        except ConnectionRefusedError:
            assert time.monotonic() < end, "nobody listens"
            time.sleep(0.01)


def echoes(client, data=b"hello"):
    client.sendall(data)
    answer = b""
    while len(answer) < len(data):
        part = client.recv(len(data) - len(answer))
        assert part, "the server has closed the connection"
        answer += part
    assert answer == data


def fill(client):
    """Sends, and reads nothing, until neither side can write any more."""
    client.setblocking(False)
    try:
        while client.send(b"f" * 65536):
            pass
    except BlockingIOError:
        pass


def reset(client):
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def serve(program):
    enter_own_network()
    for end in (signal.SIGTERM, signal.SIGINT):
        with subprocess.Popen([program], stderr=subprocess.PIPE, text=True) as server:
            try:
                steady = connect_first(server)
                echoes(steady)
                for i in range(20):
                    client = connect()
                    if i % 3 == 0:
                        echoes(client)                     # a reset while the server reads,
                    elif i % 3 == 1:
                        fill(client)                       # or while it writes,
                    reset(client)                          # or before it does anything
                    echoes(steady)
                stalled = connect()                        # sends, reads nothing, and stays
                fill(stalled)
                garbage = connect()
                echoes(garbage, os.urandom(50_000))
                echoes(garbage, bytes(range(256)))
                garbage.close()
                echoes(steady)
                assert server.poll() is None
                steady.shutdown(socket.SHUT_WR)
                assert steady.recv(1) == b""
                server.send_signal(end)                    # the stalled one is cut off after its grace
                _, said = server.communicate(timeout=PATIENCE)
            finally:
                server.kill()
            assert server.returncode == 0, f"{end.name}: status {server.returncode}: {said}"
            assert "Connection reset by peer" in said, said
            print(f"{end.name}: ended, {said.count(chr(10))} lines on stderr")


if __name__ == "__main__":
    {"extract": extract, "squares": squares, "serve": serve}[sys.argv[1]](*sys.argv[2:])
