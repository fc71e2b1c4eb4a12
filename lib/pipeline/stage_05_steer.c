/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stage 5: compare each packet with what its QP knows of its peer. What passes is an accepted
 * packet of a QP of this worker. Everything else leaves here, charged to the first of its faults.
 */
#include "count.h"
#include "drops.h"
#include "handoff.h"
#include "mcast.h"
#include "migration.h"
#include "reply.h"
#include "spare.h"
#include "stage.h"
#include "stage_05_faults.h"
#include "stage_05_look.h"
#include "stage_05_plain.h"
#include "wire_half.h"
#include "to_control.h"

/** What its QP finds about a packet, which has faults or is not plain. */
static fault_mask_t
faults_of(const struct worker *w, const struct qp *qp, const struct wire_pkt *p, uint8_t port)
{
	uint8_t state;

	/* Without a BTH there is no QP to examine at; a reserved number has its own fault. */
	if (UNLIKELY(p->bth_off == 0 || (p->faults & FAULT_BIT(FAULT_DST_QP)) != 0))
		return 0;
	if (qp == NULL)
		return FAULT_BIT(FAULT_QP_STATE);
	if (UNLIKELY(qp->worker != w->index)) /* its owner's matter */
		return 0;
	state = qp_state_of(qp);
	if (!qp_receives(state))
		return FAULT_BIT(FAULT_QP_STATE);
	return pipeline_faults_all(qp, state, p, port);
}

/** The QP found a fault in a good packet: it may have asked for a migration in vain. */
static __attribute__((noinline)) void
refuse(struct worker *w, struct qp *qp, const struct wire_pkt *p, uint8_t port)
{
	if (qp->worker == w->index && qp_receives(qp_state_of(qp)) && is_migration(qp, p) &&
		pipeline_faults_alternate(qp, p, port) != 0)
		pipeline_migration_refuse(w, qp, p);
}

/** A packet without a fault. @return false: it is another worker's, and on its way there. */
static __attribute__((noinline)) bool
pass(struct worker *w, struct burst *b, uint32_t i)
{
	struct qp *qp = b->qp[i];

	ASSERT(qp != NULL && qp->qpn == b->pkt[i].dest_qpn);
	if (UNLIKELY(qp->worker != w->index)) {
		pipeline_handoff_send(w, b, i);
		return false;
	}
	if (UNLIKELY((qp->flags & QPF_MIGRATION) != 0))
		pipeline_migration_receive(w, qp, &b->pkt[i]);
	if (UNLIKELY((qp->flags & QPF_RESOLVED) == 0) && wire_is_connected(qp->resp.transport))
		pipeline_path_learn(w, qp, &b->pkt[i]);
	return true;
}

/**
 * Every fault of a packet, or those that may be the one it is charged to. @return 0: it stays, or
 * it is another worker's.
 */
static __attribute__((noinline)) fault_mask_t
find_faults(struct worker *w, struct burst *b, uint32_t i)
{
	const uint8_t port = steer_port(w->steer[b->port[i]]);
	const struct wire_pkt *p = &b->pkt[i];
	fault_mask_t f = p->faults;
	struct qp *qp = b->qp[i];

	if (qp != NULL && qp->qpn != p->dest_qpn)
		b->qp[i] = qp = NULL;
	if ((f & FIRST_FAULTS) == 0 || record_wanted(w))
		f |= faults_of(w, qp, p, port);
	if (f == 0)
		return 0;
	if (UNLIKELY(p->faults == 0 && qp != NULL && (qp->flags & QPF_MIGRATION) != 0))
		refuse(w, qp, p, port);
	if (qp != NULL && UNLIKELY(qp->worker != w->index))
		b->qp[i] = NULL; /* not ours to count in */
	return f;
}

/** The same, where little has to be looked at to know. */
static ALWAYS_INLINE fault_mask_t
find_faults_fast(struct worker *w, struct burst *b, uint32_t i)
{
	const uint64_t owner = w->steer[b->port[i]];
	const struct wire_pkt *p = &b->pkt[i];
	fault_mask_t f = p->faults;
	struct qp *qp = b->qp[i];

	if (UNLIKELY(record_wanted(w)))
		return find_faults(w, b, i);
	if (qp != NULL && qp->qpn != p->dest_qpn) /* the one before it had its place in the table */
		b->qp[i] = qp = NULL;
	if (qp == NULL) {
		if (p->bth_off == 0 || (f & (FIRST_FAULTS | FAULT_BIT(FAULT_DST_QP))) != 0)
			return f;
		return f | FAULT_BIT(FAULT_QP_STATE);
	}
	if (LIKELY(is_own(qp, p, owner))) {
		if ((f & FIRST_FAULTS) != 0)
			return f;
		if (UNLIKELY(!qp_receives(qp_state_of(qp))))
			return f | FAULT_BIT(FAULT_QP_STATE);
		if (UNLIKELY((qp->flags & QPF_MIGRATION) != 0))
			return find_faults(w, b, i);
		return f | pipeline_faults_first(qp, p, steer_port(owner));
	}
	return find_faults(w, b, i);
}

/** The packets of these bits have left. */
static void
leave(struct worker *w, const struct burst *b, uint64_t gone)
{
	while (gone != 0) {
		uint32_t from = (uint32_t)__builtin_ctzll(gone);
		uint32_t n = (uint32_t)__builtin_ctzll(~(gone >> from));

		mbufs_done(w, b, from, from + n, 0);
		gone &= ~(((UINT64_C(1) << n) - 1) << from);
	}
}

/** A packet is dropped, for these faults. */
static ALWAYS_INLINE void
drop(struct worker *w, struct drop_run *run, struct burst *b, uint32_t i, fault_mask_t f)
{
	if (LIKELY(drop_again(w, run, b->qp[i], f, b->port[i])))
		return;
	ASSERT(b->qp[i] == NULL || b->qp[i]->worker == w->index);
	b->pkt[i].faults = f;
	pipeline_drop_add(w, run, b, i);
}

/**
 * A packet to a QP number that no QP has: for the control lcore, for a group, or dropped.
 * @return true: it was dropped.
 */
static __attribute__((noinline)) bool
examine_reserved(
	struct worker *w, struct drop_run *run, struct burst *b, uint32_t i, fault_mask_t f)
{
	if (is_management(&b->pkt[i], f)) {
		f = pipeline_management_faults(&b->pkt[i]);
		if (f == 0) {
			pipeline_to_control(w, b, i);
			return false;
		}
	}
	if (is_to_group(&b->pkt[i], f) && pipeline_mcast_take(w, b, i))
		return false;
	drop(w, run, b, i, f);
	return true;
}

/** The last packet that was dropped, if those like it are only counted: in registers. */
struct drop_like {
	fault_mask_t f; /* 0: none */
	const struct qp *qp;
	uint32_t n;
	uint8_t port;
};

static ALWAYS_INLINE bool
is_like(struct drop_like last, const struct burst *b, uint32_t i, fault_mask_t f)
{
	return f == last.f && b->qp[i] == last.qp && b->port[i] == last.port;
}

/** The last one was this, with its run. A reserved QP number is looked at each time. */
static ALWAYS_INLINE struct drop_like
like_of(const struct drop_run *run, const struct burst *b, uint32_t i, fault_mask_t f)
{
	const bool alike = run->silent && (f & FAULT_BIT(FAULT_DST_QP)) == 0;

	return (struct drop_like){ .f = alike ? f : 0, .qp = b->qp[i], .port = b->port[i] };
}

/**
 * Look closely at the packets of these bits. Under a flood most packets come here, so what only a
 * record would show is looked for only when there is one, and packets like the one before are only
 * counted. @return those that stay.
 */
static __attribute__((noinline)) uint32_t
examine(struct worker *w, struct burst *b, uint32_t slow)
{
	struct drop_run run = { .n = 0 };
	struct drop_like last = { .f = 0 };
	uint32_t stay = 0, away = 0, left = slow;

	for (; left != 0; left &= left - 1) {
		const uint32_t i = (uint32_t)__builtin_ctz(left);
		const fault_mask_t f = find_faults_fast(w, b, i);

		if (UNLIKELY(f == 0)) {
			stay |= (uint32_t)pass(w, b, i) << i;
			away |= BIT32(i);
			continue;
		}
		if (LIKELY(is_like(last, b, i, f))) {
			last.n++;
			continue;
		}
		run.qp_n += last.n;
		if (UNLIKELY((f & FAULT_BIT(FAULT_DST_QP)) != 0))
			away |= (uint32_t)!examine_reserved(w, &run, b, i, f) << i;
		else
			drop(w, &run, b, i, f);
		last = like_of(&run, b, i, f);
	}
	run.qp_n += last.n;
	pipeline_drop_flush(w, &run);
	leave(w, b, slow & ~away);
	return stay;
}

#if WIRE_WIDE
#define LOOK_ALL      look_wide
#define LOOK_ACKS     look_acks_wide
#define LOOK_FIRST    plain_n_wide
#define LOOK_PLAIN    look_plain_wide
#define LOOK_TARGET   TARGET_WIRE_WIDE
#define LOOK_SCOPE    static __attribute__((noinline))
#define LOOK_CONST    plain
#define LOOK_CONST_OF plain_of
#define LOOK_WRONG    plain_wrong
#include "stage_05_look.def"

/** Can packets be compared with their QPs at once? They probably are as the first one is. */
static ALWAYS_INLINE bool
can_look_at_once(const struct burst *b)
{
	return LIKELY(b->one_port) &&
	       LIKELY((b->pkt[0].flags & (PKT_IPV6 | PKT_VLAN)) == 0) &&
	       (LIKELY(wire_has_wide()) || LIKELY(wire_has_half()));
}

/** The same of requests. */
static ALWAYS_INLINE bool
looks_at_once(const struct burst *b)
{
	return plain_has(b->pkt[0].opcode) && can_look_at_once(b);
}
#endif

/** @return a bit for each packet that needs a closer look. */
static ALWAYS_INLINE uint32_t
look(const struct worker *w, struct burst *b)
{
	const uint32_t n = b->n;
	uint32_t slow = 0, bit = 1;

#if WIRE_WIDE
	if (looks_at_once(b))
		return LIKELY(wire_has_wide()) ? look_wide(w, b) : pipeline_look_half(w, b);
	if (b->pkt[0].opcode == OP_RC_ACKNOWLEDGE && can_look_at_once(b))
		return LIKELY(wire_has_wide()) ? look_acks_wide(w, b)
					       : pipeline_look_acks_half(w, b);
#endif
	b->plain = 0;
	for (uint32_t i = 0; i < n; i++, bit <<= 1)
		if (UNLIKELY(is_slow(w, b, i)))
			slow |= bit;
	return slow;
}

/** Packets of several ports are in a burst of handed-over ones only. */
static inline bool
has_one_port(const struct burst *b)
{
	return LIKELY(b->n != 0) && memcmp(b->port, b->port + 1, b->n - 1) == 0;
}

uint32_t
stage_steer_plain(const struct worker *w, struct burst *b)
{
	uint32_t n = 0;

	b->one_port = has_one_port(b);
#if WIRE_WIDE
	if (looks_at_once(b))
		n = LIKELY(wire_has_wide()) ? plain_n_wide(w, b) : pipeline_plain_n_half(w, b);
#endif
	b->plain = (uint32_t)((UINT64_C(1) << n) - 1);
	return n;
}

void
stage_steer(struct worker *w, struct burst *b)
{
	uint32_t n = b->n, kept = 0, slow, left;

	b->one_port = has_one_port(b);
	slow = look(w, b);
	ASSERT(b->n == n);
	if (LIKELY(slow == 0))
		return;
	b->plain = 0; /* packets are about to move */
	left = examine(w, b, slow) | (~slow & (uint32_t)((UINT64_C(1) << n) - 1));
	for (; left != 0; left &= left - 1)
		burst_keep(b, kept++, (uint32_t)__builtin_ctz(left));
	ASSERT(kept <= n);
	b->n = kept;
}
