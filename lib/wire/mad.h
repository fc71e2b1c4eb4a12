/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MAD_H
#define MAD_H
/**
 * @file mad.h  Management datagrams: the messages of the connection manager, read and written by
 *              one table of fields.
 *
 * Owner:   any lcore (pure functions over the caller's memory).
 * Memory:  the caller's; a MAD is a flat block of MAD_LEN bytes.
 * Depends: base.
 * Spec:    IBTA vol. 1, 12.6, 13.4.3, annex A11; CM-01, CM-02, CM-05..10.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAD_LEN        256
#define MAD_HEADER_LEN 24
#define MAD_IP_LEN     36 /* the IP port spaces' header in the private data */

#define MAD_QPN  1 /* of the general services interface */
#define MAD_QKEY UINT32_C(0x80010000)

enum { MAD_BASE_VERSION = 1, MAD_CLASS_CM = 7, MAD_CM_VERSION = 2, MAD_METHOD_SEND = 3 };

/** A message by its attribute id. */
enum cm_message {
	CM_NONE = 0,
#define MESSAGE(attr, NAME, name, text) CM_##NAME = attr,
#include "tables/cm_messages.def"
#undef MESSAGE
	CM_MESSAGE_FIRST = CM_REQ,
	CM_MESSAGE_LAST = CM_APR,
};

/** "REQ"; NULL: no message of the connection manager. */
const char *mad_message_name(uint32_t attr);
/** What it is for; NULL likewise. */
const char *mad_message_text(uint32_t attr);

/** What MADs of the header alone are, in mad_fields[]; not on the wire. */
enum { MAD_ANY = 0, MAD_IP = 1 };

/** MAD_tid, REQ_local_qpn … */
enum mad_field {
#define FIELD(message, name, byte, bit, bits) message##_##name,
#include "tables/cm_fields.def"
#undef FIELD
	MAD_FIELDS
};

struct mad_field_info {
	const char *name;
	uint8_t message; /* enum cm_message, MAD_ANY, MAD_IP */
	uint8_t bit;     /* from the highest of `byte` */
	uint16_t byte;   /* from the beginning: of the MAD, or of the private data (MAD_IP) */
	uint16_t bits;
};

extern const struct mad_field_info mad_fields[MAD_FIELDS];

/** Read a field of at most 64 bits. @param from the MAD; for IP_ fields the private data. */
uint64_t mad_get(const uint8_t *from, enum mad_field f);
/** Write one; bits of `v` above the field's are dropped. */
void mad_set(uint8_t *to, enum mad_field f, uint64_t v);

/** First byte of a field that is whole bytes. */
static inline uint8_t *
mad_at(uint8_t *mad, enum mad_field f)
{
	return mad + mad_fields[f].byte;
}

/** The same of one that is only read. */
static inline const uint8_t *
mad_peek(const uint8_t *mad, enum mad_field f)
{
	return mad + mad_fields[f].byte;
}

/** How many bytes a field has. */
static inline size_t
mad_bytes(enum mad_field f)
{
	return mad_fields[f].bits / 8u;
}

/** The private data of a message. @return MAD_FIELDS: it is no message of the CM. */
enum mad_field mad_private(uint32_t attr);

/** All zero but the header. */
void mad_init(uint8_t *mad, enum cm_message message, uint64_t tid);

enum mad_fault {
	MAD_GOOD,
	MAD_BAD_LENGTH,
	MAD_BAD_BASE,
	MAD_BAD_CLASS,
	MAD_BAD_CLASS_VERSION,
	MAD_BAD_METHOD,
	MAD_BAD_ATTRIBUTE,
};

/** Is this a message of the connection manager (CM-37, CM-38)? */
enum mad_fault mad_check(const uint8_t *mad, size_t len);

/** Which message a checked MAD is. */
static inline enum cm_message
mad_message(const uint8_t *mad)
{
	return (enum cm_message)mad_get(mad, MAD_attr_id);
}

/* ---- reasons of a REJ (tables/cm_reasons.def) ------------------------------------------------ */

enum cm_reason {
	CM_REJ_NONE = 0,
#define REASON(code, NAME, text) CM_REJ_##NAME = code,
#include "tables/cm_reasons.def"
#undef REASON
};

/** For people; "reason unknown here" where it is not listed. */
const char *mad_reason_text(uint32_t reason);

/** One line: the message, and each field that is not 0. @return its length, cut to room - 1. */
size_t mad_print(const uint8_t *mad, char *buf, size_t room);

#endif
