/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PERF_H
#define PERF_H
/**
 * @file perf.h  rocelane-perf: perftest's tests over librocelane, and its handshake over TCP.
 *
 * Owner:   one thread.
 * Memory:  struct perf owns what perf_open() and ends_make() made; ends_free() gives it back.
 * Time:    nanoseconds of CLOCK_MONOTONIC.
 * Depends: librocelane. No DPDK.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rocelane.h"

#define PERF_MAX_QPS 1024
#define PERF_QKEY    0x11111111 /* perftest's */
#define PERF_GRH     40         /* bytes ahead of a received datagram */

#define PERF_LIST_MAX 64 /* requests of a list */

enum perf_verb { PERF_SEND, PERF_WRITE, PERF_READ, PERF_ATOMIC };
enum perf_atomic { PERF_CMP_AND_SWAP, PERF_FETCH_AND_ADD };
enum perf_exit { PERF_OK = 0, PERF_FAILED = 1, PERF_USAGE = 2 };

struct perf_options {
	enum perf_verb verb;
	enum rl_qp_type type; /* RL_QPT_XRC_SEND: XRC, whose QPs send or receive */
	bool lat;
	bool client; /* a host was given */
	const char *host;
	const char *socket;   /* NULL: librocelane's default */
	const char *device;   /* name of a port, NULL: the first */
	unsigned int ib_port; /* from 1; 0: by device */
	int gid_index;
	unsigned int port; /* TCP */
	uint64_t size;     /* bytes */
	bool size_given;
	bool all_sizes;
	uint64_t iters;
	double duration_s; /* 0: by iterations */
	uint32_t qps;
	uint32_t tx_depth;
	uint32_t rx_depth;
	uint32_t cq_mod;
	uint32_t post_list; /* requests of a list */
	uint32_t inline_size;
	uint32_t mtu; /* bytes, 0: the port's */
	uint32_t out_reads;
	uint32_t qp_timeout;
	enum perf_atomic atomic;
	bool events; /* sleep for completions */
	bool report_gbits;
	bool json;
	bool validate;
	bool by_cm; /* connections by address and port, no TCP */
	uint32_t handshake_s;
};

/** One end of a QP, as perftest's handshake describes it. */
struct perf_dest {
	uint32_t lid;
	uint32_t out_reads;
	uint32_t qpn;
	uint32_t psn;
	uint32_t rkey;
	uint64_t vaddr;
	union rl_gid gid;
	uint32_t srqn;
};

/* ---- hist.c ---------------------------------------------------------------------------------- */

/** Latencies in nanoseconds: 64 buckets each doubling, that is 1.6 % wide. */
#define HIST_SUB     64
#define HIST_BUCKETS (HIST_SUB * 42)

struct hist {
	uint64_t n;
	uint64_t min;
	uint64_t max;
	double sum;
	double sum2;
	uint64_t bucket[HIST_BUCKETS];
};

void hist_reset(struct hist *h);
void hist_add(struct hist *h, uint64_t ns);
/** Middle of the bucket in which the share (0 to 1) of all values is reached; 0 when empty. */
double hist_at(const struct hist *h, double share);
double hist_mean(const struct hist *h);
double hist_stdev(const struct hist *h);

/* ---- meter.c --------------------------------------------------------------------------------- */

/** Rates of a run; times in nanoseconds. */
struct meter {
	uint64_t began;
	uint64_t now;
	uint64_t window; /* when this window began, and what was done then */
	uint64_t window_done;
	uint64_t seen; /* when the newest completions were seen, and what was done then */
	uint64_t seen_done;
	uint64_t shown;
	uint64_t shown_done;
	double peak; /* messages a second */
};

void meter_start(struct meter *m, uint64_t now);
/** So many messages are done by now. The best rate is over windows of 100 ms and more. */
void meter_see(struct meter *m, uint64_t done, uint64_t now);

/** What one QP has done in this test. */
struct perf_count {
	uint64_t posted;
	uint64_t done;
	uint64_t recv_posted;
	uint64_t received;
	uint32_t unsignaled; /* posted since the last signaled request */
};

/** Where a queue pair's messages lie in its room: one place after the other, again and again. */
struct perf_places {
	uint64_t step; /* bytes */
	uint32_t n;
};

/* ---- the run --------------------------------------------------------------------------------- */

struct perf_result {
	uint64_t size;
	uint64_t iters;
	double bw_peak; /* bytes a second */
	double bw_avg;
	double rate; /* messages a second */
	double seconds;
};

struct addrinfo;

struct perf {
	struct perf_options o;
	int sock; /* TCP, or what stands for it */
	struct perf_cm *cm;
	/* agreed on with the peer */
	uint32_t cycle_buffer; /* bytes a message has room for at least */
	uint32_t line;         /* bytes that no two messages share */
	uint32_t mtu;          /* bytes */
	bool peer_is_us;
	bool running; /* the handshake is over: the peer speaks when its test is */

	struct rl_context *ctx;
	struct rl_pd *pd;
	struct rl_comp_channel *channel;
	struct rl_cq *send_cq;
	struct rl_cq *recv_cq;
	struct rl_mr *mr;
	uint64_t room;  /* bytes of the memory for one QP's messages in one direction */
	uint32_t slots; /* messages in it, when they are validated; else 1 */
	struct perf_places sent_at, received_at;
	uint8_t port_num;
	union rl_gid gid;
	uint32_t head; /* bytes ahead of each message received: PERF_GRH with UD */
	/* As the handshake counts them: twice o.qps for XRC both ways, those that send first. */
	uint32_t num_qps;
	struct rl_qp **qp;
	struct rl_xrcd *xrcd;
	struct rl_srq **srq; /* XRC: where the messages for i arrive */
	struct rl_ah **ah;   /* where QP i's datagrams go */
	struct perf_dest *mine;
	struct perf_dest *theirs;
	struct perf_count *count; /* by QP */
	/* Requests of one QP that are not handed over yet. */
	struct rl_send_wr list[PERF_LIST_MAX];
	struct rl_sge list_sge[PERF_LIST_MAX];
	uint32_t listed;
	uint64_t done; /* requests completed */
	uint64_t received;
	uint64_t wrong; /* messages that were not as they should be */
	struct hist hist;
};

/* options.c */
/** @return PERF_OK; PERF_USAGE; -1: help was printed. */
int options_parse(struct perf_options *o, int argc, char **argv);
const char *options_verb_name(const struct perf_options *o); /* "RDMA_Write" */
const char *options_type_name(const struct perf_options *o); /* "UC" */
bool options_may_lose(const struct perf_options *o);         /* are messages not acknowledged? */

/* oob.c: perftest 4.5's conversation over TCP. Each returns 0 or -1 with a message printed. */
int oob_connect(struct perf *p);
/** Addresses of o.host and o.port: for freeaddrinfo(). */
int oob_find_host(const struct perf *p, struct addrinfo **list);
/** Versions, buffer sizes, path MTU. */
int oob_agree(struct perf *p);
int oob_keys(struct perf *p, uint32_t qp);
int oob_all_keys(struct perf *p);
int oob_report(struct perf *p, const struct perf_result *mine, struct perf_result *theirs);
/** The last keys, and "done". */
int oob_close(struct perf *p);

/* cm.c: -R. Each returns 0 or -1 with a message printed. */
/** Find each other: p->sock is the conversation then, and the port is known. */
int cm_meet(struct perf *p);
/** All queue pairs, one after the other, to RTS. */
int cm_connect(struct perf *p);
/** p->sock is closed. */
void cm_free(struct perf *p);

/**
 * places.c: where messages of that size lie. As perftest has it: of bandwidth, short ones have
 * cache lines of their own, as many as there is room for; long ones, and all of latency, lie at one
 * place.
 */
void places_set(struct perf *p, uint64_t size);

static inline uint64_t
place_of(const struct perf_places *at, uint64_t n)
{
	return n % at->n * at->step;
}

/* ends.c: verbs objects */
/** The port by the options, its path MTU and address. @return 0 or -1 with a message. */
int ends_port(struct perf *p);
int ends_open(struct perf *p);
int ends_make(struct perf *p);
int ends_connect(struct perf *p);
void ends_free(struct perf *p);
/** The peer of QP i. */
const struct perf_dest *ends_peer(const struct perf *p, uint32_t i);
/** Where QP i's messages start: what it sends from, or what its peer writes to. */
uint8_t *ends_local(const struct perf *p, uint32_t i);
uint8_t *ends_remote(const struct perf *p, uint32_t i);

/* work.c: posting and completions, for all tests */
uint64_t now_ns(void);
/** SIGINT and SIGTERM end the run; before anything else. */
void work_init(void);
bool work_stopped(void);
/** Whoever started us is told that a signal ended the run; returns if none did. */
void work_end_as_stopped(void);
/** The next request of a QP; work_flush() follows the last one. @return 0 or -1 with a message. */
int work_post(struct perf *p, uint32_t qp, uint64_t size, bool signaled);
/** Hand over what is listed. @return 0 or -1 with a message. */
int work_flush(struct perf *p, uint32_t qp);
int work_post_recv(struct perf *p, uint32_t qp, uint64_t size);
/**
 * Take completions and count them: sends in p->done, receives in p->received, each as validated.
 * @return how many messages they stand for; -1 with a message: one failed.
 */
int64_t work_poll(struct perf *p, struct rl_cq *cq, uint64_t size);
/**
 * Nothing was there: sleep for an event (--events). Who polls leaves the CPU to others in
 * rl_poll_cq(), as any program does.
 * @return 0; -1 with a message: the peer or the dataplane is gone, or the run was stopped.
 */
int work_idle(struct perf *p, struct rl_cq *cq, uint32_t *spins);
/** @return true with a message: the dataplane or a QP of ours has failed. */
bool work_failed(const struct perf *p);
/** Has the peer said something on the handshake's connection? */
bool work_peer_speaks(const struct perf *p);
/** Counters to zero, and where messages lie, before each size. */
void work_reset(struct perf *p, uint64_t size);
/**
 * What is in memory before the run, so that what arrives can be told and validated. Before the
 * handshake: behind it the peer may be writing already.
 */
void work_prepare(struct perf *p, uint64_t size);
/** WRITE's passive end: were the last messages of each QP as they should be? */
void work_check_written(struct perf *p, uint64_t size, uint64_t iters);

/* bw.c, lat.c: one size. @return 0 or -1 */
int bw_client(struct perf *p, uint64_t size, struct perf_result *r);
int bw_server_recv(struct perf *p, uint64_t size, struct perf_result *r);
int lat_run(struct perf *p, uint64_t size, struct perf_result *r);

/* report.c */
void report_head(const struct perf *p);
void report_columns(const struct perf *p);
void report_bw(const struct perf *p, const struct perf_result *r);
void report_lat(const struct perf *p, const struct perf_result *r);
void report_end(const struct perf *p);

#endif
