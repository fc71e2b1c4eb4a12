/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FLOOD_FRAMES_H
#define FLOOD_FRAMES_H
/**
 * @file flood_frames.h  Hostile frames: valid ones, and what a forger makes of them.
 *
 * Owner:   the test. Independent of lib/: header layouts and the ICRC are written out here.
 * Memory:  the caller's.
 * Depends: zlib.
 */
#include <stdbool.h>
#include <stdint.h>

#define FLOOD_FRAME_MAX 2048
#define FLOOD_RKEY      0x00c0ffeeu
#define FLOOD_VA        0x10000000ull
#define FLOOD_MR_LEN    65536u

struct flood_rng {
	uint64_t s;
};

struct flood_frame {
	uint32_t len;
	uint8_t b[FLOOD_FRAME_MAX];
};

/** What a frame is made for. */
struct flood_target {
	uint32_t qpn;
	uint32_t psn;    /* the QP's expected PSN */
	uint8_t last_ip; /* source address 192.0.2.last_ip or 2001:db8::last_ip */
	bool ipv6;
};

uint32_t flood_random(struct flood_rng *r, uint32_t below);
/** A valid request or response of a random kind, mostly one that the QP would take. */
void flood_valid(struct flood_rng *r, const struct flood_target *t, struct flood_frame *f);
/** A valid SEND ONLY at t->psn with AckReq. */
void flood_send_only(const struct flood_target *t, struct flood_frame *f);
/** Spoil a valid frame, or replace it by noise. */
void flood_mutate(struct flood_rng *r, struct flood_frame *f);
/** Does a frame from the dataplane carry a right ICRC? Frames that are not RoCE are right. */
bool flood_icrc_ok(const uint8_t *frame, uint32_t len);

#endif
