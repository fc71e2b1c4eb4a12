/* SPDX-License-Identifier: BSD-3-Clause */
#include "conf_test.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* clang-format off */
#define XRC_SRQ(num) "\"pd\": \"pd0\", \"srq_type\": \"XRC\", \"xrcd\": \"x\", \"cq\": \"cq0\", \"srq_num\": " num

/* One line of a good configuration spoiled; exactly one fault must come of it. */
static const struct fault {
	int line;
	const char *text;
	const char *pointer;
	const char *says; /* part of the message: what is wrong and what is allowed */
	int at;           /* line that is named, 0: the spoiled one */
} faults[] = {
	/* types */
	{ L_VERSION, "\"version\": 2,", "/version", "must be 1, not 2", 0 },
	{ L_VERSION, "", "/version", "is missing", 1 },
	{ L_EAL, "\"eal\": \"-l 0\",", "/eal", "must be an array, not \"-l 0\"", 0 },
	{ L_EAL, "\"eal\": [ 1 ],", "/eal/0", "must be a string of 1 to 4096 bytes, not 1", 0 },
	{ L_CQS, "\"cqs\": [ 5 ],", "/cqs/0", "must be an object (cq), not 5", 0 },
	{ L_CQS, "\"cqs\": [ { \"name\": \"cq0\", \"cqe\": 10.5 } ],", "/cqs/0/cqe",
		"must be a number from 1 to 65536 (0x10000), not 10.5", 0 },
	{ L_CQS, "\"cqs\": [ { \"name\": \"cq0\", \"cqe\": 16.0 } ],", "/cqs/0/cqe",
		"must be a number from 1 to 65536 (0x10000), not 16.0", 0 },
	{ L_PDS, "\"pds\": [ \"pd0\", \"\" ],", "/pds/1", "must be a name of 1 to 63", 0 },
	{ L_PDS, "\"pds\": [ \"pd0\", \"a b\" ],", "/pds/1", "without blanks, not \"a b\"", 0 },
	{ L_PDS, "\"pds\": [ \"pd0\", {} ],", "/pds/1/name", "is missing", 0 },
	/* unknown keys */
	{ L_TIMEOUT, "\"timeuot\": 14,", "/qps/0/timeuot", "did you mean \"timeout\"?", 0 },
	{ L_PROFILE, "\"Knobs\": {},", "/Knobs", "did you mean \"knobs\"?", 0 },
	{ L_PROFILE, "\"zzzzzzzzzz\": {},", "/zzzzzzzzzz", "unknown key; allowed here: version, eal", 0 },
	{ L_PROFILE, "\"a/b~c\\u0041\": {},", "/a~1b~0cA", "unknown key", 0 },
	{ L_KNOBS, "\"knobs\": { \"rx.errbuff\": \"on\" },", "/knobs/rx.errbuff", "\"rx.errbuf\"", 0 },
	{ L_TIMEOUT, "\"cur_qp_state\": \"RTS\",", "/qps/0/cur_qp_state", "in a modify only", 0 },
	/* lcores and control */
	{ L_LCORES, "\"lcores\": { \"workers\": [] },", "/lcores/workers", "1 to 64 elements, not 0", 0 },
	{ L_LCORES, "\"lcores\": { \"control\": 1, \"workers\": [2, 1] },", "/lcores/workers/1",
		"lcore 1 is the control lcore", 0 },
	{ L_LCORES, "\"lcores\": { \"workers\": [1, 2, 1] },", "/lcores/workers/2", "is worker 0 already",
		0 },
	{ L_LCORES, "\"lcores\": { \"workers\": [1, 999] },", "/lcores/workers/1",
		"a number from 0 to 127, not 999", 0 },
	{ L_LCORES, "\"lcores\": { \"idle\": \"spin\" },", "/lcores/idle",
		"must be \"poll\", \"pause\", \"yield\" or \"sleep\", not \"spin\"", 0 },
	{ L_CONTROL, "\"control\": { \"mode\": \"0888\" },", "/control/mode", "in octal", 0 },
	{ L_CONTROL, "\"control\": { \"mode\": 384 },", "/control/mode", "in octal", 0 },
	{ L_CONTROL, "\"control\": { \"mode\": \"01777\" },", "/control/mode", "to \"0777\"", 0 },
	{ L_CONTROL, "\"control\": { \"socket\": \"/a/b\", \"client_socket\": \"/a/b\" },",
		"/control/client_socket", "must be another path than socket", 0 },
	{ L_CONTROL, "\"control\": { \"client_socket\": \"/run/rocelane.sock\" },",
		"/control/client_socket", "must be another path than socket", 0 },
	{ L_EAL, "\"eal\": [ \"--no-huge\", \"--\", \"x\" ],", "/eal/1", "ends EAL's arguments", 0 },
	{ L_EAL, "\"eal\": [ \"--proc-type=secondary\" ],", "/eal/0", "a primary process", 0 },
	{ L_EAL, "\"eal\": [ \"--proc-type\", \"auto\" ],", "/eal/1", "a primary process", 0 },
	{ L_EAL, "\"eal\": [ \"-h\" ],", "/eal/0", "starts nothing", 0 },
	/* ports */
	{ L_PORT, "{ \"name\": \"p0\", \"device\": \"net_af_packet0\", \"rx_queues\": 3,",
		"/ports/0/rx_queues", "3, but /lcores has 2 workers: each queue needs one of its own", 0 },
	{ L_PORT, "{ \"name\": \"p0\", \"device\": \"net_af_packet0\", \"rx_queues\": 0,",
		"/ports/0/rx_queues", "from 1 to 64", 0 },
	{ L_PORT, "{ \"name\": \"p0\", \"device\": \"net_af_packet0\", \"mac\": \"03:00:00:00:00:01\",",
		"/ports/0/mac", "a unicast MAC address", 0 },
	{ L_PORT, "{ \"name\": \"p0\", \"device\": \"net_af_packet0\", \"mac\": \"02:00:00:00:00:1\",",
		"/ports/0/mac", "a unicast MAC address", 0 },
	{ L_PORT_IP, "\"ipv4\": \"224.0.0.1\", \"mtu\": 4200,", "/ports/0/ipv4", "unicast IPv4 address", 0 },
	{ L_PORT_IP, "\"ipv4\": \"10.77.0.1\", \"mtu\": 4200, \"ipv6\": \"10.77.0.1\",", "/ports/0/ipv6",
		"unicast IPv6 address", 0 },
	{ L_PORT_IP, "\"ipv4\": \"10.77.0.1\", \"mtu\": 4200, \"ipv6\": \"ff02::1\",", "/ports/0/ipv6",
		"unicast IPv6 address", 0 },
	{ L_PORT_IP, "\"ipv4\": \"10.77.0.1\", \"prefix\": 33, \"mtu\": 4200,", "/ports/0/prefix",
		"from 1 to 32, not 33", 0 },
	{ L_PORT_IP, "\"ipv4\": \"10.77.0.1\", \"mtu\": 70000,", "/ports/0/mtu", "from 256 to 16000", 0 },
	{ L_NEIGHBORS, "\"neighbors\": [ { \"mac\": \"02:00:00:00:00:02\" } ] } ],",
		"/ports/0/neighbors/0", "exactly one of ipv4 and ipv6, not none", 0 },
	{ L_NEIGHBORS, "\"neighbors\": [ { \"ipv4\": \"10.77.0.2\", \"mac\": \"02:00:00:00:00:02\" }, "
		"{ \"ipv4\": \"10.77.0.2\", \"mac\": \"02:00:00:00:00:03\" } ] } ],",
		"/ports/0/neighbors/1/ipv4", "has a MAC by /ports/0/neighbors/0 already", 0 },
	{ L_NEIGHBORS, "\"neighbors\": [ { \"ipv4\": \"10.77.0.1\", \"mac\": \"02:00:00:00:00:02\" } ] } ],",
		"/ports/0/neighbors/0/ipv4", "is the port's own address", 0 },
	{ L_NEIGHBORS, "\"neighbors\": [ { \"ipv4\": \"10.77.0.2\" } ] } ],",
		"/ports/0/neighbors/0/mac", "is missing", 0 },
	{ L_NEIGHBORS, "\"neighbors\": [ { \"ipv4\": \"10.77.0.2\", \"ipv6\": \"fd77::2\", "
		"\"mac\": \"02:00:00:00:00:02\" } ] } ],", "/ports/0/neighbors/0", "not both", 0 },
	{ L_NEIGHBORS, "\"neighbors\": [] }, { \"name\": \"p0\", \"device\": \"d\", \"ipv4\": \"10.0.0.1\" } ],",
		"/ports/1/name", "\"p0\" is taken by /ports/0", 0 },
	{ L_NEIGHBORS, "\"neighbors\": [] }, { \"name\": \"p1\", \"device\": \"net_af_packet0\", "
		"\"ipv4\": \"10.0.0.1\" } ],", "/ports/1/device", "is taken by /ports/0", 0 },
	{ L_NEIGHBORS, "\"neighbors\": [] }, { \"name\": \"p1\", \"device\": \"d\", \"ipv4\": \"10.77.0.1\" } ],",
		"/ports/1/ipv4", "is the address of /ports/0", 0 },
	{ L_NEIGHBORS, "\"neighbors\": [] }, { \"name\": \"p1\", \"device\": \"d\" } ],", "/ports/1", "has no address", 0 },
	/* knobs, error buffer */
	{ L_PROFILE, "\"profile\": \"ibta\",", "/profile", "must be \"iba\" or \"ernic\", not \"ibta\"", 0 },
	{ L_KNOBS, "\"knobs\": { \"cc.cnp\": true },", "/knobs/cc.cnp", "must be \"off\" or \"on\", not true",
		0 },
	{ L_KNOBS, "\"knobs\": { \"req.max_outstanding_psn\": 8388608 },", "/knobs/req.max_outstanding_psn",
		"to 8388607 (0x7fffff), not 8388608", 0 },
	{ L_KNOBS, "\"knobs\": { \"tmr.min_timeout\": 32 },", "/knobs/tmr.min_timeout", "from 0 to 31", 0 },
	{ L_ERROR_BUFFER, "\"error_buffer\": { \"entries\": 0 },", "/error_buffer/entries", "from 1 to", 0 },
	/* regions, SRQs */
	{ L_MR1, "{ \"name\": \"mr1\", \"pd\": \"pd1\", \"length\": 64 } ],", "/mrs/1/pd",
		"\"pd1\" does not exist: must be a name of /pds, as \"pd0\"", 0 },
	{ L_MR1, "{ \"name\": \"mr0\", \"pd\": \"pd0\", \"length\": 64 } ],", "/mrs/1/name",
		"\"mr0\" is taken by /mrs/0", 0 },
	{ L_MR1, "{ \"name\": \"mr1\", \"pd\": \"pd0\", \"length\": 0 } ],", "/mrs/1/length",
		"must be a size from 1 to 1099511627776 bytes", 0 },
	{ L_MR1, "{ \"name\": \"mr1\", \"pd\": \"pd0\", \"length\": \"64k\" } ],", "/mrs/1/length",
		"\"64K\", \"16M\" or \"1G\"), not \"64k\"", 0 },
	{ L_MR1, "{ \"name\": \"mr1\", \"pd\": \"pd0\", \"length\": \"99999999999G\" } ],", "/mrs/1/length",
		"must be a size", 0 },
	{ L_MR1, "{ \"name\": \"mr1\", \"pd\": \"pd0\", \"length\": 64, \"rkey\": \"0x1001\" } ],",
		"/mrs/1/rkey", "0x1001 is taken by /mrs/0", 0 },
	{ L_MR1, "{ \"name\": \"mr1\", \"pd\": \"pd0\", \"length\": 64, \"rkey\": \"0x100000000\" } ],",
		"/mrs/1/rkey", "to 4294967295 (0xffffffff), or null, not", 0 },
	{ L_MR1, "{ \"name\": \"mr1\", \"pd\": \"pd0\", \"length\": 64, \"addr\": \"0xffffffffffffffc0\" } ],",
		"/mrs/1/addr", "wraps around: at most 0xffffffffffffffbf", 0 },
	{ L_MR1, "{ \"name\": \"mr1\", \"pd\": \"pd0\", \"length\": 64, \"addr\": \"0x10000000000000000\" } ],",
		"/mrs/1/addr", "to 0xffffffffffffffff", 0 },
	{ L_MR1, "{ \"name\": \"mr1\", \"pd\": \"pd0\", \"length\": 64, \"addr\": \"12\" } ],",
		"/mrs/1/addr", "must be a number", 0 },
	{ L_MR1, "{ \"name\": \"mr1\", \"pd\": \"pd0\", \"length\": 64, \"addr\": -1 } ],",
		"/mrs/1/addr", "must be a number from 0", 0 },
	{ L_MR1, "{ \"name\": \"mr1\", \"pd\": \"pd0\", \"length\": 64, \"access\": [ \"READ\" ] } ],",
		"/mrs/1/access/0", "must be \"LOCAL_WRITE\", \"REMOTE_WRITE\"", 0 },
	{ L_MR1, "{ \"name\": \"mr1\", \"pd\": \"pd0\", \"length\": 64, \"access\": [ \"REMOTE_WRITE\" ] } ],",
		"/mrs/1/access", "require LOCAL_WRITE", 0 },
	{ L_MR1, "{ \"name\": \"mr1\", \"pd\": \"pd0\", \"length\": 64, \"fill\": \"pattern:\" } ],",
		"/mrs/1/fill", "\"zero\" or \"pattern:SEED\"", 0 },
	{ L_MR1, "{ \"name\": \"mr1\", \"pd\": \"pd0\", \"length\": 64, \"fill\": \"pattern:7x\" } ],",
		"/mrs/1/fill", "\"zero\" or \"pattern:SEED\"", 0 },
	{ L_SRQS, "\"srqs\": [ { \"name\": \"srq0\", \"pd\": \"pd0\", \"max_wr\": 8, \"srq_limit\": 9 } ],",
		"/srqs/0/srq_limit", "from 0 to max_wr (8), not 9", 0 },
	{ L_SRQS, "\"mws\": [ { \"name\": \"w\", \"pd\": \"none\" } ],", "/mws/0/pd", "none", 0 },
	{ L_SRQS, "\"mws\": [ { \"name\": \"w\", \"pd\": \"pd0\" }, { \"name\": \"w\", \"pd\": \"pd0\" } ],",
		"/mws/1/name", "w", 0 },
	/* XRC-09: a number once, and one of each 4096 that share a place */
	{ L_SRQS, "\"xrcds\": [\"x\"], \"srqs\": [ { \"name\": \"a\", " XRC_SRQ("5") " }, "
		"{ \"name\": \"srq0\", " XRC_SRQ("5") " } ],", "/srqs/1/srq_num", "taken by /srqs/0", 0 },
	{ L_SRQS, "\"xrcds\": [\"x\"], \"srqs\": [ { \"name\": \"srq0\", " XRC_SRQ("5") " }, "
		"{ \"name\": \"b\", " XRC_SRQ("4101") " } ],", "/srqs/1/srq_num", "taken by /srqs/0", 0 },
	{ L_SRQS, "\"srqs\": [ { \"name\": \"srq0\", \"pd\": \"pdx\" } ],", "/srqs/0/pd", "does not exist", 0 },
	/* QP-04: ranges of QP attributes */
	{ L_TIMEOUT, "\"timeout\": 32,", "/qps/0/timeout", "must be a number from 0 to 31, not 32", 0 },
	{ L_RETRY_CNT, "\"retry_cnt\": 8,", "/qps/0/retry_cnt", "from 0 to 7, not 8", 0 },
	{ L_RNR_RETRY, "\"rnr_retry\": 8,", "/qps/0/rnr_retry", "from 0 to 7, not 8", 0 },
	{ L_MIN_RNR, "\"min_rnr_timer\": 32,", "/qps/0/min_rnr_timer", "from 0 to 31, not 32", 0 },
	{ L_RQ_PSN, "\"rq_psn\": 16777216,", "/qps/0/rq_psn", "from 0 to 16777215 (0xffffff)", 0 },
	{ L_SQ_PSN, "\"sq_psn\": \"0x1000000\",", "/qps/0/sq_psn", "from 0 to 16777215 (0xffffff)", 0 },
	{ L_PATH_MTU, "\"path_mtu\": 0,", "/qps/0/path_mtu", "must be 256, 512, 1024, 2048 or 4096, not 0",
		0 },
	{ L_PATH_MTU, "\"path_mtu\": 1000,", "/qps/0/path_mtu", "2048 or 4096, not 1000", 0 },
	{ L_MAX_RD, "\"max_rd_atomic\": 17,", "/qps/0/max_rd_atomic", "from 0 to 16, not 17", 0 },
	{ L_MAX_DEST_RD, "\"max_dest_rd_atomic\": 17,", "/qps/0/max_dest_rd_atomic", "from 0 to 16", 0 },
	{ L_DEST_QPN, "\"dest_qp_num\": 16777216,", "/qps/0/dest_qp_num", "from 2 to 16777214", 0 },
	{ L_QP2, "{ \"qp_num\": \"0xffffff\", \"qp_type\": \"RC\", \"pd\": \"pd0\", \"send_cq\": \"cq0\", "
		"\"recv_cq\": \"cq0\" } ]", "/qps/1/qp_num", "to 16777214 (0xfffffe), or null", 0 },
	{ L_QP2, "{ \"qp_num\": 1, \"qp_type\": \"RC\", \"pd\": \"pd0\", \"send_cq\": \"cq0\", "
		"\"recv_cq\": \"cq0\" } ]", "/qps/1/qp_num", "from 2 to", 0 },
	{ L_PKEY, "\"pkey\": 0,", "/qps/0/pkey", "from 1 to 65535", 0 },
	{ L_PKEY, "\"pkey\": \"0x8000\",", "/qps/0/pkey", "low 15 bits", 0 },
	{ L_ACCESS, "\"qp_access_flags\": \"REMOTE_READ\",", "/qps/0/qp_access_flags", "an array of", 0 },
	{ L_CAP, "\"cap\": { \"max_send_sge\": 17 },", "/qps/0/cap/max_send_sge", "from 0 to 16", 0 },
	{ L_AH, "\"ah_attr\": { \"dest_ip\": \"10.77.0.2\", \"vlan\": 4095 },", "/qps/0/ah_attr/vlan",
		"from 1 to 4094, or null", 0 },
	{ L_AH, "\"ah_attr\": { \"dest_ip\": \"10.77.0.2\", \"hop_limit\": 0 },", "/qps/0/ah_attr/hop_limit",
		"from 1 to 255", 0 },
	{ L_AH, "\"ah_attr\": { \"dest_ip\": \"0.0.0.0\" },", "/qps/0/ah_attr/dest_ip", "unicast or multicast IPv4 or", 0 },
	{ L_AH, "\"ah_attr\": { \"dest_ip\": \"239.1.2.3\" },", "/qps/0/ah_attr/dest_ip", "must be a unicast address", 0 },
	{ L_AH, "\"ah_attr\": { \"dest_ip\": null },", "/qps/0/ah_attr/dest_ip", "not null", 0 },
	/* what the state needs */
	{ L_STATE, "\"qp_state\": \"SQD\",", "/qps/0/qp_state", "\"RTR\" or \"RTS\", not \"SQD\"", 0 },
	{ L_DEST_QPN, "", "/qps/0/dest_qp_num", "is missing: qp_state RTS requires", L_QP },
	{ L_RQ_PSN, "", "/qps/0/rq_psn", "is missing: qp_state RTS requires", L_QP },
	{ L_SQ_PSN, "", "/qps/0/sq_psn", "is missing: qp_state RTS requires", L_QP },
	{ L_AH, "", "/qps/0/ah_attr", "is missing: qp_state RTS requires", L_QP },
	{ L_AH, "\"ah_attr\": {},", "/qps/0/ah_attr/dest_ip", "is missing", 0 },
	{ L_QP2, "{ \"qp_type\": \"RC\", \"pd\": \"pd0\", \"send_cq\": \"cq0\", \"recv_cq\": \"cq0\", "
		"\"qp_state\": \"INIT\" } ]", "/qps/1/port", "qp_state INIT requires", 0 },
	{ L_QP2, "{ \"pd\": \"pd0\", \"send_cq\": \"cq0\", \"recv_cq\": \"cq0\" } ]", "/qps/1/qp_type",
		"is required and must be \"RC\"", 0 },
	{ L_QP2, "{ \"qp_type\": \"RD\", \"pd\": \"pd0\", \"send_cq\": \"cq0\", \"recv_cq\": \"cq0\", "
		"\"dest_qp_num\": 18, \"send_feed\": { \"opcode\": \"SEND\" } } ]", "/qps/1/qp_type",
		"or \"XRC_RECV\", not \"RD\"", 0 },
	{ L_QP2, "{ \"qp_type\": \"RC\", \"send_cq\": \"cq0\", \"recv_cq\": \"cq0\" } ]", "/qps/1/pd",
		"is required", 0 },
	{ L_QP2, "{ \"qp_type\": \"RC\", \"pd\": \"pd0\", \"recv_cq\": \"cq0\" } ]", "/qps/1/send_cq",
		"is missing: a RC QP requires", 0 },
	{ L_QP2, "{ \"qp_type\": \"RC\", \"pd\": \"pd0\", \"send_cq\": \"cq0\" } ]", "/qps/1/recv_cq",
		"is missing: a RC QP requires", 0 },
	/* references */
	{ L_QP2, "{ \"qp_type\": \"RC\", \"pd\": \"pd0\", \"send_cq\": \"cq0\", \"recv_cq\": \"cq1\" } ]",
		"/qps/1/recv_cq", "\"cq1\" does not exist: must be a name of /cqs, as \"cq0\"", 0 },
	{ L_QP2, "{ \"qp_type\": \"RC\", \"pd\": \"pd0\", \"send_cq\": \"cq0\", \"recv_cq\": \"cq0\", "
		"\"srq\": \"s\" } ]", "/qps/1/srq", "does not exist", 0 },
	{ L_QP2, "{ \"qp_type\": \"RC\", \"pd\": \"pd0\", \"send_cq\": \"cq0\", \"recv_cq\": \"cq0\", "
		"\"port\": \"p9\" } ]", "/qps/1/port", "does not exist", 0 },
	{ L_WORKER, "\"worker\": 2,", "/qps/0/worker", "must be a number from 0 to 1", 0 },
	/* templates */
	{ L_QP2, "{ \"qp_num\": 17, \"qp_type\": \"RC\", \"pd\": \"pd0\", \"send_cq\": \"cq0\", "
		"\"recv_cq\": \"cq0\" } ]", "/qps/1/qp_num", "17 to 17 overlaps the numbers of /qps/0", 0 },
	{ L_COUNT, "\"count\": 84,", "/qps/1/qp_num", "/qps/0, which end at 100", L_QP2 },
	{ L_COUNT, "\"count\": 0,", "/qps/0/count", "from 1 to 1048576", 0 },
	{ L_QP2, "{ \"qp_type\": \"RC\", \"pd\": \"pd0\", \"send_cq\": \"cq0\", \"recv_cq\": \"cq0\", "
		"\"count\": 1048576 } ]", "/qps", "asks for 1048577 QPs in all: at most 1048576", 19 },
	{ L_QP2, "{ \"qp_num\": \"0xfffffd\", \"qp_type\": \"RC\", \"pd\": \"pd0\", \"send_cq\": \"cq0\", "
		"\"recv_cq\": \"cq0\", \"count\": 3 } ]", "/qps/1/count", "at most 2", 0 },
	{ L_QP2, "{ \"dest_qp_num\": \"0xfffffe\", \"qp_type\": \"RC\", \"pd\": \"pd0\", \"send_cq\": \"cq0\", "
		"\"recv_cq\": \"cq0\", \"count\": 2 } ]", "/qps/1/count", "from dest_qp_num 16777214", 0 },
	/* feeds */
	{ L_RECV_FEED, "\"recv_feed\": { \"size\": 0 },", "/qps/0/recv_feed/size", "a size from 1 to", 0 },
	{ L_RECV_FEED, "\"srq\": \"srq0\", \"recv_feed\": { \"buffers\": 1 },", "/qps/0/recv_feed",
		"no receive queue of its own", 0 },
	{ L_SEND_FEED, "\"send_feed\": { \"opcode\": \"WRITE\" } },", "/qps/0/send_feed/opcode",
		"must be \"SEND\", \"SEND_WITH_IMM\"", 0 },
	{ L_SEND_FEED, "\"send_feed\": { \"size\": 64 } },", "/qps/0/send_feed/opcode", "is missing", 0 },
	{ L_SEND_FEED, "\"send_feed\": { \"opcode\": \"RDMA_READ\", \"remote_addr\": 0 } },",
		"/qps/0/send_feed/rkey", "RDMA_READ requires it", 0 },
	{ L_SEND_FEED, "\"send_feed\": { \"opcode\": \"RDMA_WRITE\", \"rkey\": 1 } },",
		"/qps/0/send_feed/remote_addr", "RDMA_WRITE requires it", 0 },
	{ L_SEND_FEED, "\"send_feed\": { \"opcode\": \"ATOMIC_FETCH_AND_ADD\", \"rkey\": 1, "
		"\"remote_addr\": 4 } },", "/qps/0/send_feed/remote_addr", "multiple of 8", 0 },
	{ L_SEND_FEED, "\"send_feed\": { \"opcode\": \"ATOMIC_CMP_AND_SWP\", \"rkey\": 1, \"size\": 64, "
		"\"remote_addr\": 8 } },", "/qps/0/send_feed/size", "8 bytes, not 64", 0 },
	{ L_SEND_FEED, "\"send_feed\": { \"opcode\": \"RDMA_WRITE\", \"rkey\": 1, "
		"\"remote_addr\": \"0xfffffffffffffff0\" } },", "/qps/0/send_feed", "wraps around", 0 },
	/* knobs of a QP */
	{ L_CAP, "\"knobs\": { \"rx.ip_df\": \"on\" },", "/qps/0/knobs/rx.ip_df",
		"must be \"ignore\" or \"require\"", 0 },
	{ L_CAP, "\"profile\": \"xib\",", "/qps/0/profile", "\"ernic\", or null", 0 },
	/* RX-LNK-02: the longest datagram must fit the port; framesz must hold its frame and 66 bytes */
	{ L_PATH_MTU, "\"path_mtu\": 4096, \"sq_sig_all\": false, \"profile\": null, \"knobs\": null, "
		"\"srq\": null, \"nothing\": 0,", "/qps/0/nothing", "unknown key", 0 },
	{ L_PORT_IP, "\"ipv4\": \"10.77.0.1\", \"mtu\": 1087,", "/qps/0/path_mtu",
		"1024 makes datagrams of up to 1088 bytes, but port \"p0\" has mtu 1087: raise the "
		"port's mtu to 1088, or lower path_mtu to 512", L_PATH_MTU },
	{ L_EAL, "\"eal\": [\"--vdev\", \"net_af_packet0,iface=x,framesz=1152\"],", "/eal/1",
		"raise framesz to at least 1168", 0 },
	{ L_AH, "\"ah_attr\": { \"dest_ip\": \"fd77::2\" },", "/qps/0/ah_attr", "port \"p0\" has no ipv6", 0 },
	{ L_TIMEOUT, "\"timeout\": 14, \"alt_ah_attr\": { \"dest_ip\": \"fd77::2\" },", "/qps/0/alt_ah_attr",
		"port \"p0\" has no ipv6", 0 },
	{ L_TIMEOUT, "\"timeout\": 14, \"alt_ah_attr\": { \"dest_ip\": \"10.77.0.3\" }, \"alt_port\": \"p9\",",
		"/qps/0/alt_port", "must be a name of /ports, as \"p0\"", 0 },
	{ L_TIMEOUT, "\"timeout\": 14, \"path_mig_state\": \"REARM\",", "/qps/0/path_mig_state",
		"REARM requires alt_ah_attr", 0 },
	/* text */
	{ L_TIMEOUT, "\"timeout\": 14, \"timeout\": 15,", "/qps/0/timeout", "duplicate object key", 0 },
	{ L_TIMEOUT, "\"timeout\": 014,", "/qps/0/timeout", "column", 0 },
	{ L_TIMEOUT, "\"timeout\": 14", "/qps/0/retry_cnt", "'}' expected", L_RETRY_CNT },
	{ L_TIMEOUT, "\"timeout\": \"\xff\",", "/qps/0/timeout", "unable to decode byte 0xff", 0 },
	/* jansson cuts this one inside a character: the message must be UTF-8 all the same */
	{ L_TIMEOUT, "\"timeout\": \"\\u12\xe2\x82\xac\",", "/qps/0/timeout", "'\"\\u12?'", 0 },
	{ L_END, "} x", NULL, "end of file expected", 0 },
	{ L_END, "", NULL, "'}' expected", L_END + 1 },
};
/* clang-format on */

static void
each_fault_is_named(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
		const struct fault *f = &faults[i];
		const struct swap swap = { f->line, f->text };
		struct conf_errors err;
		struct conf *c = NULL;
		int ret = base_load(&swap, 1, &c, &err);

		print_message("# %s\n", f->text);
		errors_show(&err);
		assert_int_equal(ret, -EINVAL);
		assert_null(c);
		assert_int_equal(err.n_errors, 1);
		assert_int_equal(err.n_warnings, 0);
		if (f->pointer != NULL)
			assert_string_equal(err.v[0].pointer, f->pointer);
		assert_non_null(strstr(err.v[0].message, f->says));
		assert_int_equal(err.v[0].line, f->at != 0 ? f->at : f->line);
		conf_errors_free(&err);
	}
}

/* One file, every fault: in the order of the lines, and printed as FILE:LINE: POINTER: message. */
static void
all_faults_at_once(void **state UNUSED)
{
	static const struct swap swaps[] = {
		{ L_SEND_FEED, "\"send_feed\": { \"opcode\": \"SEND\", \"depth\": 0 } }," },
		{ L_TIMEOUT, "\"timeout\": 99," },
		{ L_PORT_IP, "\"ipv4\": \"10.77.0\", \"mtu\": 4200," },
		{ L_MR0, "{ \"name\": \"mr1\", \"pd\": \"pd7\", \"length\": \"1M\" }," },
		{ L_LCORES, "\"lcores\": { \"control\": 1 }," },
		{ L_DEST_QPN, "\"dest_qpn\": 18," },
	};
	static const char *const expected[] = {
		"test.json:4: /lcores/workers/0: lcore 1 is the control lcore",
		"test.json:8: /ports/0/ipv4: must be a unicast IPv4 address as a string, or null, not \"10.77.0\"",
		"test.json:15: /mrs/0/pd: \"pd7\" does not exist",
		"test.json:16: /mrs/1/name: \"mr1\" is taken by /mrs/0",
		"test.json:20: /qps/0/dest_qp_num: is missing",
		"test.json:23: /qps/0/dest_qpn: unknown key: did you mean \"dest_qp_num\"?",
		"test.json:27: /qps/0/timeout: must be a number from 0 to 31, not 99",
		"test.json:39: /qps/0/send_feed/depth: must be a number from 1 to",
	};
	struct conf_errors err;
	struct conf *c;

	assert_int_equal(base_load(swaps, ARRAY_LEN(swaps), &c, &err), -EINVAL);
	errors_show(&err);
	assert_int_equal(err.n, ARRAY_LEN(expected));
	for (uint32_t i = 0; i < err.n; i++) {
		char line[1024];

		conf_error_print(&err, i, line, sizeof(line));
		assert_memory_equal(line, expected[i], strlen(expected[i]));
	}
	conf_errors_free(&err);
}

/* TMR-03 (timeout 0: no timer) and min_rnr_timer 0 are accepted with a warning; so are others. */
static void
warnings_do_not_refuse(void **state UNUSED)
{
	static const struct {
		int line;
		const char *text, *pointer, *says;
	} rows[] = {
		{ L_TIMEOUT, "\"timeout\": 0,", "/qps/0/timeout",
			"no transport timer" }, /* TMR-03 */
		{ L_MIN_RNR, "\"min_rnr_timer\": 0,", "/qps/0/min_rnr_timer", "655.36 ms" },
		{ L_SEND_FEED, "\"send_feed\": { \"opcode\": \"SEND\", \"depth\": 129 } },",
			"/qps/0/send_feed", "only 128 of depth 129" },
		{ L_KNOBS, "\"knobs\": { \"resp.psn_check\": \"resync\" },", "/knobs",
			"benchmarks" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct swap swap = { rows[i].line, rows[i].text };
		struct conf_errors err;
		struct conf *c = NULL;
		char line[512];

		assert_int_equal(base_load(&swap, 1, &c, &err), 0);
		errors_show(&err);
		assert_non_null(c);
		assert_int_equal(err.n_errors, 0);
		assert_int_equal(err.n_warnings, 1);
		assert_int_equal(conf_errors_first(&err), -1);
		assert_string_equal(err.v[0].pointer, rows[i].pointer);
		assert_int_equal(err.v[0].line, rows[i].line);
		conf_error_print(&err, 0, line, sizeof(line));
		assert_non_null(strstr(line, "warning: "));
		assert_non_null(strstr(line, rows[i].says));
		conf_free(c);
		conf_errors_free(&err);
	}
}

/* RX-LNK-02 at the edge: what just fits is taken. 4240 is the smallest framesz for 4096. */
static void
rx_lnk_02_edges(void **state UNUSED)
{
	static const struct {
		const char *path_mtu, *port, *eal, *ah;
		int ret;
	} rows[] = {
		{ "1024", "1088", "framesz=1168", "\"10.77.0.2\"", 0 },
		{ "1024", "1087", "framesz=1168", "\"10.77.0.2\"", -EINVAL },
		{ "1024", "1088", "framesz=1167", "\"10.77.0.2\"", -EINVAL },
		{ "1024", "1108", "framesz=1188", "\"fd77::2\"", 0 },
		{ "1024", "1107", "framesz=1188", "\"fd77::2\"", -EINVAL },
		{ "1024", "1108", "framesz=1187", "\"fd77::2\"", -EINVAL },
		{ "1024", "1088", "framesz=1172", "\"10.77.0.2\", \"vlan\": 5", 0 },
		{ "1024", "1088", "framesz=1171", "\"10.77.0.2\", \"vlan\": 5", -EINVAL },
		{ "4096", "4160", "framesz=4240,blocksz=65536", "\"10.77.0.2\"", 0 },
		{ "4096", "4160", "framesz=4224,blocksz=65536", "\"10.77.0.2\"", -EINVAL },
		{ "2048", "1500", "framesz=4240,blocksz=65536", "\"10.77.0.2\"", -EINVAL },
		{ "2048", "4200", "blocksz=65536", "\"10.77.0.2\"", -EINVAL }, /* default 2048 */
		{ "1024", "4200", "blocksz=65536", "\"10.77.0.2\"", 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char mtu[64], port[128], eal[128], ah[128];
		const struct swap swaps[] = { { L_PATH_MTU, mtu }, { L_PORT_IP, port },
			{ L_EAL, eal }, { L_AH, ah } };
		struct conf_errors err;
		struct conf *c;

		snprintf(mtu, sizeof(mtu), "\"path_mtu\": %s,", rows[i].path_mtu);
		snprintf(port, sizeof(port),
			"\"ipv4\": \"10.77.0.1\", \"ipv6\": \"fd77::1\", \"mtu\": %s,",
			rows[i].port);
		snprintf(eal, sizeof(eal), "\"eal\": [ \"--vdev=net_af_packet0,iface=x,%s\" ],",
			rows[i].eal);
		snprintf(ah, sizeof(ah), "\"ah_attr\": { \"dest_ip\": %s },", rows[i].ah);
		print_message("# %s %s %s %s\n", mtu, port, eal, ah);
		assert_int_equal(base_load(swaps, ARRAY_LEN(swaps), &c, &err), rows[i].ret);
		conf_free(c);
		conf_errors_free(&err);
	}
}

/* Hostile texts end in a fault, not a crash: depth, too many faults, control characters. */
static void
hostile_texts(void **state UNUSED)
{
	const size_t depth = 100000;
	char *deep = malloc(depth + 1);
	struct conf_errors err;
	struct conf *c;
	char line[128];

	memset(deep, '[', depth);
	conf_errors_init(&err);
	assert_int_equal(conf_load_text(deep, depth, &c, &err), -EINVAL);
	assert_int_equal(err.n_errors, 1);
	assert_non_null(strstr(err.v[0].message, "maximum parsing depth"));
	conf_errors_free(&err);

	memset(deep, 'a', depth); /* a key longer than any pointer, and escapes for a terminal */
	memcpy(deep, "{\"\\u001b[31m", 11);
	memcpy(deep + depth - 4, "\":1}", 4);
	assert_int_equal(conf_load_text(deep, depth, &c, &err), -EINVAL);
	for (uint32_t i = 0; i < err.n; i++) {
		conf_error_print(&err, i, line, sizeof(line));
		assert_null(strchr(line, 0x1b));
	}
	conf_errors_free(&err);

	strcpy(deep, "{\"version\":1,\"pds\":[");
	for (size_t i = 0; i < 1000; i++)
		strcat(deep, "7,");
	strcat(deep, "7]}");
	assert_int_equal(conf_load_text(deep, strlen(deep), &c, &err), -EINVAL);
	assert_int_equal(err.n, CONF_ERRORS_MAX);
	assert_true(err.n_errors >= CONF_ERRORS_MAX);
	conf_errors_free(&err);
	free(deep);

	static const struct {
		const char *text;
		size_t len;
		const char *says;
	} others[] = {
		{ "{\"version\": 1\0}", 15, "a byte 0" }, /* jansson takes it for nothing */
		{ "\xef\xbb\xbf{\"version\": 1}", 17, "byte order mark" },
		{ "\xff\xfe{\0}\0", 6, "UTF-8" },
		{ "\xfe\xff\0{\0}", 6, "UTF-8" },
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_int_equal(conf_load_text(others[i].text, others[i].len, &c, &err), -EINVAL);
		assert_int_equal(err.n_errors, 1);
		assert_int_equal(err.v[0].line, 1);
		assert_non_null(strstr(err.v[0].message, others[i].says));
		conf_errors_free(&err);
	}
	assert_int_equal(conf_load_text("[]", 2, &c, &err), -EINVAL);
	assert_string_equal(err.v[0].pointer, "");
	conf_errors_free(&err);
	assert_int_equal(conf_load_text("", 0, &c, &err), -EINVAL);
	assert_int_equal(err.v[0].line, 1);
	conf_errors_free(&err);
}

static void
files_that_cannot_be_read(void **state UNUSED)
{
	struct conf_errors err;
	struct conf *c;
	char line[256];

	conf_errors_init(&err);
	assert_int_equal(conf_load_file("/nonexistent/x.json", &c, &err), -ENOENT);
	assert_null(c);
	assert_int_equal(err.n_errors, 1);
	conf_error_print(&err, 0, line, sizeof(line));
	/* No line, no pointer: neither is shown. */
	assert_int_equal(strncmp(line, "/nonexistent/x.json: cannot be read", 35), 0);
	assert_non_null(strstr(line, "No such file"));
	conf_errors_free(&err);
	assert_int_equal(conf_load_file("/", &c, &err), -EISDIR);
	conf_errors_free(&err);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_fault_is_named),
		cmocka_unit_test(all_faults_at_once),
		cmocka_unit_test(warnings_do_not_refuse),
		cmocka_unit_test(rx_lnk_02_edges),
		cmocka_unit_test(hostile_texts),
		cmocka_unit_test(files_that_cannot_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
