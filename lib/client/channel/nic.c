/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The list of NICs in use. A session gets its device's NIC, and the last session to put a NIC frees
 * its device resources; the memory of the struct stays, see struct weir_nic.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/error.h"
#include "core/engine/engine.h"
#include "core/engine/request.h"
#include "lib/client/channel/nic.h"
#include "lib/client/memory/bounce.h"

#define RD_ATOMIC_MAX 16
#define LEARNED_WRS_MIN (2 * WEIR_BATCH_MAX) /* the device has a chain, the host fills another */

static pthread_mutex_t nics_lock = PTHREAD_MUTEX_INITIALIZER;
static struct weir_nic *nics;
static struct weir_nic *unused; /* free list; late submitters may still lock these */

static uint8_t rd_atomic_of(struct ibv_context *context)
{
	struct ibv_device_attr attr;

	if (ibv_query_device(context, &attr) || attr.max_qp_rd_atom < 1)
		return 1;
	return attr.max_qp_rd_atom < RD_ATOMIC_MAX ? (uint8_t)attr.max_qp_rd_atom : RD_ATOMIC_MAX;
}

static int numa_node_of(const struct ibv_device *device)
{
	char path[sizeof(device->ibdev_path) + 32];
	int node = -1;
	FILE *file;

	snprintf(path, sizeof(path), "%s/device/numa_node", device->ibdev_path);
	file = fopen(path, "re");
	if (!file)
		return -1;
	if (fscanf(file, "%d", &node) != 1)
		node = -1;
	fclose(file);
	return node;
}

/* Some devices allow fewer for reads. Never below a request's maximum: the device refuses later. */
static uint8_t sge_max_of(struct ibv_context *context)
{
	struct ibv_device_attr attr;
	int max;

	if (ibv_query_device(context, &attr))
		return WEIR_SGE_MAX;
	max = attr.max_sge_rd && attr.max_sge_rd < attr.max_sge ? attr.max_sge_rd : attr.max_sge;
	if (max < WEIR_SGE_MAX)
		return WEIR_SGE_MAX;
	return max < WEIR_WR_SGE_MAX ? (uint8_t)max : WEIR_WR_SGE_MAX;
}

/* The learner of a new NIC's window, or NULL. A learned limit begins at @least. */
static struct weir_window_learner *learner_init(struct weir_nic *nic,
						const struct weir_session_tuning *tuning,
						struct weir_window_bounds *least)
{
	enum weir_admission way = tuning->admission;
	bool is_of_wrs = way == WEIR_ADMISSION_DELAY_WRS || way == WEIR_ADMISSION_KNEE_WRS;
	enum weir_window_unit unit = is_of_wrs ? WEIR_WINDOW_WRS : WEIR_WINDOW_BYTES;

	if (tuning->window_policy) {
		least->wrs = 1;
		return weir_window_policy_init(&nic->policy, tuning->window_policy);
	}
	if (way == WEIR_ADMISSION_STATIC)
		return NULL;
	if (!is_of_wrs)
		least->wrs = tuning->window_wrs;
	else
		least->bytes = tuning->window_bytes;
	if (way == WEIR_ADMISSION_DELAY || way == WEIR_ADMISSION_DELAY_WRS) {
		weir_window_delay_init(&nic->delay, unit);
		return &nic->delay.learner;
	}
	weir_window_knee_init(&nic->knee, unit);
	return &nic->knee.learner;
}

static void window_init(struct weir_nic *nic, const struct weir_session_tuning *tuning)
{
	struct weir_window_bounds least = { tuning->fragment_bytes, LEARNED_WRS_MIN };
	struct weir_window_learner *learner;

	if (least.bytes > tuning->window_bytes)
		least.bytes = tuning->window_bytes;
	if (least.wrs > tuning->window_wrs)
		least.wrs = tuning->window_wrs;
	weir_window_init(&nic->window, tuning->window_bytes, tuning->window_wrs);
	weir_window_classes_init(&nic->classes);
	learner = learner_init(nic, tuning, &least);
	if (learner)
		weir_window_set_learner(&nic->window, learner, &least);
}

/* Memory for a NIC, with the fields that late submitters touch initialised. NULL: none. */
static struct weir_nic *nic_alloc(void)
{
	struct weir_nic *n = unused;

	if (n) {
		unused = n->next;
		return n;
	}
	n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	weir_combine_init(&n->combine);
	weir_list_init(&n->lent);
	return n;
}

static void nic_free(struct weir_nic *n)
{
	n->next = unused;
	unused = n;
}

static int nic_make(struct ibv_context *context, const struct weir_session_tuning *tuning,
		    struct weir_nic **nic, struct weir_error *error)
{
	struct weir_nic *n = nic_alloc();

	if (!n)
		return weir_error_set(error, -ENOMEM, "out of memory");
	n->pd = ibv_alloc_pd(context);
	if (!n->pd) {
		int rc = -errno;

		nic_free(n);
		return weir_error_set(error, rc, "cannot allocate a protection domain on %s: %s",
				      ibv_get_device_name(context->device), weir_strerror(rc));
	}
	n->context = context;
	n->numa_node = numa_node_of(context->device);
	n->dyn_bytes = weir_bounce_measure(n->pd);
	n->rd_atomic = rd_atomic_of(context);
	n->sge_max = sge_max_of(context);
	window_init(n, tuning);
	*nic = n;
	return 0;
}

int weir_nic_get(struct ibv_context *context, const struct weir_session_tuning *tuning,
		 struct weir_nic **nic, struct weir_error *error)
{
	struct weir_nic *n;
	int rc = 0;

	pthread_mutex_lock(&nics_lock);
	for (n = nics; n && n->context != context;)
		n = n->next;
	if (!n) {
		rc = nic_make(context, tuning, &n, error);
		if (rc)
			goto unlock;
		n->next = nics;
		nics = n;
	}
	n->users++;
	*nic = n;
unlock:
	pthread_mutex_unlock(&nics_lock);
	return rc;
}

int weir_nic_next_vector(struct weir_nic *nic, unsigned int max)
{
	unsigned int count = (unsigned int)nic->context->num_comp_vectors;

	if (max && max < count)
		count = max;
	return (int)(__atomic_fetch_add(&nic->vectors, 1, __ATOMIC_RELAXED) % (count ? count : 1));
}

void weir_nic_put(struct weir_nic *nic)
{
	struct weir_nic **place = &nics;

	pthread_mutex_lock(&nics_lock);
	if (--nic->users)
		goto unlock;
	while (*place != nic)
		place = &(*place)->next;
	*place = nic->next;
	ibv_dealloc_pd(nic->pd);
	nic_free(nic);
unlock:
	pthread_mutex_unlock(&nics_lock);
}
