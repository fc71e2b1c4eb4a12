# SPDX-License-Identifier: BSD-3-Clause
"""Binds that are refused, and what is said of it."""
import dut
from dut import QPN
from dut_mw import BLEN, BVA, MwCase, byte_on
from jsonrpc import RpcError


class Faults(MwCase):

    def refused_bind(self, why, words=(), **kw):
        """The window keeps what it had, and the explanation has the reason. @return memory."""
        before = self.window()
        told = self.bind_failed(self.bind_wr(**kw), self.wr("SEND", 8))
        self.assertEqual(before, self.window())
        memory = told["error"]["memory"]
        self.assertEqual(("bind", why), (memory["by"], memory["why"]))
        for word in words:
            self.assertIn(word, memory["text"])
        self.assertEqual("BIND_MW", told["error"]["request"]["opcode"])
        return memory

    def each(self, why, words=(), access=None, **kw):
        """Of both types; type 1 is bound already."""
        for kind in (1, 2):
            with self.subTest(kind):
                self.mw(access=access)
                key = self.alloc(type=kind)
                if kind == 1 and "MW_BIND" in (access or ["MW_BIND"]):
                    key = self.bind(access=["REMOTE_READ"])
                self.refused_bind(why, words, rkey=byte_on(key), **kw)

    def test_MW_04_region_without_mw_bind(self):
        self.each("NO_MW_BIND", ["MW_BIND"], access=["LOCAL_WRITE", "REMOTE_WRITE"])

    def test_MW_04_outside_the_region(self):
        self.each("TOO_LONG", ["base"], length=BLEN + 1)
        self.each("TOO_LONG", at=BLEN - 1, length=2)
        self.each("BEYOND", at=BLEN, length=1)
        self.each("BELOW", addr=BVA - 1)

    def test_MW_04_how_far_outside(self):
        """In numbers of 64 bits; of a window without a right, too."""
        for length, access in ((2**32 + 1, None), (2**63 - 1, None), (2**64 - 1, None),
                               (BLEN + 1, [])):
            self.mw()
            key, over = self.alloc(type=2), length - BLEN
            said = f"plus {length} bytes ends {over} byte{'s' * (over > 1)} behind the end of base"
            memory = self.refused_bind("TOO_LONG", [said], rkey=byte_on(key), length=hex(length),
                                       access_of=access)
            self.assertEqual((hex(BVA), length, over), (memory["va"], *(
                int(str(memory[n]), 0) for n in ("length", "excess"))))

    def test_MW_04_writable_window_of_a_region_that_is_not(self):
        for right in ("REMOTE_WRITE", "REMOTE_ATOMIC"):
            self.each("NO_LOCAL_WRITE", access=["MW_BIND"], access_of=[right])

    def bind_wr(self, *args, access_of=None, **kw):
        if access_of is not None:
            kw["access"] = access_of
        return super().bind_wr(*args, **kw)

    def test_MW_04_read_only_window_of_such_a_region(self):
        """AMB-30."""
        self.mw(access=["MW_BIND"])
        self.alloc()
        key = self.bind(access=["REMOTE_READ"])
        self.expect(self.feed(self.peer.read_req(self.epsn, BVA, key, 8)),
                    dut.ReadResponse(self.epsn, bytes(8)))

    def test_MW_04_other_protection_domain(self):
        for kind in (1, 2):
            self.mw()
            self.make("pd_create", name="pd1")
            self.make("mr_register", name="theirs", pd="pd1", length=4096, addr="0x40000000",
                      access=["LOCAL_WRITE", "MW_BIND"])
            key = self.alloc(type=kind)
            self.refused_bind("OTHER_PD", mr="theirs", addr=0x40000000, rkey=byte_on(key))
            key = self.alloc("v", type=kind, pd="pd1")
            self.refused_bind("NO_WINDOW", name="v", rkey=byte_on(key))

    def test_MW_04_unknown_region(self):
        """It was there when the request was posted, and is gone when its turn comes."""
        self.mw()
        self.alloc()
        self.rpc("qp_modify", qp_num=QPN, qp_state="SQD")
        self.post(self.bind_wr())
        self.rpc("mr_deregister", name="base")
        self.rpc("qp_modify", qp_num=QPN, qp_state="RTS")
        self.dut.run()
        self.assertEqual([(100, "MW_BIND_ERR")], self.statuses())

    def test_MW_04_unknown_window(self):
        self.mw()
        self.alloc()
        self.rpc("qp_modify", qp_num=QPN, qp_state="SQD")
        self.post(self.bind_wr())
        self.rpc("mw_dealloc", name="w")
        self.rpc("qp_modify", qp_num=QPN, qp_state="RTS")
        self.dut.run()
        self.assertEqual([(100, "MW_BIND_ERR")], self.statuses())

    def test_MW_04_bound_already(self):
        self.mw()
        key = self.bound2()
        self.refused_bind("BOUND", ["invalidated first"], rkey=byte_on(key))
        self.wrote(key)

    def test_MW_04_no_length(self):
        self.mw()
        key = self.alloc(type=2)
        self.refused_bind("NO_LENGTH", rkey=byte_on(key), length=0)

    def test_MW_03_the_new_key(self):
        self.mw()
        key = self.alloc(type=2)
        for new in (key, key ^ 0x100, 0):
            self.refused_bind("NEW_KEY", rkey=new)

    def test_rights_that_no_window_has(self):
        self.each("WINDOW_ACCESS", access_of=["LOCAL_WRITE"])
        self.each("WINDOW_ACCESS", access_of=["MW_BIND", "REMOTE_READ"])

    def test_MW_11_zero_based_and_atomic(self):
        """What no processor can do is refused here."""
        self.mw()
        key = self.alloc(type=2)
        self.refused_bind("MISALIGNED", at=4, rkey=byte_on(key),
                          access=["REMOTE_ATOMIC", "ZERO_BASED"])

    def test_explained_to_the_peers_side(self):
        """The use of a key that is no window's any more."""
        self.mw()
        key = self.bound2()
        self.post(self.inv_wr(key))
        self.write(BVA, key)
        memory = self.rpc("qp_explain", qp_num=QPN)["error"]["memory"]
        self.assertEqual("UNBOUND", memory["why"])
        self.assertIn("w", memory["text"])

    def test_posts_that_are_refused_at_once(self):
        self.mw()
        self.alloc()
        with self.assertRaises(RpcError):
            self.post_raw(self.wr("BIND_MW"))
        with self.assertRaises(RpcError):
            self.post_raw(self.wr("SEND", 8, bind_mw=self.bind_wr()["bind_mw"]))
        self.refused(self.post_raw(self.bind_wr(name="nobody")), "nobody")
        self.refused(self.post_raw(self.bind_wr(mr="nobody")), "nobody")
        self.refused(self.post_raw(self.bind_wr(
            sg_list=[{"mr": "lmr", "offset": 0, "length": 8}])), "sg_list")
        self.refused(self.post_raw(self.inv_wr(1, inline="00")), "inline")


if __name__ == "__main__":
    dut.main()
