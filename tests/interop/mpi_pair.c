/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank of two: exchanges messages with the other one and writes into its memory, and looks at
 * every byte. Built with the header of the package that the guest's libmpi is of.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define LONGEST (1 << 20)
#define TURNS   40

static const int sizes[] = { 1, 100, 5000, 70000, LONGEST };

static uint8_t
byte_of(int rank, int turn, int at)
{
	return (uint8_t)(rank * 101 + turn * 7 + at % 251);
}

static void
fill(uint8_t *to, int rank, int turn, int size)
{
	for (int i = 0; i < size; i++)
		to[i] = byte_of(rank, turn, i);
}

static void
check(const uint8_t *got, int rank, int turn, int size, const char *what)
{
	for (int i = 0; i < size; i++) {
		if (got[i] == byte_of(rank, turn, i))
			continue;
		printf("bad: %s %d of %d bytes, at %d\n", what, turn, size, i);
		fflush(stdout);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

static void
messages(int rank, uint8_t *mine, uint8_t *got)
{
	for (int turn = 0; turn < TURNS; turn++) {
		const int size = sizes[turn % 5];

		fill(mine, rank, turn, size);
		MPI_Sendrecv(mine, size, MPI_BYTE, 1 - rank, turn, got, size, MPI_BYTE, 1 - rank,
			turn, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		check(got, 1 - rank, turn, size, "message");
	}
}

/* What each wrote into the other's memory, and read back from there. */
static void
memory(int rank, uint8_t *mine, uint8_t *got)
{
	uint8_t *base;
	MPI_Win win;

	MPI_Win_allocate(LONGEST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
	for (int turn = 0; turn < 5; turn++) {
		const int size = sizes[turn];

		fill(mine, rank, turn, size);
		MPI_Win_fence(0, win);
		MPI_Put(mine, size, MPI_BYTE, 1 - rank, 0, size, MPI_BYTE, win);
		MPI_Win_fence(0, win);
		check(base, 1 - rank, turn, size, "write");
		MPI_Get(got, size, MPI_BYTE, 1 - rank, 0, size, MPI_BYTE, win);
		MPI_Win_fence(0, win);
		check(got, rank, turn, size, "read");
	}
	MPI_Win_free(&win);
}

int
main(int argc, char **argv)
{
	uint8_t *mine = malloc(LONGEST), *got = malloc(LONGEST);
	int rank, total = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	messages(rank, mine, got);
	memory(rank, mine, got);
	MPI_Allreduce(&(int){ rank + 1 }, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	printf("rank %d: %s\n", rank, total == 3 ? "good" : "bad");
	fflush(stdout);
	MPI_Finalize();
	free(mine);
	free(got);
	return total != 3;
}
