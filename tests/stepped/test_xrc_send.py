# SPDX-License-Identifier: BSD-3-Clause
"""XRC, sent: RC's requester, and the number of an SRQ in each request."""
import dut
import roce
from dut import ALL_REMOTE, MS, QPN
from dut_req import RRKEY, RVA, S, Sent, transport_ns
from dut_xrc import SRQN, XRC, XrcCase
from roce import NAK_SEQ, NAK_XRC, pattern

MTU = 1024


class Initiator(XrcCase):

    def test_XRC_02_layout(self):
        self.initiator(access=ALL_REMOTE)
        got = self.post(self.wr("SEND", 3 * MTU), self.wr("RDMA_WRITE", 3 * MTU),
                        self.wr("RDMA_WRITE_WITH_IMM", 8, imm_data=7),
                        self.wr("SEND_WITH_INV", 8, invalidate_rkey="0x99"),
                        self.wr("RDMA_READ", 8, offset=4096),
                        self.wr("ATOMIC_FETCH_AND_ADD", 8, offset=8192, compare_add=5))
        want = [roce.SEND_FIRST, roce.SEND_MIDDLE, roce.SEND_LAST, roce.WRITE_FIRST,
                roce.WRITE_MIDDLE, roce.WRITE_LAST, roce.WRITE_ONLY_IMM, roce.SEND_ONLY_INV,
                roce.READ_REQ, roce.FETCH_ADD]
        self.expect(got, [Sent(op, S + i) for i, op in enumerate(want)])
        self.assertEqual([0x123] * 10, [f.srqn for f in got])
        for f in got:       # right behind the BTH, one zero byte first
            self.assertEqual(bytes.fromhex("00000123"), f.raw[f.udp + 20:f.udp + 24])
        self.assertEqual([pattern(9, 3 * MTU)[i * MTU:(i + 1) * MTU] for i in range(3)] * 2,
                         [f.payload for f in got[:6]])
        self.assertEqual((RVA, RRKEY, 3 * MTU), (got[3].va, got[3].rkey, got[3].length))
        self.assertEqual((7, 0x99), (got[6].imm, got[7].inv))
        self.assertEqual((RVA, RRKEY, 8), (got[8].va, got[8].rkey, got[8].length))
        self.assertEqual((RVA, 5), (got[9].va, got[9].swap_add))

    def test_XRC_02_each_request_names_its_own(self):
        """And so does what is sent again."""
        self.initiator()
        numbers = [1, 0xFFFFFF, 0x800001, 0x7F]
        got = self.post(*[self.wr("SEND", 64, xrc_remote_srqn=n) for n in numbers])
        self.assertEqual(numbers, [f.srqn for f in got])
        again = self.nak(S + 1, NAK_SEQ)
        self.assertEqual(numbers[1:], [f.srqn for f in again])

    def test_XRC_02_answers(self):
        """Responses are RC's, with the opcodes of XRC."""
        self.initiator(access=ALL_REMOTE)
        body = roce.data(2 * MTU + 3)
        self.post(self.wr("SEND", 64), self.wr("RDMA_READ", len(body)),
                  self.wr("ATOMIC_FETCH_AND_ADD", 8, offset=8192, compare_add=1))
        self.ack(S, 1)
        self.feed(*self.read_answer(S + 1, body))
        self.feed(self.atomic_ack(S + 4, 77))
        self.succeeded([100, 101, 102])
        self.assertEqual(body, self.local(0, len(body)))
        self.assertEqual((77).to_bytes(8, "little"), self.local(8192, 8))
        self.well()

    def test_XRC_01_requests_are_not_an_initiators(self):
        self.initiator()
        for frame in (self.peer.send_only(0, b"x"), self.peer.write_only(0, b"x", RVA, RRKEY),
                      self.peer.packet(0xB5, 0, b"")):
            self.silent(self.feed(frame), ms=1)
        self.assertEqual(3, self.delta("rx_qp_type_mismatch"))
        self.sends(1)
        self.silent(self.feed(self.peer.with_(service=0).acknowledge(S, msn=1)), ms=1)
        self.assertEqual(4, self.delta("rx_qp_type_mismatch"))
        self.well()

    def test_XRC_06_the_peer_has_no_such_srq(self):
        self.initiator()
        self.sends(3)
        self.nak(S, NAK_XRC)
        self.ended("REM_INV_RD_REQ_ERR", 100, flushed=[101, 102])
        self.assertEqual("XRC-06", self.rpc("qp_explain", qp_num=QPN)["error"]["rule"])

    def test_XRC_06_what_came_before_is_done(self):
        self.initiator()
        self.sends(3)
        self.nak(S + 1, NAK_XRC)
        self.ended("REM_INV_RD_REQ_ERR", 101, ok=[100], flushed=[102])

    def test_XRC_06_reserved_elsewhere(self):
        """0x64 on RC, 0x65 on both: a bad response (REQ-CLS-B-04)."""
        self.initiator()
        self.sends(1)
        self.nak(S, 0x65)
        self.ended("BAD_RESP_ERR", 100)
        self.req()
        self.peer = self.peer.with_(service=0)
        wr = self.wr("SEND", 64)
        del wr["xrc_remote_srqn"]
        self.assertEqual(1, self.post_raw(wr)["posted"])
        self.feed()
        self.nak(S, NAK_XRC)
        self.ended("BAD_RESP_ERR", 101 - 1)

    def test_XRC_08_silence(self):
        self.initiator(retry_cnt=2, timeout=10)
        self.sends(1)
        for _ in range(2):
            took, got = self.until_sent(4 * transport_ns(10))
            self.expect(got, Sent(roce.SEND_ONLY, S, srqn=SRQN))
        self.until_sent(4 * transport_ns(10))
        self.ended("RETRY_EXC_ERR", 100)

    def test_XRC_08_sequence_naks(self):
        self.initiator(retry_cnt=2)
        self.sends(1)
        for _ in range(2):
            self.expect(self.nak(S, NAK_SEQ), Sent(roce.SEND_ONLY, S))
        self.nak(S, NAK_SEQ)
        self.ended("RETRY_EXC_ERR", 100)

    def test_XRC_08_rnr(self):
        self.initiator(rnr_retry=2)
        self.sends(1)
        for _ in range(2):
            self.rnr(S, 20)
            took, got = self.until_sent(40 * MS)
            self.expect(got, Sent(roce.SEND_ONLY, S))
            self.assertIn(took, range(int(10.24 * MS), int(10.4 * MS)))
        self.rnr(S, 20)
        self.ended("RNR_RETRY_EXC_ERR", 100)

    def test_XRC_02_send_feed(self):
        """The dataplane's own requests name an SRQ, too, and as often as they are sent."""
        self.initiator(send_feed={"opcode": "SEND", "size": 64, "depth": 2, "count": 3,
                                  "xrc_remote_srqn": "0xabcdef"})
        again = self.nak(S, NAK_SEQ)
        self.expect(again, [Sent(roce.SEND_ONLY, S), Sent(roce.SEND_ONLY, S + 1)])
        more = self.ack(S + 1, 2)
        self.expect(more, Sent(roce.SEND_ONLY, S + 2))
        self.assertEqual({0xABCDEF}, {f.srqn for f in again + more})
        self.assertEqual(0xABCDEF, self.qp()["send_feed"]["xrc_remote_srqn"])

    def test_XRC_09_send_feed_and_the_number(self):
        """A feed of XRC needs the number; one of another service has no use for it."""
        feed = {"opcode": "SEND", "size": 64}
        for make, more in ((self.initiator, {}), (self.initiator, {"xrc_remote_srqn": 0}),
                           (self.req, {"xrc_remote_srqn": 1})):
            with self.assertRaises(dut.RpcError) as caught:
                make(send_feed={**feed, **more})
            self.assertIn("xrc_remote_srqn", caught.exception.message)


if __name__ == "__main__":
    dut.main()
