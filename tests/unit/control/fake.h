/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FAKE_H
#define FAKE_H
/**
 * @file fake.h  A control whose workers are a mailbox only: attach, apply, flush, answer.
 *
 * Owner:   the test.
 * Memory:  fake_start() makes everything, fake_stop() gives it back.
 * Depends: control.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "control.h"
#include "qp.h"
#include "qp_control.h"
#include "qp_rule.h"
#include "qp_snapshot.h"

#define FAKE_WORKERS 2
#define FAKE_QPS     1024
#define FAKE_FRAMES  64
#define FAKE_ERRORS  64
#define FAKE_TRACE   64

struct fake_frame {
	uint16_t port;
	uint32_t len;
	uint8_t data[2048];
};

struct fake {
	struct conf *conf;
	struct env_wiring env;
	struct control *c;
	struct mbox mbox[FAKE_WORKERS];
	struct stats_block stats[FAKE_WORKERS];
	struct stats_block port_stats[FAKE_WORKERS];
	struct wire_port addr;
	struct wire_port addr2; /* of the second port, if the configuration has one: worker 1's */
	struct errbuf *errbuf[FAKE_WORKERS];
	struct trace *trace[FAKE_WORKERS];
	_Atomic bool stop;
	ns_t now;
	ns_t step;                   /* what each look at the clock adds */
	bool deaf;                   /* workers do not answer */
	bool deaf_one[FAKE_WORKERS]; /* this one does not */
	int refuse;                  /* rc of the next MODIFY */
	void (*hook)(void); /* called with each look at the mailboxes: what others do meanwhile */
	struct fake_frame frames[FAKE_FRAMES];
	uint32_t frames_n;
	bool tells_own; /* reports of a port's own groups are kept, too */
	uint32_t seen[MBOX_TYPE_MAX];
	uint32_t seen_by[FAKE_WORKERS][MBOX_TYPE_MAX];
	struct mbox_msg last; /* newest message but TX */
};

extern struct fake fake;

/** What the port of the next fake_start() is impaired by; NULL: it cannot be. */
extern const struct impair_ops *fake_port_impair;
extern void *fake_port_impair_ctx;
/** What the next fake_start() tells of multicast MACs; NULL: nobody. */
extern int (*fake_wire_groups)(void *ctx, uint32_t port, uint8_t (*macs)[6], uint32_t n);
/** What the devices of the next fake_start() carry. */
extern uint32_t fake_max_frame;
/** The next fake_start() is told to stop before it begins. */
extern bool fake_stopped;

/** EAL, once for the program; with a net_ring port that has DPDK id 0. */
int fake_eal(void **state);
int fake_eal_end(void **state);
/** Start with this text as configuration; NULL: one port, pd0, cq0. */
void fake_start(const char *conf);
void fake_start_env(const char *conf, int want_rc, bool no_socket);
void fake_stop(void);
/** No worker answers any more, and whoever waits for one has waited long enough at once. */
void fake_be_deaf(void);
/** They answer what they were asked and what comes, for some turns of a second each. */
void fake_hear_again(void);
/** cmocka fixtures around one test with the standard configuration. */
int fake_setup(void **state);
int fake_teardown(void **state);

/** Result of a method (release it); the test fails on an error. */
json_t *rpc_ok(const char *method, const char *params);
/** The code of an error that stands for an errno. */
#define REFUSED(e) (-32000 - (e))
/** Code of the error that a method answers; the test fails on a result. */
int rpc_code(const char *method, const char *params);
/** Message of the last error. */
const char *rpc_message(void);
/** Reply to a line as it stands, or NULL. */
json_t *rpc_raw(const char *line, size_t len);
/** Everything that can be listed, as text (free() it): to see that nothing changed. */
char *everything(void);

/** The worker of a QP, which must be there. */
uint32_t worker_of(uint32_t qpn);
/** All events that wait, as they are told (release them); they are gone then. */
json_t *events(void);
size_t count_events(void);

/** RTS QP 17 with destination MAC given. */
extern const char qp17[];
const char *text_of(const json_t *o, const char *key);
json_int_t number_of(const json_t *o, const char *key);

/** One's complement checksum of IP and what is in it, `sum` carried in; not frames_checksum(). */
static inline uint16_t
fake_sum16(const uint8_t *p, uint32_t len, uint32_t sum)
{
	for (uint32_t i = 0; i < len; i++)
		sum += i % 2 == 0 ? (uint32_t)p[i] << 8 : p[i];
	while (sum > 0xffff)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/** A worker has dropped a packet for these reasons. */
static inline void
fake_drop(unsigned int worker, uint32_t psn, uint64_t faults, uint8_t charged)
{
	struct errbuf_record *r = trace_errbuf_slot(fake.errbuf[worker]);

	assert_non_null(r);
	*r = (struct errbuf_record){ .time_ns = psn,
		.faults = faults,
		.qpn = 17,
		.psn = psn,
		.frame_len = 300,
		.header_len = 3,
		.opcode = OP_RC_SEND_ONLY,
		.charged = charged,
		.header = { 1, 2, 0xff } };
	trace_errbuf_commit(fake.errbuf[worker]);
}

#endif
