# SPDX-License-Identifier: BSD-3-Clause
"""Programs of librdmacm for test_rdmacm.py, each with an order of calls that no program has."""
# By ctypes.
CALLS = """
import ctypes, errno, os, socket, struct, sys
cm = ctypes.CDLL("librdmacm.so.1", use_errno=True)
cm.rdma_create_event_channel.restype = ctypes.c_void_p
cm.rdma_get_src_port.restype = ctypes.c_uint16
def good(rc):
    if rc != 0:
        sys.exit("errno %d" % ctypes.get_errno())
def bad(code, rc):
    if rc == 0 or ctypes.get_errno() != code:
        sys.exit("returned %d, errno %d" % (rc, ctypes.get_errno()))
def at(ip, port):
    return struct.pack("=H", socket.AF_INET) + struct.pack("!H4s8x", port, socket.inet_aton(ip))
def new_id():
    id = ctypes.c_void_p()
    good(cm.rdma_create_id(channel, ctypes.byref(id), None, 0x106))
    return id
def next_event():
    event = ctypes.c_void_p()
    good(cm.rdma_get_cm_event(channel, ctypes.byref(event)))
    return event
def option(id, name, on):
    good(cm.rdma_set_option(id, 0, name, ctypes.byref(ctypes.c_int(on)), 4))
channel = ctypes.c_void_p(cm.rdma_create_event_channel())
"""

# Arguments: the peer's address, the id's own and its port, and one that it is bound to before.
# Prints the port that the id has.
PORT_OF_A_CLIENT = CALLS + """
os.environ["TOLD_FD"] = str(ctypes.c_int.from_address(channel.value).value)
id = new_id()
own = at(sys.argv[2], int(sys.argv[3])) if sys.argv[2] else None
if len(sys.argv) > 4:
    good(cm.rdma_bind_addr(id, at(sys.argv[2] or "0.0.0.0", int(sys.argv[4]))))
good(cm.rdma_resolve_addr(id, own, at(sys.argv[1], 7471), 2000))
event = next_event()
print(socket.ntohs(cm.rdma_get_src_port(id)))
good(cm.rdma_ack_cm_event(event))
good(cm.rdma_destroy_id(id))
"""

# Arguments: the server's address, the client's.
BOUND_BESIDE_A_LISTENER = CALLS + """
server, client = sys.argv[1:]
listener = new_id()
good(cm.rdma_bind_addr(listener, at(server, 7471)))
good(cm.rdma_listen(listener, 1))
for ip, said in ((server, errno.EADDRINUSE), ("0.0.0.0", errno.EADDRNOTAVAIL)):
    for reuse in (0, 1):
        id = new_id()
        option(id, 1, reuse)
        bad(said, cm.rdma_bind_addr(id, at(ip, 7471)))
        good(cm.rdma_bind_addr(id, at(ip, 7472)))
        good(cm.rdma_destroy_id(id))
id = new_id()
good(cm.rdma_bind_addr(id, at(client, 7471)))
good(cm.rdma_destroy_id(id))
good(cm.rdma_destroy_id(listener))
id = new_id()
good(cm.rdma_bind_addr(id, at(server, 7471)))
good(cm.rdma_destroy_id(id))
"""

# Arguments: a port's address; that somebody is bound to it.
BOUND_TWICE = CALLS + """
import subprocess
first, second, datagrams = new_id(), new_id(), ctypes.c_void_p()
if len(sys.argv) > 2:
    bad(errno.EADDRINUSE, cm.rdma_bind_addr(first, at(sys.argv[1], 7471)))
    bad(errno.EADDRNOTAVAIL, cm.rdma_bind_addr(first, at("0.0.0.0", 7471)))
    sys.exit(0)
good(cm.rdma_bind_addr(first, at(sys.argv[1], 7471)))
bad(errno.EADDRINUSE, cm.rdma_bind_addr(second, at(sys.argv[1], 7471)))
bad(errno.EADDRNOTAVAIL, cm.rdma_bind_addr(second, at("0.0.0.0", 7471)))
subprocess.run([sys.executable, "-c", sys.orig_argv[2], sys.argv[1], "taken"], check=True)
good(cm.rdma_create_id(channel, ctypes.byref(datagrams), None, 0x111))
good(cm.rdma_bind_addr(datagrams, at(sys.argv[1], 7471)))
other = ctypes.c_void_p(cm.rdma_create_event_channel())
good(cm.rdma_migrate_id(first, other))
bad(errno.EADDRINUSE, cm.rdma_bind_addr(second, at(sys.argv[1], 7471)))
good(cm.rdma_destroy_id(first))
cm.rdma_destroy_event_channel(other)
good(cm.rdma_bind_addr(second, at(sys.argv[1], 7471)))
good(cm.rdma_listen(second, 1))
for id in second, datagrams:
    good(cm.rdma_destroy_id(id))
"""

# Argument: a port's address.
BOUND_TOGETHER = CALLS + """
first, second = new_id(), new_id()
for id in first, second:
    option(id, 1, 1)
    good(cm.rdma_bind_addr(id, at(sys.argv[1], 7471)))
for id in first, second:
    bad(errno.EADDRINUSE, cm.rdma_listen(id, 1))
good(cm.rdma_destroy_id(first))
good(cm.rdma_listen(second, 1))
bad(errno.EINVAL, cm.rdma_set_option(second, 0, 1, ctypes.byref(ctypes.c_int(1)), 4))
first = new_id()
option(first, 1, 1)
bad(errno.EADDRINUSE, cm.rdma_bind_addr(first, at(sys.argv[1], 7471)))
for id in first, second:
    good(cm.rdma_destroy_id(id))
"""

# Arguments: the address of IPv6, the other one.
FAMILIES = CALLS + """
def at6(ip, port):
    return struct.pack("=H", socket.AF_INET6) + struct.pack(
        "!HI16sI", port, 0, socket.inet_pton(socket.AF_INET6, ip), 0)
four, six, both = new_id(), new_id(), new_id()
good(cm.rdma_bind_addr(four, at("0.0.0.0", 7471)))
good(cm.rdma_listen(four, 1))
bad(errno.EADDRNOTAVAIL, cm.rdma_bind_addr(both, at6("::", 7471)))
id = new_id()
good(cm.rdma_resolve_addr(id, None, at6(sys.argv[1], 7471), 2000))
good(cm.rdma_ack_cm_event(next_event()))
good(cm.rdma_resolve_route(id, 2000))
good(cm.rdma_ack_cm_event(next_event()))
init = struct.pack("=4Q7I4x", 0, 0, 0, 0, 8, 8, 1, 1, 0, 2, 1)
good(cm.rdma_create_qp(id, None, ctypes.create_string_buffer(init)))
good(cm.rdma_connect(id, ctypes.create_string_buffer(24)))
event = next_event()
print(*(ctypes.c_int * 2).from_address(event.value + 16))
good(cm.rdma_ack_cm_event(event))
cm.rdma_destroy_qp(id)
good(cm.rdma_destroy_id(id))
option(six, 2, 1)
good(cm.rdma_bind_addr(six, at6("::", 7471)))
good(cm.rdma_listen(six, 1))
id = new_id()
good(cm.rdma_bind_addr(id, at(sys.argv[2], 7472)))
bad(errno.EINVAL, cm.rdma_resolve_addr(id, None, at6(sys.argv[1], 7471), 2000))
good(cm.rdma_resolve_addr(id, None, at(sys.argv[2], 7471), 2000))
good(cm.rdma_ack_cm_event(next_event()))
for id in id, four, six, both:
    good(cm.rdma_destroy_id(id))
"""

# Arguments: the server's address, the client's, the dataplane's socket, where jsonrpc is. The
# client asks, and is silent then. Prints what the server hears.
SILENT_CLIENT = CALLS + """
import time
sys.path.insert(0, sys.argv[4])
import jsonrpc
def with_qp(id):
    init = struct.pack("=4Q7I4x", 0, 0, 0, 0, 8, 8, 1, 1, 0, 2, 1)
    good(cm.rdma_create_qp(id, None, ctypes.create_string_buffer(init)))
listener, bound = new_id(), new_id()
good(cm.rdma_bind_addr(listener, at(sys.argv[1], 7471)))
good(cm.rdma_listen(listener, 1))
good(cm.rdma_bind_addr(bound, at(sys.argv[2], 7472)))
with_qp(bound)
qp = ctypes.c_void_p.from_address(bound.value + 24).value
with jsonrpc.Connection(sys.argv[3]) as silent:
    silent.call("client_open", abi=1, name="silent")
    told = silent.call("client_cm_channel_create")["handle"]
    asks = silent.call("client_cm_resolve", channel=told, dest_ip=sys.argv[1])
    while not asks["known"]:
        asks["known"] = silent.call("client_cm_events", channel=told)
    silent.call("client_cm_connect", handle=asks["handle"], service_port=7471, timeout_ms=100,
                qp_num=ctypes.c_uint32.from_address(qp + 52).value)
    event = next_event()
    server = ctypes.c_void_p(ctypes.c_void_p.from_address(event.value).value)
    good(cm.rdma_ack_cm_event(event))
    with_qp(server)
    good(cm.rdma_accept(server, ctypes.create_string_buffer(24)))
    event = next_event()
    print(*(ctypes.c_int * 2).from_address(event.value + 16))
    good(cm.rdma_ack_cm_event(event))
for id in server, bound:
    cm.rdma_destroy_qp(id)
    good(cm.rdma_destroy_id(id))
good(cm.rdma_destroy_id(listener))
"""

# Argument: the peer's address.
ROUTE_ONCE = CALLS + """
id, param = new_id(), (ctypes.c_char * 64)()
good(cm.rdma_resolve_addr(id, None, at(sys.argv[1], 7471), 2000))
good(cm.rdma_ack_cm_event(next_event()))
bad(errno.EINVAL, cm.rdma_connect(id, param))
good(cm.rdma_resolve_route(id, 0)) # only the newest kernels refuse 0
good(cm.rdma_ack_cm_event(next_event()))
bad(errno.EINVAL, cm.rdma_resolve_route(id, 2000))
good(cm.rdma_destroy_id(id))
"""

# Arguments: the server's address; the timeouts of both ends, if they are set. The client says its
# type of service. Prints what the events of a connection have, at both ends.
TOLD_AT_BOTH_ENDS = CALLS + """
def attribute(id, at):
    attr, init = ctypes.create_string_buffer(144), ctypes.create_string_buffer(64)
    good(ibv.ibv_query_qp(ctypes.c_void_p.from_address(id.value + 24), attr, 0x1fffff, init))
    return attr[at][0]
def with_timeout(id, timeout):
    good(cm.rdma_set_option(id, 0, 3, ctypes.byref(ctypes.c_uint8(timeout)), 1))
def told(kind, at):
    event = next_event()
    if ctypes.c_int.from_address(event.value + 16).value != kind:
        sys.exit("event %d" % ctypes.c_int.from_address(event.value + 16).value)
    data = ctypes.c_void_p.from_address(event.value + 24).value
    length, *numbers = ctypes.string_at(event.value + 32, 4)
    print(at, ctypes.string_at(data, 5) if data else data, length, *numbers)
    id = ctypes.c_void_p.from_address(event.value).value
    good(cm.rdma_ack_cm_event(event))
    return ctypes.c_void_p(id)
def step(rc, kind, at):
    good(rc)
    return told(kind, at)
def with_qp(id):
    init = struct.pack("=4Q7I4x", 0, 0, 0, 0, 8, 8, 1, 1, 0, 2, 1)
    good(cm.rdma_create_qp(id, None, ctypes.create_string_buffer(init)))
def param(text, resources, depth, flow=0):
    said = ctypes.create_string_buffer(text)
    kept.append(said)
    return struct.pack("=Q8BI4x", ctypes.addressof(said), len(text), resources, depth, flow, 7, 7,
                       0, 0, 0)
ibv, kept = ctypes.CDLL("libibverbs.so.1"), []
address = at(sys.argv[1], 7471)
listener, client = new_id(), new_id()
good(cm.rdma_bind_addr(listener, address))
good(cm.rdma_listen(listener, 1))
good(cm.rdma_resolve_addr(client, None, address, 2000))
good(cm.rdma_ack_cm_event(next_event()))
good(cm.rdma_set_option(client, 0, 0, ctypes.byref(ctypes.c_uint8(104)), 1))
good(cm.rdma_resolve_route(client, 2000))
good(cm.rdma_ack_cm_event(next_event()))
with_qp(client)
if len(sys.argv) > 2:
    with_timeout(client, int(sys.argv[2]))
server = step(cm.rdma_connect(client, param(b"hello", 3, 5, 1)), 4, "request")
with_qp(server)
if len(sys.argv) > 3:
    with_timeout(server, int(sys.argv[3]))
good(cm.rdma_accept(server, param(b"there", 4, 2)))
told(9, "established")
told(9, "established")
for name, at in ("timeouts", 130), ("classes", 78):
    print(name, attribute(client, at), attribute(server, at))
good(cm.rdma_disconnect(client))
told(10, "disconnected")
good(cm.rdma_disconnect(server))
told(10, "disconnected")
for id in client, server:
    cm.rdma_destroy_qp(id)
    good(cm.rdma_destroy_id(id))
good(cm.rdma_destroy_id(listener))
"""

# Argument: the server's address. Prints the reasons that a client hears.
REJECTED = CALLS + """
for reject in cm.rdma_reject, cm.rdma_reject_ece:
    listener, client = new_id(), new_id()
    good(cm.rdma_bind_addr(listener, at(sys.argv[1], 7471)))
    good(cm.rdma_listen(listener, 1))
    good(cm.rdma_resolve_addr(client, None, at(sys.argv[1], 7471), 2000))
    good(cm.rdma_ack_cm_event(next_event()))
    good(cm.rdma_resolve_route(client, 2000))
    good(cm.rdma_ack_cm_event(next_event()))
    init = struct.pack("=4Q7I4x", 0, 0, 0, 0, 8, 8, 1, 1, 0, 2, 1)
    good(cm.rdma_create_qp(client, None, ctypes.create_string_buffer(init)))
    good(cm.rdma_connect(client, ctypes.create_string_buffer(24)))
    event = next_event()
    server = ctypes.c_void_p(ctypes.c_void_p.from_address(event.value).value)
    good(cm.rdma_ack_cm_event(event))
    good(reject(server, None, 0))
    event = next_event()
    print(ctypes.c_int.from_address(event.value + 20).value)
    good(cm.rdma_ack_cm_event(event))
    cm.rdma_destroy_qp(client)
    for id in server, client, listener:
        good(cm.rdma_destroy_id(id))
"""

# An int is not one of the bytes that TOS and ACK_TIMEOUT are, and datagrams have no timeout.
OPTIONS = CALLS + """
bad(errno.EINVAL, cm.rdma_create_id(channel, ctypes.byref(ctypes.c_void_p()), None, 0x999))
id = new_id()
for level, name in ((0, 99), (1, 9), (7, 0)):
    bad(errno.ENOSYS, cm.rdma_set_option(id, level, name, ctypes.byref(ctypes.c_int(1)), 4))
bad(errno.EINVAL, cm.rdma_notify(id, 5))
good(cm.rdma_destroy_id(id))
for option in (0, 3):
    id = new_id()
    bad(errno.EINVAL, cm.rdma_set_option(id, 0, option, ctypes.byref(ctypes.c_int(8)), 4))
    good(cm.rdma_set_option(id, 0, option, ctypes.byref(ctypes.c_uint8(8)), 1))
    good(cm.rdma_destroy_id(id))
id = ctypes.c_void_p()
good(cm.rdma_create_id(channel, ctypes.byref(id), None, 0x111))
bad(errno.EINVAL, cm.rdma_set_option(id, 0, 3, ctypes.byref(ctypes.c_uint8(8)), 1))
good(cm.rdma_set_option(id, 0, 0, ctypes.byref(ctypes.c_uint8(8)), 1))
good(cm.rdma_destroy_id(id))
"""

# A channel, and one more after the dataplane's end: prints its errno.
A_CHANNEL_LATER = CALLS + """
import contextlib
import signal
assert channel
with socket.socket(socket.AF_UNIX) as s:
    s.connect(os.environ["ROCELANE_SOCKET"])
    pid, _, _ = struct.unpack("3i", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ConnectionResetError):     # as it is not accepted yet
        s.recv(1)
while cm.rdma_create_event_channel():
    pass
print(ctypes.get_errno())
"""
