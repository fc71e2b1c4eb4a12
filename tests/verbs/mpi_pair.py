# SPDX-License-Identifier: BSD-3-Clause
"""A rank of two: exchanges messages with the other one, and looks at every byte."""
import mmap
import sys

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, other = comm.rank, 1 - comm.rank


def pattern(who, turn, size):
    return bytes((who * 101 + turn * 7 + i) & 255 for i in range(251)) * (size // 251 + 1)


# Pages of their own: a region ends within a page where another one of the heap begins.
mine, got = (mmap.mmap(-1, 1 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) for _ in range(2))
for turn in range(64):
    size = (1, 100, 5000, 70000, 1 << 20)[turn % 5]
    mine[:size] = pattern(rank, turn, size)[:size]
    comm.Sendrecv([mine, size, MPI.BYTE], other, turn, [got, size, MPI.BYTE], other, turn)
    if got[:size] != pattern(other, turn, size)[:size]:
        print(f"rank {rank}: bad at message {turn} of {size} bytes", flush=True)
        sys.exit(comm.Abort(1))
total = comm.allreduce(rank + 1)
print(f"rank {rank}: {'good' if total == 3 else 'bad'}", flush=True)
