#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients of a control socket that do not behave: clients.py SOCKET silent|greedy|ask|later [COUNT]"""
import os
import socket
import sys
import time


def connect(path):
    # The path may be longer than a socket address allows.
    os.chdir(os.path.dirname(path))
    client = socket.socket(socket.AF_UNIX)
    client.connect(os.path.basename(path))
    return client


def silent(path, count):
    """Connects and sends nothing."""
    held = [connect(path) for _ in range(count)]
    print("holding", flush=True)
    time.sleep(600)
    return held


def greedy(path, count):
    """Sends many requests and reads no answer."""
    clients = [connect(path) for _ in range(count)]
    for client in clients:
        client.setblocking(False)
        try:
            for _ in range(100000):
                client.send(b'{"op":"metrics","protocol":2}\n' * 100)
        except OSError:
            pass
    print("holding", flush=True)
    time.sleep(600)


def ask(path, _):
    """Prints the daemon's first message."""
    client = connect(path)
    client.settimeout(20)
    try:
        client.sendall(b'{"op":"hello","protocol":2}\n')
    except BrokenPipeError:
        pass  # The daemon has refused already, and the client can read the reason.
    print(client.recv(65536).decode())


def later(path, _):
    """Listens at PATH and answers like a daemon of a later protocol."""
    os.chdir(os.path.dirname(path))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.path.basename(path))
    listener.listen(8)
    print("holding", flush=True)
    while True:
        client, _ = listener.accept()
        client.recv(65536)
        client.sendall(b'{"ok":true,"identity":{"protocol":99}}\n')
        client.close()


{"silent": silent, "greedy": greedy, "ask": ask, "later": later}[sys.argv[2]](
    os.path.realpath(os.path.dirname(sys.argv[1])) + "/" + os.path.basename(sys.argv[1]),
    int(sys.argv[3]) if len(sys.argv) > 3 else 1)
