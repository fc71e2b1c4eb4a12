/* SPDX-License-Identifier: BSD-3-Clause */
/* Built-in conversations of a client: fuzz_client.c says what a line means. */
#include "compiler.h"
#include "fuzz.h"

#define OPEN CALL("client_open", "{\"abi\":1,\"name\":\"fuzz\"}")
#define PD   CALL("client_pd_create", "{}")
#define CQ   CALL("client_cq_create", "{\"cqe\":16,\"channel\":0}")
#define MR   CALL("client_mr_register", "{\"pd\":1,\"length\":4096,\"addr\":65536,\"access\":15}")
#define QP                                                                                    \
	CALL("client_qp_create",                                                              \
		"{\"pd\":1,\"send_cq\":1,\"recv_cq\":1,\"qp_type\":\"RC\",\"max_send_wr\":8," \
		"\"max_recv_wr\":8,\"max_send_sge\":1,\"max_recv_sge\":1,\"max_inline_data\":0}")
#define SRQ      CALL("client_srq_create", "{\"pd\":1,\"max_wr\":8,\"max_sge\":2,\"srq_limit\":2}")
#define ATTACHED OPEN PD CQ
/* The last one made: its states, up to RTS, to the address `ip`. */
#define UP(n, ip, more)                                                                         \
	CALL("client_qp_modify",                                                                \
		"{\"qp_num\":$" n ",\"qp_state\":\"INIT\",\"port\":\"p0\",\"pkey\":65535,"      \
		"\"qp_access_flags\":[\"REMOTE_WRITE\",\"REMOTE_READ\"]}")                      \
	CALL("client_qp_modify",                                                                \
		"{\"qp_num\":$" n ",\"qp_state\":\"RTR\",\"path_mtu\":1024,\"dest_qp_num\":$" n \
		",\"rq_psn\":1,\"ah_attr\":{\"dest_ip\":\"" ip "\",\"hop_limit\":64}" more "}") \
	CALL("client_qp_modify",                                                                \
		"{\"qp_num\":$" n                                                               \
		",\"qp_state\":\"RTS\",\"sq_psn\":1,\"timeout\":14,\"retry_cnt\":7,"            \
		"\"rnr_retry\":7,\"max_rd_atomic\":1}")
#define RESPONDS ",\"max_dest_rd_atomic\":1,\"min_rnr_timer\":12"
#define QP_OF(type, recv, more)                                                                    \
	CALL("client_qp_create", "{\"pd\":1,\"send_cq\":1,\"recv_cq\":1,\"qp_type\":\"" type       \
				 "\",\"max_send_wr\":8,"                                           \
				 "\"max_recv_wr\":" recv ",\"max_send_sge\":1,\"max_recv_sge\":1," \
				 "\"max_inline_data\":0" more "}")
#define MODIFY(n, more) CALL("client_qp_modify", "{\"qp_num\":$" n ",\"qp_state\":" more "}")
#define UD                                                                 \
	QP_OF("UD", "8", "")                                               \
	MODIFY("0", "\"INIT\",\"port\":\"p0\",\"pkey\":65535,\"qkey\":17") \
	MODIFY("0", "\"RTR\"") MODIFY("0", "\"RTS\",\"sq_psn\":1")
#define AH(ip)                   \
	CALL("client_ah_create", \
		"{\"pd\":1,\"port\":\"p0\",\"ah_attr\":{\"dest_ip\":\"" ip "\",\"hop_limit\":3}}")
#define HANDLE(n)  "{\"handle\":" n "}"
#define GROUP(ip)  "{\"qp_num\":$0,\"group\":\"" ip "\"}"
#define CHANNEL(n) "{\"channel\":" n ",\"max\":4}"
#define REREG(more)             \
	CALL("client_mr_rereg", \
		"{\"handle\":1,\"pd\":1,\"length\":2048,\"addr\":65536,\"access\":7" more "}")
#define IN_PIECES(list)            \
	CALL("client_mr_register", \
		"{\"pd\":1,\"length\":4096,\"addr\":65536,\"access\":15,\"pieces\":[" list "]}")
#define ANY "&\n"
#define LAY(length, offset, pieces) \
	CALL("client_memory_lay",   \
		"{\"length\":" length ",\"offset\":" offset ",\"pieces\":[" pieces "]}")
#define PAGE "{\"offset\":0,\"length\":4096}"
#define LAID(more)                 \
	CALL("client_mr_register", \
		"{\"pd\":1,\"length\":8192,\"addr\":65536,\"access\":15,\"laid\":true" more "}")
#define TAKEN ",\"memory\":true,\"remote_invalidate\":true"
#define TERMS(handle, qp, more)                  \
	"{\"handle\":" handle ",\"qp_num\":$" qp \
	",\"service_port\":9,\"private_data\":\"0102\"" more "}"
#define MADE   ",\"port_num\":1,\"qkey\":17"
#define WALKED ",\"walk\":true,\"min_rnr_timer\":12"
/* One client is both: handle 1 is the channel, 2 listens, 3 asks, 4 is what comes. */
#define UNREAD(ps, type, made, how)                                                                \
	CALL("client_cm_channel_create", "{}")                                                     \
	CALL("client_cm_listen",                                                                   \
		"{\"channel\":1,\"service_port\":9,\"ps\":\"" ps "\",\"backlog\":2}")              \
	CALL("client_cm_resolve", "{\"channel\":1,\"dest_ip\":\"10.0.0.1\",\"timeout_ms\":5000}")  \
	"@\n" QP_OF(type, "8", made) QP_OF(type, "8", made) CALL("client_cm_events", CHANNEL("1")) \
		CALL("client_cm_connect", TERMS("3", "0", ",\"ps\":\"" ps "\"" how)) "@\n"
#define BOTH_ENDS(ps, type, made, how) \
	UNREAD(ps, type, made, how) CALL("client_cm_events", CHANNEL("1"))
#define ARP                                                         \
	"!ffffffffffff02000000000208060001080006040001020000000002" \
	"0a0000020000000000000a000001\n"
#define ECHO                                                \
	"!020000000001020000000002080045000020000100004001" \
	"66da0a0000020a00000108004fe6000100013132\n"
#define SOLICIT                                                            \
	"!020000000001020000000002"                                        \
	"86dd6000000000203aff"                                             \
	"fd000000000000000000000000000002fd000000000000000000000000000001" \
	"8700000000000000fd0000000000000000000000000000010101020000000002\n"

static const char *const seeds[] = {
	OPEN PD CQ "#s\n" MR QP CALL("client_mr_deregister", "{\"handle\":1}"),
	OPEN PD "#u\n" MR "#a\n" MR "#b\n" MR "#e\n" MR "#h\n" MR "#r\n" MR "#p\n" MR "#k\n" MR,
	OPEN PD "#nd\n" MR "#x\n" MR "#t\n" MR "#ssssssssss\n" MR "^\n" MR,
	OPEN PD CQ SRQ
	"~ 0 1\n~ 64 4294967295\n" CALL("client_srq_modify", "{\"handle\":1,\"max_wr\":32}") CALL(
		"client_srq_query", "{\"handle\":1}") CALL("client_srq_destroy", "{\"handle\":1}"),
	OPEN PD CQ QP
	"~ 0 4294967295\n~ 128 3\n" CALL("client_events", "{\"max\":4}") "%\n" OPEN PD,
	OPEN CALL("client_channel_create", "{}") CALL("client_cq_create",
		"{\"cqe\":4,\"channel\":1}") "~ 0 8589934592\n" CALL("client_channel_destroy",
		"{\"handle\":1}") CALL("client_cq_destroy", "{\"handle\":1}"),
	OPEN CALL("client_area_lost", "{\"area\":0}") PD CALL("client_cq_create", "{\"cqe\":9999}")
		CALL("client_area_lost", "{\"area\":1}") CALL("client_area_lost", "{\"area\":2}")
			CQ,
	ARP ECHO SOLICIT OPEN ARP "!0102\n",
	ATTACHED UD AH("10.0.0.1") AH("10.0.0.9") AH("239.1.2.3") AH("fd00::9") "@\n" CALL(
		"client_ah_query", HANDLE("1")) CALL("client_ah_query", HANDLE("4"))
		CALL("client_ah_destroy", HANDLE("2")) CALL("client_pd_destroy", HANDLE("1"))
			CALL("client_ah_destroy", HANDLE("1")) ARP "@\n" AH("10.0.0.2"),
	ATTACHED UD CALL("client_mcast_attach", GROUP("239.1.2.3")) CALL("client_mcast_attach",
		GROUP("ff0e::9")) "@\n" CALL("client_mcast_attach", GROUP("239.1.2.3"))
		CALL("client_mcast_detach", GROUP("239.1.2.3"))
			CALL("client_mcast_detach", GROUP("10.0.0.9")) "%\n" OPEN,
	ATTACHED CALL("client_xrcd_open", "{\"name\":\"x\"}") CALL(
		"client_srq_create", "{\"pd\":1,\"max_wr\":8,\"max_sge\":1,\"xrcd\":1,\"cq\":1}")
		CALL("client_qp_create",
			"{\"pd\":1,\"qp_type\":\"XRC_RECV\",\"xrcd\":1,\"max_send_wr\":0,"
			"\"max_recv_wr\":0,\"max_send_sge\":0,\"max_recv_sge\":0,"
			"\"max_inline_data\":0}") UP("0", "10.0.0.9",
			RESPONDS) CALL("client_qp_create",
			"{\"pd\":1,\"send_cq\":1,\"qp_type\":\"XRC_SEND\",\"max_send_wr\":8,"
			"\"max_recv_wr\":0,\"max_send_sge\":1,\"max_recv_sge\":0,"
			"\"max_inline_data\":0}") UP("1", "10.0.0.1", "")
			CALL("client_qp_open", "{\"pd\":1,\"xrcd\":1,\"qp_num\":$0}")
				CALL("client_xrcd_close", HANDLE("1")) CALL("client_srq_destroy",
					HANDLE("1")) CALL("client_qp_destroy", "{\"qp_num\":$0}")
					CALL("client_xrcd_close", HANDLE("1")),
	ANY ATTACHED "#u\n" MR "^\n" MR "#h\n" MR "#a\n" MR "^\n"
		     "#r\n" MR REREG("") "#u\n" REREG(",\"memory\":true") "^\n@\n" CALL(
			     "client_mr_deregister", HANDLE("1")) "%\n" OPEN,
	ANY ATTACHED "#us\n" LAY("8192", "0", PAGE "," PAGE) LAID("") "#u\n" LAY("8192", "0", PAGE)
		LAID("") "#u\n" LAY("8192", "0", PAGE) "#u\n" LAY("8192", "4096", PAGE) LAID(
			",\"offset\":4096") LAID(",\"offset\":1") QP CALL("client_mr_deregister",
			HANDLE("1")) "#uu\n" LAY("8192", "0", PAGE "," PAGE) "%\n" OPEN,
	ANY OPEN PD "#uuuuuuuu\n" LAY("65536", "0", PAGE "," PAGE "," PAGE "," PAGE)
		LAY("65536", "16384", PAGE) LAY("1099511627776", "0", PAGE) "#u\n" LAY("65536", "0",
			"{\"offset\":0,\"length\":65536}") "#u\n" REREG(",\"memory\":true") LAID("")
			CALL("client_memory_forget", HANDLE("1")),
	ANY OPEN PD
	"#ub\n" IN_PIECES("{\"offset\":4096,\"length\":8192},{\"offset\":0,\"length\":4096}") "^\n#hn\n" IN_PIECES(
		"{\"offset\":0,\"length\":4096},{\"offset\":8192,\"length\":4096}") "#ue\n" REREG(",\"memory\":true,\"pieces\":[{\"offset\":8192,\"length\":8192}]"),
	ATTACHED "#b\n" MR CALL("client_mw_alloc", "{\"pd\":1,\"type\":1}") CALL(
		"client_mw_alloc", "{\"pd\":1,\"type\":2}") QP UP("0", "10.0.0.1", RESPONDS)
		CALL("client_mr_deregister", HANDLE("1")) CALL("client_mw_dealloc", HANDLE("1"))
			CALL("client_pd_destroy", HANDLE("1")) "%\n" OPEN,
	ATTACHED CALL("client_pd_create", "{}") "#b\n" MR REREG("")
		REREG(",\"offset\":2048") "#b\n" REREG(",\"memory\":true") "#u\n" REREG(
			",\"memory\":true,\"once\":true") "^\n" REREG("") "#bb\n" REREG(TAKEN)
			CALL("client_memory_forget", HANDLE("1"))
				CALL("client_mr_deregister", HANDLE("1")),
	OPEN PD
	"#bb\n" IN_PIECES("{\"offset\":4096,\"length\":8192},{\"offset\":0,\"length\":4096}") MR
	"#b\n" REREG(",\"memory\":true,\"pieces\":[{\"offset\":8192,\"length\":8192}]")
		CALL("client_mr_deregister", HANDLE("1")) "#bu\n" IN_PIECES(
			"{\"offset\":0,\"length\":4096},{\"offset\":1,\"length\":4095}") "#b\n" MR
			CALL("client_mr_deregister", HANDLE("2")),
	ATTACHED QP UP("0", "10.0.0.1", RESPONDS) CALL("client_qp_query", "{\"qp_num\":$0}")
		CALL("client_qp_modify", "{\"qp_num\":$0,\"qp_state\":\"SQD\"}")
			CALL("client_qp_modify", "{\"qp_num\":$0,\"qp_state\":\"RTS\"}")
				CALL("client_qp_modify", "{\"qp_num\":$0,\"qp_state\":\"ERR\"}")
					CALL("client_events", "{\"max\":4}")
						CALL("client_qp_destroy", "{\"qp_num\":$0}"),
	ATTACHED CALL("client_cq_resize", "{\"handle\":1,\"cqe\":64}") QP CALL("client_cq_resize",
		"{\"handle\":1,\"cqe\":4}") "~ 0 77\n" CALL("client_cq_destroy", HANDLE("1")),
	ATTACHED BOTH_ENDS("TCP", "RC", "", "") CALL("client_cm_accept",
		TERMS("4", "1", "")) "@\n" CALL("client_cm_events", CHANNEL("1"))
		CALL("client_cm_establish", HANDLE("3")) "@\n" CALL(
			"client_cm_events", CHANNEL("1")) CALL("client_cm_disconnect",
			HANDLE("4")) "@\n" CALL("client_cm_events", CHANNEL("1"))
			CALL("client_cm_destroy", HANDLE("3"))
				CALL("client_cm_destroy", HANDLE("2")),
	ATTACHED BOTH_ENDS("TCP", "RC", MADE, WALKED) CALL("client_cm_accept",
		TERMS("4", "1", WALKED)) "@\n@\n" CALL("client_cm_events", CHANNEL("1"))
		CALL("client_cm_disconnect", "{\"handle\":3,\"qp_num\":$0}") "@\n@\n" CALL(
			"client_cm_events", CHANNEL("1"))
			CALL("client_cm_disconnect", "{\"handle\":4,\"qp_num\":$1}"),
	ATTACHED BOTH_ENDS("TCP", "RC", MADE, WALKED) CALL("client_qp_destroy", "{\"qp_num\":$0}")
		CALL("client_cm_accept", TERMS("4", "1", WALKED)) "@\n@\n",
	ATTACHED UNREAD("TCP", "RC", "", "")
		CALL("client_cm_accept", TERMS("4", "1", "")) "@\n" CALL(
			"client_cm_establish", HANDLE("3")) "@\n" CALL("client_cm_disconnect",
			HANDLE("3")) "@\n@\n@\n@\n@\n@\n" CALL("client_cm_disconnect",
			HANDLE("4")) "@\n@\n@\n@\n@\n@\n" CALL("client_cm_events", CHANNEL("1")),
	ATTACHED BOTH_ENDS("TCP", "UC", "", "")
		CALL("client_cm_reject", "{\"handle\":4,\"private_data\":\"ff\"}") "@\n" CALL(
			"client_cm_events", CHANNEL("1")) CALL("client_cm_migrate",
			"{\"handle\":3,\"channel\":1}") CALL("client_cm_channel_create", "{}")
			CALL("client_cm_migrate", "{\"handle\":3,\"channel\":5}")
				CALL("client_cm_channel_destroy", HANDLE("1")) "%\n" OPEN,
	ATTACHED BOTH_ENDS("UDP", "UD", "", "")
		CALL("client_cm_accept", TERMS("4", "1", ",\"ps\":\"UDP\"")) "@\n" CALL(
			"client_cm_events", CHANNEL("1")) "@\n@\n@\n" CALL("client_cm_events",
			CHANNEL("1")) CALL("client_qp_destroy", "{\"qp_num\":$0}"),
	ATTACHED BOTH_ENDS("TCP", "RC", "", "") "@\n@\n@\n@\n" CALL("client_cm_destroy",
		HANDLE("2")) CALL("client_qp_destroy", "{\"qp_num\":$0}") "%\n" OPEN,
	ATTACHED CALL("client_cm_channel_create", "{}")
		CALL("client_cm_resolve", "{\"channel\":1,\"dest_ip\":\"10.0.0.1\"}")
			CALL("client_cm_class", "{\"handle\":2,\"traffic_class\":104}"),
};

size_t
fuzz_seed(unsigned int index, uint8_t *buf, size_t room)
{
	return index < ARRAY_LEN(seeds) ? fuzz_text(seeds[index], buf, room) : 0;
}
