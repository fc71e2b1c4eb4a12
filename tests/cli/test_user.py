# SPDX-License-Identifier: BSD-3-Clause
"""What a new user tries, against a real dataplane: what the programs take, say and leave behind."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import prometheus  # noqa: E402
import tap  # noqa: E402
from daemon import Case  # noqa: E402


class Metrics(Case):

    def test_metrics_of_a_dataplane(self):
        """Every family has help and type, sum() over labels is right, and states are gauges."""
        p = self.start(**self.pair())
        families = prometheus.parse(self.ctl("metrics"))
        self.assertEqual([], prometheus.judge(families))
        for name, f in families.items():
            self.assertTrue(f.help and f.samples and "does not know" not in f.help, name)
        total = self.json("stat", "show")
        for name, value in total.items():
            if not name.startswith("control_"):     # frames of others come while we look
                got = sum(families[f"rocelane_{name}_total"].samples.values())
                self.assertLessEqual(got, value, name)
        states = {dict(k)["state"]: n for k, n in families["rocelane_qps"].samples.items()}
        self.assertEqual(2, states.pop("RTS"))
        self.assertEqual({"RESET", "INIT", "RTR", "SQD", "SQE", "ERR"}, set(states))
        self.assertEqual({0}, set(states.values()))
        self.ctl("qp", "modify", 17, "qp_state", "ERR")
        self.ctl("qp", "modify", 18, "qp_state", "RESET")
        self.assertEqual({"RESET": 1, "INIT": 0, "RTR": 0, "RTS": 0, "SQD": 0, "SQE": 0, "ERR": 1},
                         {dict(k)["state"]: n for k, n in prometheus.parse(
                             self.ctl("metrics"))["rocelane_qps"].samples.items()})
        self.assertEqual([1, 1], list(families["rocelane_port_up"].samples.values()))
        self.stops(p)


tap.main()
