# SPDX-License-Identifier: BSD-3-Clause
"""The documented fill pattern of a region (mr_fill), as many bytes at once as are wanted.

Byte i is the lowest of a hash of i and the seed, in 32-bit arithmetic. Python's integers of any
length do that for all bytes in a few operations: each has a lane of 64 bits, in whose upper half
nothing may stay.
"""
import struct

LANE = 8
_kept = {}          # seed: the pattern from 0 on, as far as it was asked for


def _hashed(seed, n):
    ones = int.from_bytes(struct.pack("<Q", 1) * n, "little")
    low = ones * 0xFFFFFFFF
    x = int.from_bytes(struct.pack("<%dQ" % n, *range(n)), "little")
    x = (x * 0x9E3779B1 & low) + ones * (seed * 0x85EBCA6B & 0xFFFFFFFF) & low
    x ^= x >> 15 & low
    x = x * 0x2C1B3C6D & low
    x ^= x >> 12 & low
    return x.to_bytes(LANE * n, "little")[::LANE]


def pattern(seed, length, first=0):
    """`length` bytes from `first` on."""
    out = _kept.get(seed, b"")
    if len(out) < first + length:
        out = _kept[seed] = _hashed(seed, max(first + length, 2 * len(out), 4096))
    return out[first:first + length]
