/* SPDX-License-Identifier: BSD-3-Clause */
/* Two QPs from RESET to RTS, work both ways, and an end: in peace, or in the middle of it. */
#include <string.h>

#include "churn.h"

#define VA(key)        ((key) << 20)
#define KEY_A          0x101ull
#define KEY_B          0x202ull
#define REGION         65536
#define QPN_BASE       0x100u
#define QPN_RANGE      (1u << 22)
#define STEP_NS        (200 * TIME_NS_PER_US)
#define PATIENCE       5000 /* steps */
#define STATUS_ERR_MAX 22

enum end {
	END_PEACE,   /* all done, then destroyed */
	END_BUSY,    /* destroyed with work outstanding */
	END_BAD_KEY, /* the peer refuses a request: ERR, the rest is flushed */
	END_ERR,     /* to ERR by hand with work outstanding */
	END_RESET,   /* to RESET by hand with work outstanding */
	END_ALONE,   /* the peer is destroyed first: retries run out */
	END_LOCAL,   /* a bad local key behind good work */
	END_FEED,    /* feeds on both sides, destroyed while they run */
	END_MAX
};

static const char *const ends[END_MAX] = { "in peace", "destroyed busy", "bad rkey", "ERR by hand",
	"RESET by hand", "peer gone", "bad lkey", "feeds" };

struct pair {
	uint32_t a;
	uint32_t b;
	enum end end;
	const char *cq;
};

void
churn_objects(struct churn *c)
{
	static const char access[] =
		"[\"LOCAL_WRITE\", \"REMOTE_READ\", \"REMOTE_WRITE\", \"REMOTE_ATOMIC\"]";

	for (uint32_t i = 0; i < 2; i++) {
		unsigned long long key = i == 0 ? KEY_A : KEY_B;

		churn_do(c, "mr_register",
			"\"name\": \"%c\", \"pd\": \"pd0\", \"length\": %d, \"addr\": %llu,"
			" \"rkey\": %llu, \"access\": %s",
			"ab"[i], REGION, VA(key), key, access);
	}
	churn_do(c, "cq_create", "\"name\": \"cq\", \"cqe\": 1024");
}

/* ---- the QPs --------------------------------------------------------------------------------- */

/* With threads a timeout of 34 ms is four turns of each at the least, and so is each retry. */
static void
make_qp(struct churn *c, const struct pair *p, uint32_t side, const char *more)
{
	uint32_t timeout = c->threads ? 13 : 8;
	uint32_t retries = !c->threads ? 1 : p->end == END_ALONE ? 3 : 7;
	static const char rights[] = "[\"REMOTE_READ\", \"REMOTE_WRITE\", \"REMOTE_ATOMIC\"]";
	const char *mac = churn_random(c, 2) != 0 ? "null"
			  : side == 0             ? "\"02:00:00:00:00:12\""
						  : "\"02:00:00:00:00:11\"";

	churn_do(c, "qp_create",
		"\"qp_num\": %u, \"dest_qp_num\": %u, \"qp_type\": \"RC\", \"pd\": \"pd0\","
		" \"send_cq\": \"%s\", \"recv_cq\": \"%s\", \"qp_state\": \"RTS\","
		" \"port\": \"p%u\", \"worker\": %u, \"sq_psn\": %u, \"rq_psn\": %u,"
		" \"ah_attr\": {\"dest_ip\": \"192.0.2.%u\", \"dest_mac\": %s},"
		" \"timeout\": %u, \"retry_cnt\": %u, \"min_rnr_timer\": 1, \"sq_sig_all\": true,"
		" \"qp_access_flags\": %s%s",
		side == 0 ? p->a : p->b, side == 0 ? p->b : p->a, p->cq, p->cq, side,
		churn_random(c, CHURN_WORKERS), 0xfffff0 + side, 0xfffff1 - side, 2 - side, mac,
		timeout, retries, rights, more);
	c->qps++;
}

static void
destroy(struct churn *c, uint32_t qpn)
{
	churn_do(c, "qp_destroy", "\"qp_num\": %u", qpn);
}

/* ---- work ------------------------------------------------------------------------------------ */

/* WRITE, READ, SEND and an atomic of this side: four completions, and one at the peer. */
static void
post(struct churn *c, const struct pair *p, uint32_t side, uint32_t len)
{
	unsigned long long key = side == 0 ? KEY_B : KEY_A, va = VA(key);
	char mr = "ab"[side], far = "ba"[side];

	churn_do(c, "post_recv",
		"\"qp_num\": %u, \"wrs\": [{\"wr_id\": 9, \"sg_list\":"
		" [{\"mr\": \"%c\", \"offset\": 40000, \"length\": 20000}]}]",
		side == 0 ? p->b : p->a, far);
	churn_do(c, "post_send",
		"\"qp_num\": %u, \"wrs\": ["
		"{\"wr_id\": 1, \"opcode\": \"RDMA_WRITE\", \"rkey\": %llu, \"remote_addr\": %llu,"
		" \"sg_list\": [{\"mr\": \"%c\", \"offset\": 0, \"length\": %u}]},"
		"{\"wr_id\": 2, \"opcode\": \"RDMA_READ\", \"rkey\": %llu, \"remote_addr\": %llu,"
		" \"sg_list\": [{\"mr\": \"%c\", \"offset\": 20000, \"length\": %u}]},"
		"{\"wr_id\": 3, \"opcode\": \"SEND\","
		" \"sg_list\": [{\"mr\": \"%c\", \"offset\": 0, \"length\": %u}]},"
		"{\"wr_id\": 4, \"opcode\": \"ATOMIC_FETCH_AND_ADD\", \"compare_add\": 1,"
		" \"rkey\": %llu, \"remote_addr\": %llu,"
		" \"sg_list\": [{\"mr\": \"%c\", \"offset\": 65000, \"length\": 8}]}]",
		side == 0 ? p->a : p->b, key, va + 1000, mr, len, key, va + 100, mr, len, mr, len,
		key, va + 64000, mr);
}

static void
post_one(struct churn *c, uint32_t qpn, unsigned long long rkey, unsigned long long lkey)
{
	churn_do(c, "post_send",
		"\"qp_num\": %u, \"wrs\": [{\"wr_id\": 5, \"opcode\": \"RDMA_WRITE\","
		" \"rkey\": %llu, \"remote_addr\": %llu,"
		" \"sg_list\": [{\"lkey\": %llu, \"addr\": %llu, \"length\": 64}]}]",
		qpn, rkey, VA(KEY_B), lkey, VA(KEY_A));
}

static uint32_t
status_of(const json_t *completion)
{
	static const char *const names[] = { "SUCCESS", "LOC_LEN_ERR", "LOC_QP_OP_ERR",
		"LOC_EEC_OP_ERR", "LOC_PROT_ERR", "WR_FLUSH_ERR", "MW_BIND_ERR", "BAD_RESP_ERR",
		"LOC_ACCESS_ERR", "REM_INV_REQ_ERR", "REM_ACCESS_ERR", "REM_OP_ERR",
		"RETRY_EXC_ERR", "RNR_RETRY_EXC_ERR" };
	const char *s = json_string_value(json_object_get(completion, "status"));

	for (uint32_t i = 0; s != NULL && i < ARRAY_LEN(names); i++)
		if (strcmp(s, names[i]) == 0)
			return i;
	return STATUS_ERR_MAX - 1;
}

/* What there is now. @return completions with `status`. */
static uint32_t
poll_some(struct churn *c, const struct pair *p, uint32_t status, uint32_t *all)
{
	json_t *list = churn_call(c, "poll_cq", "\"cq\": \"%s\", \"max\": 256", p->cq);
	uint32_t n = 0;

	for (size_t i = 0; i < json_array_size(list); i++) {
		uint32_t s = status_of(json_array_get(list, i));

		c->done[s]++;
		n += s == status;
	}
	*all += (uint32_t)json_array_size(list);
	json_decref(list);
	return n;
}

/* Until `want` completions have come, `of` of them with `status`. */
static void
reap(struct churn *c, const struct pair *p, uint32_t want, uint32_t status, uint32_t of)
{
	uint32_t all = 0, n = 0;

	for (uint32_t i = 0; i < PATIENCE && all < want; i++) {
		n += poll_some(c, p, status, &all);
		if (all < want)
			churn_run(c, STEP_NS);
	}
	if (all != want || n != of)
		churn_die(c, "%s: %u completions, not %u; %u of status %u, not %u", ends[p->end],
			all, want, n, status, of);
}

static void
to_state(struct churn *c, uint32_t qpn, const char *state)
{
	churn_do(c, "qp_modify", "\"qp_num\": %u, \"qp_state\": \"%s\"", qpn, state);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

enum { SUCCESS = 0, LOC_PROT = 4, FLUSH = 5, REM_ACCESS = 10, RETRY_EXC = 12 };

/* New bytes over, and back by the READ of what lies there. */
static void
see_data_moved(struct churn *c, const struct pair *p)
{
	char hex[33];
	json_t *o;

	for (uint32_t i = 0; i < 32; i++)
		hex[i] = "0123456789abcdef"[churn_random(c, 16)];
	hex[32] = '\0';
	churn_do(c, "mr_write", "\"name\": \"a\", \"offset\": 0, \"data\": \"%s\"", hex);
	post_one(c, p->a, KEY_B, KEY_A);
	reap(c, p, 1, SUCCESS, 1);
	o = churn_call(c, "mr_read", "\"name\": \"b\", \"offset\": 0, \"length\": 16");
	if (strcmp(json_string_value(json_object_get(o, "data")), hex) != 0)
		churn_die(c, "other bytes have arrived");
	json_decref(o);
}

/* One of the ends that are not in peace. */
static void
trouble(struct churn *c, const struct pair *p, uint32_t len)
{
	switch (p->end) {
	case END_BUSY:
	case END_ERR:
	case END_RESET:
		post(c, p, 0, len);
		post(c, p, 1, len);
		churn_turn(c, churn_random(c, 4));
		if (p->end != END_BUSY)
			to_state(c, p->a, p->end == END_ERR ? "ERR" : "RESET");
		break;
	case END_BAD_KEY:
		post_one(c, p->a, KEY_B + 1, KEY_A);
		post_one(c, p->a, KEY_B, KEY_A);
		reap(c, p, 2, REM_ACCESS, 1);
		break;
	case END_LOCAL:
		post_one(c, p->a, KEY_B, KEY_A);
		post_one(c, p->a, KEY_B, KEY_A + 1);
		reap(c, p, 2, LOC_PROT, 1);
		break;
	default:
		break;
	}
}

static void
end_alone(struct churn *c, const struct pair *p)
{
	destroy(c, p->b);
	post_one(c, p->a, KEY_B, KEY_A);
	post_one(c, p->a, KEY_B, KEY_A);
	reap(c, p, 2, RETRY_EXC, 1);
	destroy(c, p->a);
}

static void
run_feeds(struct churn *c, const struct pair *p)
{
	make_qp(c, p, 1, ", \"recv_feed\": {\"buffers\": 16, \"size\": 4096}");
	make_qp(c, p, 0,
		", \"send_feed\": {\"opcode\": \"SEND\", \"size\": 3000, \"depth\": 8,"
		" \"count\": 500}");
	churn_turn(c, churn_random(c, 40));
}

static void
forget_completions(struct churn *c, const struct pair *p)
{
	uint32_t before, all = 0;

	do {
		before = all;
		poll_some(c, p, SUCCESS, &all);
	} while (all != before);
}

static void
forget_events(struct churn *c)
{
	size_t n;

	do {
		json_t *list = churn_call(c, "async_events", "\"max\": 64");

		n = json_array_size(list);
		json_decref(list);
	} while (n != 0);
}

static void
run_pair(struct churn *c, const struct pair *p)
{
	uint32_t len = 1 + churn_random(c, 12000);

	if (p->end == END_FEED) {
		run_feeds(c, p);
	} else {
		make_qp(c, p, 0, "");
		make_qp(c, p, 1, "");
		post(c, p, 0, len);
		post(c, p, 1, len);
		reap(c, p, 10, SUCCESS, 10);
		see_data_moved(c, p);
		trouble(c, p, len);
	}
	if (p->end == END_ALONE) {
		end_alone(c, p);
		return;
	}
	if (churn_random(c, 2) != 0) {
		destroy(c, p->a);
		destroy(c, p->b);
	} else {
		destroy(c, p->b);
		destroy(c, p->a);
	}
}

void
churn_round(struct churn *c)
{
	struct pair p = { .end = churn_random(c, END_MAX), .cq = "cq" };
	bool own_cq = churn_random(c, 8) == 0;

	p.a = QPN_BASE + 2 * churn_random(c, QPN_RANGE);
	p.b = p.a + 1;
	if (own_cq) {
		p.cq = "once";
		churn_do(c, "cq_create", "\"name\": \"once\", \"cqe\": 64");
	}
	run_pair(c, &p);
	forget_completions(c, &p);
	if (own_cq)
		churn_do(c, "cq_destroy", "\"name\": \"once\"");
	forget_events(c);
	c->how[p.end]++;
}

void
churn_print_rounds(const struct churn *c)
{
	for (uint32_t i = 0; i < END_MAX; i++)
		printf("%s: %llu, ", ends[i], (unsigned long long)c->how[i]);
	printf("\ncompletions: %llu success, %llu flushed, %llu refused by the peer, "
	       "%llu local protection, %llu out of retries\n",
		(unsigned long long)c->done[SUCCESS], (unsigned long long)c->done[FLUSH],
		(unsigned long long)c->done[REM_ACCESS], (unsigned long long)c->done[LOC_PROT],
		(unsigned long long)c->done[RETRY_EXC]);
}
