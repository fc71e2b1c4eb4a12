/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_mbuf.h>

#include "../../clib/ah_table.h"
#include "../../clib/eal.h"
#include "../../clib/own_report.h"
#include "crc_isal.h"
#include "log.h"

struct fake fake;
const struct impair_ops *fake_port_impair;
void *fake_port_impair_ctx;
int (*fake_wire_groups)(void *ctx, uint32_t port, uint8_t (*macs)[6], uint32_t n);
uint32_t fake_max_frame = 1514;
bool fake_stopped;

static struct rte_mempool *pool;
static char message[1024];

const char qp17[] =
	"{\"qp_num\":17,\"qp_type\":\"RC\",\"port\":\"p0\",\"pd\":\"pd0\",\"send_cq\":\"cq0\","
	"\"recv_cq\":\"cq0\",\"qp_state\":\"RTS\",\"path_mtu\":1024,\"dest_qp_num\":18,"
	"\"rq_psn\":100,\"sq_psn\":200,\"qp_access_flags\":[\"REMOTE_READ\"],"
	"\"ah_attr\":{\"dest_ip\":\"10.0.0.2\",\"dest_mac\":\"02:00:00:00:00:02\"},"
	"\"cap\":{\"max_recv_wr\":4,\"max_recv_sge\":2}}";

static const char plain[] =
	"{\"version\":1,\"lcores\":{\"control\":0,\"workers\":[1,2]},"
	"\"ports\":[{\"name\":\"p0\",\"device\":\"net_ring0\",\"ipv4\":\"10.0.0.1\","
	"\"ipv6\":\"fd00::1\",\"mtu\":1500,"
	"\"neighbors\":[{\"ipv4\":\"10.0.0.9\",\"mac\":\"02:00:00:00:00:09\"}]}],"
	"\"error_buffer\":{\"entries\":64},"
	"\"pds\":[\"pd0\"],\"cqs\":[{\"name\":\"cq0\",\"cqe\":16}]}";

static void
sink_quiet(void *ctx UNUSED, enum log_level level UNUSED, const char *line UNUSED)
{
}

int
fake_eal(void **state UNUSED)
{
	/* One lcore, on a CPU that is allowed. */
	char prefix[64], lcores[32], vdev[] = "--vdev=net_ring0";
	char *argv[] = { (char *)"t", (char *)"--no-huge", (char *)"--no-shconf",
		(char *)"--no-pci", (char *)"--no-telemetry", (char *)"-m", (char *)"64",
		(char *)"--log-level=error", lcores, prefix, vdev, NULL };

	snprintf(lcores, sizeof(lcores), "--lcores=0@%d", sched_getcpu());
	snprintf(prefix, sizeof(prefix), "--file-prefix=rlcontrol%d", (int)getpid());
	log_set_sink(sink_quiet, NULL);
	if (eal_init_anywhere((int)ARRAY_LEN(argv) - 1, argv) < 0)
		return -1;
	rmdir(rte_eal_get_runtime_dir()); /* nothing is in it */
	pool = rte_pktmbuf_pool_create("fake", 1023, 0, 0, 4096, SOCKET_ID_ANY);
	return pool != NULL ? 0 : -1;
}

int
fake_eal_end(void **state UNUSED)
{
	/* Every frame that was handed to a worker has been given back. */
	if (rte_mempool_in_use_count(pool) != 0)
		return -1;
	return rte_eal_cleanup();
}

static ns_t
clock_of(void)
{
	fake.now += fake.step;
	return fake.now;
}

static void
flush_qp(struct qp *qp)
{
	while (ring_consume_count(&qp->rq) > 0) {
		const struct ring_recv_wqe *wqe = ring_consume_peek(&qp->rq, 0);
		const struct ring_cqe cqe = {
			.wr_id = wqe->wr_id, .status = 5, .opcode = 128, .qp_num = qp->qpn
		};

		ring_cq_push(&qp->recv_cq->ring, &cqe);
		ring_consume_done(&qp->rq, 1);
	}
}

/* As a worker does it: to ERR, with the status for the request that the event names. */
static int
fail_qp(const struct mbox_fail *how, bool *carried)
{
	struct qp *qp = how->qp;
	const uint32_t n = ring_consume_count(&qp->rq);

	if (atomic_load(&qp->state) == QPS_ERR)
		return -EALREADY;
	atomic_store(&qp->state, QPS_ERR);
	for (uint32_t i = 0; i < n; i++) {
		const struct ring_recv_wqe *wqe = ring_consume_peek(&qp->rq, i);
		const bool failing = (how->queue & AEQ_RQ) != 0 && how->wqe_index == i;
		const struct ring_cqe cqe = { .wr_id = wqe->wr_id,
			.status = failing ? how->status : 5,
			.opcode = 128,
			.qp_num = qp->qpn };

		*carried |= failing;
		ring_cq_push(&qp->recv_cq->ring, &cqe);
	}
	ring_consume_done(&qp->rq, n);
	return 0;
}

static void
take_frame(const struct mbox_msg *m)
{
	const struct rte_mbuf *sent = m->tx.m;
	struct fake_frame *f;

	if (!fake.tells_own &&
		is_own_report(rte_pktmbuf_mtod(sent, const uint8_t *), sent->data_len)) {
		rte_pktmbuf_free(m->tx.m);
		return;
	}
	f = &fake.frames[fake.frames_n++ % FAKE_FRAMES];
	f->port = m->tx.port;
	f->len = rte_pktmbuf_pkt_len(m->tx.m);
	memcpy(f->data, rte_pktmbuf_mtod(m->tx.m, const uint8_t *),
		f->len < sizeof(f->data) ? f->len : sizeof(f->data));
	rte_pktmbuf_free(m->tx.m);
}

static int
serve(const struct mbox_msg *m, struct mbox_done *out)
{
	int rc;

	switch (m->type) {
	case MBOX_QP_ATTACH:
		qp_configure(m->attach.qp, m->attach.settings);
		return qp_table_insert(fake.env.qps, m->attach.qp);
	case MBOX_QP_DETACH:
		qp_table_remove(fake.env.qps, m->qp.qp);
		return 0;
	case MBOX_QP_MODIFY:
		rc = fake.refuse;
		fake.refuse = 0;
		if (rc != 0)
			return rc;
		qp_apply(m->modify.qp, m->modify.attr, m->modify.mask);
		if (atomic_load(&m->modify.qp->state) == QPS_ERR)
			flush_qp(m->modify.qp);
		return 0;
	case MBOX_QP_QUERY:
		qp_snapshot(m->query.qp, fake.now, 0, m->query.snapshot);
		return 0;
	case MBOX_QP_RECEIVES:
		flush_qp(m->qp.qp);
		return 0;
	case MBOX_QP_FAIL:
		return fail_qp(&m->fail, &out->carried);
	default:
		return 0;
	}
}

static void
pump(void *ctx UNUSED)
{
	void (*hook)(void) = fake.hook;
	struct mbox_msg m;

	if (hook != NULL) {
		fake.hook = NULL;
		hook();
	}
	for (int w = 0; w < FAKE_WORKERS && !fake.deaf; w++) {
		while (!fake.deaf_one[w] && mbox_recv_down(&fake.mbox[w], &m, 1) == 1) {
			struct mbox_msg done = { .type = MBOX_DONE, .cookie = m.cookie };

			fake.seen[m.type]++;
			fake.seen_by[w][m.type]++;
			if (m.type == MBOX_TX) {
				take_frame(&m);
				continue;
			}
			fake.last = m;
			done.done.rc = serve(&m, &done.done);
			assert_int_equal(mbox_send_done(&fake.mbox[w], &done), 0);
		}
	}
}

static void
make_env(bool no_socket)
{
	struct env_wiring *e = &fake.env;

	fake.addr = (struct wire_port){ .mac = { 2, 0, 0, 0, 0, 1 },
		.has_ipv4 = true,
		.has_ipv6 = true,
		.ipv4 = { 10, 0, 0, 1 },
		.ipv6 = { 0xfd, [15] = 1 } };
	e->conf = fake.conf;
	e->qps = qp_table_create(FAKE_QPS, SOCKET_ID_ANY);
	e->mem = mem_table_create(64);
	e->ahs = ah_table_empty();
	e->mcasts = qp_mcast_table_create();
	e->srqs = calloc(1, sizeof(*e->srqs));
	e->crc = crc_isal();
	e->workers_n = FAKE_WORKERS;
	e->ports_n = 1;
	e->numa_node = -1;
	e->pump = pump;
	e->clock = clock_of;
	e->stop = &fake.stop;
	e->no_socket = no_socket;
	e->port_groups = fake_wire_groups;
	e->ports[0] = (struct env_port){ .id = 0,
		.worker = 0,
		.tx_queues = FAKE_WORKERS,
		.addr = &fake.addr,
		.pool = pool,
		.max_frame = fake_max_frame,
		.impair = fake_port_impair,
		.impair_ctx = fake_port_impair_ctx };
	if (fake.conf->n_ports > 1) {
		fake.addr2 = fake.addr;
		fake.addr2.mac[5] = 2;
		fake.addr2.ipv4[2] = 1;
		e->ports_n = 2;
		e->ports[1] = e->ports[0];
		e->ports[1].id = 1;
		e->ports[1].worker = 1;
		e->ports[1].tx_queues = 0;
		e->ports[1].addr = &fake.addr2;
	}
	for (unsigned int w = 0; w < FAKE_WORKERS; w++) {
		fake.errbuf[w] = aligned_alloc(64, (trace_errbuf_size(FAKE_ERRORS) + 63) & ~63u);
		trace_errbuf_init(fake.errbuf[w], FAKE_ERRORS);
		fake.trace[w] = aligned_alloc(64, (trace_size(FAKE_TRACE) + 63) & ~63u);
		trace_init(fake.trace[w], FAKE_TRACE);
		assert_int_equal(mbox_create(&fake.mbox[w], w, 1024, SOCKET_ID_ANY), 0);
		e->workers[w] = (struct env_worker){ .lcore = w + 1,
			.mbox = &fake.mbox[w],
			.stats = &fake.stats[w],
			.port_stats[0] = &fake.port_stats[w],
			.trace = fake.trace[w],
			.errbuf = fake.errbuf[w] };
	}
}

void
fake_start_env(const char *conf, int want_rc, bool no_socket)
{
	struct conf_errors err;
	int rc;

	memset(&fake, 0, sizeof(fake));
	fake.now = TIME_NS_PER_S;
	fake.step = 1000;
	conf_errors_init(&err);
	if (conf == NULL)
		conf = plain;
	rc = conf_load_text(conf, strlen(conf), &fake.conf, &err);
	if (rc != 0)
		print_message("# %s\n", err.v[conf_errors_first(&err)].message);
	assert_int_equal(rc, 0);
	conf_errors_free(&err);
	make_env(no_socket);
	atomic_store(&fake.stop, fake_stopped);
	assert_int_equal(control_create(&fake.env, &fake.c), want_rc);
}

void
fake_start(const char *conf)
{
	fake_start_env(conf, 0, true);
}

void
fake_stop(void)
{
	control_destroy(fake.c);
	pump(NULL);
	/* Whatever stands in the table now was forgotten. */
	for (uint32_t i = 0; i < fake.env.qps->entries; i++)
		assert_null(atomic_load(&fake.env.qps->slot[i]));
	for (unsigned int w = 0; w < FAKE_WORKERS; w++) {
		mbox_destroy(&fake.mbox[w]);
		free(fake.errbuf[w]);
		free(fake.trace[w]);
	}
	qp_table_destroy(fake.env.qps);
	mem_table_destroy(fake.env.mem);
	qp_mcast_table_destroy(fake.env.mcasts);
	free(fake.env.srqs);
	conf_free(fake.conf);
	fake.c = NULL;
}

int
fake_setup(void **state UNUSED)
{
	fake_start(NULL);
	return 0;
}

int
fake_teardown(void **state UNUSED)
{
	fake_stop();
	return 0;
}

json_t *
rpc_raw(const char *line, size_t len)
{
	char *text = control_rpc(fake.c, line, len);
	json_error_t error;
	json_t *v;

	if (text == NULL)
		return NULL;
	assert_null(strchr(text, '\n'));
	v = json_loads(text, 0, &error);
	assert_non_null(v);
	free(text);
	return v;
}

static json_t *
call(const char *method, const char *params)
{
	static int id;
	char *line;
	json_t *v;
	int n = asprintf(&line, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"%s\"%s%s}", ++id,
		method, params != NULL ? ",\"params\":" : "", params != NULL ? params : "");

	assert_true(n > 0);
	v = rpc_raw(line, (size_t)n);
	free(line);
	assert_non_null(v);
	assert_int_equal(json_integer_value(json_object_get(v, "id")), id);
	assert_string_equal(json_string_value(json_object_get(v, "jsonrpc")), "2.0");
	return v;
}

json_t *
rpc_ok(const char *method, const char *params)
{
	json_t *v = call(method, params);
	json_t *error = json_object_get(v, "error");
	json_t *result;

	if (error != NULL)
		fail_msg("%s %s: %s", method, params, text_of(error, "message"));
	result = json_incref(json_object_get(v, "result"));
	assert_non_null(result);
	json_decref(v);
	return result;
}

int
rpc_code(const char *method, const char *params)
{
	json_t *v = call(method, params);
	json_t *error = json_object_get(v, "error");
	int code;

	if (error == NULL)
		fail_msg("%s %s was not refused", method, params);
	assert_null(json_object_get(v, "result"));
	code = (int)json_integer_value(json_object_get(error, "code"));
	snprintf(message, sizeof(message), "%s", text_of(error, "message"));
	json_decref(v);
	return code;
}

const char *
rpc_message(void)
{
	return message;
}

uint32_t
worker_of(uint32_t qpn)
{
	return qp_lookup(fake.env.qps, qpn)->worker;
}

json_t *
events(void)
{
	return rpc_ok("async_events", "{\"max\":4096}");
}

size_t
count_events(void)
{
	json_t *v = events();
	size_t n = json_array_size(v);

	json_decref(v);
	return n;
}

char *
everything(void)
{
	static const char *const lists[] = { "pd_list", "mr_list", "cq_list", "srq_list", "qp_list",
		"neighbor_list" };
	json_t *all = json_array();
	char *text;

	for (unsigned int i = 0; i < ARRAY_LEN(lists); i++)
		json_array_append_new(all, rpc_ok(lists[i], NULL));
	text = json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS);
	json_decref(all);
	return text;
}

const char *
text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s != NULL ? s : "(none)";
}

json_int_t
number_of(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_integer(v))
		fail_msg("%s is no number", key);
	return json_integer_value(v);
}

void
fake_be_deaf(void)
{
	fake.deaf = true;
	fake.step = 10 * TIME_NS_PER_MS;
}

void
fake_hear_again(void)
{
	fake.deaf = false;
	fake.step = 1000;
	for (unsigned int i = 0; i < 8; i++) {
		fake.env.pump(NULL);
		fake.now += TIME_NS_PER_S;
		control_poll(fake.c, fake.now);
	}
}
