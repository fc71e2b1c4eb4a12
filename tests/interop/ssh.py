#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Instead of the real one: a command for the guest goes to the test, by the socket INTEROP_SSH.

usage: ssh.py [-OPTION...] HOST COMMAND...
"""
import json
import os
import socket
import sys

words = sys.argv[1:]
while words[0].startswith("-"):
    words.pop(0)
with socket.socket(socket.AF_UNIX) as s:
    s.connect(os.environ["INTEROP_SSH"])
    s.sendall(json.dumps(words[1:]).encode() + b"\n")
    with s.makefile("r", encoding="utf-8") as f:
        status, out = json.loads(f.readline())
sys.stdout.write(out)
sys.exit(status)
