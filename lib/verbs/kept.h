/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KEPT_H
#define KEPT_H
/**
 * @file kept.h  The files of mappings that the program shares, for when it has closed them.
 *
 * The preload has it, and libibverbs.so.1, which may be there without the preload, asks for it.
 *
 * Owner:   any thread, handlers of signals, and the child of fork().
 * Memory:  a table of its own, and a descriptor for each mapping in it.
 * Depends: nothing.
 */
#include <stdint.h>

/**
 * A descriptor for the file of a mapping that is there, by which one can read and write.
 * @return the caller closes it; -1: none is kept.
 */
__attribute__((weak)) int vl_kept_fd(unsigned int major, unsigned int minor, uint64_t inode);

#endif
