# SPDX-License-Identifier: BSD-3-Clause
"""What operators do while calls fail: all_operations(), each function one pass.

Each call may be refused, and its answer may be lost with the connection. tidy() takes away what is
left, when nothing fails any more.
"""
import contextlib
import itertools
import os

from attacks import SOCKET, jsonrpc

PORT, OTHER = "left", "right"
LISTS = {"qp_list": ("qp_destroy", "qp_num"), "cm_list": ("cm_disconnect", "id"),
         "mw_list": ("mw_dealloc", "name"), "mr_list": ("mr_deregister", "name"),
         "srq_list": ("srq_destroy", "name"), "cq_list": ("cq_destroy", "name"),
         "xrcd_list": ("xrcd_dealloc", "name"), "pd_list": ("pd_dealloc", "name")}
SERVICES = itertools.count(20000)


class Tries:
    """A connection whose calls may be refused: None then."""

    def __init__(self):
        self.c = jsonrpc.Connection(SOCKET, timeout=5)

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.c.close()

    def __call__(self, method, **params):
        try:
            return self.c.call(method, **params)
        except jsonrpc.RpcError:
            return None


def name(kind):
    return "%s-%d" % (kind, os.getpid())


def queue_pair(op, pd, cq, **more):
    made = op("qp_create", **dict({"qp_type": "RC", "pd": pd, "send_cq": cq, "recv_cq": cq,
                                   "port": PORT}, **more))
    return made["qp_num"] if made else None


def objects():
    """One of each, and away again."""
    pd, cq, mr, srq, mw, xrcd = map(name, ("pd", "cq", "mr", "srq", "mw", "xrcd"))
    with Tries() as op:
        op("pd_create", name=pd)
        op("cq_create", name=cq, cqe=64)
        op("mr_register", name=mr, pd=pd, length=1 << 16, access=["LOCAL_WRITE", "MW_BIND"])
        op("mr_fill", name=mr, offset=0, length=1 << 16, seed=7)
        op("mr_rereg", name=mr, access=["REMOTE_READ"])
        op("srq_create", name=srq, pd=pd, max_wr=16)
        op("srq_modify", name=srq, max_wr=64)
        op("mw_alloc", name=mw, pd=pd, type=2)
        op("xrcd_create", name=xrcd)
        number = queue_pair(op, pd, cq, srq=srq, qp_state="RTR", dest_qp_num=99, rq_psn=1,
                            ah_attr={"dest_ip": "10.77.0.2"})
        if number:
            op("qp_modify", qp_num=number, qp_state="RTS", sq_psn=1, timeout=14, retry_cnt=7,
               rnr_retry=7, max_rd_atomic=1)
            op("trace_start", qp_num=number)
            op("post_send", qp_num=number, wrs=[{"opcode": "SEND", "sg_list": [
                {"mr": mr, "offset": 0, "length": 4096}]}])
            op("qp_explain", qp_num=number)
            op("trace_read", qp_num=number)
            op("trace_stop", qp_num=number)
            op("qp_modify", qp_num=number, qp_state="ERR")
            op("qp_post_mortem", qp_num=number)
            op("qp_destroy", qp_num=number)
        op("req_notify", cq=cq)
        op("poll_cq", cq=cq)
        op("mw_dealloc", name=mw)
        op("srq_destroy", name=srq)
        op("xrcd_dealloc", name=xrcd)
        op("mr_deregister", name=mr)
        op("cq_destroy", name=cq)
        op("pd_dealloc", name=pd)


def groups():
    """A datagram QP joins and leaves, of both families."""
    pd, cq = name("pdm"), name("cqm")
    with Tries() as op:
        op("pd_create", name=pd)
        op("cq_create", name=cq, cqe=64)
        number = queue_pair(op, pd, cq, qp_type="UD", qkey=1, qp_state="RTS", sq_psn=0)
        for group in ("239.1.2.3", "239.1.2.4", "ff0e::9"):
            op("mcast_attach", qp_num=number or 1, group=group)
        op("mcast_list")
        op("mcast_detach", qp_num=number or 1, group="239.1.2.3")
        op("qp_destroy", qp_num=number or 1)    # a member still
        op("cq_destroy", name=cq)
        op("pd_dealloc", name=pd)


def neighbours():
    with Tries() as op:
        for last in range(40, 60):
            op("neighbor_add", port=PORT, ipv4="10.77.0.%d" % last, mac="02:00:00:00:00:09")
        op("route_add", port=PORT, to="192.168.0.0/16", via="10.77.0.50")
        op("route_list")
        op("neighbor_list")
        for last in range(40, 60):
            op("neighbor_del", port=PORT, ipv4="10.77.0.%d" % last)
        op("route_del", port=PORT, to="192.168.0.0/16")
        op("neighbor_flush")


def looks():
    """All there is to see."""
    with Tries() as op:
        op("trace_start")
        for method in ("version", "rpc_get_methods", "port_list", "worker_list", "client_list",
                       "client_users", "save_config", "control_load", "worker_load", "latency",
                       "qp_count", "qp_post_mortem", "async_events", "cq_events", "rx_errors",
                       "trace_read", "impair_get", "mcast_list", "cm_events", *LISTS):
            op(method)
        for scope in ("total", "port", "worker"):
            op("stats", scope=scope)
        op("trace_stop")


def bad_wire():
    with Tries() as op:
        op("impair_set", port=OTHER, impair={"seed": 3, "log_size": 1024, "rules": [
            {"action": "drop", "probability": 0.02}, {"action": "delay", "delay_us": 300}]})
        op("impair_log", port=OTHER)
        op("impair_set", port=OTHER, impair=None)


def connections():
    pd, cq, to = name("pdc"), name("cqc"), next(SERVICES) + os.getpid() % 1000
    template = {"qp_type": "RC", "pd": pd, "send_cq": cq, "recv_cq": cq}
    with Tries() as op:
        op("pd_create", name=pd)
        op("cq_create", name=cq, cqe=64)
        op("cm_listen", name=name("l"), port=OTHER, service_port=to, backlog=5, accept="always",
           qp=template)
        asked = op("cm_connect", port=PORT, dest_ip="10.77.0.2", service_port=to, qp=template)
        for one in op("cm_list") or ():
            op("cm_explain", id=one["id"])
        op("cm_events")
        if asked:
            op("cm_disconnect", id=asked["id"])
        op("cm_unlisten", name=name("l"))


def rules():
    """Over clients: what they get, and one that is sent away."""
    with Tries() as op:
        clients = op("client_list") or ()
        for one in clients:
            op("client_set", id=one["client"], weight=3, memory=1 << 25)
        for one in clients[:1]:
            op("client_end", id=one["client"])


def all_operations():
    return [objects, groups, neighbours, looks, bad_wire, connections, rules]


def tidy():
    """@return what is left of objects and neighbours, each list empty."""
    with Tries() as op:
        for _ in range(2):
            for method, (undo, key) in LISTS.items():
                for one in op(method) or ():
                    with contextlib.suppress(jsonrpc.RpcError):
                        op(undo, **{key: one[key] if isinstance(one, dict) else one})
        op("impair_set", port=OTHER, impair=None)
        op("neighbor_flush")
        op("trace_stop")
        return {method: op(method) for method in LISTS if method != "cm_list"}
