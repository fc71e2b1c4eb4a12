/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ERRLOG_H
#define ERRLOG_H
/**
 * @file errlog.h  Records of dropped packets: from the workers' buffers, and to a pcapng file.
 *
 * Owner:   control lcore.
 * Memory:  a queue of error_buffer.entries holds them until they are asked for; when it is full the
 *          oldest gives way.
 * Depends: trace (errbuf) wire.
 * Spec:    RX-ERR-01..03; pcapng: draft-ietf-opsawg-pcapng.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "errbuf.h"
#include "log_rate.h"

struct diagnose;

struct errlog_entry {
	struct errbuf_record r;
	uint16_t worker;
};

struct errlog {
	FILE *file; /* NULL: none, or writing it failed */
	struct errlog_entry *ring;
	uint32_t room;
	uint32_t head;
	uint32_t n;
	uint64_t lost; /* had to make room for newer ones, and are in no file */
	int error;     /* errno of a write that failed; the file is closed then */
	off_t whole;   /* bytes of whole blocks in the file */
	ns_t began;    /* when it was begun */
	bool regular;  /* a file, not a pipe: there is a limit to it */
	struct log_rate told;
};

/** Makes the queue, and opens the pcapng file, if they are configured. @return 0 or -errno. */
int errlog_open(struct diagnose *dg);
/** What is queued is lost, the file is complete. */
void errlog_close(struct diagnose *dg);
/** Moves records to the file and the queue. @return how many are in the file now. */
uint32_t errlog_poll(struct diagnose *dg);
/** Oldest record, each once. @return false: none. */
bool errlog_take(struct diagnose *dg, struct errlog_entry *out);
/** The newest of all that wait, at most `most`, oldest first; they stay. @return how many. */
uint32_t errlog_look(struct diagnose *dg, struct errlog_entry *out, uint32_t most);

#endif
