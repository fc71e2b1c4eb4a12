#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The guest's kernel and initramfs, made of Debian packages and the programs in guest/.

usage: image.py [DIRECTORY]      (default: build/interop)
       image.py --missing [DIRECTORY]    packages that would be downloaded, one a line

Nothing is installed: packages are downloaded with apt-get into DIRECTORY/debs and single files are
taken out of them. Packages that are there already are used without asking the archive. What comes
out is DIRECTORY/vmlinux and DIRECTORY/initramfs; they are made anew when anything they are made of
has changed.
"""
import argparse
import fcntl
import glob
import hashlib
import io
import lzma
import os
import re
import shutil
import subprocess
import sys
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE_ROOT = os.path.dirname(os.path.dirname(HERE))
LIB = "usr/lib/x86_64-linux-gnu"

KERNEL = "linux-image-amd64"    # stands for the package that it depends on
PACKAGES = (
    "busybox-static", "iproute2", "perftest", "ibverbs-utils", "ibverbs-providers", "libibverbs1",
    "librdmacm1", "rdmacm-utils", "libibumad3", "libjansson4", "qperf", "ucx-utils", "libucx0",
    "libfabric-bin", "libfabric1", "openmpi-bin", "libopenmpi3", "libopenmpi-dev", "libpmix2",
    # what their programs are linked with
    "libc6", "libgcc-s1", "libnl-3-200", "libnl-route-3-200", "libpci3", "zlib1g", "libudev1",
    "libmnl0", "libbpf1", "libelf1", "libcap2", "libbsd0", "libmd0", "libnuma1", "libgomp1",
    "libpsm2-2", "libpsm-infinipath1", "libatomic1", "libuuid1", "libhwloc15", "libmunge2",
    "libevent-core-2.1-7", "libevent-pthreads-2.1-7")
PROGRAMS = (
    "usr/bin/rdma", "bin/ip", "usr/bin/ibv_devinfo",
    "usr/bin/ib_send_bw", "usr/bin/ib_send_lat", "usr/bin/ib_write_bw", "usr/bin/ib_write_lat",
    "usr/bin/ib_read_bw", "usr/bin/ib_read_lat", "usr/bin/ib_atomic_bw", "usr/bin/ib_atomic_lat",
    "usr/bin/rping", "usr/bin/ucmatose", "usr/bin/udaddy", "usr/bin/cmtime", "usr/bin/rstream",
    "usr/bin/rcopy", "usr/bin/mckey", "usr/bin/ibv_rc_pingpong", "usr/bin/ibv_uc_pingpong",
    "usr/bin/ibv_ud_pingpong", "usr/bin/ibv_srq_pingpong", "usr/bin/qperf",
    "usr/bin/ucx_perftest", "usr/bin/fi_pingpong", "usr/bin/orted")
# Opened by their names: by libibverbs, by UCX and by Open MPI.
PLUGINS = (LIB + "/libibverbs/librxe-rdmav34.so", LIB + "/ucx/libuct_ib.so.0")
MPI = LIB + "/openmpi"
MPI_PLUGINS = tuple(MPI + "/lib/openmpi3/mca_%s.so" % name for name in (
    "allocator_basic allocator_bucket bml_r2 btl_self coll_basic coll_inter coll_libnbc "
    "coll_self coll_sync coll_tuned errmgr_default_app errmgr_default_orted ess_env ess_pmi "
    "filem_raw grpcomm_direct iof_orted mpool_hugepage odls_default oob_tcp op_avx osc_pt2pt "
    "osc_ucx patcher_overwrite plm_rsh pmix_ext3x pml_ob1 pml_ucx pstat_linux rcache_grdma "
    "reachable_weighted regx_fwd regx_naive regx_reverse rmaps_ppr rmaps_round_robin rmaps_seq "
    "rml_oob routed_binomial routed_direct routed_radix rtc_hwloc schizo_ompi schizo_orte "
    "shmem_mmap shmem_posix state_app state_orted topo_basic").split())
MPI_HEADERS = ("mpi.h", "mpi_portable_platform.h")
LIBRARIES = (LIB, LIB[4:], "usr/lib/libpsm1")
MODULES = ("virtio_pci", "virtio_net", "virtio_console", "virtio_rng", "crc32_generic",
           "ib_uverbs", "rdma_ucm", "rdma_rxe")
CFLAGS = ("-std=gnu11", "-O2", "-g0", "-Wall", "-Wextra", "-Werror", "-Wshadow",
          "-Wmissing-prototypes", "-Wstrict-prototypes", "-Wvla")


class ImageError(Exception):
    """The image cannot be made; the message says what is missing."""


def run(*args, **kw):
    try:
        return subprocess.run(args, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              **kw).stdout
    except FileNotFoundError:
        raise ImageError("%s is not installed (scripts/setup)" % args[0]) from None
    except subprocess.CalledProcessError as e:
        raise ImageError("%s: %s" % (" ".join(args), e.stderr.decode(errors="replace"))) from None


# ---- packages -----------------------------------------------------------------------------------

def deb(debs, package):
    """Path of the downloaded package, or None."""
    found = sorted(glob.glob(os.path.join(debs, glob.escape(package) + "_*.deb")))
    return found[-1] if found else None


def kernel_package(debs):
    have = sorted(glob.glob(os.path.join(debs, "linux-image-*.deb")))
    if have:
        return os.path.basename(have[-1]).split("_")[0]
    text = run("apt-cache", "depends", KERNEL).decode()
    m = re.search(r"Depends: (linux-image-\S+)", text)
    if m is None:
        raise ImageError("apt-cache knows no %s: apt-get update?" % KERNEL)
    return m.group(1)


def wanted_packages(debs):
    """All of them, the kernel's first, and those of them that are not in `debs`."""
    wanted = (kernel_package(debs),) + PACKAGES
    return wanted, [p for p in wanted if deb(debs, p) is None]


def fetch(debs):
    """All packages, downloaded. @return their paths, the kernel's first."""
    os.makedirs(debs, exist_ok=True)
    wanted, missing = wanted_packages(debs)
    if missing:
        print("interop: downloading %s" % " ".join(missing), file=sys.stderr)
        run("apt-get", "-q", "-o", "Acquire::Retries=3", "download", *missing, cwd=debs)
    return [deb(debs, p) for p in wanted]


def members(path):
    """(name without ./, TarInfo, tar) of each file of a package."""
    data = run("dpkg-deb", "--fsys-tarfile", path)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for info in tar:
            yield info.name[2:] if info.name.startswith("./") else info.name, info, tar


class Files:
    """Every file of some packages, by path; symbolic links are followed."""

    def __init__(self, paths):
        self.data, self.links = {}, {}
        for path in paths:
            for name, info, tar in members(path):
                if info.issym():
                    target = os.path.join(os.path.dirname(name), info.linkname)
                    self.links[name] = os.path.normpath(target).lstrip("/")
                elif info.isfile():
                    self.data[name] = tar.extractfile(info).read()

    def get(self, name):
        for _ in range(8):
            if name in self.data:
                return self.data[name]
            if name not in self.links:
                return None
            name = self.links[name]
        return None

    def library(self, soname):
        """Its link may be one that the package makes when it is installed."""
        for folder in LIBRARIES:
            path = folder + "/" + soname
            for name in [path, *(n for n in self.data if n.startswith(path + "."))]:
                if self.get(name) is not None:
                    return self.get(name)
        return None


# ---- kernel -------------------------------------------------------------------------------------

def unpack_kernel(bzimage):
    """The ELF kernel inside of a bzImage: its own decompressor is slow under emulation."""
    at = bzimage.find(b"\xfd7zXZ\0")
    if at < 0:
        raise ImageError("no xz stream in the kernel")
    return lzma.LZMADecompressor().decompress(bzimage[at:])


def module_name(path):
    return os.path.basename(path)[:-len(".ko")].replace("-", "_")


def modinfo(ko, key):
    return re.findall(rb"[\0]" + key.encode() + rb"=([^\0]*)\0", b"\0" + ko)


def kernel(path):
    """(vmlinux, [(module, bytes)] in the order of loading)."""
    found, bzimage = {}, None
    for name, info, tar in members(path):
        if name.startswith("boot/vmlinuz-"):
            bzimage = tar.extractfile(info).read()
        elif name.endswith(".ko"):
            found[module_name(name)] = (info, tar.extractfile(info).read())
    order = []

    def load(module):
        if module not in found:
            return    # built in
        ko = found[module][1]
        for line in modinfo(ko, "depends") + modinfo(ko, "softdep"):
            pre = line.decode().split("post:")[0].replace("pre:", "")
            for need in re.split(r"[ ,]+", pre):
                if need:
                    load(need.replace("-", "_"))
        if module not in [name for name, _ in order]:
            order.append((module, ko))

    for module in MODULES:
        load(module)
    for module in ("rdma_rxe", "ib_uverbs"):
        if module not in found:
            raise ImageError("%s has no module %s" % (os.path.basename(path), module))
    return unpack_kernel(bzimage), order


# ---- initramfs ----------------------------------------------------------------------------------

class Cpio:
    """A "newc" archive."""

    def __init__(self):
        self.out = io.BytesIO()
        self.names = set()
        self.inode = 0

    def _entry(self, name, mode, data=b""):
        self.inode += 1
        raw = name.encode() + b"\0"
        head = [self.inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(raw), 0]
        block = b"070701" + b"".join(b"%08X" % v for v in head) + raw
        block += bytes(-len(block) % 4) + data
        self.out.write(block + bytes(-len(block) % 4))

    def folder(self, name):
        if name and name not in self.names:
            self.folder(os.path.dirname(name))
            self.names.add(name)
            self._entry(name, 0o040755)

    def file(self, name, data, mode=0o755):
        if name not in self.names:
            self.folder(os.path.dirname(name))
            self.names.add(name)
            self._entry(name, 0o100000 | mode, data)

    def link(self, name, target):
        self.folder(os.path.dirname(name))
        self._entry(name, 0o120777, target.encode())

    def done(self):
        self._entry("TRAILER!!!", 0)
        return self.out.getvalue()


def needed(work, data):
    """DT_NEEDED of an ELF file."""
    path = os.path.join(work, "elf")
    with open(path, "wb") as f:
        f.write(data)
    text = run("readelf", "-d", path).decode()
    return re.findall(r"\(NEEDED\).*\[(.+)\]", text)


def add_program(cpio, files, work, name, data):
    """A program or library with all that it is linked with."""
    cpio.file(name, data)
    for soname in needed(work, data):
        if soname in cpio.names:
            continue
        cpio.names.add(soname)
        library = files.library(soname)
        if library is None:
            raise ImageError("%s needs %s: which package has it?" % (name, soname))
        add_program(cpio, files, work, "lib64/" + soname if soname.startswith("ld-")
                    else LIB + "/" + soname, library)


def compiled(work, name, sources, *options):
    out = os.path.join(work, name)
    run("gcc", *CFLAGS, "-o", out, *sources, *options)
    with open(out, "rb") as f:
        return f.read()


def own_programs(include=""):
    """{name: (sources, options)} of those that are compiled for the guest. @param include where
    Open MPI's header is."""
    convert = os.path.join(SOURCE_ROOT, "lib/convert")
    return {
        "peer": (sorted(glob.glob(os.path.join(HERE, "guest", "*.c"))), ["-libverbs", "-ljansson"]),
        "convert-writers": ([os.path.join(SOURCE_ROOT, "tests/verbs/convert_writers.c"),
                             *sorted(glob.glob(os.path.join(convert, "*.c")))],
                            ["-D_GNU_SOURCE", "-I" + convert, "-pthread"]),
        "mpi-pair": ([os.path.join(HERE, "mpi_pair.c")],
                     ["-isystem" + include, "-L" + include, "-lmpi",
                      "-Wl,--unresolved-symbols=ignore-in-shared-libs"])}


def mpi_parts(work, files):
    """Its header, and what a program is linked with, from its packages: not all are installed."""
    include = os.path.join(work, "mpi")
    os.makedirs(include)
    for name, data in [(n, files.get(MPI + "/include/" + n)) for n in MPI_HEADERS] + \
            [("libmpi.so", files.library("libmpi.so.40"))]:
        write(os.path.join(include, name), data)
    return include


def make_initramfs(work, packages, modules):
    files = Files(packages)
    cpio = Cpio()
    for folder in ("proc", "sys", "dev", "tmp", "run", "etc/libibverbs.d"):
        cpio.folder(folder)
    cpio.file("bin/busybox", files.get("bin/busybox"))
    applets = ("sh mount mkdir insmod cat echo ls sleep usleep poweroff ping ps kill dmesg grep "
               "head tail").split()
    for applet in applets:
        cpio.link("bin/" + applet, "/bin/busybox")
    cpio.link("bin/ssh", "/bin/busybox")    # orted looks whether it is there
    for name in PROGRAMS:
        add_program(cpio, files, work, "bin/" + os.path.basename(name), files.get(name))
    for name in PLUGINS + MPI_PLUGINS:
        add_program(cpio, files, work, name, files.get(name))
    add_program(cpio, files, work, LIB + "/libgcc_s.so.1", files.library("libgcc_s.so.1"))
    cpio.file("etc/libibverbs.d/rxe.driver", b"driver rxe\n", 0o644)
    cpio.file("etc/passwd", b"root:x:0:0:root:/:/bin/sh\n", 0o644)
    cpio.file("etc/hosts", b"127.0.0.1 localhost\n", 0o644)
    for name, (sources, options) in own_programs(mpi_parts(work, files)).items():
        add_program(cpio, files, work, "bin/" + name, compiled(work, name, sources, *options))
    for module, ko in modules:
        cpio.file("modules/%s.ko" % module, ko, 0o644)
    cpio.file("modules/order", "\n".join(m for m, _ in modules).encode() + b"\n", 0o644)
    with open(os.path.join(HERE, "guest", "init"), "rb") as f:
        cpio.file("init", f.read())
    return cpio.done()


# ---- all of it ----------------------------------------------------------------------------------

def stamp(packages):
    """Changes with everything that the image is made of."""
    h = hashlib.sha256("\n".join(os.path.basename(p) for p in packages).encode())
    sources = [path for paths, _ in own_programs().values() for path in paths]
    for path in sorted({*glob.glob(os.path.join(HERE, "guest", "*")), *sources}) + [
            os.path.abspath(__file__)]:
        with open(path, "rb") as f:
            h.update(f.read())
    return h.hexdigest()


def write(path, data):
    with open(path + ".new", "wb") as f:
        f.write(data)
    os.replace(path + ".new", path)


def folder(directory=None):
    return directory or os.environ.get("INTEROP_BUILD") or \
        os.path.join(SOURCE_ROOT, "build", "interop")


def build(directory=None):
    """Make what is not there or out of date. @return (kernel, initramfs, kernel's package)."""
    directory = folder(directory)
    os.makedirs(directory, exist_ok=True)
    vmlinux, initramfs = (os.path.join(directory, n) for n in ("vmlinux", "initramfs"))
    with open(os.path.join(directory, "lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        packages = fetch(os.path.join(directory, "debs"))
        now = stamp(packages)
        mark = os.path.join(directory, "stamp")
        if not (os.path.exists(mark) and open(mark, encoding="ascii").read() == now):
            work = os.path.join(directory, "work")
            shutil.rmtree(work, ignore_errors=True)
            os.makedirs(work)
            elf, modules = kernel(packages[0])
            write(vmlinux, elf)
            write(initramfs, make_initramfs(work, packages[1:], modules))
            os.replace(os.path.join(work, "mpi-pair"), os.path.join(directory, "mpi-pair"))
            write(mark, now.encode())
            shutil.rmtree(work)
    return vmlinux, initramfs, os.path.basename(packages[0])


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ", 1)[1].rstrip())
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("directory", nargs="?")
    args = parser.parse_args()
    try:
        if args.missing:
            for package in wanted_packages(os.path.join(folder(args.directory), "debs"))[1]:
                print(package)
            return
        for path in build(args.directory):
            print(path)
    except ImageError as e:
        print("interop: %s" % e, file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
