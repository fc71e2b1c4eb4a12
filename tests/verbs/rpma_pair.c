/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One of two processes, by librpma: the client writes to the server's memory, flushes, and reads
 * back what it wrote; the server looks at it when the connection ends.
 *
 *   rpma_pair ADDRESS PORT server|client
 */
#include <librpma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BYTES   300000
#define MARK_AT 290000 /* behind it, and aligned: the atomic write */
#define TRIES   600
#define PAUSE   100000000 /* ns */

static const char mark[8] = "written";
static char *memory;

#define MUST(call)                                                              \
	do {                                                                    \
		const int rc_ = (call);                                         \
		if (rc_ != 0) {                                                 \
			fprintf(stderr, "%s: %s\n", #call, rpma_err_2str(rc_)); \
			exit(1);                                                \
		}                                                               \
	} while (0)

static char
byte_of(int at)
{
	return (char)(at * 7 + at / 251);
}

static bool
is_written(void)
{
	bool good = memcmp(memory + MARK_AT, mark, sizeof(mark)) == 0;

	for (int i = 0; i < MARK_AT; i++)
		good &= memory[i] == byte_of(i);
	return good;
}

static enum rpma_conn_event
next_event(struct rpma_conn *conn)
{
	enum rpma_conn_event ev;

	MUST(rpma_conn_next_event(conn, &ev));
	return ev;
}

static bool
serve(struct rpma_peer *peer, struct rpma_mr_local *mr, const char *addr, const char *port)
{
	char descriptor[64];
	struct rpma_conn_private_data data = { .ptr = descriptor };
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	struct rpma_ep *ep;
	size_t len;
	bool good;

	MUST(rpma_mr_get_descriptor_size(mr, &len));
	MUST(rpma_mr_get_descriptor(mr, descriptor));
	data.len = (uint8_t)len;
	MUST(rpma_ep_listen(peer, addr, port, &ep));
	MUST(rpma_ep_next_conn_req(ep, NULL, &req));
	MUST(rpma_conn_req_connect(&req, &data, &conn));
	good = next_event(conn) == RPMA_CONN_ESTABLISHED && next_event(conn) == RPMA_CONN_CLOSED &&
	       is_written();
	MUST(rpma_conn_disconnect(conn));
	MUST(rpma_conn_delete(&conn));
	MUST(rpma_ep_shutdown(&ep));
	return good;
}

/* The server may have yet to start. */
static struct rpma_conn *
reach(struct rpma_peer *peer, const char *addr, const char *port)
{
	for (int i = 0; i < TRIES; i++) {
		struct rpma_conn_req *req;
		struct rpma_conn *conn;

		MUST(rpma_conn_req_new(peer, addr, port, NULL, &req));
		MUST(rpma_conn_req_connect(&req, NULL, &conn));
		if (next_event(conn) == RPMA_CONN_ESTABLISHED)
			return conn;
		MUST(rpma_conn_delete(&conn));
		nanosleep(&(struct timespec){ .tv_nsec = PAUSE }, NULL);
	}
	fprintf(stderr, "nobody listens\n");
	exit(1);
}

static bool
completes(struct rpma_conn *conn, const void *context)
{
	struct rpma_cq *cq;
	struct ibv_wc wc;

	MUST(rpma_conn_get_cq(conn, &cq));
	MUST(rpma_cq_wait(cq));
	MUST(rpma_cq_get_wc(cq, 1, &wc, NULL));
	return wc.status == IBV_WC_SUCCESS && wc.wr_id == (uintptr_t)context;
}

static bool
use(struct rpma_peer *peer, struct rpma_mr_local *mr, const char *addr, const char *port)
{
	struct rpma_conn *conn = reach(peer, addr, port);
	struct rpma_conn_private_data data;
	struct rpma_mr_remote *remote;
	size_t len;
	bool good;

	MUST(rpma_conn_get_private_data(conn, &data));
	MUST(rpma_mr_get_descriptor_size(mr, &len));
	MUST(rpma_mr_remote_from_descriptor(data.ptr, len, &remote));
	MUST(rpma_write(conn, remote, 0, mr, 0, MARK_AT, RPMA_F_COMPLETION_ON_ERROR, NULL));
	MUST(rpma_atomic_write(conn, remote, MARK_AT, mark, RPMA_F_COMPLETION_ON_ERROR, NULL));
	MUST(rpma_flush(conn, remote, 0, BYTES, RPMA_FLUSH_TYPE_VISIBILITY,
		RPMA_F_COMPLETION_ALWAYS, mark));
	good = completes(conn, mark);
	memset(memory, 0, BYTES);
	MUST(rpma_read(conn, mr, 0, remote, 0, BYTES, RPMA_F_COMPLETION_ALWAYS, memory));
	good = completes(conn, memory) && is_written() && good;
	MUST(rpma_conn_disconnect(conn));
	good = next_event(conn) == RPMA_CONN_CLOSED && good;
	MUST(rpma_mr_remote_delete(&remote));
	MUST(rpma_conn_delete(&conn));
	return good;
}

int
main(int argc, char **argv)
{
	const bool serves = argc == 4 && strcmp(argv[3], "server") == 0;
	struct rpma_mr_local *mr;
	struct rpma_peer *peer;
	struct ibv_context *ctx;
	bool good;

	if (argc != 4)
		return 2;
	memory = calloc(1, BYTES);
	for (int i = 0; memory != NULL && !serves && i < MARK_AT; i++)
		memory[i] = byte_of(i);
	MUST(rpma_utils_get_ibv_context(argv[1],
		serves ? RPMA_UTIL_IBV_CONTEXT_LOCAL : RPMA_UTIL_IBV_CONTEXT_REMOTE, &ctx));
	MUST(rpma_peer_new(ctx, &peer));
	MUST(rpma_mr_reg(peer, memory, BYTES,
		RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC |
			RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY,
		&mr));
	good = (serves ? serve : use)(peer, mr, argv[1], argv[2]);
	MUST(rpma_mr_dereg(&mr));
	MUST(rpma_peer_delete(&peer));
	free(memory);
	printf("%s: %s\n", argv[3], good ? "good" : "bad");
	return good ? 0 : 1;
}
