#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The rules' tests in one process on one code path: TAP on standard output.

usage: variants.py VARIANT [NAME...]    such as errbuf=off,ip=6 and test_resp or a part of a test's
                                       name; -NAME: but these
       variants.py --default rules|services [NAME...]  by default; services: what no variant has
       variants.py --list all|covering|brief|sanitized      variants, one a line

pylib/variant.py says what a variant is. Environment: ROCELANE_STEPPED, the program.
"""
import json
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE] + [os.path.join(os.path.dirname(HERE), d) for d in ("pylib", "cli")]

MODULES = (
    "test_variant", "test_wire", "test_resp", "test_resp_seq", "test_resp_dup", "test_resp_rnr",
    "test_resp_nak", "test_resp_cls", "test_rx", "test_rx_report", "test_rx_all", "test_nd",
    "test_cc", "test_ae", "test_qp", "test_cq", "test_srq", "test_explain", "test_vlan",
    "test_req", "test_req_retry", "test_req_rnr", "test_req_nak", "test_req_cls", "test_req_qp",
    "test_req_loop", "test_gap", "test_impair", "test_apm", "test_apm_handshake", "test_port",
    "test_post_mortem", "test_why")


def others():
    """The modules whose tests are no variant's: of services, of several ports or workers."""
    here = (name[:-3] for name in sorted(os.listdir(HERE)) if name.endswith(".py"))
    return [name for name in here if name.startswith("test_") and name not in MODULES]


class LastProcess(unittest.TestCase):
    def test_ends_well(self):
        dut.DutCase.end_spare()


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--list":
        import variant
        print("\n".join({"all": variant.every(), "covering": variant.COVERING,
                         "brief": variant.BRIEF,
                         "sanitized": variant.SANITIZED}[sys.argv[2]]))
        return
    words, modules = sys.argv[1:], MODULES
    if words[:1] == ["--default"]:
        if words[1:2] not in (["rules"], ["services"]):
            sys.exit(__doc__.strip())
        if words[1] == "services":
            modules = others()
        words[:2] = [""]
    if not words or words[0].startswith("-"):
        sys.exit(__doc__.strip())
    os.environ["ROCELANE_STEPPED_VARIANT"] = words[0]
    global dut
    import dut
    import tap
    dut.DutCase.sharing = True
    tests = list(tap.cases(unittest.defaultTestLoader.loadTestsFromNames(modules)))
    # Those of one configuration one after the other: they share a process.
    tests.sort(key=lambda test: json.dumps(test.config() if hasattr(test, "config") else None))
    without = [name[1:] for name in words[1:] if name.startswith("-")]
    tests = [t for t in tests if not any(name in t.id() for name in without)]
    if len(words) > 1 + len(without):
        tests = [t for t in tests if any(name in t.id() for name in words[1:])]
    tests.append(LastProcess("test_ends_well"))
    tap.run(unittest.TestSuite(tests), module_names=True)


if __name__ == "__main__":
    main()
