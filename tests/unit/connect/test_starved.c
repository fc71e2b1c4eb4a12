/* SPDX-License-Identifier: BSD-3-Clause */
/* A turn has time for what is due, whoever sends how much. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "connect_priv.h"

enum { LEN = 350, HOSTS = 8, TURNS = 3000, OWN_QPN = 0x777, PEER_QPN = 0x234, PEER_ID = 0x51 };

/* A client's connection that its peer has ended: all that is left of it is a timer. */
static struct cm_conn *
waits(struct cm *cm, ns_t now)
{
	const struct cm_ask ask = { .terms = { .qpn = OWN_QPN, .mtu = 4 }, .time = TIME_NS_PER_S };
	struct cm_verdict v;
	uint8_t mad[MAD_LEN];
	struct cm_packet p = { .mad = mad, .len = MAD_LEN };
	struct cm_conn *c;

	assert_int_equal(cm_connect(cm, &ask, now, &v), 0);
	c = v.conn;
	mad_init(mad, CM_REP, c->tid);
	mad_set(mad, REP_local_comm_id, PEER_ID);
	mad_set(mad, REP_remote_comm_id, c->local_id);
	mad_set(mad, REP_local_qpn, PEER_QPN);
	cm_receive(cm, &p, now, &v);
	assert_int_equal(c->state, CM_ESTABLISHED);
	mad_init(mad, CM_DREQ, c->tid);
	mad_set(mad, DREQ_local_comm_id, PEER_ID);
	mad_set(mad, DREQ_remote_comm_id, c->local_id);
	mad_set(mad, DREQ_remote_qpn, OWN_QPN);
	cm_receive(cm, &p, now, &v);
	assert_int_equal(c->state, CM_TIMEWAIT);
	return c;
}

/* CM-35: TIMEWAIT ends in its time while useless frames come, more than a turn takes. */
static void
CM_35_in_time_while_others_send(void **state)
{
	const struct cm_limits limits = { 64, 16, 1000 };
	static struct wire_port addr;
	static struct env env;
	struct connect *cx = calloc(1, sizeof(*cx));
	const struct cm_conn *c;

	(void)state;
	assert_non_null(cx);
	env.w.ports[0].addr = &addr;
	env.now = TIME_NS_PER_S;
	cx->env = &env;
	TAILQ_INIT(&cx->conns);
	TAILQ_INIT(&cx->ended);
	TAILQ_INIT(&cx->clients);
	TAILQ_INIT(&cx->resolving);
	TAILQ_INIT(&cx->bound);
	assert_int_equal(cm_init(&cx->cm, &limits, 42, 1, env.now), 0);
	c = waits(&cx->cm, env.now);
	for (uint32_t turn = 0; turn < TURNS && c->state == CM_TIMEWAIT; turn++) {
		env.now += TIME_NS_PER_MS;
		for (uint32_t i = 0; i < 2 * CONNECT_TURN; i++) {
			const uint8_t bytes[LEN] = { [11] = (uint8_t)(1 + i % HOSTS) };

			connect_frame(cx, 0, bytes, LEN);
			connect_data(cx, PEER_QPN + i);
		}
		connect_poll(cx);
	}
	assert_int_equal(c->state, CM_IDLE);
	assert_true(cx->inbox.n != 0 && cx->data.n != 0); /* there was no end to it */
	cm_fini(&cx->cm);
	free(cx);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(CM_35_in_time_while_others_send),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
