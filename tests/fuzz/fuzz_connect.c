/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames for QP 1, given to a control lcore whose workers are mailboxes only, while a program
 * listens, asks, answers and disconnects. Whatever comes, there are no more connections and queue
 * pairs than there may be, and all of it can be taken down.
 *
 * Input: steps of one byte and its operands (step()).
 */
#include <string.h>

#include "connect.h"
#include "control_state.h"
#include "fuzz_control.h"
#include "wire_build.h"

enum { STEPS = 64, FRAME = 512, OWN = 1, PEER = 9, HALF_OPEN = 4, CONNS = 16 };

/* clang-format off */
#define TEMPLATE(type) \
	"{\"qp_type\":\"" type "\",\"pd\":\"pd0\",\"send_cq\":\"cq0\",\"recv_cq\":\"cq0\"}"
#define LISTEN(name, port, more, type) \
	"{\"name\":\"" name "\",\"port\":\"p0\",\"service_port\":" port "," more "\"qp\":" \
	TEMPLATE(type) "}"
#define CONF \
	"{\"version\":1,\"lcores\":{\"control\":0,\"workers\":[1,2]},\"ports\":[{\"name\":\"p0\"," \
	"\"device\":\"net_ring0\",\"ipv4\":\"10.0.0.1\",\"mtu\":1500,\"neighbors\":[{\"ipv4\":" \
	"\"10.0.0.9\",\"mac\":\"02:00:00:00:00:09\"}]}],\"pds\":[\"pd0\"],\"cqs\":[{\"name\":" \
	"\"cq0\",\"cqe\":16}],\"cm\":{\"connections\":16,\"half_open\":4,\"listen\":[" \
	LISTEN("l0", "7471", "", "RC") "," LISTEN("l1", "7472", "\"accept\":\"ask\",", "UC") "," \
	LISTEN("l2", "7473", "\"ps\":\"UDP\",", "UD") "]}}"
/* clang-format on */

static struct {
	const uint8_t *at, *end;
	uint8_t mad[MAD_LEN]; /* the next message: fields are set one by one */
} bed;

static uint8_t
next(void)
{
	return bed.at != bed.end ? *bed.at++ : 0;
}

/** A REQ, or SIDR_REQ, that can be served; or any message about connection `which`. */
static void
make(enum cm_message m, uint8_t which)
{
	static const uint8_t ids[] = { 0x71, 0x72, 0x73 };
	const uint8_t own[16] = { [10] = 0xff, 0xff, 10, 0, 0, OWN };
	const uint8_t peer[16] = { [10] = 0xff, 0xff, 10, 0, 0, PEER };
	struct connect_conn *cc = TAILQ_FIRST(&fake.c->connect.conns);
	uint8_t *mad = bed.mad;

	for (uint8_t i = 0; cc != NULL && i < which % CONNS; i++)
		cc = TAILQ_NEXT(cc, all);
	mad_init(mad, m, cc != NULL && cc->c != NULL ? cc->c->tid : which);
	mad_set(mad, RTU_local_comm_id, which);
	if (m == CM_REQ) {
		mad_set(mad, MAD_tid, which);
		mad_set(mad, REQ_service_id, 0x1061d00 | 0x2f | (which & 1));
		mad_set(mad, REQ_transport_service_type, which & 1);
		mad_set(mad, REQ_local_qpn, 0x100u + which);
		mad_set(mad, REQ_pkey, 0xffff);
		mad_set(mad, REQ_path_mtu, 3);
		mad_set(mad, REQ_remote_cm_response_timeout, 12);
		mad_set(mad, REQ_local_cm_response_timeout, 12);
		memcpy(mad_at(mad, REQ_primary_local_gid), peer, 16);
		memcpy(mad_at(mad, REQ_primary_remote_gid), own, 16);
		mad_set(mad_at(mad, REQ_private_data), IP_ip_version, 4);
		return;
	}
	if (m == CM_SIDR_REQ) {
		mad_set(mad, SIDR_REQ_service_id, 0x1111d00 | ids[which % 3]);
		return;
	}
	if (cc == NULL || cc->c == NULL)
		return;
	mad_set(mad, RTU_local_comm_id, cc->c->active ? which : cc->c->remote_id);
	mad_set(mad, RTU_remote_comm_id, cc->c->local_id);
	if (m == CM_DREQ)
		mad_set(mad, DREQ_remote_qpn, cc->qpn);
	if (m == CM_REP)
		mad_set(mad, REP_local_qpn, 0x100u + which);
	if (m == CM_SIDR_REP)
		mad_set(mad, SIDR_REP_request_id, cc->c->local_id);
}

static void
frame_in(uint8_t how)
{
	const struct wire_path path = { .dmac = { 2, 0, 0, 0, 0, OWN },
		.smac = { 2, 0, 0, 0, 0, PEER },
		.dst_ip = { 10, 0, 0, OWN },
		.src_ip = { 10, 0, 0, how < 250 ? PEER : how },
		.ttl = 64,
		.sport = 0xc000 };
	const struct wire_fields f = { .opcode = 0x64,
		.pkey = 0xffff,
		.dest_qpn = MAD_QPN,
		.deth = { .qkey = MAD_QKEY, .src_qpn = MAD_QPN },
		.payload = bed.mad,
		.payload_len = how == 249 ? 200 : MAD_LEN };
	uint8_t frame[FRAME];
	const int len = wire_build(&path, &f, 0, frame, sizeof(frame));

	FUZZ_CHECK(len > 0);
	if (how == 248)
		frame[next() % (uint32_t)len] = next();
	memcpy(frame, fake.addr.mac, 6);
	connect_frame(&fake.c->connect, 0, frame, (uint32_t)len);
}

static void
call(const char *method, uint8_t which)
{
	char line[1024];
	char *reply;
	int n;

	if (strcmp(method, "cm_connect") == 0)
		n = snprintf(line, sizeof(line),
			CALL("cm_connect",
				"{\"port\":\"p0\",\"dest_ip\":\"10.0.0.9\",\"service_port\":9,"
				"\"timeout_ms\":%u,\"ps\":\"%s\",\"qp\":{\"qp_type\":\"%s\",\"pd\":"
				"\"pd0\",\"send_cq\":\"cq0\",\"recv_cq\":\"cq0\"}}"),
			1u + which, which % 3 == 2 ? "UDP" : "TCP",
			which % 3 == 0   ? "RC"
			: which % 3 == 1 ? "UC"
					 : "UD");
	else
		n = snprintf(line, sizeof(line),
			"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{\"id\":%u}}\n",
			method, which);
	reply = control_rpc(fake.c, line, (size_t)n);
	FUZZ_CHECK(reply != NULL);
	free(reply);
}

static void
step(void)
{
	static const char *const methods[] = { "cm_connect", "cm_accept", "cm_reject",
		"cm_disconnect", "cm_explain" };
	const uint8_t what = next(), which = next();

	switch (what % 8) {
	case 0:
	case 1:
	case 2:
		make((enum cm_message)(CM_MESSAGE_FIRST +
				       what / 8 % (CM_MESSAGE_LAST - CM_MESSAGE_FIRST + 1)),
			which);
		frame_in(0);
		break;
	case 3: /* the same again, or with another byte */
		bed.mad[next()] = which;
		frame_in(next());
		break;
	case 4:
		frame_in(which);
		break;
	case 5:
		call(methods[what / 8 % ARRAY_LEN(methods)], which);
		break;
	case 6:
		connect_data(&fake.c->connect, which);
		break;
	default:
		fake.now += (ns_t)which * which * TIME_NS_PER_MS;
		break;
	}
	control_poll(fake.c, fake.now);
}

size_t
fuzz_seed(unsigned int index, uint8_t *buf, size_t room)
{
	static const uint8_t seeds[][16] = {
		{ 0, 2, 7, 1, 32, 0, 7, 1, 40, 0, 7, 200 },      /* REQ, RTU, DREQ */
		{ 0, 3, 13, 1, 32, 0, 29, 1, 48, 0, 7, 255 },    /* asked, accepted, ended here */
		{ 5, 0, 24, 0, 40, 0, 7, 200, 7, 200 },          /* asks, REP */
		{ 5, 2, 64, 0, 29, 1, 56, 2, 7, 9 },             /* datagrams */
		{ 0, 2, 0, 4, 0, 6, 0, 8, 0, 10, 7, 60, 0, 10 }, /* many */
		{ 5, 1, 16, 0, 8, 0, 7, 255, 7, 255 },           /* REJ, MRA */
	};

	if (index >= ARRAY_LEN(seeds) || room < sizeof(seeds[0]))
		return 0;
	memcpy(buf, seeds[index], sizeof(seeds[0]));
	return sizeof(seeds[0]);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	LLVMFuzzerInitialize(NULL, NULL);
	fake_start(CONF);
	bed.at = data;
	bed.end = data + size;
	mad_init(bed.mad, CM_REQ, 1);
	for (uint32_t n = 0; bed.at != bed.end && n < STEPS; n++) {
		step();
		FUZZ_CHECK(fake.c->connect.cm.n <= CONNS);
		FUZZ_CHECK(fake.c->connect.cm.half_open <= HALF_OPEN);
	}
	fake_stop();
	return 0;
}
