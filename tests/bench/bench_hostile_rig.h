/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_HOSTILE_RIG_H
#define BENCH_HOSTILE_RIG_H
/**
 * @file bench_hostile_rig.h  A good QP, hostile QPs, and the frames of either for bench_hostile.c.
 *
 * Owner:   bench_hostile.c; one thread.
 * Memory:  EAL's, without huge pages or privileges.
 * Depends: lib/pipeline, DPDK.
 */
#include "bench_net.h"
#include "pipeline.h"
#include "qp.h"
#include "qp_control.h"

enum {
	GOOD = 32,           /* good packets of a sample */
	FLOOD = 10 * GOOD,   /* hostile ones */
	HOSTILE_QPS = FLOOD, /* one for each packet that is its QP's last */
	WITHOUT_ERRBUF = 0,
	WITH_ERRBUF = 1,
	WITH_LAPS = 2, /* the first of them, with cycles by stage */
	WORKERS = 3
};

/** What is wrong with a hostile packet; the rest of it is a WRITE of 64 bytes. */
enum spoil {
	SPOIL_NOTHING,   /* a good neighbour's */
	SPOIL_BYTE,      /* ^= value at a place of the frame, checksum and ICRC left alone */
	SPOIL_BYTE_SUM,  /* the same, IPv4 checksum made right */
	SPOIL_BYTE_SEAL, /* the same, ICRC made right too */
	SPOIL_CUT,       /* shorter than it says */
	SPOIL_IPV6,      /* a good packet of the other IP version */
	SPOIL_VLAN,      /* a tag */
	SPOIL_FCS,
	SPOIL_NO_QP,
	SPOIL_STATE,  /* the QP is in ERR */
	SPOIL_MAC,    /* source MAC of a QP that looks at it */
	SPOIL_RTR,    /* a response to a QP in RTR */
	SPOIL_OPCODE, /* another opcode; 64 bytes of payload stay */
	SPOIL_PSN,    /* ePSN plus a value */
	SPOIL_RNR,    /* SEND, and no receive WQE */
	SPOIL_READ_AGAIN,
	SPOIL_RKEY,
	SPOIL_WQE, /* SEND into a WQE that is malformed */
	SPOIL_NOT_ROCE,
};

struct hostile_case {
	const char *name;
	const char *rule;
	uint8_t spoil; /* enum spoil */
	uint8_t at;    /* place in the frame, or opcode */
	uint8_t value;
	bool each; /* each packet of a sample to a QP of its own */
	int16_t psn;
	uint16_t counter; /* one each packet; STAT_MAX: not looked at */
};

struct hostile_rig {
	uint16_t port;
	struct rte_ring *to;
	struct rte_ring *from;
	struct rte_mempool *pool;
	struct worker *worker[WORKERS];
	struct mbox mbox;
};

void hostile_set_up(struct hostile_rig *r);
void hostile_tear_down(struct hostile_rig *r);
/** Bring all QPs to where the case needs them. */
void hostile_begin(const struct hostile_case *c);
/** After a sample: QPs that it brought to ERR, or that owe no second NAK, are as before. */
void hostile_revive(const struct hostile_case *c);
/**
 * Put a sample on the wire: `good` packets of the good QP, `bad` ones of the case evenly between
 * them.
 */
void hostile_prepare(
	struct hostile_rig *r, const struct hostile_case *c, uint32_t good, uint32_t bad);
/** Empty everything that a sample fills. @return frames that came back. */
uint32_t hostile_clear(struct hostile_rig *r);
/** Good packets accepted so far. */
uint32_t hostile_good_psn(void);
void die(const char *what);

#endif
