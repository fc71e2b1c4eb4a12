# SPDX-License-Identifier: BSD-3-Clause
"""A client of Ceph: `ceph_client.py CONF UUID` makes an OSD of that id known, and `ceph_client.py
CONF` writes objects and reads them back."""
import json
import os
import sys
import time

import rados

SIZES = (1, 100, 4096, 70000, 1 << 20, 4 << 20)
LATEST = 60

cluster = rados.Rados(conffile=sys.argv[1], name="client.admin")
cluster.connect(timeout=LATEST)


def ask(**words):
    """What the monitor answers."""
    code, out, why = cluster.mon_command(json.dumps({**words, "format": "json"}), b"", LATEST)
    if code != 0:
        sys.exit(f"{words}: {why}")
    return json.loads(out) if out else None


def osds_up():
    return ask(prefix="osd stat")["num_up_osds"]


if len(sys.argv) > 2:
    ask(prefix="osd new", uuid=sys.argv[2])
    ask(prefix="osd crush create-or-move", id=0, weight=1.0, args=["host=here", "root=default"])
    cluster.shutdown()
    sys.exit(0)
end = time.monotonic() + LATEST
while osds_up() == 0 and time.monotonic() < end:
    time.sleep(0.1)
ask(prefix="osd pool create", pool="objects", pg_num=8, pgp_num=8)
pool = cluster.open_ioctx("objects")
written = {f"{turn}.{size}": os.urandom(size) for turn in range(2) for size in SIZES}
for name, data in written.items():
    pool.write_full(name, data)
bad = [name for name, data in written.items() if pool.read(name, len(data) + 1) != data]
pool.close()
cluster.shutdown()
print(f"bad: {bad}" if bad else "all objects are good")
