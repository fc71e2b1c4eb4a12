# SPDX-License-Identifier: BSD-3-Clause
"""Code paths on which the same rules hold, and which of them a run of tests/stepped takes.

A variant is a list as "errbuf=off,workers=2,ip=6", in ROCELANE_STEPPED_VARIANT; what it does not
name is as it is by default. It changes the configuration, the queue pairs and the peer's frames;
what is expected stays. A test that is about one value says so (FIXED of its class, @fixed on the
test) and runs with that one in every variant.
"""
import contextlib
import itertools
import os

# What a run can choose; the first is the default. Widths of vector registers: headers are read with
# AVX-512, AVX2 at 256, without either at 128. A machine without AVX-512 does the same at 512 as at
# 256.
OPTIONS = {
    "errbuf": ("on", "off"),        # headers of dropped packets are kept
    "trace": ("off", "on"),         # the flight recorder writes down what happens to each QP
    "workers": ("1", "2"),          # 2: a port's packets come to one, its QPs belong to the other
    "ip": ("4", "6"),
    "vlan": ("none", "7"),
    "qps": ("1", "256"),            # 256: each QP is the first of as many of one template: compact
    "simd": ("512", "256", "128", "64"),
}

# Each pair of values is in one of these or in the run by default.
COVERING = (
    "errbuf=off,trace=on,workers=2,ip=6,vlan=7,qps=256",
    "simd=256,workers=2,vlan=7,qps=256",
    "simd=256,errbuf=off,trace=on,ip=6",
    "simd=128,trace=on,ip=6,qps=256",
    "simd=128,errbuf=off,workers=2,vlan=7",
    "simd=64,errbuf=off,ip=6,vlan=7",
    "simd=64,trace=on,workers=2,qps=256",
)

# Each value is in one of these or in the run by default. The rest of COVERING is for --long.
BRIEF = (
    "simd=256,workers=2,vlan=7,qps=256",
    "simd=128,trace=on,ip=6,qps=256",
    "simd=64,errbuf=off,ip=6,vlan=7",
)

# Each value but those of simd is in this or in the run by default; unit tests have 64 and 256.
SANITIZED = (
    "simd=64,errbuf=off,trace=on,workers=2,ip=6,vlan=7,qps=256",
)


def read(text):
    """{option: value} of a variant's text, all options in it."""
    chosen = {name: values[0] for name, values in OPTIONS.items()}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if value not in OPTIONS.get(name, ()):
            raise ValueError("variant %r: %r is none of %s" % (text, part, ", ".join(
                "%s=%s" % (n, "|".join(v)) for n, v in OPTIONS.items())))
        chosen[name] = value
    return chosen


def every():
    """All combinations, as texts."""
    for values in itertools.product(*OPTIONS.values()):
        yield ",".join("%s=%s" % pair for pair in zip(OPTIONS, values))


def uncovered(texts):
    """Pairs of (option, value) that none of these variants has, nor the run by default."""
    runs = [set(read(text).items()) for text in ("", *texts)]
    pairs = itertools.combinations([(n, v) for n, values in OPTIONS.items() for v in values], 2)
    return [(a, b) for a, b in pairs if a[0] != b[0] and not any(a in r and b in r for r in runs)]


now = read(os.environ.get("ROCELANE_STEPPED_VARIANT", ""))


@contextlib.contextmanager
def held(fixed):
    """These options have these values for a while."""
    before = dict(now)
    now.update(read(",".join("%s=%s" % pair for pair in {**before, **fixed}.items())))
    try:
        yield
    finally:
        now.update(before)


def fixed(**options):
    """A test that is about these values. Only what a QP has can differ from its class's."""
    assert set(options) <= {"ip", "vlan", "qps", "trace"}, options

    def mark(test):
        test.variant_fixed = options
        return test
    return mark


def is_default():
    """Has the run chosen nothing? What a test holds (FIXED, @fixed) counts as well."""
    return all(now[name] == values[0] for name, values in OPTIONS.items())


def v6():
    return now["ip"] == "6"


def vlan():
    """The tag of the tester's and the DUT's frames, or None."""
    return None if now["vlan"] == "none" else int(now["vlan"])


def qps():
    return int(now["qps"])


def errbuf():
    return now["errbuf"] == "on"


def handed_over():
    """Do packets come to another worker than their QP's?"""
    return now["workers"] == "2"


def traced():
    return now["trace"] == "on"


def config(base):
    """A configuration as the variant wants it."""
    base = dict(base)
    if not errbuf():
        base.pop("error_buffer", None)
    if handed_over() and len(base["lcores"]["workers"]) == 1:
        base["lcores"] = dict(base["lcores"], workers=[1, 2])
    if now["simd"] != "512":
        base["eal"] = base["eal"] + ["--force-max-simd-bitwidth=" + now["simd"]]
    return base
