/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PAUSE_H
#define PAUSE_H
/**
 * @file pause.h  PAUSE frames of a port's neighbour: (state, frame, now) -> until when a priority
 *                is silent.
 *
 * Owner:   a worker that receives such a frame writes, all workers that send at the port read. What
 *          two of them write at once is a time of either.
 * Memory:  the caller's.
 * Time:    `now` in nanoseconds, passed in.
 * Depends: base.
 * Spec:    IEEE 802.1Qbb-2011 (priority-based flow control), 802.3 annex 31B (PAUSE); rules
 *          FLOW-11..13.
 *
 * A neighbour that never stops could silence a port for ever. So a priority is held for no longer
 * than `most` at a stretch; a stretch ends when it may send for at least as long as 4 KiB take.
 * After a stretch that long its PAUSE frames are not obeyed until there were none for `restore`: a
 * storm.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "be.h"
#include "clock.h"

#define PRIO_N            8
#define PAUSE_TYPE        0x8808 /* MAC control */
#define PAUSE_MBPS        10000  /* where a device does not know its rate */
#define PAUSE_GLOBAL      0x0001
#define PAUSE_BY_PRIORITY 0x0101

struct pause_conf {
	uint8_t obeyed; /* a bit for each priority whose PFC frames are */
	bool global;    /* 802.3x frames are, for all priorities */
	ns_t most;
	ns_t restore;
};

struct pause {
	struct pause_conf conf;
	_Atomic uint32_t mbps; /* writer: control lcore; 0: PAUSE_MBPS */
	struct {
		_Atomic ns_t until;   /* it sends nothing before */
		_Atomic ns_t since;   /* the stretch began */
		_Atomic ns_t ignored; /* a storm: frames are not obeyed before */
	} prio[PRIO_N];
};

struct pause_frame {
	uint16_t opcode;         /* PAUSE_* */
	uint8_t enabled;         /* a bit for each priority that it is about */
	uint16_t quanta[PRIO_N]; /* of 512 bit times; 0: go on */
};

/** Is it worth to ask cc_pause_parse()? */
static inline bool
pause_may_be(const uint8_t *frame, uint32_t len)
{
	return len >= 14 && be16_load(frame + 12) == PAUSE_TYPE;
}

/** What a frame did. */
struct pause_done {
	uint8_t storms;       /* a bit for each priority that one began at */
	int64_t held[PRIO_N]; /* ns that are added to the time held; below 0: taken back */
};

/** Is it a PAUSE frame? @param frame from the Ethernet header on. */
bool cc_pause_parse(const uint8_t *frame, uint32_t len, struct pause_frame *f);
/** Obey it, as far as `conf` says so. @param done filled. */
void cc_pause_receive(
	struct pause *p, const struct pause_frame *f, ns_t now, struct pause_done *done);

/** A bit for each priority that sends nothing now. */
static inline uint32_t
pause_mask(const struct pause *p, ns_t now)
{
	uint32_t mask = 0;

	for (uint32_t i = 0; i < PRIO_N; i++)
		if (atomic_load_explicit(&p->prio[i].until, memory_order_relaxed) > now)
			mask |= UINT32_C(1) << i;
	return mask;
}

#endif
