/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "lib/base/error.h"
#include "lib/base/sized.h"
#include "lib/exchange/setup.h"
#include "lib/exchange/memory.h"
#include "lib/exchange/post.h"
#include "lib/conn/encryption.h"
#include "lib/conn/proof.h"
#include "lib/conn/qp.h"
#include "lib/base/yield.h"

#define SLOTS_DEFAULT_MIN 8
#define SLOTS_DEFAULT_MAX 256
#define POOL_BYTES_DEFAULT (64ull << 20)
#define SLOT_BYTES_DEFAULT 4096
#define RECEIVE_BYTES_DEFAULT (1ull << 30)
#define PERCENT_DEFAULT 40
#define SEND_MAX 4096u
#define WRITES_MAX 2u /* per slot */
#define SENDS_SPARE 16u /* bitmap reads, doorbells, wake-ups, returns, markers */

/*
 * As many slots as memory allows: each of the end's exchanges has a pool and a mirror of about
 * the same size. At least enough to write one slot while another is read.
 */
static unsigned int default_slots(const struct weir_exchange_options *o)
{
	uint64_t slots = o->pool_bytes / o->exchanges / 2 /
			 wire_exchange_slot_stride((uint32_t)o->slot_bytes);

	if (slots < SLOTS_DEFAULT_MIN)
		return SLOTS_DEFAULT_MIN;
	return slots < SLOTS_DEFAULT_MAX ? (unsigned int)slots : SLOTS_DEFAULT_MAX;
}

int weir_exchange_options_fill(struct weir_exchange_options *o,
			       const struct weir_exchange_options *given, struct weir_error *error)
{
	int rc = weir_sized_in(o, sizeof(*o), given, "weir_exchange_options", error);
	unsigned int most;

	if (rc)
		return rc;
	rc = weir_encryption_check(o->encryption, o->key, error);
	if (rc)
		return rc;
	most = o->mode == WEIR_EXCHANGE_IMM ? WEIR_EXCHANGE_IMM_SLOTS_MAX : WEIR_EXCHANGE_SLOTS_MAX;
	if (!o->slot_bytes)
		o->slot_bytes = SLOT_BYTES_DEFAULT;
	if (!o->pool_bytes)
		o->pool_bytes = POOL_BYTES_DEFAULT;
	if (!o->exchanges)
		o->exchanges = 1;
	if (!o->receive_bytes_max)
		o->receive_bytes_max = RECEIVE_BYTES_DEFAULT;
	if (!o->percent_min)
		o->percent_min = PERCENT_DEFAULT;
	if (!o->timeout_ns)
		o->timeout_ns = 10 * WEIR_NS_PER_S;
	if (o->device && strlen(o->device) >= IBV_SYSFS_NAME_MAX)
		return weir_error_set(error, -EINVAL, "device %s: the name is too long", o->device);
	if (o->memory > WEIR_EXCHANGE_CUDA)
		return weir_error_set(error, -EINVAL, "memory %d: no such kind of memory",
				      (int)o->memory);
	if (o->mode > WEIR_EXCHANGE_IMM)
		return weir_error_set(error, -EINVAL, "mode %d: no such mode", (int)o->mode);
	if (o->slots > most)
		return weir_error_set(error, -EINVAL, "%u slots: at most %u", o->slots, most);
	if (o->slot_bytes > WIRE_EXCHANGE_SLOT_BYTES_MAX)
		return weir_error_set(error, -EINVAL, "slots of %zu bytes: at most %u",
				      o->slot_bytes, WIRE_EXCHANGE_SLOT_BYTES_MAX);
	if (!o->slots)
		o->slots = default_slots(o);
	if (o->percent_min > 99)
		return weir_error_set(error, -EINVAL, "%u percent: must be 1 to 99",
				      o->percent_min);
	return 0;
}

int weir_exchange_new(const struct weir_exchange_options *options, struct weir_exchange **out,
		      struct weir_error *error)
{
	struct weir_exchange *x = calloc(1, sizeof(*x));
	int rc;

	if (x)
		x->setup = calloc(1, sizeof(*x->setup));
	if (!x || !x->setup) {
		free(x);
		return weir_error_set(error, -ENOMEM, "out of memory");
	}
	x->options = *options;
	weir_list_init(&x->setup->newcomer.link);
	x->fd = -1;
	x->reads = WEIR_EXCHANGE_READS;
	weir_slot_poll_init(&x->slot_poll, options->slots, options->percent_min);
	weir_idle_time_init(&x->idle_time, WEIR_WAKE_NS, WEIR_WAKE_NS);
	weir_idle_time_init(&x->room_idle_time, WEIR_WAKE_NS, WEIR_WAKE_NS);
	if (options->memory == WEIR_EXCHANGE_CUDA &&
	    (rc = weir_cuda_open(options->gpu, &x->cuda, error))) {
		weir_exchange_close(x);
		return rc;
	}
	*out = x;
	return 0;
}

static int add_to_epoll(struct weir_exchange *x, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK))
		return -errno;
	return epoll_ctl(x->fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* The CQ also has room for all flushed work requests. */
static int create_cq(struct weir_exchange *x, const struct ibv_device_attr *device,
		     struct ibv_qp_init_attr *attr)
{
	uint32_t most = (uint32_t)device->max_qp_wr, recvs = WEIR_EXCHANGE_RECVS;

	if (weir_exchange_is_imm(x))
		recvs = 2 * WEIR_EXCHANGE_IMM_SLOTS_MAX + 2 * WEIR_EXCHANGE_CHAIN;
	recvs += WIRE_HANDSHAKE_RECVS + WIRE_EXCHANGE_OFFERS_IN;
	x->send_max = x->options.slots < SEND_MAX ? x->options.slots : SEND_MAX;
	if (x->send_max * WRITES_MAX + SENDS_SPARE > most)
		x->send_max = (most - SENDS_SPARE) / WRITES_MAX;
	*attr = (struct ibv_qp_init_attr){
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = x->send_max * WRITES_MAX + SENDS_SPARE,
			 .max_recv_wr = recvs < most ? recvs : most,
			 .max_send_sge = 2,
			 .max_recv_sge = 1,
			 .max_inline_data = 64 },
	};
	x->inline_max = attr->cap.max_inline_data;
	x->cq = ibv_create_cq(x->id->verbs, (int)(attr->cap.max_send_wr + attr->cap.max_recv_wr),
			      NULL, x->events, 0);
	attr->send_cq = attr->recv_cq = x->cq;
	return x->cq ? 0 : -errno;
}

static int create_queues(struct weir_exchange *x, struct ibv_qp_init_attr *attr,
			 struct weir_error *error)
{
	struct weir_exchange_setup_state *g = x->setup;
	struct ibv_device_attr device;
	int rc = -ibv_query_device(x->id->verbs, &device);

	x->fd = epoll_create1(EPOLL_CLOEXEC);
	x->pd = ibv_alloc_pd(x->id->verbs);
	x->events = ibv_create_comp_channel(x->id->verbs);
	if (rc || x->fd < 0 || !x->pd || !x->events)
		return weir_error_set(error, -ENOMEM, "%s has no more resources: %s",
				      ibv_get_device_name(x->id->verbs->device),
				      weir_strerror(-errno));
	g->mr = ibv_reg_mr(x->pd, g, sizeof(*g), IBV_ACCESS_LOCAL_WRITE);
	if (!g->mr)
		return weir_error_set_memlock(error, "the setup messages", sizeof(*g), -errno);
	rc = add_to_epoll(x, x->cm->fd);
	if (!rc)
		rc = add_to_epoll(x, x->events->fd);
	if (!rc)
		rc = create_cq(x, &device, attr);
	return rc ? weir_error_set(error, -ENOMEM, "no completion queue for %u slots: %s",
				   x->options.slots, weir_strerror(rc)) :
		    0;
}

int weir_exchange_create_qp(struct weir_exchange *x, struct weir_error *error)
{
	struct ibv_qp_init_attr attr;
	int rc = create_queues(x, &attr, error);

	if (rc)
		return rc;
	snprintf(x->info.device, sizeof(x->info.device), "%s",
		 ibv_get_device_name(x->id->verbs->device));
	rc = weir_qp_create(x->id, x->pd, &attr, &x->qp);
	return rc ? weir_error_set(error, -ENOMEM, "no queue pair for %u slots: %s",
				   x->options.slots, weir_strerror(rc)) :
		    0;
}

int weir_exchange_post_setup_recvs(struct weir_exchange *x, unsigned int count,
				   struct weir_error *error)
{
	int rc = weir_proof_post_recvs(x->qp, x->setup->mr->lkey, x->setup->in, count,
				       WEIR_PROOF_WR);

	return rc ? weir_error_set(error, rc, "cannot post receives: %s", weir_strerror(rc)) : 0;
}

int weir_exchange_send_message(struct weir_exchange *x, size_t length, struct weir_error *error)
{
	struct weir_exchange_setup_state *g = x->setup;
	int rc = weir_proof_send(x->qp, g->mr->lkey, g->out[0], length, WEIR_EXCHANGE_SETUP_WR);

	g->said += !rc;
	return rc ? weir_error_set(error, rc, "cannot send to %s: %s", x->info.peer,
				   weir_strerror(rc)) :
		    0;
}

int weir_exchange_check_goes_on(const struct weir_exchange_options *options,
				struct weir_error *error)
{
	if (!options->goes_on || options->goes_on(options->goes_on_arg))
		return 0;
	return weir_error_set(error, -ECANCELED, "the wait for the peer was cancelled");
}

int weir_exchange_send_offer(struct weir_exchange *x, struct weir_error *error)
{
	struct wire_exchange_offer offer = {
		.slots = x->options.slots,
		.slot_bytes = (uint32_t)x->options.slot_bytes,
		.is_imm = weir_exchange_is_imm(x),
		.is_unordered = x->options.unordered,
	};

	if (x->peer.slots) {
		const struct ibv_mr *data = x->mirror.gpu_mr ? x->mirror.gpu_mr : x->mirror_mr;

		offer.head_stride = (uint32_t)x->mirror.head_stride;
		offer.heads = (struct wire_exchange_remote_mr){ (uintptr_t)x->mirror.heads,
								x->mirror_mr->rkey, 0 };
		offer.mirror = (struct wire_exchange_remote_mr){ (uintptr_t)x->mirror.data,
								 data->rkey, 0 };
		offer.doorbell = (struct wire_exchange_remote_mr){ (uintptr_t)x->doorbell,
								   x->mirror_mr->rkey, 0 };
		offer.bits =
			(struct wire_exchange_remote_mr){ (uintptr_t)x->bits, x->bits_mr->rkey, 0 };
	}
	wire_exchange_offer_encode(&offer);
	memcpy(x->setup->out[0], &offer, sizeof(offer));
	return weir_exchange_send_message(x, sizeof(offer), error);
}

/* The first offer fixes the size of the peer's pool. */
static int accept_offer(struct weir_exchange *x, const struct wire_exchange_offer *offer,
			struct weir_error *error)
{
	if (offer->is_imm != weir_exchange_is_imm(x))
		return weir_error_set(error, -EPROTO,
				      "one end wants bitmaps, the other immediates: "
				      "give both the same mode");
	if (offer->slots * wire_exchange_slot_stride(offer->slot_bytes) >
	    x->options.receive_bytes_max)
		return weir_error_set(error, -EDQUOT,
				      "the peer's %u slots of %u bytes are more than the "
				      "%llu bytes allowed for receiving",
				      offer->slots, offer->slot_bytes,
				      (unsigned long long)x->options.receive_bytes_max);
	if (offer->is_imm && offer->slots > WEIR_EXCHANGE_IMM_SLOTS_MAX)
		return weir_error_set(error, -EPROTO, "the peer has %u slots: at most %u",
				      offer->slots, WEIR_EXCHANGE_IMM_SLOTS_MAX);
	if (x->peer.slots &&
	    (offer->slots != x->peer.slots || offer->slot_bytes != x->peer.slot_bytes))
		return weir_error_set(error, -EPROTO, "%s offers a different pool now",
				      x->info.peer);
	x->peer = *offer;
	return x->memory ? 0 : weir_exchange_memory_make(x, error);
}

int weir_exchange_take_offer(struct weir_exchange *x, const void *message, size_t length,
			     struct weir_error *error)
{
	union wire_handshake_message said;
	struct wire_exchange_offer offer;
	int rc;

	if (!wire_handshake_decode_as(message, length, WIRE_EXCHANGE_PROOF, &said) &&
	    said.head.type == WIRE_REFUSAL)
		return weir_handshake_refusal_explain(&said.refusal, WIRE_EXCHANGE_PROOF, error);
	rc = wire_exchange_offer_decode(message, length, &offer);
	return rc ? weir_error_set(error, rc, "%s offers no pool", x->info.peer) :
		    accept_offer(x, &offer, error);
}

int weir_exchange_start(struct weir_exchange *x, struct weir_error *error)
{
	uint32_t i;

	for (i = 0; i < x->nr_recvs; i++)
		x->spare[x->nr_recvs_spare++] = i;
	return weir_exchange_post_recvs(x) ?
		       weir_error_set(error, -ENOMEM, "the device cannot take %u receives",
				      x->nr_recvs) :
		       0;
}
