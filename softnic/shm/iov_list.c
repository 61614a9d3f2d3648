// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A peer's pieces are copied by the CPU if it sees all of them, else by the kernel.
 */
#include <errno.h>
#include <string.h>

#include "vma.h"
#include "iov_list.h"

void pieces_add(struct pieces *p, void *addr, size_t length)
{
	p->v[p->num++] = (struct iovec){ addr, length };
}

void pieces_add_first(struct pieces *p, void *addr, size_t length)
{
	memmove(p->v + 1, p->v, p->num * sizeof(p->v[0]));
	p->v[0] = (struct iovec){ addr, length };
	p->num++;
}

void pieces_add_place(struct pieces *p, struct peer *peer, const struct mr_place *place,
		      uint64_t offset, uint64_t length)
{
	const struct mr_place from = { place->addr + offset, place->offset + offset, place->file };

	p->near[p->num] = near_find(peer, &from, length);
	p->is_near = p->is_near && p->near[p->num];
	pieces_add(p, (void *)(uintptr_t)from.addr, length);
}

bool pieces_gather(struct pieces *p, struct peer *peer, const struct mr_view *view, uint32_t access,
		   const struct ibv_sge *sges, uint32_t num_sge, uint64_t offset, uint64_t length)
{
	struct mr_place place;
	uint64_t n;
	uint32_t i;

	pieces_init(p);
	for (i = 0; i < num_sge && length; i++) {
		struct ibv_sge sge = sges[i];

		if (!mr_translate(view, sge.lkey, access, sge.addr, sge.length, &place))
			return false;
		if (offset >= sge.length) {
			offset -= sge.length;
			continue;
		}
		n = sge.length - offset < length ? sge.length - offset : length;
		if (peer)
			pieces_add_place(p, peer, &place, offset, n);
		else
			pieces_add(p, (void *)(uintptr_t)(place.addr + offset), n);
		length -= n;
		offset = 0;
	}
	return !length;
}

int pieces_copy(const struct peer *peer, bool to, struct pieces *here, struct pieces *there)
{
	int i;

	if (!there->is_near)
		return copy_bytes(&peer->target, to, here->v, here->num, there->v, there->num);
	for (i = 0; i < there->num; i++)
		there->v[i].iov_base = there->near[i];
	return copy_here(&peer->target, to, here->v, here->num, there->v, there->num);
}

/* What was copied already is as good as it was, or shorter. */
bool pieces_are_ours(const struct pieces *here, bool write)
{
	const struct iovec *v;

	for (v = here->v; v < here->v + here->num; v++)
		if (v->iov_len && mapping_touch(v->iov_base, v->iov_len, write) == EFAULT)
			return false;
	return true;
}
