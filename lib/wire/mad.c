/* SPDX-License-Identifier: BSD-3-Clause */
#include "mad.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "compiler.h"
#include "invariant.h"

enum { AFTER_MAD = 0, AFTER_IP = 0 };
#define MESSAGE(attr, NAME, name, text) enum { AFTER_##NAME = MAD_HEADER_LEN };
#include "tables/cm_messages.def"
#undef MESSAGE

enum { OF_MAD = MAD_ANY, OF_IP = MAD_IP };
#define MESSAGE(attr, NAME, name, text) enum { OF_##NAME = attr };
#include "tables/cm_messages.def"
#undef MESSAGE

const struct mad_field_info mad_fields[MAD_FIELDS] = {
#define FIELD(message, name, byte, bit, bits)                                                    \
	[message##_##name] = { #name, OF_##message, (bit), (uint16_t)(AFTER_##message + (byte)), \
		(bits) },
#include "tables/cm_fields.def"
#undef FIELD
};

#define FIELD(message, name, byte, bit, bits)                                                \
	_Static_assert(                                                                      \
		AFTER_##message + (byte) + ((bit) + (bits) + 7) / 8 <=                       \
			((int)OF_##message == (int)MAD_IP ? (int)MAD_IP_LEN : (int)MAD_LEN), \
		#message " " #name " ends in its message");
#include "tables/cm_fields.def"
#undef FIELD

struct message {
	const char *name;
	const char *text;
	enum mad_field private;
};

static const struct message messages[CM_MESSAGE_LAST + 1] = {
#define MESSAGE(attr, NAME, name, text) [attr] = { #NAME, text, NAME##_private_data },
#include "tables/cm_messages.def"
#undef MESSAGE
};

static const char *const reasons[] = {
#define REASON(code, NAME, text) [code] = text,
#include "tables/cm_reasons.def"
#undef REASON
};

static bool
is_message(uint32_t attr)
{
	return attr >= CM_MESSAGE_FIRST && attr <= CM_MESSAGE_LAST;
}

const char *
mad_message_name(uint32_t attr)
{
	return is_message(attr) ? messages[attr].name : NULL;
}

const char *
mad_message_text(uint32_t attr)
{
	return is_message(attr) ? messages[attr].text : NULL;
}

const char *
mad_reason_text(uint32_t reason)
{
	if (reason >= ARRAY_LEN(reasons) || reasons[reason] == NULL)
		return "reason unknown here";
	return reasons[reason];
}

enum mad_field
mad_private(uint32_t attr)
{
	return is_message(attr) ? messages[attr].private : MAD_FIELDS;
}

uint64_t
mad_get(const uint8_t *from, enum mad_field f)
{
	const struct mad_field_info *i = &mad_fields[f];
	uint32_t end = i->bit + i->bits; /* in bits from `byte` */
	uint64_t v = 0;

	ASSERT(i->bits <= 64 && (i->bit == 0 || end <= 32));
	for (uint32_t at = 0; at < end; at += 8)
		v = v << 8 | from[i->byte + at / 8];
	v >>= (8 - end % 8) % 8;
	return i->bits == 64 ? v : v & ((UINT64_C(1) << i->bits) - 1);
}

void
mad_set(uint8_t *to, enum mad_field f, uint64_t v)
{
	const struct mad_field_info *i = &mad_fields[f];
	uint32_t end = i->bit + i->bits;
	uint32_t last = (end + 7) / 8;
	uint32_t shift = (8 - end % 8) % 8;

	ASSERT(i->bits <= 64 && (shift == 0 || end <= 32));
	if (i->bits == 64) {
		for (uint32_t at = last; at-- > 0; v >>= 8)
			to[i->byte + at] = (uint8_t)v;
		return;
	}
	uint64_t mask = ((UINT64_C(1) << i->bits) - 1) << shift;

	v = v << shift & mask;
	for (uint32_t at = last; at-- > 0; v >>= 8, mask >>= 8)
		to[i->byte + at] = (uint8_t)((to[i->byte + at] & ~mask) | v);
}

void
mad_init(uint8_t *mad, enum cm_message message, uint64_t tid)
{
	memset(mad, 0, MAD_LEN);
	mad_set(mad, MAD_base_version, MAD_BASE_VERSION);
	mad_set(mad, MAD_mgmt_class, MAD_CLASS_CM);
	mad_set(mad, MAD_class_version, MAD_CM_VERSION);
	mad_set(mad, MAD_method, MAD_METHOD_SEND);
	mad_set(mad, MAD_tid, tid);
	mad_set(mad, MAD_attr_id, message);
}

enum mad_fault
mad_check(const uint8_t *mad, size_t len)
{
	if (len != MAD_LEN)
		return MAD_BAD_LENGTH;
	if (mad_get(mad, MAD_base_version) != MAD_BASE_VERSION)
		return MAD_BAD_BASE;
	if (mad_get(mad, MAD_mgmt_class) != MAD_CLASS_CM)
		return MAD_BAD_CLASS;
	if (mad_get(mad, MAD_class_version) != MAD_CM_VERSION)
		return MAD_BAD_CLASS_VERSION;
	if (mad_get(mad, MAD_method) != MAD_METHOD_SEND)
		return MAD_BAD_METHOD;
	return is_message((uint32_t)mad_get(mad, MAD_attr_id)) ? MAD_GOOD : MAD_BAD_ATTRIBUTE;
}

struct line {
	char *buf;
	size_t room;
	size_t len;
};

/* not hot: text for people */
static void PRINTF(2, 3) add(struct line *l, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(l->buf + l->len, l->room - l->len, fmt, ap);
	va_end(ap);
	ASSERT(n >= 0);
	l->len += (size_t)n;
	if (l->len >= l->room)
		l->len = l->room - 1;
}

/* A field of many bytes, up to the last that is not 0. */
static void
add_bytes(struct line *l, const uint8_t *from, const struct mad_field_info *i)
{
	uint32_t n = i->bits / 8;

	while (n != 0 && from[i->byte + n - 1] == 0)
		n--;
	if (n == 0)
		return;
	add(l, " %s=", i->name);
	for (uint32_t at = 0; at < n; at++)
		add(l, "%02x", from[i->byte + at]);
}

size_t
mad_print(const uint8_t *mad, char *buf, size_t room)
{
	struct line l = { .buf = buf, .room = room };
	const uint32_t attr = (uint32_t)mad_get(mad, MAD_attr_id);
	const char *name = mad_message_name(attr);

	ASSERT(room > 0);
	buf[0] = '\0';
	if (name == NULL)
		add(&l, "attribute 0x%04" PRIx32, attr);
	else
		add(&l, "%s", name);
	add(&l, " tid=0x%" PRIx64, mad_get(mad, MAD_tid));
	for (uint32_t f = 0; f < MAD_FIELDS; f++) {
		const struct mad_field_info *i = &mad_fields[f];

		if (name == NULL || i->message != attr)
			continue;
		if (i->bits > 64)
			add_bytes(&l, mad, i);
		else if (mad_get(mad, (enum mad_field)f) != 0)
			add(&l, " %s=0x%" PRIx64, i->name, mad_get(mad, (enum mad_field)f));
	}
	return l.len;
}
