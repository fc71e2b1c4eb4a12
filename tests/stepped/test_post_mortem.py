# SPDX-License-Identifier: BSD-3-Clause
"""qp_post_mortem: what became of queue pairs that failed, when they are gone, too."""
import datetime
import re

import dut
from dut import E, QPN, RKEY, VA, MS, Nak
from roce import NAK_RAE, data

KEPT = 256


def moment(text):
    """A time as people read it: ISO 8601 with its distance from UTC."""
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", text), text
    return datetime.datetime.fromisoformat(text[:-1] + "+00:00")


class Nothing(dut.DutCase):
    ALONE = True                # nothing has failed before

    def test_nothing_has_failed(self):
        """An empty list; of one number the answer says which case it is."""
        self.resp()
        self.rpc("qp_modify", qp_num=QPN, qp_state="ERR")      # no failure
        self.assertEqual([], self.rpc("qp_post_mortem"))
        for qp_num, says in ((QPN, "is there and has not failed"), (18193, "no QP 18193 has")):
            with self.assertRaises(dut.RpcError) as e:
                self.rpc("qp_post_mortem", qp_num=qp_num)
            self.assertIn(says, str(e.exception))


class PostMortem(dut.DutCase):

    def failures(self):
        return self.rpc("qp_post_mortem")

    def fail_one(self, psn=E):
        """A WRITE with a wrong R_Key: RESP-NAK-RAE-01."""
        self.expect(self.feed(self.peer.write_only(psn, data(24), VA, RKEY ^ 1)),
                    Nak(psn, NAK_RAE, 0))

    def destroy(self):
        self.rpc("qp_destroy", qp_num=QPN)
        self.made.remove(("qp_destroy", {"qp_num": QPN}))

    def test_outlives_the_qp(self):
        """The same story while the QP is there and when it is gone; the end is told."""
        self.resp()
        self.rpc("trace_start", qp_num=QPN)
        self.fail_one()
        there = self.rpc("qp_post_mortem", qp_num=QPN)[0]
        explained = self.rpc("qp_explain", qp_num=QPN)
        self.assertEqual(("in ERR", None, 4), (there["end"], there["ended"], there["flushed"]))
        self.dut.run(MS)
        self.destroy()
        with self.assertRaises(dut.RpcError):
            self.rpc("qp_explain", qp_num=QPN)
        gone = self.rpc("qp_post_mortem", qp_num=QPN)[0]
        self.assertEqual("destroyed", gone["end"])
        self.assertEqual(MS, gone["ended_ns"] - gone["time_ns"])
        self.assertEqual(4, gone["flushed"])
        for key, value in explained["error"].items():
            if key != "time":
                self.assertEqual(value, gone["error"][key], key)
        self.assertEqual(explained["summary"], gone["summary"])
        self.assertEqual({"kind": "operator", "text": "the operator"}, gone["owner"])
        self.assertEqual([(t["kind"], t["psn"]) for t in explained["trace"]],
                         [(t["kind"], t["psn"]) for t in gone["trace"]])
        self.assertIn(("rx", E), [(t["kind"], t["psn"]) for t in gone["trace"]])
        self.assertEqual((14, 3, 1024), tuple(gone["attributes"][k] for k in
                                              ("timeout", "retry_cnt", "path_mtu")))
        self.assertEqual({"name": "p0", "link": "up"}, gone["port"])

    def test_reset_and_again(self):
        """Two failures of one number, newest first."""
        self.resp()
        self.fail_one()
        self.rpc("qp_modify", qp_num=QPN, qp_state="RESET")
        self.walk_up("RTS")
        self.feed(self.peer.write_last(E, b"x"))
        two = self.rpc("qp_post_mortem", qp_num=QPN)[:2]
        self.assertEqual(["in ERR", "reset"], [f["end"] for f in two])
        self.assertIn("RESP-NAK-INV-03", two[0]["summary"])
        self.assertIn("RESP-NAK-RAE-01", two[1]["summary"])

    def test_failed_and_not_heard_of(self):
        """Neither is lost whose message waits when its QP is destroyed, or is reset."""
        for way in ("qp_destroy", "qp_modify"):
            self.resp()
            n = self.rpc("qp_post_mortem")
            self.dut.rx(self.peer.write_only(E, data(24), VA, RKEY ^ 1))
            self.dut.command("turn 3")
            if way == "qp_destroy":
                self.destroy()
            else:
                self.rpc("qp_modify", qp_num=QPN, qp_state="RESET")
            now = self.rpc("qp_post_mortem")
            self.assertEqual(min(len(n) + 1, KEPT), len(now))
            self.assertIn("RESP-NAK-RAE-01", now[0]["summary"])

    def test_300_failures_keep_256(self):
        """The newest ones; each is in the list once, newest first."""
        self.resp(recv=0)
        for i in range(300):
            self.make("qp_create", **self.qp_params(qp_num=0x1000 + i, dest_qp_num=0x23))
        for i in range(300):
            self.dut.rx(self.peer.with_(qpn=0x1000 + i, own_qpn=0x23).write_only(
                E, b"x", VA, RKEY ^ 1))
            self.dut.run()
        got = self.failures()
        self.assertEqual([0x1000 + i for i in range(299, 299 - KEPT, -1)],
                         [f["qp_num"] for f in got])
        self.clear()
        got = self.failures()
        self.assertEqual(KEPT, len(got))
        self.assertEqual({"destroyed"}, {f["end"] for f in got})
        with self.assertRaises(dut.RpcError) as e:
            self.rpc("qp_post_mortem", qp_num=0x1000)
        self.assertIn("forgotten", str(e.exception))

    def test_log_has_a_line_for_each_up_to_a_limit(self):
        """One line with owner, time, cause and completion; a flood is counted, not written."""
        self.resp(recv=0)
        self.dut.run(60_000 * MS)
        for i in range(100):
            self.make("qp_create", **self.qp_params(qp_num=0x2000 + i, dest_qp_num=0x23))
        for i in range(100):
            self.dut.rx(self.peer.with_(qpn=0x2000 + i, own_qpn=0x23).write_only(
                E, b"x", VA, RKEY ^ 1))
        self.dut.run()
        self.dut.run(2000 * MS)
        lines = [s for s in self.dut.stderr().splitlines() if "QP 8" in s and "failed at" in s]
        self.assertEqual(16, len(lines), lines)
        self.assertRegex(lines[0], r"QP 8192 of the operator failed at \d{4}-\d\d-\d\dT\S+Z: "
                                   r"RC_WRITE_ONLY PSN 256: .*RESP-NAK-RAE-01")
        self.assertIn("84 more QPs failed", self.dut.stderr())

    def test_times_for_people(self):
        """ISO 8601 beside time_ns, in events, records, traces, completions, and here."""
        self.resp()
        self.rpc("trace_start", qp_num=QPN)
        self.dut.run(5 * MS)
        now = datetime.datetime.now(datetime.timezone.utc)
        self.fail_one()
        story = self.rpc("qp_post_mortem", qp_num=QPN)[0]
        rows = [story, story["error"]] + story["trace"]
        rows += self.rpc("qp_explain", qp_num=QPN)["trace"]
        rows += self.rpc("trace_read", qp_num=QPN) + self.rpc("poll_cq", cq="cq0", max=4)
        rows += [self.qp()["fatal"], self.qp()["last_event"]]
        rows += self.rpc("async_events", max=4)
        self.assertGreater(len(rows), 10)
        for row in rows:
            self.assertGreater(row["time_ns"], 0)
            off = abs((moment(row["time"]) - now).total_seconds())
            self.assertLess(off, 600, row)     # the stepped clock stands still while ours goes on


if __name__ == "__main__":
    dut.main()
