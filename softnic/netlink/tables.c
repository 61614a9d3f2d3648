// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <unistd.h>

#include "softnic/shm/shared.h"
#include "tables.h"

enum { READ_BYTES = 1 << 14 };

#define TABLE(name)                                                                           \
	{                                                                                     \
		offsetof(struct shared_pub, name), sizeof(((struct shared_pub *)0)->name[0]), \
			sizeof(((struct shared_pub *)0)->name)                                \
	};                                                                                    \
	_Static_assert(sizeof(((struct shared_pub *)0)->name) % READ_BYTES == 0, "whole reads")

const struct object_table tables_qps = TABLE(qps);
const struct object_table tables_mrs = TABLE(mrs);
const struct object_table tables_others = TABLE(objects);

void tables_read(const struct object_table *t, const struct object_owner *o,
		 object_visitor *visit, void *arg)
{
	_Alignas(64) uint8_t some[READ_BYTES];
	size_t at, i;

	for (at = 0; at < t->bytes; at += sizeof(some)) {
		if (pread(o->fd, some, sizeof(some), (off_t)(t->at + at)) != sizeof(some))
			return;
		for (i = 0; i < sizeof(some); i += t->entry_bytes)
			visit(arg, o, (uint32_t)((at + i) / t->entry_bytes), some + i);
	}
}
