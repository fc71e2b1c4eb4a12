# SPDX-License-Identifier: BSD-3-Clause
"""Path migration where the alternate port's packets come to another worker than the QP's."""
import dut
import test_apm
import test_apm_model
from dut_apm import PORTS


class TwoWorkers:
    """p0 is received by the first worker, p1 by the second one, which hands over what came."""

    CONFIG = {"ports": PORTS,
              "lcores": {"control": 0, "workers": [1, 2], "idle": "sleep"}}

    @classmethod
    def tearDownClass(cls):
        try:
            c = cls.dut.counters()
            assert c["rx_handoff"] > 0 and c["rx_handoff_lost"] == 0, c
            assert c["rx_handoff_in"] == c["rx_handoff"], c
        finally:
            super().tearDownClass()

    def tearDown(self):
        self.assertEqual({0}, {q["worker"] for q in self.rpc("qp_list")})
        super().tearDown()


class Requester(TwoWorkers, test_apm.Requester):
    """REQ-RETRY-09: responses on the new path."""


class Follower(TwoWorkers, test_apm.Follower):
    """AE-12: the peer's packets move the QP."""


class Ordered(TwoWorkers, test_apm.Ordered):
    """AE-12: software moves it, there and back."""


class Model(TwoWorkers, test_apm_model.Model):
    """WIRE-18: random walks."""


if __name__ == "__main__":
    dut.main()
