/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The parts of a NIC that all stages share: context lookups, packets, and PCIe. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "sim/nic/stages.h"

#define SLAB_PACKETS 256

struct sim_slab {
	struct sim_slab *next;
	struct sim_packet packets[SLAB_PACKETS];
};

static void lookup_cached(struct sim_cache *cache, uint64_t key, uint64_t stall_ps,
			  uint64_t miss_ps, struct sim_cache_misses *looks)
{
	if (sim_cache_look(cache, key))
		return;
	looks->stall_ps += stall_ps;
	looks->later_ps += miss_ps;
}

void sim_lookup_qp(struct sim_nic *nic, const struct sim_qp *qp, struct sim_cache_misses *looks)
{
	lookup_cached(&nic->qpcs, qp->number, nic->profile->qpc_stall_ps, nic->profile->qpc_miss_ps,
		      looks);
}

static uint64_t mtt_key(uint32_t key, uint64_t page)
{
	return (uint64_t)key << 40 | page;
}

/* The NIC looks up the pages of a message in parallel: all misses together delay it by one miss. */
void sim_lookup_memory(struct sim_nic *nic, uint32_t key, uint64_t addr, uint32_t bytes,
		       struct sim_cache_misses *looks)
{
	const struct sim_profile *p = nic->profile;
	uint64_t page = addr / p->page_bytes;
	uint64_t last = (addr + (bytes ? bytes - 1 : 0)) / p->page_bytes;
	struct sim_cache_misses pages = { 0 };

	lookup_cached(&nic->mpts, key, p->mpt_stall_ps, p->mpt_miss_ps, looks);
	for (; page <= last; page++)
		lookup_cached(&nic->mtts, mtt_key(key, page), p->mtt_stall_ps, p->mtt_miss_ps,
			      &pages);
	looks->stall_ps += pages.stall_ps;
	if (pages.later_ps)
		looks->later_ps += p->mtt_miss_ps;
}

void sim_memory_cached(struct sim_nic *nic, uint32_t key, uint64_t addr, uint64_t bytes)
{
	uint64_t page = addr / nic->profile->page_bytes;
	uint64_t last = (addr + (bytes ? bytes - 1 : 0)) / nic->profile->page_bytes;

	sim_cache_put(&nic->mpts, key);
	for (; page <= last; page++)
		sim_cache_put(&nic->mtts, mtt_key(key, page));
}

/* A write or send also holds its data, in case the NIC has to retransmit. */
static uint32_t slots(const struct sim_nic *nic, const struct sim_wqe *wqe)
{
	return sim_op_is_read(wqe->wr.op) ? 1 : (uint32_t)nic->profile->wqe_slots_write;
}

static uint64_t slot_key(const struct sim_wqe *wqe, uint32_t slot)
{
	return (uint64_t)wqe->qp->number << 32 | (uint64_t)(wqe - wqe->qp->sq) << 8 | slot;
}

void sim_lookup_wqe(struct sim_nic *nic, const struct sim_wqe *wqe, struct sim_cache_misses *looks)
{
	const struct sim_profile *p = nic->profile;
	uint64_t stall_ps = sim_op_is_read(wqe->wr.op) ? p->wqe_stall_read_ps : p->wqe_stall_ps;
	uint32_t i;

	for (i = 0; i < slots(nic, wqe); i++)
		lookup_cached(&nic->wqes, slot_key(wqe, i), stall_ps, p->wqe_miss_ps, looks);
}

void sim_wqe_cached(struct sim_nic *nic, const struct sim_wqe *wqe)
{
	uint32_t i;

	for (i = 0; i < slots(nic, wqe); i++)
		sim_cache_put(&nic->wqes, slot_key(wqe, i));
}

void sim_wqe_forgotten(struct sim_nic *nic, const struct sim_wqe *wqe)
{
	uint32_t i;

	for (i = 0; i < slots(nic, wqe); i++)
		sim_cache_drop(&nic->wqes, slot_key(wqe, i));
}

static void add_slab(struct sim_nic *nic)
{
	struct sim_slab *slab = calloc(1, sizeof(*slab));
	int i;

	if (!slab)
		abort();
	slab->next = nic->slabs;
	nic->slabs = slab;
	for (i = 0; i < SLAB_PACKETS; i++)
		sim_packet_put(nic, &slab->packets[i]);
}

struct sim_packet *sim_packet_get(struct sim_nic *nic, struct sim_wqe *wqe, uint32_t bytes,
				  enum sim_packet_kind kind)
{
	struct sim_packet *packet;

	if (!nic->free_packets)
		add_slab(nic);
	packet = nic->free_packets;
	nic->free_packets = packet->next;
	*packet = (struct sim_packet){
		.wqe = wqe, .bytes = bytes, .kind = kind, .is_first = true, .is_last = true
	};
	return packet;
}

void sim_packet_put(struct sim_nic *nic, struct sim_packet *packet)
{
	packet->next = nic->free_packets;
	nic->free_packets = packet;
}

static uint64_t transfer_ps(const struct sim_profile *p, uint32_t bytes, uint64_t mbps)
{
	return sim_bytes_ps(bytes > p->pcie_bytes_min ? bytes : p->pcie_bytes_min, mbps);
}

/* The PCIe tags bound the reads under way, each for a round trip: time per @bytes at this bound. */
static uint64_t tags_ps(const struct sim_profile *p, uint32_t bytes)
{
	uint64_t reads = (bytes + p->pcie_read_bytes - 1) / p->pcie_read_bytes;

	return reads * 2 * p->pcie_ps / p->pcie_tags;
}

uint64_t sim_pcie_read(struct sim_nic *nic, uint64_t from_ps, uint32_t bytes)
{
	const struct sim_profile *p = nic->profile;
	uint64_t ps = transfer_ps(p, bytes, p->pcie_read_mbps), tags = tags_ps(p, bytes);

	return sim_server_take(&nic->pcie_read, from_ps, ps > tags ? ps : tags) + 2 * p->pcie_ps;
}

uint64_t sim_pcie_write(struct sim_nic *nic, uint64_t from_ps, uint32_t bytes)
{
	const struct sim_profile *p = nic->profile;

	return sim_server_take(&nic->pcie_write, from_ps,
			       transfer_ps(p, bytes, p->pcie_write_mbps)) +
	       p->pcie_ps;
}

static int init_caches(struct sim_nic *nic)
{
	const struct sim_profile *p = nic->profile;
	uint32_t ways = (uint32_t)p->cache_ways;

	return sim_cache_init(&nic->wqes, (uint32_t)p->wqe_entries, (uint32_t)p->wqe_ways) ||
	       sim_cache_init(&nic->qpcs, (uint32_t)p->qpc_entries, ways) ||
	       sim_cache_init(&nic->mtts, (uint32_t)p->mtt_entries, ways) ||
	       sim_cache_init(&nic->mpts, (uint32_t)p->mpt_entries, ways);
}

int sim_nic_init(struct sim_nic *nic, struct sim_host *host)
{
	uint32_t i, class;

	*nic = (struct sim_nic){ .host = host,
				 .clock = host->clock,
				 .profile = host->profile,
				 .turn.happen = sim_stream_quantum_over };
	nic->pus = calloc(nic->profile->pus, sizeof(*nic->pus));
	if (!nic->pus || init_caches(nic)) {
		sim_nic_fini(nic);
		return -ENOMEM;
	}
	for (class = 0; class < SIM_CLASSES; class ++) {
		weir_list_init(&nic->streams[class]);
		for (i = 0; i < nic->profile->pus; i++)
			weir_list_init(&nic->pus[i].ready[class]);
	}
	for (i = 0; i < nic->profile->pus; i++)
		nic->pus[i].event.happen = sim_pu_free;
	return 0;
}

void sim_nic_fini(struct sim_nic *nic)
{
	while (nic->slabs) {
		struct sim_slab *slab = nic->slabs;

		nic->slabs = slab->next;
		free(slab);
	}
	sim_cache_fini(&nic->wqes);
	sim_cache_fini(&nic->qpcs);
	sim_cache_fini(&nic->mtts);
	sim_cache_fini(&nic->mpts);
	free(nic->pus);
}
