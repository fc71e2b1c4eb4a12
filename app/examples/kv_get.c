/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A key-value store that is read by RDMA READ: the server fills a table and then does nothing; the
 * other side hashes a key, reads the slot where it must be, and goes on to the next if it is not.
 */
#include <stdio.h>
#include <string.h>

#include "exchange.h"

#define SLOTS 256 /* power of two */

struct slot {
	char key[24]; /* "": empty, which ends a search */
	char value[40];
};

static const char *const pairs[][2] = { { "lane", "a QP" }, { "region", "memory with a key" },
	{ "ePSN", "the packet that a responder waits for" }, { "RNR", "try again later" },
	{ "syndrome", "what an AETH says" }, { "doorbell", "there is work in a queue" } };
#define PAIRS (sizeof(pairs) / sizeof(pairs[0]))

static uint32_t
hash(const char *key)
{
	uint32_t h = 2166136261u;

	for (; *key != '\0'; key++)
		h = (h ^ (uint8_t)*key) * 16777619u;
	return h % SLOTS;
}

static void
put(struct slot *table, const char *key, const char *value)
{
	uint32_t at = hash(key);

	while (table[at].key[0] != '\0')
		at = (at + 1) % SLOTS;
	snprintf(table[at].key, sizeof(table[at].key), "%s", key);
	snprintf(table[at].value, sizeof(table[at].value), "%s", value);
}

/* The peer's slot into our memory. */
static const struct slot *
fetch(struct end *e, uint32_t at)
{
	struct rl_sge sge = { (uintptr_t)e->mr->addr, sizeof(struct slot), e->mr->lkey };
	struct rl_send_wr wr = { .wr_id = at,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = RL_WR_RDMA_READ,
		.send_flags = RL_SEND_SIGNALED,
		.wr.rdma = { e->peer.addr + at * sizeof(struct slot), e->peer.rkey } };

	must(rl_post_send(e->qp, &wr, NULL), "rl_post_send");
	end_wait(e);
	return e->mr->addr;
}

/* @return the value, or NULL: there is none. */
static const char *
get(struct end *e, const char *key)
{
	for (uint32_t at = hash(key);; at = (at + 1) % SLOTS) {
		const struct slot *s = fetch(e, at);

		if (s->key[0] == '\0')
			return NULL;
		if (strcmp(s->key, key) == 0)
			return s->value;
	}
}

int
main(int argc, char **argv)
{
	struct end e;
	int wrong = 0;

	end_open(&e, argc, argv, SLOTS * sizeof(struct slot));
	for (unsigned int i = 0; i < PAIRS && e.serves; i++)
		put(e.mr->addr, pairs[i][0], pairs[i][1]);
	end_meet(&e);
	for (unsigned int i = 0; i < PAIRS && !e.serves; i++) {
		const char *value = get(&e, pairs[i][0]);

		printf("%s: %s\n", pairs[i][0], value != NULL ? value : "(nothing)");
		wrong += value == NULL || strcmp(value, pairs[i][1]) != 0;
	}
	if (!e.serves && get(&e, "no such key") != NULL)
		wrong++;
	end_meet(&e); /* the server's memory stays until we are done */
	end_close(&e);
	return wrong != 0;
}
