/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The tables in which a program lists its objects, in its public segment. They are read and not
 * mapped: a read of untouched pages takes no memory. The owner may write anything there.
 */
#ifndef WEIR_SOFTNIC_NETLINK_TABLES_H
#define WEIR_SOFTNIC_NETLINK_TABLES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A process and its public segment. */
struct object_owner {
	pid_t pid;
	int fd; /* of the segment */
	uint32_t slot;
};

typedef void object_visitor(void *arg, const struct object_owner *o, uint32_t index,
			    const void *entry);

/* A table of the public segment. */
struct object_table {
	size_t at, entry_bytes, bytes;
};

extern const struct object_table tables_qps, tables_mrs, tables_others;

/** tables_read() - visit each entry of a table, used or not */
void tables_read(const struct object_table *t, const struct object_owner *o,
		 object_visitor *visit, void *arg);

#endif
