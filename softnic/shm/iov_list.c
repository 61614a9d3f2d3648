// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * If all of the peer's memory is mapped here, the CPU copies; else the kernel copies.
 */
#include <errno.h>
#include <string.h>

#include "softnic/verbs/nic.h"
#include "vma.h"
#include "iov_list.h"

void iov_list_add(struct iov_list *p, void *addr, size_t length)
{
	p->v[p->num++] = (struct iovec){ addr, length };
}

void iov_list_add_first(struct iov_list *p, void *addr, size_t length)
{
	memmove(p->v + 1, p->v, p->num * sizeof(p->v[0]));
	p->v[0] = (struct iovec){ addr, length };
	p->num++;
}

void iov_list_add_remote(struct iov_list *p, struct shm_peer *peer, const struct mr_place *place,
			 uint64_t offset, uint64_t length)
{
	const struct mr_place from = { place->addr + offset, place->offset + offset, place->file };

	p->mapped[p->num] = peer_map_find(peer, &from, length);
	p->is_mapped = p->is_mapped && p->mapped[p->num];
	iov_list_add(p, (void *)(uintptr_t)from.addr, length);
}

bool iov_list_gather(struct iov_list *p, struct shm_peer *peer, const struct mr_view *view,
		     uint32_t access, const struct ibv_sge *sges, uint32_t num_sge, uint64_t offset,
		     uint64_t length)
{
	struct mr_place place;
	uint64_t n;
	uint32_t i;

	iov_list_init(p);
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
			iov_list_add_remote(p, peer, &place, offset, n);
		else
			iov_list_add(p, (void *)(uintptr_t)(place.addr + offset), n);
		length -= n;
		offset = 0;
	}
	return !length;
}

/* The CPU may not touch local pages on demand, which may be missing. */
bool iov_list_needs_kernel(const struct iov_list *there)
{
	return !there->is_mapped || load_relaxed(&nic.pub->life.pages_on_demand);
}

static int copy_lists(const struct shm_peer *peer, bool to, struct iov_list *here,
		      struct iov_list *there, const uint32_t *cut)
{
	int i;

	if (iov_list_needs_kernel(there))
		return copy_bytes(&peer->target, to, here->v, here->num, there->v, there->num);
	for (i = 0; i < there->num; i++)
		there->v[i].iov_base = there->mapped[i];
	return copy_here(&peer->target, to, here->v, here->num, there->v, there->num, cut);
}

/* Bytes that were read from a peer that has cut us off may be of any time. */
int iov_list_copy(const struct shm_peer *peer, bool to, struct iov_list *here,
		  struct iov_list *there, const uint32_t *cut)
{
	int rc;

	if (cut && load_ordered(cut))
		return -ESRCH;
	rc = copy_lists(peer, to, here, there, cut);
	return !rc && cut && load_ordered(cut) ? -ESRCH : rc;
}

/* Called after a copy failed; segments already copied are shorter, so less is checked. */
bool iov_list_is_accessible(const struct iov_list *here, bool write)
{
	const struct iovec *v;

	for (v = here->v; v < here->v + here->num; v++)
		if (v->iov_len && vma_touch_range(v->iov_base, v->iov_len, write) == EFAULT)
			return false;
	return true;
}
