/* SPDX-License-Identifier: BSD-3-Clause */
/* A process of two, by OpenSHMEM: writes to the other one, reads from it, adds; looks at it all. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES 300000
#define ADDS  100

static unsigned char
byte_of(int pe, int at)
{
	return (unsigned char)(at * 7 + at / 251 + pe);
}

static long
wrong(const unsigned char *at, int pe)
{
	long n = 0;

	for (int i = 0; i < BYTES; i++)
		n += at[i] != byte_of(pe, i);
	return n;
}

int
main(void)
{
	unsigned char *mine, *written, *read = malloc(BYTES);
	long *sum, bad;
	int me, other;

	shmem_init();
	me = shmem_my_pe();
	other = 1 - me;
	mine = shmem_malloc(BYTES);
	written = shmem_malloc(BYTES);
	sum = shmem_malloc(sizeof(*sum));
	*sum = 0;
	memset(written, 0, BYTES);
	for (int i = 0; i < BYTES; i++)
		mine[i] = byte_of(me, i);
	shmem_barrier_all();
	shmem_putmem(written, mine, BYTES, other);
	shmem_getmem(read, mine, BYTES, other);
	for (int i = 0; i < ADDS; i++)
		shmem_long_atomic_fetch_add(sum, 1, 0);
	shmem_barrier_all();
	bad = wrong(written, other) + wrong(read, other) + (me == 0 && *sum != 2 * ADDS);
	printf("pe %d: %s\n", me, bad == 0 ? "good" : "bad");
	fflush(stdout);
	shmem_finalize();
	free(read);
	return bad != 0;
}
