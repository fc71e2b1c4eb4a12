/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes from one device to another until one fails, with plain verbs and memory of malloc().
 *
 *     fragile RETRIES     exit status 0: all 200 went through; 3: one did not
 */
#include "ends.h"

/* Few: each waits for the other, and with them for the processor. */
#define WRITES 200
#define BYTES  512

int
main(int argc, char **argv)
{
	char *from = malloc(100000), *to = malloc(100000);
	struct ibv_mr *mr[2];
	struct end e[2];

	ends_open(e, argc > 1 ? atoi(argv[1]) : 7);
	CHECK((mr[0] = ibv_reg_mr(e[0].pd, from, BYTES, 0)) != NULL);
	CHECK((mr[1] = ibv_reg_mr(e[1].pd, to + 50000, BYTES, ALL_ACCESS)) != NULL);
	for (uint64_t i = 0; i < WRITES; i++) {
		struct ibv_wc wc;

		memset(from, (int)i, BYTES);
		wc = end_run(&e[0], IBV_WR_RDMA_WRITE, mr[0], from, BYTES, mr[1], to + 50000, i);
		if (wc.status != IBV_WC_SUCCESS) {
			printf("write %d failed: %s, vendor_err 0x%02x\n", (int)wc.wr_id,
				ibv_wc_status_str(wc.status), wc.vendor_err);
			return 3;
		}
		CHECK(memcmp(from, to + 50000, BYTES) == 0);
	}
	printf("all went through\n");
	return 0;
}
