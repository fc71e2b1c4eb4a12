/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VECTORS_PCAP_H
#define VECTORS_PCAP_H
/**
 * @file pcap.h  Reads the captures: little-endian pcap with microseconds, Ethernet, whole frames.
 *
 * Owner:   tests only.
 * Memory:  the file is held in one heap block; frames point into it until pcap_close().
 * Depends: nothing.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PCAP_MAGIC_US     0xa1b2c3d4u
#define PCAP_FILE_HDR     24
#define PCAP_RECORD_HDR   16
#define PCAP_LINK_ETHER   1
#define PCAP_FILE_LARGEST (16u << 20)

struct pcap_file {
	uint8_t *data;
	size_t len;
	size_t at;
};

static inline uint32_t
pcap_u32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline void
pcap_close(struct pcap_file *f)
{
	free(f->data);
	*f = (struct pcap_file){ 0 };
}

/** @return 0, or -errno; -EBADMSG for another format. */
static inline int
pcap_open(struct pcap_file *f, const char *path)
{
	FILE *in = fopen(path, "rb");

	*f = (struct pcap_file){ 0 };
	if (in == NULL)
		return -errno;
	f->data = malloc(PCAP_FILE_LARGEST);
	if (f->data == NULL) {
		fclose(in);
		return -ENOMEM;
	}
	f->len = fread(f->data, 1, PCAP_FILE_LARGEST, in);
	fclose(in);
	if (f->len < PCAP_FILE_HDR || pcap_u32(f->data) != PCAP_MAGIC_US ||
		pcap_u32(f->data + 20) != PCAP_LINK_ETHER) {
		pcap_close(f);
		return -EBADMSG;
	}
	f->at = PCAP_FILE_HDR;
	return 0;
}

/** @return 1 with the next frame, 0 at the end, -EBADMSG for a record that is cut. */
static inline int
pcap_next(struct pcap_file *f, const uint8_t **frame, uint32_t *len)
{
	uint32_t n;

	if (f->at == f->len)
		return 0;
	if (f->len - f->at < PCAP_RECORD_HDR)
		return -EBADMSG;
	n = pcap_u32(f->data + f->at + 8);
	if (n != pcap_u32(f->data + f->at + 12) || n > f->len - f->at - PCAP_RECORD_HDR)
		return -EBADMSG;
	*frame = f->data + f->at + PCAP_RECORD_HDR;
	*len = n;
	f->at += PCAP_RECORD_HDR + n;
	return 1;
}

#endif
