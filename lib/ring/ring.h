/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RING_H
#define RING_H
/**
 * @file ring.h  Work and completion rings between a host and the dataplane: the shared-memory ABI.
 *
 * Owner:   one producer and one consumer for a work ring; many producers and one consumer for a
 *          completion ring. Each side keeps a private `struct ring`/`struct ring_cq` view.
 * Memory:  the caller's, shared; size from ring_size(). Nothing is allocated here.
 * Depends: base.
 *
 * The far side may write anything at any time: a reader copies an entry, then checks the copy, and
 * trusts no index further than its mask. Entry counts are powers of two.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "invariant.h"
#include "verbs.h"

#define RING_MAX_SGE     16
#define RING_MAX_ENTRIES 65536u

/** As struct ibv_sge. */
struct ring_sge {
	uint64_t addr;
	uint32_t length; /* bytes */
	uint32_t lkey;
};

/** A receive work request; `sge` has the ring's max_sge entries. */
struct ring_recv_wqe {
	uint64_t wr_id;
	uint32_t num_sge;
	uint32_t reserved;
	struct ring_sge sge[];
};

/** Private copy of a receive WQE: as large as any. */
struct ring_recv_copy {
	uint64_t wr_id;
	uint32_t num_sge;
	uint32_t index; /* of a shared receive ring's entry */
	struct ring_sge sge[RING_MAX_SGE];
};

/** A word of an entry that the other side may write at the same time: one access, no order. */
#define RING_STORE(type, at, v) \
	atomic_store_explicit((_Atomic type *)(at), (v), memory_order_relaxed)
#define RING_LOAD(type, at) atomic_load_explicit((const _Atomic type *)(at), memory_order_relaxed)

/** A completion; exactly one cache line. Status, opcode and flags have libibverbs' values. */
struct ring_cqe {
	uint64_t wr_id;
	uint32_t qp_num;
	uint32_t byte_len;
	uint32_t imm_data;   /* host order; or the invalidated R_Key with WC_WITH_INV */
	uint32_t vendor_err; /* FATAL code */
	uint32_t src_qp;
	uint32_t psn; /* of the packet that caused an error */
	uint64_t time_ns;
	uint16_t cause;   /* rule index, see responder_rule_id(); 0: none */
	uint8_t status;   /* enum wc_status */
	uint8_t opcode;   /* enum wc_opcode */
	uint8_t wc_flags; /* WC_GRH, WC_WITH_IMM, WC_WITH_INV */
	uint8_t solicited;
	uint8_t peer_opcode; /* BTH opcode of the packet that caused an error */
	uint8_t grh_ip;      /* with WC_GRH: version of the IP header there, 4 or 6 */
	uint8_t reserved[12];
	_Atomic uint32_t seq; /* written last: turn number of the slot + 1 */
};
_Static_assert(sizeof(struct ring_cqe) == 64, "one cache line");

_Static_assert(offsetof(struct ring_cqe, imm_data) == 16 && offsetof(struct ring_cqe, psn) == 28 &&
		       offsetof(struct ring_cqe, time_ns) == 32 &&
		       offsetof(struct ring_cqe, cause) == 40 &&
		       offsetof(struct ring_cqe, peer_opcode) == 46 &&
		       offsetof(struct ring_cqe, seq) == 60,
	"the words of ring_cqe_write()");

/** What a completion says; members that are left out are 0. See struct ring_cqe. */
struct ring_completion {
	uint64_t wr_id;
	uint32_t byte_len;
	uint32_t imm_data;
	uint32_t vendor_err;
	uint32_t src_qp;
	uint32_t psn;
	uint16_t cause;
	uint8_t status;
	uint8_t opcode;
	uint8_t wc_flags;
	uint8_t peer_opcode;
	uint8_t grh_ip;
	bool solicited;
};

/**
 * Write all of a completion but `seq`, in as few stores as there are words (hosts are
 * little-endian). The one writer of completions: called with a slot of ring_cq_reserve(), before
 * ring_cq_publish(). Members known when this is compiled cost nothing.
 * @param qp_num the QP's number. @param time_ns the dataplane's clock.
 */
static ALWAYS_INLINE void
ring_cqe_write(
	struct ring_cqe *cqe, uint32_t qp_num, uint64_t time_ns, const struct ring_completion *c)
{
	const uint64_t what = c->cause | (uint64_t)c->status << 16 | (uint64_t)c->opcode << 24 |
			      (uint64_t)c->wc_flags << 32 | (uint64_t)c->solicited << 40 |
			      (uint64_t)c->peer_opcode << 48 | (uint64_t)c->grh_ip << 56;
	uint64_t *word = (uint64_t *)(void *)cqe;
	uint32_t *last = (uint32_t *)(void *)((uint8_t *)cqe + 7 * sizeof(*word));

	/* Word by word: an array that is copied would be read wider than it was just written. */
	__builtin_memcpy(&word[0], &c->wr_id, sizeof(*word));
	__builtin_memcpy(&word[1], &(uint64_t){ qp_num | (uint64_t)c->byte_len << 32 }, 8);
	__builtin_memcpy(&word[2], &(uint64_t){ c->imm_data | (uint64_t)c->vendor_err << 32 }, 8);
	__builtin_memcpy(&word[3], &(uint64_t){ c->src_qp | (uint64_t)c->psn << 32 }, 8);
	__builtin_memcpy(&word[4], &time_ns, 8);
	__builtin_memcpy(&word[5], &what, 8);
	__builtin_memcpy(&word[6], &(uint64_t){ 0 }, 8);
	__builtin_memcpy(last, &(uint32_t){ 0 }, 4);
}
_Static_assert(
	7 * sizeof(uint64_t) + sizeof(uint32_t) == offsetof(struct ring_cqe, seq), "all words");

/** The shared part: indices on lines of their own, entries behind. */
struct ring_shared {
	_Atomic uint32_t prod CACHE_ALIGNED;
	_Atomic uint32_t bell;  /* 1: the consumer was told of entries, and has not looked yet */
	_Atomic uint32_t alert; /* writer: consumer. Tell it of every entry. SRQ: it is in error */
	_Atomic uint32_t cons CACHE_ALIGNED;
	uint8_t slots[] CACHE_ALIGNED;
};

/** The same of a completion ring: who adds entries keeps his index to himself. */
struct ring_cq_shared {
	_Atomic uint64_t arm CACHE_ALIGNED; /* writer: consumer; see ring_cq_arm() */
	_Atomic uint32_t fired;             /* writer: the adding side. Events so far */
	_Atomic uint32_t told;              /* ... and what the newest answers asked for, plus 1 */
	_Atomic uint32_t cons CACHE_ALIGNED;
	uint8_t slots[] CACHE_ALIGNED;
};
_Static_assert(
	sizeof(struct ring_cq_shared) == sizeof(struct ring_shared), "ring_size() fits both");

/** Private view of a work ring (SPSC). */
struct ring {
	struct ring_shared *sh;
	uint32_t mask;
	uint32_t stride; /* bytes per entry, multiple of 16 */
	uint32_t prod;   /* own index (producer) or last seen (consumer) */
	uint32_t cons;
};

/** Bytes of shared memory for `entries` (power of two) of `stride` (n * 16); 0: out of range. */
size_t ring_size(uint32_t entries, uint32_t stride);
/** Stride of a receive ring whose WQEs have up to max_sge entries; 0 if above RING_MAX_SGE. */
uint32_t ring_recv_stride(uint32_t max_sge);
/** Smallest power of two not below n (at least 1); 0 if above RING_MAX_ENTRIES. */
uint32_t ring_entries(uint32_t n);

/** Bind a view to memory of ring_size() bytes. @param fresh clear the shared indices. */
void ring_attach(struct ring *r, void *mem, uint32_t entries, uint32_t stride, bool fresh);

/** Producer: slot to fill, or NULL when full. `limit` caps posted entries (max_recv_wr). */
void *ring_produce_slot(struct ring *r, uint32_t limit);
/** Producer: publish the slot given by ring_produce_slot (release). */
void ring_produce_commit(struct ring *r);
/**
 * Producer: fill a slot with a receive. A worker may be copying the old entry of a shared queue's
 * slot at the same time (it then throws its copy away, ring_srq.h): hence word by word.
 * @param sge n entries of struct ring_sge.
 */
static inline void
ring_recv_fill(struct ring_recv_wqe *wqe, uint64_t wr_id, const void *sge, uint32_t n)
{
	ASSERT(n <= RING_MAX_SGE);
	RING_STORE(uint64_t, &wqe->wr_id, wr_id);
	RING_STORE(uint32_t, &wqe->num_sge, n);
	for (uint32_t i = 0; i < n; i++) {
		struct ring_sge s;

		memcpy(&s, (const uint8_t *)sge + i * sizeof(s), sizeof(s));
		RING_STORE(uint64_t, &wqe->sge[i].addr, s.addr);
		RING_STORE(uint32_t, &wqe->sge[i].length, s.length);
		RING_STORE(uint32_t, &wqe->sge[i].lkey, s.lkey);
	}
}

/** Where the entry with this index is. */
static inline uint8_t *
ring_slot(const struct ring *r, uint32_t index)
{
	ASSERT((r->mask & (r->mask + 1)) == 0 && r->stride % 16 == 0);
	return r->sh->slots + (size_t)(index & r->mask) * r->stride;
}
/**
 * Consumer: how many entries are waiting (acquire); never more than the ring holds, and never fewer
 * than an earlier call has said, less those given back: the caller may have built on that.
 */
static inline uint32_t
ring_consume_count(struct ring *r)
{
	uint32_t prod = atomic_load_explicit(&r->sh->prod, memory_order_acquire);

	/* An index that no honest producer could have reached from the last is not taken over. */
	if (LIKELY(prod - r->prod <= r->cons + r->mask + 1 - r->prod))
		r->prod = prod;
	ASSERT(r->prod - r->cons <= r->mask + 1);
	return r->prod - r->cons;
}
/** Consumer: is none waiting (acquire)? */
static inline bool
ring_is_empty(const struct ring *r)
{
	return atomic_load_explicit(&r->sh->prod, memory_order_acquire) == r->cons;
}
/** Consumer: entry number i from the head (i < ring_consume_count). */
static inline const void *
ring_consume_peek(const struct ring *r, uint32_t i)
{
	return ring_slot(r, r->cons + i);
}
/** Consumer: give n entries back (release). */
static inline void
ring_consume_done(struct ring *r, uint32_t n)
{
	ASSERT(n <= r->prod - r->cons); /* they were counted before */
	r->cons += n;
	atomic_store_explicit(&r->sh->cons, r->cons, memory_order_release);
}
/**
 * Consumer: is the producer to tell of every entry? What was published before is seen by the next
 * ring_consume_count(); what comes later is told.
 */
static inline void
ring_alert(struct ring *r, bool on)
{
	if (RING_LOAD(uint32_t, &r->sh->alert) == on)
		return;
	atomic_store_explicit(&r->sh->alert, on, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}
/** Consumer: is the producer's index one that no honest producer can have? */
bool ring_is_corrupt(const struct ring *r);

/** Private view of a completion ring (many producers, one consumer). */
struct ring_cq {
	struct ring_cq_shared *sh;
	uint32_t mask;
	uint32_t limit;        /* cqe asked for: overflow above it; 0: left, `sh` may be gone */
	uint32_t cons;         /* consumer's own index */
	uint32_t turn;         /* consumer: counts calls of ring_cq_arm() */
	_Atomic uint32_t tail; /* producers' index; those of one ring share one view */
	uint32_t seen;         /* a producer that is alone: the consumer's index, some time ago */
};

/**
 * Bind a view to memory of ring_size(entries, sizeof(struct ring_cqe)) bytes.
 * @param cqe completions that may wait: one more is an overflow. At most `entries` count.
 * @param fresh clear the memory: by whoever made it, before anybody else attaches.
 */
void ring_cq_attach(struct ring_cq *q, void *mem, uint32_t entries, uint32_t cqe, bool fresh);
/**
 * A new ring, in which nobody has added or polled: it goes on with indices that are behind all of
 * `from`, which it takes the place of, and with its count of events.
 */
void ring_cq_follow(struct ring_cq *q, const struct ring_cq *from);
/** Any worker: add a completion. @return 0, or -ENOSPC: full, nothing is overwritten (CQ-05). */
int ring_cq_push(struct ring_cq *q, const struct ring_cqe *cqe);
/**
 * Any worker: the place of the next completion, or NULL when there is none (CQ-05). Whoever has it
 * fills all but `seq`, field by field, and says ring_cq_publish(); until then the consumer waits.
 */
struct ring_cqe *ring_cq_reserve(struct ring_cq *q, uint32_t *index);

/** Where the completion with this index is. */
static inline struct ring_cqe *
ring_cq_at(const struct ring_cq *q, uint32_t index)
{
	struct ring_cqe *slots = (void *)q->sh->slots;

	ASSERT((q->mask & (q->mask + 1)) == 0);
	return &slots[index & q->mask];
}

/**
 * How many places there are at least for a worker that no other one adds beside.
 * @param index out: of the first. @return 0: the ring is full, or left.
 */
static inline uint32_t
ring_cq_room_alone(struct ring_cq *q, uint32_t *index)
{
	const uint32_t prod = atomic_load_explicit(&q->tail, memory_order_relaxed);
	const uint32_t limit = RING_LOAD(uint32_t, &q->limit); /* once: it may become 0 */

	ASSERT(limit <= q->mask + 1);
	*index = prod;
	if (UNLIKELY(prod - q->seen >= limit)) {
		if (limit == 0)
			return 0;
		q->seen = atomic_load_explicit(&q->sh->cons, memory_order_acquire);
		if (prod - q->seen >= limit)
			return 0;
	}
	return limit - (prod - q->seen);
}

/**
 * ring_cq_reserve() of a worker that no other one adds beside: without a locked exchange, which
 * costs about 100 cycles as it waits for all stores before it. Whoever makes a second worker a
 * producer orders all that this one did before all that the other one does, and has this one know
 * before that it is not alone any more: then the other one finds the newest `tail`, and no two
 * ever move it at once. The entry itself is published by its `seq`, as ever.
 */
static inline struct ring_cqe *
ring_cq_reserve_alone(struct ring_cq *q, uint32_t *index)
{
	uint32_t prod;

	if (UNLIKELY(ring_cq_room_alone(q, &prod) == 0))
		return NULL;
	atomic_store_explicit(&q->tail, prod + 1, memory_order_relaxed);
	*index = prod;
	return ring_cq_at(q, prod);
}

/** Are n places free, by what the host says now? None is of a ring that was left. */
static inline bool
ring_cq_fits(const struct ring_cq *q, uint32_t n)
{
	const uint32_t prod = atomic_load_explicit(&q->tail, memory_order_relaxed);
	const uint32_t limit = RING_LOAD(uint32_t, &q->limit);
	uint32_t used;

	if (UNLIKELY(limit == 0))
		return false;
	used = prod - atomic_load_explicit(&q->sh->cons, memory_order_acquire);
	return used <= limit && limit - used >= n;
}

/** The same of the n places behind `index`, which ring_cq_room_alone() has said, all at once. */
static inline void
ring_cq_taken_alone(struct ring_cq *q, uint32_t index, uint32_t n)
{
	ASSERT(index == atomic_load_explicit(&q->tail, memory_order_relaxed));
	atomic_store_explicit(&q->tail, index + n, memory_order_relaxed);
}

/** Bits of an index that say where an entry is; the others count turns. */
static inline uint32_t
ring_turn_bits(const struct ring_cq *q)
{
	return (uint32_t)__builtin_popcount(q->mask);
}

/** @param bits ring_turn_bits(). */
static inline uint32_t
ring_seq_of(uint32_t index, uint32_t bits)
{
	return (index >> bits) + 1;
}

/** The value of `seq` once the entry with this index is there. The turn before left another. */
static inline uint32_t
ring_cq_seq(const struct ring_cq *q, uint32_t index)
{
	return ring_seq_of(index, ring_turn_bits(q));
}

/** Publish a completion that is complete, with its `seq`: the consumer may take it. */
static inline void
ring_cqe_publish(struct ring_cqe *slot, uint32_t seq)
{
	atomic_store_explicit(&slot->seq, seq, memory_order_release);
}
/** The same of the entry with this index. */
static inline void
ring_cq_publish(const struct ring_cq *q, struct ring_cqe *slot, uint32_t index)
{
	ASSERT(slot == ring_cq_at(q, index));
	ring_cqe_publish(slot, ring_cq_seq(q, index));
}
/**
 * Consumer: completions of this QP, which adds no more, are as if they had never been; others keep
 * their order.
 */
void ring_cq_forget(struct ring_cq *q, uint32_t qp_num);
/** Consumer: copy up to n completions out, in order. @return how many. */
uint32_t ring_cq_poll(struct ring_cq *q, struct ring_cqe *out, uint32_t n);

/** What an arm word asks for. */
enum ring_cq_level { RING_CQ_QUIET, RING_CQ_SOLICITED, RING_CQ_NEXT };

/**
 * Consumer: ask for an event once there is a completion behind those that were polled. The word is
 * the consumer's index (bits 0..31), the level (32, 33), and a turn that makes it a new one.
 */
void ring_cq_arm(struct ring_cq *q, enum ring_cq_level level);
/** The same for a completion at `at` or behind it; at ring_cq_end(): for new ones alone. */
void ring_cq_arm_at(struct ring_cq *q, enum ring_cq_level level, uint32_t at);
/** Consumer: index behind the last completion that could be polled now. Cost: a line each. */
uint32_t ring_cq_end(const struct ring_cq *q);
/**
 * Consumer: the first completion that the newest event has not told of, or `from` if that is behind
 * it. An event is of the first one that was asked for.
 */
uint32_t ring_cq_untold(const struct ring_cq *q, uint32_t from);
/**
 * Adding side, any lcore: is an event due by this arm word? The client may have written anything
 * into it: that can only cause or delay its own events. @param solicited index behind the last
 * completion that is there and was solicited or an error.
 */
bool ring_cq_is_due(const struct ring_cq *q, uint64_t arm, uint32_t solicited);
/**
 * Adding side, one lcore: that event is sent now. The consumer may have written newer words: what
 * this one is of stands beside its number.
 */
void ring_cq_answer(struct ring_cq *q, uint64_t arm);

#endif
