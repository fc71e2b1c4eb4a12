/* SPDX-License-Identifier: BSD-3-Clause */
#include "pause.h"

#include <string.h>

#include "be.h"
#include "compiler.h"

#define HEAD_LEN      16 /* Ethernet header, opcode */
#define QUANTUM_BITS  512
#define STRETCH_BREAK 64 /* quanta: 4 KiB */

bool
cc_pause_parse(const uint8_t *frame, uint32_t len, struct pause_frame *f)
{
	static const uint8_t to[6] = { 0x01, 0x80, 0xc2, 0x00, 0x00, 0x01 };

	if (!pause_may_be(frame, len) || len < HEAD_LEN + 2 || memcmp(frame, to, sizeof(to)) != 0)
		return false;
	f->opcode = be16_load(frame + 14);
	if (f->opcode == PAUSE_GLOBAL) {
		f->enabled = 0xff;
		for (uint32_t i = 0; i < PRIO_N; i++)
			f->quanta[i] = be16_load(frame + HEAD_LEN);
		return true;
	}
	if (f->opcode != PAUSE_BY_PRIORITY || len < HEAD_LEN + 2 + 2 * PRIO_N)
		return false;
	f->enabled = frame[HEAD_LEN + 1];
	for (uint32_t i = 0; i < PRIO_N; i++)
		f->quanta[i] = be16_load(frame + HEAD_LEN + 2 + 2 * i);
	return true;
}

static ns_t
get(const _Atomic ns_t *at)
{
	return atomic_load_explicit(at, memory_order_relaxed);
}

static void
set(_Atomic ns_t *at, ns_t v)
{
	atomic_store_explicit(at, v, memory_order_relaxed);
}

static ns_t
time_of(const struct pause *p, uint32_t quanta)
{
	uint32_t mbps = atomic_load_explicit(&p->mbps, memory_order_relaxed);

	if (mbps == 0)
		mbps = PAUSE_MBPS;
	return (ns_t)quanta * QUANTUM_BITS * 1000 / mbps;
}

/** It is to be silent until `until`, from now on. @return by how much longer than before. */
static int64_t
hold(struct pause *p, uint32_t i, ns_t now, ns_t until)
{
	const ns_t before = get(&p->prio[i].until);
	const ns_t was = before > now ? before : now;

	set(&p->prio[i].until, until);
	return (int64_t)(until - was);
}

static bool
is_obeyed(const struct pause *p, const struct pause_frame *f, uint32_t i)
{
	return f->opcode == PAUSE_GLOBAL ? p->conf.global : (p->conf.obeyed >> i & 1) != 0;
}

void
cc_pause_receive(struct pause *p, const struct pause_frame *f, ns_t now, struct pause_done *done)
{
	*done = (struct pause_done){ 0 };
	for (uint32_t i = 0; i < PRIO_N; i++) {
		const ns_t time = time_of(p, f->quanta[i]);
		ns_t end;

		if ((f->enabled >> i & 1) == 0 || !is_obeyed(p, f, i))
			continue;
		if (now < get(&p->prio[i].ignored)) {
			set(&p->prio[i].ignored, now + p->conf.restore);
			continue;
		}
		if (now >= get(&p->prio[i].until) + time_of(p, STRETCH_BREAK))
			set(&p->prio[i].since, now);
		end = get(&p->prio[i].since) + p->conf.most;
		if (time != 0 && now >= end) {
			set(&p->prio[i].ignored, now + p->conf.restore);
			done->storms |= (uint8_t)(1u << i);
			continue;
		}
		end = now + time < end ? now + time : end;
		done->held[i] = hold(p, i, now, end > now ? end : now);
	}
}
