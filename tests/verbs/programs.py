# SPDX-License-Identifier: BSD-3-Clause
"""Programs of Debian, run with our libibverbs.so.1."""
import contextlib
import ctypes
import glob
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import time

OURS = os.environ["LIBIBVERBS"]
TIMEOUT = 120


def environment(sock, **more):
    env = dict(os.environ, ROCELANE_SOCKET=sock, LD_LIBRARY_PATH=os.path.dirname(OURS), **more)
    if env.get("SANITIZER"):
        # What the programs themselves leave behind is not ours to judge.
        env.update(LD_PRELOAD=":".join([env["SANITIZER"], *filter(None, [more.get("LD_PRELOAD")])]),
                   ASAN_OPTIONS="detect_leaks=0")
    return env


def installed(program):
    path = shutil.which(program)
    if path is None:
        sys.exit(f"{program} is not installed: scripts/setup")
    return path


def unpack(folder, *packages):
    """Packages of Debian that are not to be installed. @return the folder with their files."""
    root = os.path.join(folder, "root")
    if not os.path.isdir(root):
        subprocess.run(["apt-get", "-qq", "download", *packages], cwd=folder, check=True)
        for path in glob.glob(os.path.join(folder, "*.deb")):
            subprocess.run(["dpkg-deb", "-x", path, root], check=True)
    return root


def start(sock, program, *args, **more):
    return subprocess.Popen([installed(program), *args], env=environment(sock, **more),
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


def run(sock, program, *args, **more):
    """(exit code, what it printed)"""
    proc = start(sock, program, *args, **more)
    try:
        out = proc.communicate(timeout=TIMEOUT)[0]
    except subprocess.TimeoutExpired:
        proc.terminate()        # rocelane-run passes it on; SIGKILL would leave its program
        out = proc.communicate()[0] + "\n(it did not end)"
    return proc.returncode, out


def remove_xrc_files(test):
    """When the test ends. XRC domains are named by files there, which no other user may open."""
    names = "/tmp/xrc_domain*"
    before = set(glob.glob(names))

    def clean():
        for path in set(glob.glob(names)) - before:
            with contextlib.suppress(FileNotFoundError, PermissionError):   # another run's
                os.remove(path)

    test.addCleanup(clean)


def free_port():
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


def listens(port):
    """Does somebody? Without a connection, which the program would take for its peer."""
    want = f":{port:04X}"
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(path, encoding="ascii") as f:
            if any(row.split()[1].endswith(want) and row.split()[3] == "0A"
                   for row in f.readlines()[1:]):
                return True
    return False


def pair(sock, program, options, asks=None, **more):
    """
    Port "left" serves, port "right" asks, with the same program or with `asks`; each is a name or a
    list of words. [(exit code, what it printed) of each]
    """
    port = free_port()
    args = ["-p", str(port), *options]
    serves, asks = ([p] if isinstance(p, str) else p for p in (program, asks or program))
    server = start(sock, *serves, "-d", "left", *args, **more)
    end = time.monotonic() + TIMEOUT
    while not listens(port) and server.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    client = run(sock, *asks, "-d", "right", *args, "127.0.0.1", **more)
    try:
        out = server.communicate(timeout=10 if client[0] else TIMEOUT)[0]
    except subprocess.TimeoutExpired:
        server.kill()
        out = server.communicate()[0] + "\n(it did not end)"
    return [(server.returncode, out), client]


def thread_of(pid, name):
    """The one whose name begins so."""
    tid, = [int(t) for t in os.listdir(f"/proc/{pid}/task")
            if pathlib.Path(f"/proc/{pid}/task/{t}/comm").read_text().startswith(name)]
    return tid


def smallest_memfd(pid):
    """A path to it."""
    paths = [f"/proc/{pid}/fd/{fd}" for fd in os.listdir(f"/proc/{pid}/fd")]
    return min((p for p in paths if "memfd:" in os.readlink(p)), key=lambda p: os.stat(p).st_size)


def cpu_s(pid):
    """What the first thread of a process has used of a CPU."""
    with open("/proc/%s/task/%s/stat" % (pid, pid), encoding="ascii") as f:
        user, system = f.read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def stopped_thread(pid, name):
    """The thread of this name stands still, and no other one of the process."""
    attach, detach, wall = 16, 17, 0x40000000
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    tid = thread_of(pid, name)
    if ptrace(attach, tid, None, None) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")
    os.waitpid(tid, wall)
    try:
        yield
    finally:
        ptrace(detach, tid, None, None)


def read_pcapng(text, missing=0):
    """[(name of the interface, comment, frame) of each packet]; so many are missing."""
    names, packets, at = [], [], 0
    while at < len(text):
        kind, total = struct.unpack_from("<II", text, at)
        body, ends = text[at + 8:at + total - 4], struct.unpack_from("<I", text, at + total - 4)
        assert (total,) == ends and total % 4 == 0
        if kind == 1:
            names.append(options(body[8:])[2].decode())
        elif kind == 5:
            missing -= int.from_bytes(options(body[12:])[5], "little")
        elif kind == 6:
            port, _, _, captured, _ = struct.unpack_from("<5I", body)
            packets.append((names[port], options(body[20 + (captured + 3) // 4 * 4:]).get(
                1, b"").decode(), body[20:20 + captured]))
        at += total
    assert missing == 0, "packets that are not in the file, and are not counted"
    return packets


def options(text):
    """{code: value}"""
    found, at = {}, 0
    while at < len(text) and struct.unpack_from("<H", text, at) != (0,):
        code, length = struct.unpack_from("<HH", text, at)
        found[code] = text[at + 4:at + 4 + length]
        at += 4 + (length + 3) // 4 * 4
    return found
