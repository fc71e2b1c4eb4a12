# SPDX-License-Identifier: BSD-3-Clause
"""The real program over a veth pair, in a network namespace that belongs to this process alone.

The namespace has no name: it is gone as soon as the last process in it is, so nothing is left
behind, whatever happens. One end of the pair is net_af_packet's, the other a raw socket here.
"""
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

import dut
import jsonrpc
import netns

DUT_IF, PEER_IF = "roce0", "peer0"
PEER_MAC, DUT_MAC = "02:00:00:00:00:22", "02:00:00:00:00:11"
DUT_IP, PEER_IP = "192.0.2.1", "192.0.2.2"
IF_MTU = 9200
WAIT_S = 240

PR_SET_PDEATHSIG = 1
SOL_PACKET, PACKET_AUXDATA, PACKET_IGNORE_OUTGOING = 263, 8, 23
TP_STATUS_VLAN_VALID = 0x10
MLD = bytes.fromhex("333300000016")    # where reports go


def run_tests(main):
    """Enter a namespace and run; where there is none to be had, say what it needs and skip."""
    netns.enter_or_skip()
    make_pair()
    main()


def ip(*args):
    subprocess.run(("ip",) + args, check=True)


def ping(*args):
    """Three echoes, one by one: ping waits -W seconds for the first answer alone, and for the ones
    after it no longer than two round trips."""
    for _ in range(3):
        done = subprocess.run(("ping", "-n", "-c", "1", "-W", str(WAIT_S)) + args,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError("no answer\n" + done.stdout + done.stderr)


def wait_up(name):
    """Until the kernel has taken notice: before, it may refuse to send. It tells with the lock that
    it holds while it makes an interface ready."""
    end = time.monotonic() + WAIT_S
    while True:
        shown = subprocess.run(("ip", "-o", "link", "show", name), check=True,
                               capture_output=True, text=True).stdout
        if " state UP " in shown:
            return
        if time.monotonic() > end:
            raise AssertionError("%s does not get up: %s" % (name, shown))


def make_pair():
    ip("link", "set", "lo", "up")
    ip("link", "add", DUT_IF, "type", "veth", "peer", "name", PEER_IF)
    for name in (DUT_IF, PEER_IF):
        # without the kernel's own router solicitations, what is on the wire is the tests'
        with open("/proc/sys/net/ipv6/conf/%s/disable_ipv6" % name, "w", encoding="ascii") as f:
            f.write("1")
        ip("link", "set", name, "mtu", str(IF_MTU))
    ip("link", "set", PEER_IF, "address", PEER_MAC)
    for name in (DUT_IF, PEER_IF):
        ip("link", "set", name, "up")
    for name in (DUT_IF, PEER_IF):
        wait_up(name)


def die_with_parent():
    netns.libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def live_config(sock=None, as_user=False, **sections):
    """dut.base_config() on net_af_packet; frames up to IF_MTU. The socket is Process's choice."""
    config = dut.base_config(**sections)
    config["eal"] = ["--no-huge", "-m", "512", "--no-pci", "--no-shconf", "--no-telemetry",
                     "--log-level=error",
                     "--vdev=net_af_packet0,iface=%s,blocksz=65536,framesz=16384,framecnt=%d" %
                     (DUT_IF, netns.locked_frames(512, 16384, 2, as_user))]
    config["lcores"] = {"control": 0, "workers": [1], "idle": "sleep"}
    if sock is not None:
        config["control"] = {"socket": sock}
    for port in config["ports"]:
        port["device"], port["mtu"] = "net_af_packet0", 9100
    config.update(sections)
    return config


class Process:
    """A running program, its files in a directory of its own."""

    def __init__(self, config=None, wait=True, arguments=(), prepare=die_with_parent, owner=None,
                 eal=(), pass_fds=()):
        """`owner`: the user id that `prepare` changes to. `eal`: arguments of the command line."""
        self.dir = tempfile.mkdtemp(prefix="rocelane-live-")
        config_path = os.path.join(self.dir, "config.json")
        if config is None:
            config = live_config()
        if isinstance(config, dict):
            config.setdefault("control", {}).setdefault("socket", os.path.join(self.dir, "sock"))
            self.socket_path = config["control"]["socket"]
        with open(config_path, "w", encoding="utf-8") as f:
            f.write(config if isinstance(config, str) else json.dumps(config))
        if owner is not None:
            os.chown(self.dir, owner, owner)
        self._out = open(os.path.join(self.dir, "stdout"), "w+b")
        self._err = open(os.path.join(self.dir, "stderr"), "w+b")
        self.proc = subprocess.Popen(
            [os.environ["ROCELANE"], *eal, *(["--"] if eal else []), "--config", config_path,
             *arguments], stdout=self._out, stderr=self._err, stdin=subprocess.DEVNULL,
            preexec_fn=prepare, pass_fds=pass_fds,
            env=dict(os.environ, XDG_RUNTIME_DIR=self.dir))
        if wait:
            try:
                self.wait_for_socket()
            except BaseException:
                self.close()
                raise

    def wait_for_socket(self):
        end = time.monotonic() + WAIT_S
        while True:
            try:
                jsonrpc.call(self.socket_path, "version", WAIT_S)
                return
            except OSError:
                pass
            if self.proc.poll() is not None or time.monotonic() > end:
                raise dut.DutDied("rocelane does not come up (exit code %s)\n%s" %
                                  (self.proc.poll(), self.stderr()))
            time.sleep(0.01)   # between looks at the socket

    def _read(self, f):
        f.flush()
        with open(f.name, encoding="utf-8", errors="replace") as r:
            return r.read()

    def stdout(self):
        return self._read(self._out)

    def stderr(self):
        return self._read(self._err)

    def stop(self, sig=signal.SIGTERM):
        """@return the exit code."""
        if self.proc.poll() is None:
            self.proc.send_signal(sig)
        return self.proc.wait(WAIT_S)

    def close(self):
        if self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait()
        self._out.close()
        self._err.close()
        shutil.rmtree(self.dir, ignore_errors=True)


class Live:
    """The process behind dut.Stepped's interface: the same tests' helpers serve both."""

    def __init__(self, config=None, **kw):
        self.process = Process(config, **kw)
        self.proc = self.process.proc
        self.conn = jsonrpc.Connection(self.process.socket_path, WAIT_S)
        self.raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.raw.bind((PEER_IF, 0))
        self.raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.raw.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self.raw.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        self.raw.settimeout(WAIT_S)
        mac = bytes.fromhex(PEER_MAC.replace(":", ""))
        self._fence = (b"\xff" * 6 + mac + b"\x08\x06" +
                       struct.pack(">HHBBH", 1, 0x0800, 6, 4, 1) + mac +
                       socket.inet_aton(PEER_IP) + bytes(6) + socket.inet_aton(DUT_IP))

    def stderr(self):
        return self.process.stderr()

    def rx(self, frame, port=0):
        self.raw.send(frame)

    def _receive(self):
        """One frame; a tag that the kernel has taken out is put back."""
        frame, control, _, _ = self.raw.recvmsg(1 << 16, 256)
        for level, kind, value in control:
            if level == SOL_PACKET and kind == PACKET_AUXDATA:
                status, _, _, _, _, tci, _ = struct.unpack("=IIIHHHH", value[:20])
                if status & TP_STATUS_VLAN_VALID:
                    frame = frame[:12] + struct.pack(">HH", 0x8100, tci) + frame[12:]
        return frame

    def frames(self, want=0):
        """What the DUT sends until it answers an ARP request and until there are `want`."""
        self.raw.send(self._fence)
        out, fenced = [], False
        while not fenced or len(out) < want:
            try:
                frame = self._receive()
            except socket.timeout:
                if not fenced:
                    raise AssertionError("no answer to ARP\n" + self.stderr()) from None
                break
            if frame[12:14] == b"\x08\x06":
                fenced = fenced or frame[20:22] == b"\0\x02"
            elif frame[:6] != MLD:  # what a port says by itself of the groups of its addresses
                out.append((0, frame))
        return out

    def run(self, ns=0):
        return self.frames()

    def rpc(self, method, **params):
        try:
            return self.conn.call(method, **params)
        except ConnectionError as e:
            raise AssertionError("no reply to %s: %s" % (method, e)) from e

    counters = dut.Stepped.counters

    def close(self):
        self.raw.close()
        self.conn.close()
        rc = self.process.stop()
        self.last_stderr = self.stderr()
        self.process.close()
        return rc


class LiveCase(dut.DutCase):
    """F-RESP on the wire. ask() is feed() and expect() with as many frames as are expected."""

    ACCOUNT_S = WAIT_S          # the kernel sends whenever it likes, and a worker may be waiting

    @classmethod
    def start(cls):
        cls.made = []
        cls.dut = Live(live_config(**cls.CONFIG))

    def ask(self, frames, *want):
        flat = [w for group in want for w in (group if isinstance(group, list) else [group])]
        for frame in frames:
            for f in frame if isinstance(frame, list) else [frame]:
                self.dut.rx(f)
        got = [dut.Frame(raw) for _, raw in self.dut.frames(len(flat))]
        for f in got:
            dut.check_frame(f, self.peer)
        self.expect(got, flat)

