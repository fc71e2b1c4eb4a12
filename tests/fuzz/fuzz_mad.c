/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MADs of any bytes: reading stays inside, what was read and is written again is the same bytes but
 * for reserved bits, and a line about it fits.
 */
#include "compiler.h"
#include "fuzz.h"
#include "mad.h"

/* Every field of the message that it says it is, into a MAD of zeros. */
static void
again(const uint8_t *mad)
{
	uint8_t own[MAD_LEN], twice[MAD_LEN];

	mad_init(own, mad_message(mad), mad_get(mad, MAD_tid));
	for (enum mad_field f = 0; f < MAD_FIELDS; f++) {
		if (mad_fields[f].message != mad_message(mad))
			continue;
		if (mad_fields[f].bits > 64) {
			memcpy(mad_at(own, f), mad_peek(mad, f), mad_bytes(f));
			continue;
		}
		mad_set(own, f, mad_get(mad, f));
		FUZZ_CHECK(mad_get(own, f) == mad_get(mad, f));
		memcpy(twice, mad, MAD_LEN);
		mad_set(twice, f, mad_get(mad, f));
		FUZZ_CHECK(memcmp(twice, mad, MAD_LEN) == 0);
	}
	for (uint32_t at = MAD_HEADER_LEN; at < MAD_LEN; at++)
		FUZZ_CHECK((own[at] & ~mad[at]) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *mad = malloc(size != 0 ? size : 1);
	char line[1024];

	if (mad == NULL)
		return 0;
	memcpy(mad, data, size);
	if (mad_check(mad, size) == MAD_GOOD) {
		size_t room = 1 + data[MAD_LEN - 1] * 3u;
		size_t n = mad_print(mad, line, room);

		FUZZ_CHECK(n < room && n == strlen(line));
		again(mad);
	}
	free(mad);
	return 0;
}

size_t
fuzz_seed(unsigned int index, uint8_t *buf, size_t room)
{
	if (index > CM_MESSAGE_LAST - CM_MESSAGE_FIRST || room < MAD_LEN)
		return 0;
	mad_init(buf, (enum cm_message)(CM_MESSAGE_FIRST + index), index);
	for (uint32_t at = MAD_HEADER_LEN; at < MAD_LEN; at++)
		buf[at] = (uint8_t)(at * 37 + index);
	return MAD_LEN;
}
