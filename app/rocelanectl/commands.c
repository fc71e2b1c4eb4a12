/* SPDX-License-Identifier: BSD-3-Clause */
/* Every command, once: dispatch, help, usage and completion read this table. */
#include <string.h>

#include "ctl.h"

#define QP_ATTRS                                                                            \
	"qp_state path_mtu dest_qp_num rq_psn sq_psn ah_attr.dest_ip ah_attr.dest_mac "     \
	"ah_attr.traffic_class ah_attr.hop_limit ah_attr.flow_label ah_attr.vlan "          \
	"ah_attr.vlan_priority timeout retry_cnt rnr_retry min_rnr_timer max_rd_atomic "    \
	"max_dest_rd_atomic pkey qp_access_flags alt_ah_attr.dest_ip alt_ah_attr.dest_mac " \
	"alt_ah_attr.vlan alt_ah_attr.vlan_priority alt_ah_attr.traffic_class "             \
	"alt_ah_attr.hop_limit alt_ah_attr.flow_label alt_port alt_timeout alt_pkey "       \
	"path_mig_state rq_limit qkey"
#define QP_INIT                                                                            \
	"qp_num qp_type port pd send_cq recv_cq srq xrcd cap.max_send_wr cap.max_recv_wr " \
	"cap.max_send_sge cap.max_recv_sge worker count profile "
#define SGE "mr offset length lkey addr"
#define SEND_KEYS                                                                            \
	"opcode wr_id " SGE " inline remote_addr rkey imm_data compare_add swap send_flags " \
	"bind_mw.mw bind_mw.rkey bind_mw.mr bind_mw.addr bind_mw.length "                    \
	"bind_mw.mw_access_flags flush.type flush.level flush.length "                       \
	"invalidate_rkey xrc_remote_srqn ud.ah_attr.dest_ip ud.ah_attr.dest_mac "            \
	"ud.ah_attr.traffic_class ud.ah_attr.hop_limit ud.ah_attr.flow_label "               \
	"ud.ah_attr.vlan ud.ah_attr.vlan_priority ud.remote_qpn ud.remote_qkey count"
#define QP_COLUMNS                                                                                \
	"qp_num qp_state qp_type port path_mtu dest_qp_num ah_attr.dest_ip worker epsn next_psn " \
	"outstanding"
#define CQE_COLUMNS \
	"wr_id status opcode byte_len qp_num imm_data invalidated_rkey wc_flags vendor_err"
#define EVENT_COLUMNS "time event_type qp_num cq srq port source fatal_code psn detail"
#define ERROR_COLUMNS "time port worker qp_num opcode psn length impact syndrome names why"
#define TRACE_COLUMNS                                                                            \
	"time worker kind qp_num opcode psn msn len syndrome rule fault qp_state detail key va " \
	"length why region"
#define MR_KEYS     "name pd length addr rkey access fill remote_invalidate"
#define SRQ_KEYS    "name pd max_wr max_sge srq_limit srq_type xrcd cq srq_num"
#define SRQ_COLUMNS "name pd max_wr max_sge posted srq_limit users error xrcd srq_num cq"
#define IMPAIR_KEYS                                                                             \
	"action frames direction qp_num psn psn_last opcode packet probability every burst.p "  \
	"burst.r burst.loss_good burst.loss_bad skip times delay_us jitter_us copies distance " \
	"hold_us offset bits xor seed held_max log_size bottleneck.rate bottleneck.buffer "     \
	"bottleneck.kmin bottleneck.kmax bottleneck.pmax"
#define IMPAIR_COLUMNS                                                                      \
	"port counters.in counters.out counters.held counters.dropped counters.duplicated " \
	"counters.reordered counters.corrupted counters.delayed counters.ce_marked "        \
	"counters.queue_marked counters.queue_dropped counters.queue_bytes"
#define CM_QP                                                                         \
	"qp.qp_type qp.pd qp.send_cq qp.recv_cq qp.srq qp.path_mtu qp.timeout "       \
	"qp.min_rnr_timer qp.max_rd_atomic qp.max_dest_rd_atomic qp.qp_access_flags " \
	"qp.qkey "                                                                    \
	"qp.recv_feed.buffers qp.recv_feed.size"
#define CM_COLUMNS       "id state listener port peer_ip qp_num remote_qp_num event reason"
#define CM_EVENT_COLUMNS "time event id listener qp_num status peer.ip peer.qp_num private_data"
#define STAT_KEYS        "total port worker qp --all --watch --stages"
#define TOP_KEYS         "interval qps count"

/* clang-format off */
const struct command commands[] = {
	/* object     verb          method             args                      keys                                columns        run          help */
	{ "qp",       "list",       "qp_list",         NULL,                     "qp_state worker limit after",      QP_COLUMNS,    run_qp_list, "queue pairs, one a line" },
	{ "qp",       "show",       "qp_query",        "#qp_num",                NULL,                               NULL,          run_pairs,   "attributes and live state of a queue pair" },
	{ "qp",       "explain",    "qp_explain",      "#qp_num",                NULL,                               NULL,          run_explain, "why the queue pair is in ERR: packet, answer, reports, what came before; else what it waits for. Did timers end too early?" },
	{ "qp",       "post-mortem", "qp_post_mortem", "?#qp_num",               NULL,                               NULL,          run_post_mortem, "queue pairs that failed, gone ones too, newest first; of a number: the whole story" },
	{ "qp",       "create",     "qp_create",       "?#qp_num",               QP_INIT QP_ATTRS,                   NULL,          run_pairs,   "make a queue pair" },
	{ "qp",       "modify",     "qp_modify",       "#qp_num",                QP_ATTRS " cur_qp_state",           NULL,          run_quiet,   "change attributes, qp_state among them" },
	{ "qp",       "destroy",    "qp_destroy",      "#qp_num",                NULL,                               NULL,          run_quiet,   "destroy a queue pair" },
	{ "mr",       "list",       "mr_list",         NULL,                     NULL,                               "name pd addr length rkey lkey access", run_table, "memory regions" },
	{ "mr",       "show",       "mr_list",         "name",                   NULL,                               NULL,          run_find,    "one memory region" },
	{ "mr",       "register",   "mr_register",     "?name",                  MR_KEYS,                            NULL,          run_pairs,   "make and register a memory region" },
	{ "mr",       "rereg",      "mr_rereg",        "name",                  "pd access",                        NULL,          run_pairs,   "change a memory region's domain or rights" },
	{ "mr",       "deregister", "mr_deregister",   "name",                   NULL,                               NULL,          run_quiet,   "give a memory region back" },
	{ "mr",       "read",       "mr_read",         "name @offset @length",   NULL,                               NULL,          run_mr_read, "hexdump of a region's bytes" },
	{ "mr",       "write",      "mr_write",        "name @offset data",      NULL,                               NULL,          run_quiet,   "write bytes, given in hexadecimal" },
	{ "mr",       "fill",       "mr_fill",         "name @offset @length #seed", NULL,                           NULL,          run_quiet,   "fill at most 16 MiB with the pattern of a seed, as \"fill\": \"pattern:SEED\"" },
	{ "mr",       "crc",        "mr_crc",          "name @offset @length",   NULL,                               NULL,          run_pairs,   "CRC-32 of a region's bytes, at most 16 MiB" },
	{ "mw",       "list",       "mw_list",         NULL,                     NULL,                               "name pd type rkey bound mr addr length qp_num", run_table, "memory windows" },
	{ "mw",       "show",       "mw_list",         "name",                   NULL,                               NULL,          run_find,    "one memory window" },
	{ "mw",       "alloc",      "mw_alloc",        "?name",                  "name pd type",                     NULL,          run_pairs,   "make a memory window, unbound" },
	{ "mw",       "dealloc",    "mw_dealloc",      "name",                   NULL,                               NULL,          run_quiet,   "give a memory window back, bound or not" },
	{ "mcast",    "list",       "mcast_list",      NULL,                     NULL,                               "group port qp_num mac", run_table, "multicast groups, and the queue pairs that are members" },
	{ "mcast",    "attach",     "mcast_attach",    "#qp_num group",          NULL,                               NULL,          run_quiet,   "a UD queue pair gets what is sent to a group" },
	{ "mcast",    "detach",     "mcast_detach",    "#qp_num group",          NULL,                               NULL,          run_quiet,   "it does not get it any more" },
	{ "cq",       "list",       "cq_list",         NULL,                     NULL,                               NULL,          run_table,   "completion queues" },
	{ "cq",       "show",       "cq_list",         "name",                   NULL,                               NULL,          run_find,    "one completion queue" },
	{ "cq",       "create",     "cq_create",       "?name",                  "name cqe",                         NULL,          run_pairs,   "make a completion queue" },
	{ "cq",       "destroy",    "cq_destroy",      "name",                   NULL,                               NULL,          run_quiet,   "destroy a completion queue" },
	{ "cq",       "poll",       "poll_cq",         "cq ?#max",               NULL,                               CQE_COLUMNS,   run_table,   "take completions" },
	{ "cq",       "notify",     "req_notify",      "cq",                     "solicited_only",                   NULL,          run_quiet,   "arm a completion queue: its next completion is an event" },
	{ "cq",       "events",     "cq_events",       NULL,                     NULL,                               "cq",          run_table,   "take the completion events that wait" },
	{ "srq",      "list",       "srq_list",        NULL,                     NULL,                               SRQ_COLUMNS,   run_table,   "shared receive queues" },
	{ "srq",      "show",       "srq_query",       "name",                   NULL,                               NULL,          run_pairs,   "one shared receive queue: depth, what is posted, limit" },
	{ "srq",      "create",     "srq_create",      "?name",                  SRQ_KEYS,                           NULL,          run_pairs,   "make a shared receive queue" },
	{ "srq",      "modify",     "srq_modify",      "name",                   "max_wr srq_limit",                 NULL,          run_quiet,   "another depth, or another limit, which arms the event" },
	{ "srq",      "destroy",    "srq_destroy",     "name",                   NULL,                               NULL,          run_quiet,   "destroy a shared receive queue" },
	{ "pd",       "list",       "pd_list",         NULL,                     NULL,                               NULL,          run_table,   "protection domains" },
	{ "pd",       "create",     "pd_create",       "?name",                  "name",                             NULL,          run_pairs,   "make a protection domain" },
	{ "pd",       "destroy",    "pd_dealloc",      "name",                   NULL,                               NULL,          run_quiet,   "destroy a protection domain" },
	{ "xrcd",     "list",       "xrcd_list",       NULL,                     NULL,                               NULL,          run_table,   "XRC domains: what is in them, how often they are open" },
	{ "xrcd",     "create",     "xrcd_create",     "?name",                  "name",                             NULL,          run_pairs,   "make an XRC domain" },
	{ "xrcd",     "destroy",    "xrcd_dealloc",    "name",                   NULL,                               NULL,          run_quiet,   "destroy an XRC domain" },
	{ "port",     "list",       "port_list",       NULL,                     NULL,                               "name device state mac ipv4 prefix ipv6 prefix6 mtu interface interface_mtu warning", run_table, "ports" },
	{ "port",     "show",       "port_list",       "name",                   NULL,                               NULL,          run_find,    "one port" },
	{ "worker",   "list",       "worker_list",     NULL,                     NULL,                               NULL,          run_table,   "worker lcores" },
	{ "control",  "load",       "control_load",    NULL,                     "reset",                            NULL,          run_pairs,   "how long the control lcore's turns take, and what the longest one did; reset true begins anew" },
	{ "neighbor", "list",       "neighbor_list",   NULL,                     NULL,                               NULL,          run_table,   "IP to MAC; state, how often and when asked; the user whose applications it is kept for, if not the operator's" },
	{ "neighbor", "add",        "neighbor_add",    "port",                   "ipv4 ipv6 mac",                    NULL,          run_quiet,   "fix an address's MAC; queue pairs use it at once" },
	{ "neighbor", "del",        "neighbor_del",    "port",                   "ipv4 ipv6",                        NULL,          run_quiet,   "forget an address, fixed or not; queue pairs have it asked for anew" },
	{ "neighbor", "flush",      "neighbor_flush",  "?port",                  NULL,                               NULL,          run_pairs,   "forget all that was learnt, of one port or of all" },
	{ "route",    "list",       "route_list",      "?port",                  NULL,                               "port to via src source", run_table, "routes; the longest prefix wins" },
	{ "route",    "add",        "route_add",       "port to",                "via",                              NULL,          run_pairs,   "a route by a next hop of the port's subnet; 0.0.0.0/0 and ::/0 are the gateway" },
	{ "route",    "del",        "route_del",       "port to",                "via",                              NULL,          run_pairs,   "take a route away; queue pairs that have none left send to nobody" },
	{ "client",   "list",       "client_list",     NULL,                     NULL,                               "client name pid uid qps cqs srqs mrs memory outstanding weight rate gone", run_table, "applications on this machine" },
	{ "client",   "users",      "client_users",    NULL,                     NULL,                               "uid operator connections clients qps cqs srqs mrs channels memory private_memory outstanding", run_table, "what the applications of each user hold together" },
	{ "client",   "set",        "client_set",      "#id",                    "weight rate pds mrs cqs srqs ahs qps channels outstanding memory private_memory", NULL, run_quiet, "give an application another share of the workers, or lower limits" },
	{ "client",   "end",        "client_end",      "#id",                    NULL,                               NULL,          run_quiet,   "disconnect an application; all that it made goes" },
	{ "post",     "send",       "post_send",       "#qp_num",                SEND_KEYS,                          NULL,          run_post,    "post send work requests" },
	{ "post",     "recv",       "post_recv",       "#qp_num",                "wr_id " SGE " count",              NULL,          run_post,    "post receive work requests; to a shared queue: post recv srq NAME" },
	{ "post",     "srq",        "post_srq_recv",   "srq",                    "wr_id " SGE " count",              NULL,          run_post,    "post receives to a shared receive queue" },
	{ "event",    "list",       "async_events",    "?#max",                  NULL,                               EVENT_COLUMNS, run_look,    "the newest asynchronous events that wait; they stay" },
	{ "event",    "clear",      "async_events",    NULL,                     NULL,                               NULL,          run_clear,   "take all of them away" },
	{ "event",    "monitor",    "async_events",    NULL,                     NULL,                               NULL,          run_follow,  "take asynchronous events as they come, and print them" },
	{ "error",    "show",       "rx_errors",       "?#max",                  NULL,                               ERROR_COLUMNS, run_look,    "the newest records of dropped and refused packets; they stay" },
	{ "error",    "clear",      "rx_errors",       NULL,                     NULL,                               NULL,          run_clear,   "take all of them away" },
	{ "error",    "monitor",    "rx_errors",       NULL,                     NULL,                               NULL,          run_watch,   "take records of such packets as they come, and print them" },
	{ "stat",     "show",       "stats",           NULL,                     STAT_KEYS,                          NULL,          run_stats,   "counters: [total | port | worker | qp N] [--all] [--watch [SECONDS]]; --stages [SECONDS]: cycles per packet and stage, busy share" },
	{ "stat",     "latency",    "latency",         NULL,                     NULL,                               NULL,          run_table,   "from posting to completion, in nanoseconds, of what send_feeds asked for" },
	{ "cm",       "list",       "cm_list",         NULL,                     NULL,                               CM_COLUMNS,    run_table,   "connections by the connection manager, those that ended last too" },
	{ "cm",       "explain",    "cm_explain",      "#id",                    NULL,                               NULL,          run_cm_explain, "one connection: why it is as it is, what each side proposed, what was taken, ids and times" },
	{ "cm",       "listen",     "cm_listen",       "name",                   "port ps service_port accept backlog " CM_QP, NULL, run_pairs, "let peers connect to a service port" },
	{ "cm",       "unlisten",   "cm_unlisten",     "name",                   NULL,                               NULL,          run_quiet,   "end a listener; its connections live on" },
	{ "cm",       "connect",    "cm_connect",      "port dest_ip #service_port", "ps private_data responder_resources initiator_depth retry_count rnr_retry_count timeout_ms traffic_class " CM_QP, NULL, run_pairs, "ask a peer for a connection" },
	{ "cm",       "accept",     "cm_accept",       "#id",                    "private_data " CM_QP,              NULL,          run_pairs,   "say yes to a peer that asks" },
	{ "cm",       "reject",     "cm_reject",       "#id",                    "private_data reason",              NULL,          run_quiet,   "say no" },
	{ "cm",       "disconnect", "cm_disconnect",   "#id",                    NULL,                               NULL,          run_quiet,   "end a connection, or an attempt" },
	{ "cm",       "events",     "cm_events",       "?#max",                  NULL,                               CM_EVENT_COLUMNS, run_table, "take the events that wait: CONNECT_REQUEST, ESTABLISHED, ..." },
	{ "trace",    "start",      "trace_start",     "?#qp_num",               NULL,                               NULL,          run_quiet,   "start the flight recorder" },
	{ "trace",    "stop",       "trace_stop",      "?#qp_num",               NULL,                               NULL,          run_quiet,   "stop it" },
	{ "trace",    "read",       "trace_read",      "?#qp_num",               "max",                              TRACE_COLUMNS, run_table,   "the last packets and decisions" },
	{ "impair",   "show",       "impair_get",      "?port",                  NULL,                               IMPAIR_COLUMNS, run_impair_show, "the bad wire in front of the ports: what it did, its rules" },
	{ "impair",   "set",        "impair_set",      "port ?rules",            IMPAIR_KEYS,                        NULL,          run_impair_set, "new rules for what a port receives: a JSON file, -, none, or one rule as pairs" },
	{ "impair",   "log",        "impair_log",      "port",                   "from max",                         NULL,          run_impair_log, "what was decided since the rules were set, as a file for impair set" },
	{ "explain",  NULL,         "qp_post_mortem",  "#vendor_err",            NULL,                               NULL,          run_vendor_err, "what the vendor_err of a completion means, and which queue pairs failed of it" },
	{ "top",      NULL,         "worker_load",     NULL,                     TOP_KEYS,                           NULL,          run_top,     "live rates of workers, ports, queue pairs: [interval SECONDS] [qps N] [count N]; q ends it" },
	{ "metrics",  NULL,         "stats",           NULL,                     NULL,                               NULL,          run_metrics, "counters in Prometheus' text format" },
	{ "config",   "save",       "save_config",     NULL,                     NULL,                               NULL,          run_json,    "the objects as they are now, as a file that starts the same dataplane" },
	{ "version",  NULL,         "version",         NULL,                     NULL,                               NULL,          run_pairs,   "the daemon's version and features" },
	{ "methods",  NULL,         "rpc_get_methods", NULL,                     NULL,                               NULL,          run_pairs,   "the JSON-RPC methods that it knows" },
	{ "shutdown", NULL,         "shutdown",        NULL,                     NULL,                               NULL,          run_quiet,   "stop the daemon cleanly" },
};
/* clang-format on */

const size_t commands_n = sizeof(commands) / sizeof(commands[0]);

const struct command *
command_find(const char *object, const char *verb)
{
	for (size_t i = 0; i < commands_n; i++) {
		const struct command *c = &commands[i];

		if (strcmp(c->object, object) != 0)
			continue;
		if (verb == NULL || (c->verb != NULL && strcmp(c->verb, verb) == 0))
			return c;
	}
	return NULL;
}
