/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FUZZ_H
#define FUZZ_H
/**
 * @file fuzz.h  What a fuzz target provides. libFuzzer and replay_main.c run the same target.
 *
 * Owner:   tests only.
 * Memory:  inputs belong to the runner; a target frees whatever it allocates.
 * Depends: nothing.
 *
 * A target is one file tests/fuzz/fuzz_NAME.c with both functions below, and one row of
 * fuzz_targets in tests/fuzz/meson.build. It aborts where an invariant does not hold.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Run one input. @return 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** Write the built-in seed of that number. @return its size (cut to room), 0: no such seed. */
size_t fuzz_seed(unsigned int index, uint8_t *buf, size_t room);

/** A seed that is text. @return its size, cut to room. */
static inline size_t
fuzz_text(const char *text, uint8_t *buf, size_t room)
{
	size_t len = strlen(text);

	len = len < room ? len : room;
	memcpy(buf, text, len);
	return len;
}

/** A line of the control socket, for seeds. */
#define CALL(method, params) \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":" params "}\n"

/** An invariant that holds for every input, in any build type. */
#define FUZZ_CHECK(cond)                                                                          \
	do {                                                                                      \
		if (!(cond)) {                                                                    \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #cond); \
			abort();                                                                  \
		}                                                                                 \
	} while (0)

#endif
