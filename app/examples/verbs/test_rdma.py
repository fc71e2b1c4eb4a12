# SPDX-License-Identifier: BSD-3-Clause
"""For pytest: tests of a program that uses libibverbs, without an RDMA NIC, with exact faults.

Here the program is ib_write_bw of perftest: put your own in its place. rocelane-run has to be
installed. Each test has a dataplane of its own with the devices rocelane0 and rocelane1.
"""
import json
import re
import subprocess

BOTH_ENDS = """
ib_write_bw -d rocelane0 -n 100 -F >/dev/null & server=$!
until ss -ltn | grep -q :18515; do sleep 0.05; done
ib_write_bw -d rocelane1 -n 100 -F 127.0.0.1 && wait $server
"""


def rocelane(script, *options):
    return subprocess.run(["rocelane-run", "--private", *options, "sh", "-c", script],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=120, check=False)


def test_both_ends():
    run = rocelane(BOTH_ENDS)
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"^ 65536 +100 ", run.stdout, re.M)


def test_one_percent_loss(tmp_path):
    """The same seed loses the same packets, and all of it goes through."""
    faults = tmp_path / "faults.json"
    faults.write_text(json.dumps({"seed": 7, "rules": [{"action": "drop", "probability": 0.01}]}))
    run = rocelane(BOTH_ENDS, "--faults", str(faults))
    assert run.returncode == 0, run.stdout + run.stderr


def test_nobody_answers(tmp_path):
    """All packets to rocelane0 are lost: the program says so, and the last lines say why."""
    faults = tmp_path / "faults.json"
    faults.write_text(json.dumps({"rocelane0": {"rules": [{"action": "drop"}]}}))
    run = rocelane(BOTH_ENDS, "--faults", str(faults))
    assert run.returncode != 0
    assert "transport retries exhausted" in run.stderr
