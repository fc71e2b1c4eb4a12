/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef JSONRPC_H
#define JSONRPC_H
/**
 * @file jsonrpc.h  The asking side of JSON-RPC 2.0 over a Unix socket: one object a line.
 *
 * Owner:   one thread at a time; librocelane and rocelanectl.
 * Memory:  one growing line buffer, bounded by `most`; descriptors that came and were not taken.
 * Time:    each wait ends at a deadline of the caller's.
 * Depends: base, jansson.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSONRPC_FDS 8 /* descriptors of one request, or answer */

/** A connection. Set `fd` and `most`, all else to zero. */
struct jsonrpc {
	int fd;
	size_t most;   /* bytes of an answer */
	json_int_t id; /* of the newest request */
	char *in;      /* what was received and not read yet */
	size_t in_len;
	size_t in_room;
	int fds[JSONRPC_FDS]; /* that came and nobody asked for yet */
	uint32_t fds_n;
};

/** Milliseconds of a clock that does not jump. Any thread. */
int64_t jsonrpc_now_ms(void);
/** The end of a wait of so many milliseconds from now; -1: of one without an end. */
int64_t jsonrpc_end(int timeout_ms);

/**
 * Connect to a Unix socket, and wait while it has too many others to answer; its `fd` is set, and
 * does not block.
 * @return 0; -ENAMETOOLONG: no path, or one that is too long; -EAGAIN: too many others, until the
 * end; or connect's -errno.
 */
int jsonrpc_connect(struct jsonrpc *c, const char *path, int64_t end);

/**
 * Send a request; its id is in `id` then.
 * @param params taken; may be NULL.
 * @param fds descriptors to go with it, JSONRPC_FDS at most. They stay the caller's.
 * @return 0; -EILSEQ: nothing was sent, as it cannot be written as JSON; -ETIMEDOUT; or send's
 * -errno, with which the connection is useless.
 */
int jsonrpc_send(struct jsonrpc *c, const char *method, json_t *params, const int *fds,
	uint32_t fds_n, int64_t end);

/**
 * The next object that the other side sent. @param out the caller's reference.
 * @return 0; -ETIMEDOUT; -ECONNRESET: the other side closed; -EMSGSIZE: longer than `most`;
 * -EPROTO: no object; or -errno.
 */
int jsonrpc_receive(struct jsonrpc *c, int64_t end, json_t **out);

/** Is it the answer to the newest request? A line that could not be read is answered with null. */
bool jsonrpc_is_answer(const struct jsonrpc *c, const json_t *object);

/** Close the descriptors that nobody took, give the buffer back, close `fd`: it is -1 then. */
void jsonrpc_close(struct jsonrpc *c);

#endif
