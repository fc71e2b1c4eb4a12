# SPDX-License-Identifier: BSD-3-Clause
"""save_config: what it prints starts the same dataplane again."""
import copy
import json
import os
import unittest

import jsonrpc
import livenet
import dut

EXAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "config",
                       "examples", "loopback.json")


class Save(unittest.TestCase):

    def start(self, config):
        p = livenet.Process(copy.deepcopy(config))
        self.addCleanup(p.close)
        conn = jsonrpc.Connection(p.socket_path)
        self.addCleanup(conn.close)
        return conn

    @staticmethod
    def groups(conn):
        """UD-31: those that QP 77 is a member of."""
        return sorted(m["group"] for m in conn.call("mcast_list") if m["qp_num"] == 77)

    def test_saved_config_starts_the_same_dataplane(self):
        with open(EXAMPLE, encoding="utf-8") as f:
            config = json.load(f)
        del config["control"]
        for qp in config["qps"]:
            qp.pop("send_feed", None)  # nothing moves: both ends are as they start
        config["qps"].append({"qp_num": 77, "qp_type": "UD", "port": "asks", "pd": "pd0",
                              "send_cq": config["cqs"][0]["name"],
                              "recv_cq": config["cqs"][0]["name"], "qkey": 1, "sq_psn": 0,
                              "qp_state": "RTS"})
        config["mcasts"] = [{"qp_num": 77, "group": "239.1.2.3"}]
        conn = self.start(config)
        self.assertEqual(["239.1.2.3"], self.groups(conn))
        conn.call("mcast_attach", qp_num=77, group="224.0.1.5")
        conn.call("pd_create", name="pd9")
        conn.call("mr_register", name="mr9", pd="pd9", length=8192, access=["REMOTE_READ"],
             addr="0x90000", rkey="0x1ff")
        conn.call("cq_create", name="cq9", cqe=33)
        conn.call("qp_create", qp_num=900, qp_type="RC", pd="pd9", send_cq="cq9", recv_cq="cq9",
             port="asks", qp_state="RTR", dest_qp_num=901, rq_psn=7, path_mtu=256,
             ah_attr={"dest_ip": "10.77.0.2"})
        template = {"qp_type": "RC", "pd": "pd9", "send_cq": "cq9", "recv_cq": "cq9"}
        conn.call("cm_listen", name="l0", port="asks", service_port=7471, backlog=5, accept="ask",
                  qp=template)
        conn.call("cm_listen", name="l1", port="asks", service_port=7471, ps="UDP",
                  qp=dict(template, qp_type="UD", qkey=77))
        changed = config["qps"][0]["qp_num"] + 1
        conn.call("qp_modify", qp_num=changed, min_rnr_timer=9, qp_state="RTS")
        saved = conn.call("save_config")

        templates = [q for q in saved["qps"] if q["count"] > 1]
        self.assertTrue(templates, saved["qps"])  # not one entry for each QP
        alone = [q for q in saved["qps"] if q["qp_num"] == 900][0]
        self.assertEqual(("RTR", 901, 7, 256, "pd9", "asks"),
                         tuple(alone[k] for k in ("qp_state", "dest_qp_num", "rq_psn", "path_mtu",
                                                  "pd", "port")))
        self.assertIsNone(alone["ah_attr"]["dest_mac"])
        self.assertEqual(["pd0", "pd9"], saved["pds"])
        self.assertIn(["mr9", 8192, "0x1ff"],
                      [[m["name"], m["length"], m["rkey"]] for m in saved["mrs"]])
        self.assertIn({"name": "cq9", "cqe": 33}, saved["cqs"])

        again = copy.deepcopy(saved)
        del again["control"]
        second = self.start(again)
        saved_again = second.call("save_config")
        for s in (saved, saved_again):
            s["control"].pop("socket")
        self.assertEqual([("l0", 7471, "TCP", "ask", 5), ("l1", 7471, "UDP", "always", 128)],
                         [tuple(x[k] for k in ("name", "service_port", "ps", "accept", "backlog"))
                          for x in saved["cm"]["listen"]])
        self.assertEqual(saved, saved_again)
        self.assertEqual(["224.0.1.5", "239.1.2.3"], self.groups(second))
        # The UD listener's own QP has another number each time.
        want, got = ({q["qp_num"]: q for q in c.call("qp_list", limit=1000)
                      if q["qp_type"] != "UD"} for c in (conn, second))
        self.assertEqual(sorted(want), sorted(got))
        for number, q in want.items():
            for key in ("qp_state", "dest_qp_num", "min_rnr_timer", "path_mtu", "pd"):
                self.assertEqual(q[key], got[number][key], (number, key))
        self.assertEqual(9, got[changed]["min_rnr_timer"])

    def test_what_was_changed_by_hand(self):
        """Rules for a bad wire, beside a port's own queue; a peer whose route is gone."""
        with open(EXAMPLE, encoding="utf-8") as f:
            config = json.load(f)
        del config["control"]
        config["qps"] = []
        name = config["ports"][0]["name"]
        queue = {"rate": "10G", "buffer": "256K"}
        config["ports"][0].update(bottleneck=queue,
                                  impair={"rules": [{"action": "ce", "psn": 77}]})
        conn = self.start(config)
        rule = {"action": "drop", "psn": 5}
        shown = conn.call("impair_set", port=name, impair={"rules": [rule], "held_max": 4096})
        self.assertEqual(("10G", 4096), (shown["impair"]["bottleneck"]["rate"],
                                         shown["impair"]["held_max"]))
        conn.call("route_add", port=name, to="10.80.0.0/16", via="10.77.0.2")
        for number, mac in ((60, "02:00:00:00:00:77"), (61, None)):
            conn.call("qp_create", qp_num=number, qp_type="RC", pd=config["pds"][0],
                      send_cq=config["cqs"][0]["name"], recv_cq=config["cqs"][0]["name"],
                      port=name, qp_state="RTR", dest_qp_num=9, rq_psn=7, path_mtu=256,
                      ah_attr={"dest_ip": "10.80.0.5", "dest_mac": mac})
        away, near = {"dest_ip": "10.80.0.5"}, {"dest_ip": "10.77.0.2"}
        known = dict(away, dest_mac="02:00:00:00:00:77")
        for number, path, other in ((62, near, away), (63, near, known), (64, away, near),
                                    (65, known, away)):
            conn.call("qp_create", qp_num=number, qp_type="RC", pd=config["pds"][0],
                      send_cq=config["cqs"][0]["name"], recv_cq=config["cqs"][0]["name"],
                      port=name, qp_state="RTS", dest_qp_num=9, rq_psn=7, sq_psn=7,
                      path_mtu=256, ah_attr=path, alt_ah_attr=other, alt_timeout=9,
                      path_mig_state="REARM")
        conn.call("route_del", port=name, to="10.80.0.0/16")
        saved = conn.call("save_config")
        port, states = saved["ports"][0], {q["qp_num"]: q["qp_state"] for q in saved["qps"]}
        self.assertEqual(("10G", 4096), (port["bottleneck"]["rate"], port["impair"]["held_max"]))
        self.assertEqual([("drop", 5)], [(r["action"], r["psn"]) for r in port["impair"]["rules"]])
        self.assertNotIn("bottleneck", port["impair"])
        self.assertEqual({60: "RTR", 61: "INIT", 62: "RTS", 63: "RTS", 64: "INIT", 65: "RTS"},
                         states)
        self.assertEqual([63], [q["qp_num"] for q in saved["qps"] if "alt_ah_attr" in q])
        del saved["control"]
        again = self.start(saved)
        conn.call("impair_set", port=name, impair=None)
        saved = conn.call("save_config")
        self.assertIsNone(saved["ports"][0]["impair"])
        self.assertEqual("10G", saved["ports"][0]["bottleneck"]["rate"])
        self.assertEqual("10G", again.call("impair_get", port=name)["impair"]["bottleneck"]["rate"])

    def test_failed_qp_is_saved_in_the_state_it_worked_in(self):
        with open(EXAMPLE, encoding="utf-8") as f:
            config = json.load(f)
        del config["control"]
        number = config["qps"][0]["qp_num"]
        conn = self.start(config)
        conn.call("qp_modify", qp_num=number, qp_state="ERR")
        saved = conn.call("save_config")
        self.assertTrue(all(q["qp_state"] == "RTS" for q in saved["qps"]), saved["qps"])


if __name__ == "__main__":
    livenet.run_tests(dut.main)
