# SPDX-License-Identifier: BSD-3-Clause
"""Fixture F-UC: a QP of unreliable connection, which answers nothing and is answered nothing."""
import dut
import dut_req
from roce import UC

# Attributes that only a service with ACKs has.
NOT_OF_UC = ("timeout", "retry_cnt", "rnr_retry", "min_rnr_timer", "max_rd_atomic",
             "max_dest_rd_atomic")


class UcCase(dut_req.ReqCase):

    @classmethod
    def peer_of(cls, v6=None, **kw):
        return super().peer_of(v6, **{"service": UC, **kw})

    def qp_params(self, v6=None, **qp):
        return super().qp_params(v6, **{"qp_type": "UC", **{k: None for k in NOT_OF_UC}, **qp})

    def quiet(self, *frames, **kw):
        """Frames in, none out (UC-01)."""
        self.silent(self.feed(*frames, **kw))

    def received(self, *want):
        """(wr_id, payload) of receives that completed, in order, and nothing else did."""
        self.assertEqual([(i, "SUCCESS", len(p)) for i, p in want],
                         [(c["wr_id"], c["status"], c["byte_len"]) for c in self.cqes("cq0")])
        for i, p in want:
            self.assertEqual(p, self.slot(i, len(p)))

    def alive(self, epsn):
        """RTS; nobody was told of anything; ePSN stands there."""
        self.well()
        self.assertEqual(epsn, self.qp()["epsn"])
