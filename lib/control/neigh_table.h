/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NEIGH_TABLE_H
#define NEIGH_TABLE_H
/**
 * @file neigh_table.h  Between neigh.c and neigh_admin.c: single entries of the table.
 *
 * Owner:   control lcore.
 * Memory:  the table's.
 * Depends: neigh.h.
 */
#include "neigh.h"

/** The entry of this key, made if there is none; NULL: no room, or no memory. */
struct neigh *neigh_get(struct control *c, const struct neigh_key *key);
/** Nothing is known of it any more: asked for anew if a QP uses it, else freed. */
void neigh_drop(struct control *c, struct neigh *n);
/** It is fixed from now on. */
void neigh_fix_mac(struct control *c, struct neigh *n, const uint8_t mac[6]);

#endif
