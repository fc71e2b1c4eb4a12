/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RING_AEQ_H
#define RING_AEQ_H
/**
 * @file ring_aeq.h  Asynchronous event queue: what a worker reports to the control lcore, in order.
 *
 * Owner:   one producer (a worker), one consumer (the control lcore); a queue for each worker.
 * Memory:  the caller's, ring_aeq_size() bytes, zeroed.
 * Depends: base.
 * Spec:    rules AEQ-01..04, AEQ-14, AEQ-15.
 *
 * An entry is valid when its phase bit is the consumer's, which toggles each time that the
 * consumer's index comes back to 0. The consumer takes everything that is valid, then gives all
 * those entries back at once. A full queue takes nothing: losses are counted, and the next entry
 * that finds room carries the overflow flag.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compiler.h"
#include "verbs.h"

/** What the source of an entry says (tables/event_sources.def). */
enum {
	AEQ_QP = 1 << 0,
	AEQ_CQ = 1 << 1,
	AEQ_SQ = 1 << 2,
	AEQ_RQ = 1 << 3,
	AEQ_IN_RDRSP_WR = 1 << 4, /* READ response or WRITE that arrives */
	AEQ_OUT_RDRSP = 1 << 5,   /* READ response that is sent */
	AEQ_SRQ = 1 << 6,         /* shared receive queue: of the code, no source says so */
};

enum aeq_source {
	AEQ_FROM_NONE = 0,
	AEQ_FROM_RQ = 1,
	AEQ_FROM_CQ = 2,
	AEQ_FROM_SQ = 5,
	AEQ_FROM_OUT_RDRSP = 13
};

enum aeq_code {
#define EVENT_CODE(code, name, class, object, text) AEQ_##name = code,
#include "tables/event_codes.def"
#undef EVENT_CODE
};

enum aeq_class {
	AEQ_CLASS_REPORT,
	AEQ_CLASS_CQ_ERROR,
	AEQ_CLASS_SUSPEND,
	AEQ_CLASS_INFO,
	AEQ_CLASS_ABNORMAL, /* also of codes that are not listed */
};

/** The highest number of a QP, a CQ or an SRQ that an entry has room for. */
#define AEQ_ID_MAX UINT32_C(0xffffff)

/** An event, decoded. */
struct ring_aeq_event {
	uint64_t context; /* address of the QP, CQ or SRQ, 0: not given */
	uint64_t time_ns;
	uint64_t trace_at; /* entries the worker's flight recorder had taken */
	uint32_t id;       /* QPN, number of a CQ or SRQ; up to AEQ_ID_MAX */
	uint32_t psn;
	uint16_t wqe_index;
	uint16_t code;  /* enum aeq_code, 12 bits */
	uint16_t rule;  /* rule index */
	uint8_t source; /* 4 bits: tables/event_sources.def */
	uint8_t event;  /* QP_REPORT: enum event_type */
	uint8_t fatal;  /* FATAL code, 0: none */
	uint8_t opcode; /* BTH */
	uint8_t state;  /* of the QP when it was raised */
	uint8_t syndrome;
	uint8_t fault; /* enum wire_fault */
	/* decoder's */
	uint8_t flags; /* AEQ_* */
	bool overflow; /* events were lost before this one */
};

/** As it lies in memory: one cache line. */
struct ring_aeq_entry {
	uint64_t context; /* of a CQ: divided by 2 */
	uint64_t time_ns;
	uint64_t trace_at;
	uint32_t psn;
	uint16_t rule;
	uint8_t event;
	uint8_t fatal;
	uint8_t opcode;
	uint8_t state;
	uint8_t syndrome;
	uint8_t fault;
	uint8_t reserved[20];
	/*
	 * Written last. Bits 0..23 object id, 24..39 WQE index, 40..51 code, 52..55 source,
	 * 56 overflow, 63 phase.
	 */
	_Atomic uint64_t word;
};
_Static_assert(sizeof(struct ring_aeq_entry) == 64, "one cache line");

struct ring_aeq_shared {
	_Atomic uint32_t returned CACHE_ALIGNED; /* entries given back; writer: consumer */
	_Atomic uint64_t lost CACHE_ALIGNED;     /* writer: producer */
	struct ring_aeq_entry e[] CACHE_ALIGNED;
};

/** Private view of either side. */
struct ring_aeq {
	struct ring_aeq_shared *sh;
	uint32_t mask;
	uint32_t index;    /* producer: entries written; consumer: entries taken */
	uint32_t returned; /* consumer: entries given back */
	bool lost;         /* producer: the next entry carries the overflow flag */
};

/** Bytes for `entries`, a power of two; 0: it is none. */
size_t ring_aeq_size(uint32_t entries);
/** A view of fresh (zeroed) memory. */
void ring_aeq_attach(struct ring_aeq *q, void *mem, uint32_t entries);

/** Producer: 0, or -ENOSPC after counting the loss. Cost: one line written. */
int ring_aeq_push(struct ring_aeq *q, const struct ring_aeq_event *e);
/** Producer: one that it does not even try to push is lost, and counted as such. */
void ring_aeq_lose(struct ring_aeq *q);
/** Producer: how many it has room for. */
uint32_t ring_aeq_room(const struct ring_aeq *q);
/** Consumer: the next event in order. @return false: no more. */
bool ring_aeq_next(struct ring_aeq *q, struct ring_aeq_event *out);
/** Consumer: give back everything taken since the last call, at once. @return how many. */
uint32_t ring_aeq_done(struct ring_aeq *q);
/** Either side: events lost, ever. */
uint64_t ring_aeq_lost(const struct ring_aeq *q);

/** Unpack a word: id, wqe_index, code, source, overflow, and the flags that those give. */
void ring_aeq_decode(uint64_t word, struct ring_aeq_event *out);
/** The inverse of ring_aeq_decode(), with the phase bit that the entry is to have. */
uint64_t ring_aeq_encode(const struct ring_aeq_event *e, bool phase);

/** "RQ"; "NONE" of a reserved source. */
const char *ring_aeq_source_name(uint8_t source);
/** What a source stands for, as AEQ_* bits; 0 of a reserved source. */
uint8_t ring_aeq_source_flags(uint8_t source);
/** "bounds violation"; "unknown event" of what is not listed. */
const char *ring_aeq_code_text(uint16_t code);
/** The class of a code; AEQ_CLASS_ABNORMAL of what is not listed. */
enum aeq_class ring_aeq_code_class(uint16_t code);

/** What an abnormal code does to its QP. */
struct aeq_flush {
	const char *name; /* "PROT" */
	uint8_t status;   /* enum wc_status of the failing work request */
	uint8_t event;    /* enum event_type where none carries it */
};
/** What a code does to its QP; GENERAL_ERR and QP_FATAL where the table has no row. */
struct aeq_flush ring_aeq_flush_of(uint16_t code);

#endif
