/* SPDX-License-Identifier: BSD-3-Clause */
#include "impair_log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler.h"

#define BUCKETS (IMPAIR_SEEN / IMPAIR_SEEN_WAYS)

struct seen {
	uint64_t key; /* 0: free */
	uint32_t count;
	uint32_t when; /* low bits of impair_log.packets */
};

/* Words, not records: a reader may meet the writer at any of them. */
struct slot {
	_Atomic uint64_t word[IMPAIR_RECORD_WORDS];
};

struct impair_log {
	_Atomic uint64_t head; /* records ever written */
	uint32_t mask;
	uint32_t packets; /* seen, modulo 2^32 */
	struct seen seen[BUCKETS][IMPAIR_SEEN_WAYS];
	struct slot slots[];
};

struct impair_log *
impair_log_create(uint32_t size)
{
	struct impair_log *log = calloc(1, sizeof(*log) + 2 * (size_t)size * sizeof(struct slot));

	if (log != NULL)
		log->mask = 2 * size - 1; /* half of it a reader may rely on */
	return log;
}

void
impair_log_destroy(struct impair_log *log)
{
	free(log);
}

/** PSNs in a row have buckets in a row: the CPU fetches the next one by itself. */
static uint32_t
bucket_of(const struct impair_pkt *p)
{
	const uint64_t flow = (uint64_t)p->qpn << 8 | p->opcode;

	return (uint32_t)((flow * UINT64_C(0x9e3779b97f4a7c15) >> 32) + p->psn) % BUCKETS;
}

uint32_t
impair_log_seen(struct impair_log *log, const struct impair_pkt *p)
{
	uint64_t key = BIT64(63) | (uint64_t)p->opcode << 48 | (uint64_t)p->qpn << 24 | p->psn;
	struct seen *b = log->seen[bucket_of(p)];
	struct seen *oldest = b;

	log->packets++;
	for (uint32_t i = 0; i < IMPAIR_SEEN_WAYS; i++) {
		if (b[i].key == key) {
			b[i].when = log->packets;
			return ++b[i].count;
		}
		if (oldest->key != 0 &&
			(b[i].key == 0 || log->packets - b[i].when > log->packets - oldest->when))
			oldest = &b[i];
	}
	*oldest = (struct seen){ .key = key, .count = 1, .when = log->packets };
	return 1;
}

void
impair_log_add(struct impair_log *log, const struct impair_record *r)
{
	uint64_t head = atomic_load_explicit(&log->head, memory_order_relaxed);
	struct slot *s = &log->slots[head & log->mask];
	uint64_t word[IMPAIR_RECORD_WORDS];

	memcpy(word, r, sizeof(word));
	/* A reader that sees a word of this record also sees that it is being written. */
	atomic_thread_fence(memory_order_release);
	for (uint32_t i = 0; i < IMPAIR_RECORD_WORDS; i++)
		atomic_store_explicit(&s->word[i], word[i], memory_order_relaxed);
	atomic_store_explicit(&log->head, head + 1, memory_order_release);
}

uint64_t
impair_log_head(const struct impair_log *log)
{
	return atomic_load_explicit(&log->head, memory_order_acquire);
}

uint32_t
impair_log_read(
	const struct impair_log *log, uint64_t *from, struct impair_record *out, uint32_t max)
{
	const uint64_t slots = (uint64_t)log->mask + 1;
	uint64_t head = impair_log_head(log);
	uint64_t first = *from, gone;
	uint32_t n;

	if (first > head)
		first = head;
	if (head - first > slots / 2)
		first = head - slots / 2;
	n = head - first < max ? (uint32_t)(head - first) : max;
	for (uint32_t i = 0; i < n; i++) {
		const struct slot *s = &log->slots[(first + i) & log->mask];
		uint64_t word[IMPAIR_RECORD_WORDS];

		for (uint32_t w = 0; w < IMPAIR_RECORD_WORDS; w++)
			word[w] = atomic_load_explicit(&s->word[w], memory_order_relaxed);
		memcpy(&out[i], word, sizeof(word));
	}
	*from = first + n;

	/* The writer may be at the record of the new index: whatever that replaces is not whole. */
	atomic_thread_fence(memory_order_acquire);
	head = atomic_load_explicit(&log->head, memory_order_relaxed);
	gone = head + 1 > first + slots ? head + 1 - first - slots : 0;
	if (gone == 0)
		return n;
	if (gone >= n)
		return 0;
	memmove(out, out + gone, (n - gone) * sizeof(*out));
	return n - (uint32_t)gone;
}

/* ---- the log as a script --------------------------------------------------------------------- */

struct impair_rule
impair_record_rule(const struct impair_record *r)
{
	struct impair_rule rule = { .action = r->action, .times = 1 };

	if ((r->kind & IMPAIR_PKT_ROCE) != 0) {
		rule.given = IMPAIR_GIVEN_QP_NUM | IMPAIR_GIVEN_PSN | IMPAIR_GIVEN_OPCODE;
		rule.qp_num = r->qpn;
		rule.psn = r->psn;
		rule.opcode = r->opcode;
		rule.skip = r->nth != 0 ? r->nth - 1 : 0;
	} else {
		rule.frames = IMPAIR_FRAMES_ALL;
		rule.packet = r->packet;
	}
	switch (r->action) {
	case IMPAIR_DUPLICATE:
		rule.copies = r->arg;
		rule.delay_us = r->arg2;
		break;
	case IMPAIR_REORDER:
		rule.distance = r->arg;
		rule.hold_us = r->arg2;
		break;
	case IMPAIR_CORRUPT:
		rule.given |= IMPAIR_GIVEN_OFFSET;
		rule.offset = r->arg;
		rule.xor_mask = r->mask;
		break;
	case IMPAIR_DELAY:
		rule.delay_us = r->arg;
		break;
	default:
		break;
	}
	return rule;
}

int
impair_log_print(const struct impair_log *log, char *buf, size_t room)
{
	const uint32_t max = (log->mask + 1) / 2;
	struct impair_record *r = malloc(max * sizeof(*r));
	char line[IMPAIR_RECORD_MAX];
	size_t len = 0;
	uint64_t from = 0;
	uint32_t n;

	if (r == NULL)
		return -ENOMEM;
	n = impair_log_read(log, &from, r, max);
	for (uint32_t i = 0; i <= n + 1; i++) {
		size_t left = len < room ? room - len : 0;
		const char *end = i < n ? ",\n" : "\n";

		if (i == 0) {
			snprintf(line, sizeof(line), "{\"seed\": 0, \"rules\": [");
		} else if (i <= n) {
			struct impair_rule rule = impair_record_rule(&r[i - 1]);

			impair_rule_print(&rule, line, sizeof(line));
		} else {
			snprintf(line, sizeof(line), "]}");
		}
		if (i == 0)
			end = "\n";
		len += (size_t)snprintf(left != 0 ? buf + len : NULL, left, "%s%s", line, end);
	}
	free(r);
	return (int)len;
}
