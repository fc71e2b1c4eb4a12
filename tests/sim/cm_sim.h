/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_CM_H
#define SIM_CM_H
/**
 * @file cm_sim.h  Two connection managers, their programs, and the link between them.
 *
 * Owner:   tests only.
 * Memory:  one struct sim.
 * Depends: cm.
 */
#include "cm.h"
#include "compiler.h"

enum { PAIRS = 48, FLIGHT = 4096, PLANS = 512 };

/** Service ids: of the listener for RC, and of those for datagrams. One more: nobody listens. */
enum { SERVICE = 0x1061d2f, SERVICE_UD = 0x1111d2f, SERVICE_UD_ALWAYS = 0x1111e00 };
enum { NOBODY = 0x10, ALWAYS_QPN = 0x777, UD_QKEY = 0x11223344 };

/** What an attempt is for. */
enum kind { KIND_RC, KIND_UD, KIND_UD_ALWAYS, KIND_NOBODY, KIND_UD_NOBODY, KINDS };

enum end_state { END_NONE, END_WAITS, END_UP, END_OVER };

/** What one program knows of one attempt. */
struct end {
	struct cm_conn *conn;
	uint32_t psn;
	enum end_state state;
	bool was_up;
	bool own_end; /* it said so itself */
	bool lost;    /* its side has forgotten it */
	bool again;   /* a late copy of the REQ began it anew */
	struct cm_taken taken;
};

struct pair {
	struct end end[2]; /* active, passive */
	enum kind kind;
	bool refuse;
};

struct flight {
	ns_t at;
	uint8_t to;
	struct cm_out out;
};

enum act { ACT_ANSWER, ACT_DATA, ACT_DISCONNECT, ACT_LAP };

struct later {
	ns_t at;
	uint8_t side;
	uint8_t act; /* enum act */
	uint32_t pair;
};

struct sim {
	uint64_t seed, rand;
	ns_t now;
	uint32_t loss, twice; /* of 1000 */
	ns_t delay;
	bool crash;
	bool verbose;
	struct cm side[2];
	struct pair pair[PAIRS];
	struct flight flight[FLIGHT];
	uint32_t flights;
	struct later later[PLANS];
	uint32_t laters;
	uint64_t sent, up, refused, datagrams;
};

/** Say what broke, and how to play it again. */
void sim_die(const struct sim *s, const char *what, uint32_t pair) __attribute__((noreturn));
/** A number below n. */
uint64_t sim_random(struct sim *s, uint64_t n);
/** Put a message on the link, or lose it, or double it. */
void sim_fly(struct sim *s, uint32_t to, const struct cm_out *out);

/* cm_programs.c */
extern const uint8_t sim_gids[2][16];
/** The active program asks for a connection. */
void sim_begin(struct sim *s, uint32_t n);
/** What a verdict says, for the link and the program. */
void sim_carry_out(struct sim *s, uint32_t side, const struct cm_verdict *v);
/** A program does what it has planned. */
void sim_act(struct sim *s, const struct later *l);
/** A plan. */
void sim_later(struct sim *s, ns_t after, uint32_t side, enum act act, uint32_t pair);

#endif
