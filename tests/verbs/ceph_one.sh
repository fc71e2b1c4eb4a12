#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A monitor, an OSD in memory and a client of Ceph: ceph_one.sh ROOT FOLDER CLIENT, where ROOT has
# the unpacked packages. Their libraries come behind those that rocelane-run has put in front.
set -eu
root=$1 dir=$2 client=$3
lib=$root/usr/lib/x86_64-linux-gnu
LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$lib:$root/lib/x86_64-linux-gnu:$lib/ceph
PYTHONPATH=$root/usr/lib/python3/dist-packages
CEPH_ARGS="-c $dir/ceph.conf"
export LD_LIBRARY_PATH PYTHONPATH CEPH_ARGS
cluster=$(cat /proc/sys/kernel/random/uuid) osd=$(cat /proc/sys/kernel/random/uuid)
mkdir -p "$dir/mon" "$dir/osd"
sed -e "s|@CLUSTER@|$cluster|; s|@DIR@|$dir|; s|@LIB@|$lib|" > "$dir/ceph.conf"
bin=$root/usr/bin
"$bin/monmaptool" --create --fsid "$cluster" --addv a "[v2:$MON]" "$dir/map" > /dev/null
"$bin/ceph-mon" -i a --mkfs --monmap "$dir/map"
"$bin/ceph-mon" -i a -f &
daemons=$!
trap 'kill $daemons; wait' EXIT
/usr/bin/python3 "$client" "$dir/ceph.conf" "$osd"
"$bin/ceph-osd" -i 0 --mkfs --osd-uuid "$osd"
"$bin/ceph-osd" -i 0 -f &
daemons="$daemons $!"
/usr/bin/python3 "$client" "$dir/ceph.conf"
