# SPDX-License-Identifier: BSD-3-Clause
"""A queue pair whose application was killed: one command tells what became of it.

Run by run.py; the socket's path is the first argument. The application is another process: this
file again, with "app" as its second argument.
"""
import json
import os
import signal
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
CTL = os.environ.get("ROCELANECTL")
SOCKET = sys.argv.pop(1)
LEFT, RIGHT = "10.77.0.1", "10.77.0.2"
STEPS = (("INIT", ("port", "pkey", "qp_access_flags")),
         ("RTR", ("ah_attr", "path_mtu", "dest_qp_num", "rq_psn", "max_dest_rd_atomic",
                  "min_rnr_timer")),
         ("RTS", ("sq_psn", "timeout", "retry_cnt", "rnr_retry", "max_rd_atomic")))


def attributes(port, dest_ip, dest_qp_num):
    return {"port": port, "pkey": "0xffff", "qp_access_flags": ["REMOTE_WRITE"],
            "ah_attr": {"dest_ip": dest_ip}, "path_mtu": 1024, "dest_qp_num": dest_qp_num,
            "rq_psn": 0, "sq_psn": 0, "max_dest_rd_atomic": 1, "min_rnr_timer": 12, "timeout": 14,
            "retry_cnt": 7, "rnr_retry": 7, "max_rd_atomic": 1}


def walk(call, qp_num, attrs):
    for state, keys in STEPS:
        call(dict({"qp_num": qp_num, "qp_state": state}, **{k: attrs[k] for k in keys}))


def connection():
    sys.argv.insert(1, SOCKET)
    sys.path.insert(0, HERE)
    from test_isolation import Connection
    return Connection(SOCKET)


def application(peer):
    """A QP on "right" that peer may write to, if it had a key."""
    c = connection()
    c.call("client_open", {"abi": 1, "name": "victim"})
    pd = c.call("client_pd_create")["handle"]
    cq = c.call("client_cq_create", {"cqe": 16})["handle"]
    qp = c.call("client_qp_create", {
        "pd": pd, "send_cq": cq, "recv_cq": cq, "qp_type": "RC", "max_send_wr": 8,
        "max_recv_wr": 8, "max_send_sge": 1, "max_recv_sge": 1, "max_inline_data": 0})["qp_num"]
    walk(lambda p: c.call("client_qp_modify", p), qp, attributes("right", LEFT, peer))
    print(qp, flush=True)
    time.sleep(600)


class Killed(unittest.TestCase):

    def setUp(self):
        self.c = connection()
        self.addCleanup(self.c.close)

    def until(self, what, ok):
        end = time.monotonic() + 60
        while True:
            got = what()
            if ok(got):
                return got
            self.assertLess(time.monotonic(), end, got)
            time.sleep(0.01)

    def failed_application(self):
        """Its process, which still runs, and the number of its QP, which is in ERR."""
        c = self.c
        c.call("pd_create", {"name": "pd"})
        c.call("cq_create", {"name": "cq"})
        c.call("mr_register", {"name": "mr", "pd": "pd", "length": 4096,
                               "access": ["LOCAL_WRITE"]})
        own = c.call("qp_create", {"qp_type": "RC", "pd": "pd", "send_cq": "cq", "recv_cq": "cq",
                                   "port": "left"})["qp_num"]
        app = subprocess.Popen([sys.executable, __file__, SOCKET, "app", str(own)],
                               stdout=subprocess.PIPE)
        self.addCleanup(app.stdout.close)
        qp = int(app.stdout.readline())
        walk(lambda p: c.call("qp_modify", p), own, attributes("left", RIGHT, qp))
        c.call("trace_start", {"qp_num": qp})
        c.call("post_send", {"qp_num": own, "wrs": [{
            "wr_id": 7, "opcode": "RDMA_WRITE", "send_flags": ["SIGNALED"], "rkey": "0x12345678",
            "sg_list": [{"mr": "mr", "offset": 0, "length": 64}], "remote_addr": "0x10000"}]})
        self.until(lambda: c.call("poll_cq", {"cq": "cq", "max": 1}), bool)
        return app, qp

    def test_killed(self):
        app, qp = self.failed_application()
        os.kill(app.pid, signal.SIGKILL)
        app.wait()
        self.until(lambda: self.c.call("client_list"), lambda v: v == [])
        story = self.c.call("qp_post_mortem", {"qp_num": qp})[0]
        self.assertEqual(("client", app.pid, os.getuid(), "victim"),
                         tuple(story["owner"][k] for k in ("kind", "pid", "uid", "name")))
        self.assertEqual("gone with its owner", story["end"])
        self.assertGreater(story["ended_ns"], story["time_ns"])
        error = story["error"]
        self.assertIn("RESP-NAK-RAE-01", error["rule"])
        self.assertEqual((LEFT, "QP_ACCESS_ERR"), (error["peer"]["ip"], error["event"]))
        self.assertIn("NAK 0x62", error["answer"]["text"])
        self.assertIn("rx", [t["kind"] for t in story["trace"]])
        # and for people
        run = subprocess.run([CTL, "-s", SOCKET, "qp", "post-mortem", str(qp)],
                             stdout=subprocess.PIPE, check=True)
        text = run.stdout.decode()
        for part in (f"QP {qp} of client ", f"pid {app.pid}", "victim) failed at 20",
                     "RC_WRITE_ONLY PSN 0: ", "answered      NAK 0x62", "event         QP_ACCESS",
                     "since then    gone with its owner at 20", "with it and behind it:"):
            self.assertIn(part, text)
        run = subprocess.run([CTL, "-s", SOCKET, "qp", "post-mortem"], stdout=subprocess.PIPE,
                             check=True)
        rows = run.stdout.decode().splitlines()
        self.assertIn(str(qp), rows[2].split() + rows[1].split())
        self.assertEqual(3, len(rows))      # the head, this one, and the peer's
        run = subprocess.run([CTL, "-s", SOCKET, "-j", "qp", "post-mortem", str(qp)],
                             stdout=subprocess.PIPE, check=True)
        self.assertEqual(story["time_ns"], json.loads(run.stdout)[0]["time_ns"])
        if os.environ.get("SHOW"):
            print(text, file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "app":
        application(int(sys.argv[2]))
    else:
        unittest.main()
