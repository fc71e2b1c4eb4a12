/* SPDX-License-Identifier: BSD-3-Clause */
#include "conf_json_value.h"

#include <inttypes.h>

json_t *
conf_json_hex(uint64_t v)
{
	return json_sprintf("0x%" PRIx64, v);
}

json_t *
conf_json_u64(uint64_t v)
{
	return v <= INT64_MAX ? json_integer((json_int_t)v) : conf_json_hex(v);
}

json_t *
conf_json_mac(const uint8_t mac[6])
{
	return json_sprintf(
		"%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
}

json_t *
conf_json_append(json_t *list, json_t *item)
{
	if (list != NULL && item != NULL && json_array_append_new(list, item) == 0)
		return list;
	if (list == NULL)
		json_decref(item);
	json_decref(list);
	return NULL;
}

static int
count_bytes(const char *buf, size_t size, void *data)
{
	(void)buf;
	*(size_t *)data += size;
	return 0;
}

size_t
conf_json_size(const json_t *v)
{
	size_t n = 0;

	json_dump_callback(v, count_bytes, &n, JSON_COMPACT | JSON_ENCODE_ANY);
	return n;
}
