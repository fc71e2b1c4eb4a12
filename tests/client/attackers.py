# SPDX-License-Identifier: BSD-3-Clause
"""What clients do that want to hurt others: all_attacks(), each function one pass of an attack.

A pass may be refused (RpcError, OSError), and whoever carries it out may be killed in its middle.
The tests of single attacks use the same pieces.
"""
import contextlib
import json
import mmap
import os
import select
import socket
import struct
import time

from attacks import (CLIENTS, F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_FUTURE_WRITE, MIB,
                     connect, jsonrpc, memfd)

HOLD_S = 0.1
OPEN = jsonrpc.request(1, "client_open", {"abi": 1}).encode() + b"\n"
LONG_LINE = b"[" + b"[]," * 349000 + b"[]]\n"
MANY_VALUES = b"[" + b"[]," * 20000 + b"[]]\n"
DEEP = b"[" * 2040 + b"]" * 2040 + b"\n"
# What a client may not put on the wire: attributes, and what the refusal names.
WIRE = {"vlan": ({"vlan": 666}, "666"),
        "vlan_priority": ({"vlan": 20, "vlan_priority": 7}, "7"),
        "traffic_class": ({"traffic_class": 184}, "184"),
        "dest_mac": ({"dest_mac": "02:de:ad:be:ef:01"}, "02:de:ad:be:ef:01")}


# ---- pieces -------------------------------------------------------------------------------------

def opened(path=CLIENTS):
    c = jsonrpc.Connection(path)
    try:
        c.me = c.call("client_open", abi=1, name="attacker")
    except BaseException:
        c.close()
        raise
    return c


def listener(backlog=1):
    """Nobody takes what is sent to it."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.bind(("127.0.0.1", 0))
    s.listen(backlog)
    return s


def lingering(address):
    """A TCP socket whose close() waits for a minute."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 60))
    s.settimeout(5)
    s.connect(address)
    s.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            s.send(b"x" * 65536)
    return s


def ghost():
    """Its socket's other end is in the queue of the one that is to read it. The caller exits."""
    c = opened()
    c.call("client_pd_create")
    socket.send_fds(c.sock, [b'{"jsonrpc":'], [c.sock.fileno()])


def heir():
    """A child that keeps the connection; the caller exits. It returns in the child."""
    c = opened()
    if os.fork() != 0:
        os._exit(0)
    return c


def flood():
    """Requests with descriptors until nothing more fits. The caller exits."""
    c = opened()
    line = jsonrpc.request(1, "client_pd_create").encode() + b"\n"
    c.sock.setblocking(False)
    with contextlib.suppress(OSError):
        while True:
            socket.send_fds(c.sock, [line * 50], [c.sock.fileno()])


def batches(c, seconds):
    """64 requests a line, line after line."""
    one = {"jsonrpc": "2.0", "id": 1, "method": "client_cq_create", "params": {"cqe": 64}}
    two = {"jsonrpc": "2.0", "id": 2, "method": "client_cq_destroy", "params": {"handle": 1}}
    c.sock.setblocking(False)
    line = json.dumps([one, two] * 32).encode() + b"\n"
    end = time.monotonic() + seconds
    buf = b""
    while time.monotonic() < end:
        r, w, _ = select.select([c.sock], [c.sock], [], 0.1)
        if w:
            buf = buf or line
            with contextlib.suppress(BlockingIOError):
                buf = buf[c.sock.send(buf):]
        if r:
            c.sock.recv(1 << 16)


def make_qp(c, again=False, **more):
    """With a PD and a CQ of its own, or those of the first one."""
    pd = 1 if again else c.call("client_pd_create")["handle"]
    cq = 1 if again else c.call("client_cq_create", cqe=16)["handle"]
    return c.call("client_qp_create", **dict({
        "pd": pd, "send_cq": cq, "recv_cq": cq, "qp_type": "RC", "max_send_wr": 8,
        "max_recv_wr": 8, "max_send_sge": 1, "max_recv_sge": 1, "max_inline_data": 0}, **more))


def make_mr(c, pd, size=4096, fd=None):
    """One page of a memfd. What was made here is closed again."""
    mine = memfd(size) if fd is None else fd
    try:
        return c.call_with("client_mr_register", {"pd": pd, "length": 4096, "addr": 0x10000,
                                                  "access": 15}, [mine])
    finally:
        if fd is None:
            os.close(mine)


def qp_in_init(c, port):
    number = make_qp(c)["qp_num"]
    c.call("client_qp_modify", qp_num=number, qp_state="INIT", pkey=0xffff, port=port,
           qp_access_flags=[])
    return number


def to_rtr(c, number, **ah):
    c.call("client_qp_modify", qp_num=number, qp_state="RTR", path_mtu=1024, dest_qp_num=5,
           rq_psn=0, max_dest_rd_atomic=1, min_rnr_timer=12,
           ah_attr=dict({"dest_ip": "10.77.0.9"}, **ah))


# ---- attacks ------------------------------------------------------------------------------------

def in_child(what):
    """Run it in a process of its own that exits at once and closes nothing."""
    pid = os.fork()
    if pid == 0:
        try:
            what()
        finally:            # it must not go on with what its parent does
            os._exit(0)
    os.waitpid(pid, 0)


def linger(address):
    """With half a line, with a request, and in the queue behind one that is being closed."""
    def attack():
        with connect() as s:
            s.sendall(OPEN)
            s.recv(1 << 16)
            for text in (b'{"jsonrpc":"2.0","id":2,"method":"client_ports"}\n', b"{", b"x", b"x"):
                tcp = lingering(address)
                socket.send_fds(s, [text], [tcp.fileno()])
                tcp.close()
            time.sleep(HOLD_S)
    return attack


def ghosts():
    for _ in range(3):
        in_child(ghost)
    time.sleep(HOLD_S / 4)


def heirs():
    def until_killed():
        c = heir()
        while c:
            time.sleep(60)
    in_child(until_killed)
    time.sleep(HOLD_S)


def floods():
    in_child(flood)


def half_lines():
    with contextlib.ExitStack() as all_:
        for _ in range(4):
            s = all_.enter_context(connect())
            s.sendall(b'{"jsonrpc":"2.0"')
        time.sleep(HOLD_S)


def sparse_and_pipelined():
    """Of holes, and of memory that is there, one request behind the other."""
    with opened() as c, contextlib.ExitStack() as mine:
        pd = c.call("client_pd_create")["handle"]
        fds = [memfd(960 * MIB, filled=False), memfd(8 * MIB)]
        for fd in fds:
            mine.callback(os.close, fd)
        params = {"pd": pd, "length": 4096, "addr": 0, "access": 1}
        for i in range(8):
            line = jsonrpc.request(i, "client_mr_register", params).encode() + b"\n"
            socket.send_fds(c.sock, [line], [fds[i % 2]])
        for i in range(8):
            c.line()


def unsealable():
    with opened() as c, contextlib.ExitStack() as mine:
        pd = c.call("client_pd_create")["handle"]
        for seals in (F_SEAL_SHRINK | F_SEAL_SEAL, F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE, 0):
            fd = memfd(MIB, seals=seals)
            mine.callback(os.close, fd)
            with contextlib.suppress(jsonrpc.RpcError):
                make_mr(c, pd, fd=fd)
        r, w = os.pipe()
        mine.callback(os.close, r)
        mine.callback(os.close, w)
        with contextlib.suppress(jsonrpc.RpcError):
            make_mr(c, pd, fd=r)


def punch():
    """Before, while and after it becomes a region."""
    fd = memfd(4 * MIB)
    with opened() as c, mmap.mmap(fd, 4 * MIB) as m:
        pd = c.call("client_pd_create")["handle"]
        c.send("client_mr_register", {"pd": pd, "length": 4096, "addr": 0, "access": 1}, [fd])
        with contextlib.suppress(PermissionError):
            while True:
                m.madvise(mmap.MADV_REMOVE)
                m[0] = 1
                if select.select([c.sock], [], [], 0)[0]:
                    break
        c.line()
        with contextlib.suppress(PermissionError):
            m.madvise(mmap.MADV_REMOVE)
    os.close(fd)


def lay(c, files, pages, at=0, piece=(0, 4096)):
    """Files of one page each, from page `at` on, of memory of so many: client_memory "any"."""
    fds = [memfd(4096, seals=0) for _ in range(files)]
    try:
        return c.call_with("client_memory_lay", {
            "length": pages * 4096, "offset": at * 4096,
            "pieces": [{"offset": piece[0], "length": piece[1]}] * files}, fds)
    finally:
        for fd in fds:
            os.close(fd)


def laid():
    """Taken as a region, refused as one, begun anew, and left where it is."""
    with opened() as c:
        pd = c.call("client_pd_create")["handle"]
        region = {"pd": pd, "length": 24 * 4096, "addr": 0x10000, "access": 15, "laid": True}
        for more in ({}, {"length": 1 << 30}, {"pd": 99}, {"access": 1 << 14}):
            for at in (0, 8, 16):
                with contextlib.suppress(jsonrpc.RpcError):
                    lay(c, 8, 24, at)
            with contextlib.suppress(jsonrpc.RpcError):
                c.call("client_mr_register", **dict(region, **more))
        with contextlib.suppress(jsonrpc.RpcError):
            lay(c, 8, 24)


def pieces():
    """A region of several, moved to others, and to a part of one."""
    with opened() as c, contextlib.ExitStack() as mine:
        pd = c.call("client_pd_create")["handle"]
        fds = [memfd(8192, seals=seals) for seals in (F_SEAL_SHRINK, 0, F_SEAL_SHRINK)]
        for fd in fds:
            mine.callback(os.close, fd)
        region = {"pd": pd, "length": 3 * 4096, "addr": 0x10000, "access": 15,
                  "pieces": [{"offset": 4096, "length": 4096}] * 3}
        with contextlib.suppress(jsonrpc.RpcError):
            handle = c.call_with("client_mr_register", region, fds)["handle"]
            c.call_with("client_mr_rereg", dict(region, handle=handle, memory=True), fds[::-1])
            c.call_with("client_mr_rereg", dict(
                region, handle=handle, memory=True, length=4096, pieces=[]), fds[:1])
            c.call("client_mr_deregister", handle=handle)


def many_values():
    with contextlib.ExitStack() as all_:
        conns = [all_.enter_context(connect()) for _ in range(4)]
        for s in conns:
            for line in (MANY_VALUES, DEEP, LONG_LINE):
                with contextlib.suppress(OSError):
                    s.sendall(line)
        for s in conns:
            with contextlib.suppress(OSError):
                s.recv(65536)


def pipelines():
    with opened() as c:
        batches(c, HOLD_S)


def kept_memfds():
    """The client keeps them and comes again."""
    with contextlib.ExitStack() as mine:
        for _ in range(3):
            with opened() as c:
                pd = c.call("client_pd_create")["handle"]
                fd = memfd(8 * MIB)
                mine.callback(os.close, fd)
                make_mr(c, pd, fd=fd)


def until_refused(make):
    """It holds what it got."""
    def attack():
        with opened() as c:
            try:
                pd = c.call("client_pd_create")["handle"]
                c.call("client_cq_create", cqe=16)
                while True:
                    make(c, pd)
            except jsonrpc.RpcError:
                time.sleep(HOLD_S)
    return attack


def connections(first):
    """As many as there can be; they ask for nothing, or become clients."""
    def attack():
        with contextlib.ExitStack() as all_:
            for _ in range(80):
                s = all_.enter_context(connect())
                if first:
                    s.sendall(first)
                    if b"result" not in s.recv(65536):
                        break
            time.sleep(HOLD_S)
    return attack


def wire():
    with opened() as c:
        for ah, _ in WIRE.values():
            number = qp_in_init(c, "left")
            with contextlib.suppress(jsonrpc.RpcError):
                to_rtr(c, number, **ah)
                raise AssertionError("allowed: %r" % ah)


def all_attacks(address):
    """Each with its name; `address` is that of a listener() that outlives them."""
    return {
        "linger": linger(address), "ghosts": ghosts, "heirs": heirs, "floods": floods,
        "half lines": half_lines, "sparse": sparse_and_pipelined, "unsealable": unsealable,
        "punch": punch, "laid": laid, "pieces": pieces, "many values": many_values,
        "pipelines": pipelines, "kept memfds": kept_memfds,
        "regions": until_refused(make_mr),
        "QPs": until_refused(lambda c, pd: make_qp(c, True)),
        "deep QPs": until_refused(
            lambda c, pd: make_qp(c, True, max_send_wr=65536, max_send_sge=16)),
        "channels": until_refused(lambda c, pd: c.call("client_channel_create")),
        "idle connections": connections(None), "clients": connections(OPEN), "wire": wire}
