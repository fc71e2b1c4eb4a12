/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NEIGH_TABLE_H
#define NEIGH_TABLE_H
/**
 * @file neigh_table.h  Between the files of neighbours: single entries of the table.
 *
 * Owner:   control lcore.
 * Memory:  the table's.
 * Depends: neigh.h.
 */
#include "neigh.h"

/** The entry of this key, made if there is none; NULL: no room, or no memory. */
struct neigh *neigh_get(struct net *net, const struct neigh_key *key);
/** Nothing is known of it any more: asked for anew if a QP uses it, else freed. */
void neigh_drop(struct net *net, struct neigh *n);
/** Nothing was heard of it for long: asked for anew if a QP uses it. */
void neigh_doubt(struct net *net, struct neigh *n);
/** It is fixed from now on. */
void neigh_fix_mac(struct net *net, struct neigh *n, const uint8_t mac[6]);
/** Paths over it have to be told of its MAC, or not any more. */
void neigh_set_changed(struct neigh_table *t, struct neigh *n, bool on);
/** @param buf room for INET6_ADDRSTRLEN bytes. @return buf. */
const char *neigh_ip_text(const struct conf_ip *ip, char *buf);

#endif
