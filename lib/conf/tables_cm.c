/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection manager: who may connect, and how many. */
#include <string.h>

#include "errors.h"
#include "table_rows.h"

/* clang-format off */
const struct conf_name conf_names_cm_ps[] = {
	{ "TCP", CONF_PS_TCP }, { "UDP", CONF_PS_UDP }, { "IB", CONF_PS_IB }, { NULL, 0 },
};
const struct conf_name conf_names_cm_accept[] = {
	{ "always", CONF_ACCEPT_ALWAYS }, { "ask", CONF_ACCEPT_ASK }, { NULL, 0 },
};

static const struct conf_field listen_rows[] = {
	ROW_NAME(conf_cm_listen, name, "name", WITH(REQUIRED)),
	ROW_NAME(conf_cm_listen, port, "port", WITH(REQUIRED)),
	ROW_ENUM(conf_cm_listen, ps, "ps", conf_names_cm_ps, WITH(CONF_F_DEFAULT), DEFAULT(CONF_PS_TCP)),
	ROW_U16(conf_cm_listen, service_port, "service_port", 1, UINT16_MAX, WITH(REQUIRED)),
	ROW_ENUM(conf_cm_listen, accept, "accept", conf_names_cm_accept, WITH(CONF_F_DEFAULT),
		DEFAULT(CONF_ACCEPT_ALWAYS)),
	ROW_U32(conf_cm_listen, backlog, "backlog", 1, 65536, WITH(CONF_F_DEFAULT), DEFAULT(128)),
	ROW_OBJECT(conf_cm_listen, qp, "qp", &conf_table_qp, WITH(REQUIRED)),
};
const struct conf_table conf_table_cm_listen = { .name = "listen", TABLE_ROWS(listen_rows),
	.size = sizeof(struct conf_cm_listen), .given_offset = CONF_NO_GIVEN,
	.check = conf_check_cm_listen };

static const struct conf_field cm_rows[] = {
	ROW_U32(conf_cm, connections, "connections", 1, 65536, WITH(CONF_F_DEFAULT), DEFAULT(16384)),
	ROW_U32(conf_cm, half_open, "half_open", 1, 65536, WITH(CONF_F_DEFAULT), DEFAULT(1024)),
	ROW_U32(conf_cm, reqs, "reqs", 1, 1000000, WITH(CONF_F_DEFAULT), DEFAULT(2000)),
	ROW_ARRAY(conf_cm, listen, n_listen, "listen", &conf_table_cm_listen, 0, 256),
};
const struct conf_table conf_table_cm = { .name = "cm", TABLE_ROWS(cm_rows),
	.size = sizeof(struct conf_cm), .given_offset = CONF_NO_GIVEN };
/* clang-format on */

void
conf_check_cm_listen(void *obj, enum conf_mode mode UNUSED, struct conf_errors *err)
{
	static const struct {
		const char *key;
		uint64_t bit;
	} rows[] = { { "qp_num", CONF_QP_QP_NUM }, { "dest_qp_num", QP_ATTR_DEST_QPN },
		{ "rq_psn", QP_ATTR_RQ_PSN }, { "sq_psn", QP_ATTR_SQ_PSN } };
	const struct conf_cm_listen *l = obj;
	const bool connects = l->ps == CONF_PS_TCP && !conf_errors_within(err, "ps");
	const bool port_known = !conf_errors_within(err, "port");
	const uint32_t mark = conf_enter(err, "qp");

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if ((l->qp.given & rows[i].bit) != 0)
			conf_fault(err, rows[i].key, "each connection gets its own: leave it out");
	if ((l->qp.given & QP_ATTR_PORT) != 0 && strcmp(l->qp.port, l->port) != 0 && port_known)
		conf_fault(err, "port", "is the listener's, \"%s\": leave it out", l->port);
	if (l->qp.qp_state != QPS_RESET)
		conf_fault(
			err, "qp_state", "the connection says in which state it is: leave it out");
	if (l->qp.count != 1)
		conf_fault(err, "count", "a connection has one queue pair: leave it out");
	if (l->qp.qp_type == QPT_UD && connects)
		conf_fault(err, "qp_type",
			"connections of port space TCP are not UD; that goes with UDP");
	if (l->qp.qp_type == QPT_XRC_SEND)
		conf_fault(err, "qp_type", "an XRC_SEND queue pair asks; its peer is XRC_RECV");
	conf_leave(err, mark);
}
