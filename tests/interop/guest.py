# SPDX-License-Identifier: BSD-3-Clause
"""The guest: QEMU with Debian's kernel, its network device on a socket, its peer on another."""
import json
import os
import socket
import subprocess
import time

from livenet import die_with_parent
from dut import RpcError

BOOT_S = 600      # a limit, no expectation: about five seconds of emulation
MEMORY_MB = 320


class GuestDied(AssertionError):
    """The guest or its peer does not answer."""


class Guest:
    """A running guest, and JSON lines to the program in it (guest/main.c)."""

    def __init__(self, image, net_socket, folder, settings):
        vmlinux, initramfs = image
        self.console_path = os.path.join(folder, "console")
        self.errors_path = os.path.join(folder, "qemu")
        self.sock, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self.started = time.monotonic()
        self._id, self._buf, self.dead = 0, b"", None
        words = " ".join("interop_%s=%s" % kv for kv in settings.items() if kv[0] != "mac")
        offloads = ("csum guest_csum gso host_tso4 host_tso6 host_ufo guest_tso4 guest_tso6 "
                    "guest_ufo").split()
        with open(self.errors_path, "wb") as errors:
            self.proc = subprocess.Popen(
                ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none",
                 "-no-reboot", "-M", "q35,accel=%s,usb=off,graphics=off,sata=off,smbus=off,"
                 "vmport=off,hpet=off" % os.environ.get("INTEROP_ACCEL", "tcg"),
                 "-cpu", "max,-la57", "-m", str(MEMORY_MB), "-smp", "1",
                 "-kernel", vmlinux, "-initrd", initramfs,
                 "-append", "console=ttyS0 quiet panic=-1 rdinit=/init net.ifnames=0 audit=0 "
                 "mitigations=off nokaslr tsc=reliable clocksource=tsc no_timer_check "
                 "random.trust_cpu=on " + words,
                 "-serial", "file:" + self.console_path,
                 "-device", "virtio-rng-pci",
                 "-device", "virtio-serial-pci,id=vs0",
                 "-chardev", "socket,id=peer,fd=%d" % far.fileno(),
                 "-device", "virtserialport,bus=vs0.0,nr=1,chardev=peer",
                 "-netdev", "dgram,id=n0,local.type=fd,local.str=%d" % net_socket.fileno(),
                 "-device", "virtio-net-pci,netdev=n0,mac=%s,host_mtu=%s,rombar=0,"
                 "rx_queue_size=1024,%s" % (settings["mac"], settings["mtu"],
                                            ",".join(o + "=off" for o in offloads))],
                stdin=subprocess.DEVNULL, stdout=errors, stderr=errors,
                pass_fds=(far.fileno(), net_socket.fileno()), preexec_fn=die_with_parent)
        far.close()

    def wait_ready(self):
        """Wait for the peer. @return how long the start took, in seconds."""
        self.kernel = self.rpc("version", timeout_s=BOOT_S)["kernel"]
        return time.monotonic() - self.started

    def console(self):
        text = ""
        for path in (self.errors_path, self.console_path):
            if os.path.exists(path):
                with open(path, encoding="utf-8", errors="replace") as f:
                    text += f.read()[-4000:]
        return text

    def _died(self, why):
        self.dead = why     # the tests that follow shall not wait for it
        return GuestDied("the guest %s (QEMU: %s)\n%s" % (why, self.proc.poll(), self.console()))

    def _line(self, timeout_s):
        end = time.monotonic() + timeout_s
        while b"\n" not in self._buf:
            self.sock.settimeout(max(0.01, end - time.monotonic()))
            try:
                more = self.sock.recv(1 << 20)
            except socket.timeout:
                raise self._died("gave no answer in %d s" % timeout_s) from None
            if not more:
                raise self._died("is gone")
            self._buf += more
        line, self._buf = self._buf.split(b"\n", 1)
        return line

    def rpc(self, method, timeout_s=240, **params):
        if self.dead:
            raise self._died(self.dead)
        self._id += 1
        line = json.dumps({"id": self._id, "method": method, "params": params}).encode()
        try:
            self.sock.settimeout(timeout_s)
            self.sock.sendall(line + b"\n")
        except OSError as e:
            raise self._died("takes no request: %s" % e) from None
        reply = json.loads(self._line(timeout_s))
        if reply["id"] != self._id:
            raise self._died("answered something else: %r" % reply)
        if "error" in reply:
            raise RpcError(reply["error"])
        return reply["result"]

    def start(self, argv, log="program"):
        """Start another program of the guest. @return its pid, for wait()."""
        return self.rpc("run_start", argv=[str(a) for a in argv], log=log)["pid"]

    def wait(self, pid, wait_s=30, log="program", **first):
        """signal=N: it is sent this one. @return (exit status or None while it runs, what it has
        written so far)."""
        done = self.rpc("run_wait", pid=pid, log=log, wait_ms=int(wait_s * 1000),
                        timeout_s=wait_s + BOOT_S, **first)
        return done["status"], done["output"]

    def close(self):
        self.sock.close()
        self.proc.kill()
        self.proc.wait()
