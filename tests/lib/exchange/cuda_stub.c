/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A CUDA driver without a GPU: the part of libcuda.so.1 that lib/exchange/cuda.c uses. The
 * memory is the host's, but an access by its GPU address faults, as on a real GPU: only the
 * driver's copies know the host address.
 *
 * Copies and fills are deferred as long as a driver may: until the stream is synchronised or the
 * memory read back.
 *
 * Loaded before the verbs device with CUDA_STUB_REACHED set, the stub plays a GPU within the
 * device's reach: the memory is accessible at its address, and ibv_reg_dmabuf_mr() registers it
 * there.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define ALLOCATIONS_MAX 64
#define SYNC_MEMOPS 6
#define ERROR_VALUE 1
#define ERROR_NO_DEVICE 100

/* @far: the GPU address; @near: the accessible address. */
static struct allocation {
	char *far, *near;
	size_t bytes;
	int fd;
	unsigned int is_sync; /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS */
} allocations[ALLOCATIONS_MAX];

/* A deferred copy to @near, from @from or, if NULL, from @kept. */
struct work {
	struct work *next;
	char *near;
	const char *from;
	size_t bytes;
	char kept[];
};

static struct work *works, **works_end = &works;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_reached(void)
{
	return getenv("CUDA_STUB_REACHED");
}

int cuInit(unsigned int flags)
{
	return flags ? ERROR_VALUE : 0;
}

int cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return ordinal ? ERROR_NO_DEVICE : 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	*value = 0; /* no order promised: a flush is needed */
	return attribute < 1 || device ? ERROR_VALUE : 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
	*context = allocations;
	return device ? ERROR_NO_DEVICE : 0;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
	return device ? ERROR_NO_DEVICE : 0;
}

static __thread int depth;

int cuCtxPushCurrent_v2(void *context)
{
	depth++;
	return context == allocations ? 0 : ERROR_VALUE;
}

int cuCtxPopCurrent_v2(void **context)
{
	*context = allocations;
	return depth-- > 0 ? 0 : ERROR_VALUE;
}

static int allocate(struct allocation *a, size_t bytes)
{
	a->fd = memfd_create("gpu", MFD_CLOEXEC);
	if (a->fd < 0 || ftruncate(a->fd, (off_t)bytes))
		return ERROR_VALUE;
	a->near = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, a->fd, 0);
	a->far = mmap(NULL, bytes, is_reached() ? PROT_READ | PROT_WRITE : PROT_NONE, MAP_SHARED,
		      a->fd, 0);
	if (a->near == MAP_FAILED || a->far == MAP_FAILED)
		abort();
	a->bytes = bytes;
	return 0;
}

int cuMemAlloc_v2(uint64_t *at, size_t bytes)
{
	int i, status = ERROR_VALUE;

	pthread_mutex_lock(&lock);
	for (i = 0; depth && i < ALLOCATIONS_MAX && allocations[i].bytes; i++)
		;
	if (depth && i < ALLOCATIONS_MAX)
		status = allocate(&allocations[i], bytes);
	if (!status)
		*at = (uintptr_t)allocations[i].far;
	pthread_mutex_unlock(&lock);
	return status;
}

static struct allocation *find_allocation(uint64_t at)
{
	int i;

	for (i = 0; i < ALLOCATIONS_MAX; i++)
		if (at - (uintptr_t)allocations[i].far < allocations[i].bytes)
			return &allocations[i];
	return NULL;
}

/* In order. With the lock held. */
static void work_all(void)
{
	struct work *w;

	while ((w = works)) {
		works = w->next;
		memmove(w->near, w->from ? w->from : w->kept, w->bytes);
		free(w);
	}
	works_end = &works;
}

static struct work *work_add(char *near, size_t bytes, size_t kept)
{
	struct work *w = calloc(1, sizeof(*w) + kept);

	if (!w)
		abort();
	w->near = near;
	w->bytes = bytes;
	*works_end = w;
	works_end = &w->next;
	return w;
}

int cuStreamSynchronize(void *stream)
{
	pthread_mutex_lock(&lock);
	work_all();
	pthread_mutex_unlock(&lock);
	return stream || !depth ? ERROR_VALUE : 0;
}

int cuPointerSetAttribute(const void *value, int attribute, uint64_t at)
{
	struct allocation *a;

	pthread_mutex_lock(&lock);
	a = find_allocation(at);
	if (a && attribute == SYNC_MEMOPS)
		a->is_sync = *(const unsigned int *)value;
	pthread_mutex_unlock(&lock);
	return a && attribute == SYNC_MEMOPS && depth ? 0 : ERROR_VALUE;
}

int cuPointerGetAttribute(void *value, int attribute, uint64_t at)
{
	const struct allocation *a;

	pthread_mutex_lock(&lock);
	a = find_allocation(at);
	if (a && attribute == SYNC_MEMOPS)
		*(unsigned int *)value = a->is_sync;
	pthread_mutex_unlock(&lock);
	return a && attribute == SYNC_MEMOPS && depth ? 0 : ERROR_VALUE;
}

int cuMemFree_v2(uint64_t at)
{
	struct allocation *a;

	pthread_mutex_lock(&lock);
	work_all();
	a = find_allocation(at);
	if (a) {
		munmap(a->far, a->bytes);
		munmap(a->near, a->bytes);
		close(a->fd);
		memset(a, 0, sizeof(*a));
	}
	pthread_mutex_unlock(&lock);
	return a && depth ? 0 : ERROR_VALUE;
}

/* The accessible address; host addresses map to themselves. NULL: beyond the end. */
static char *near_of(uint64_t at, size_t bytes)
{
	const struct allocation *a = find_allocation(at);

	if (!a)
		return (char *)(uintptr_t)at;
	return at - (uintptr_t)a->far + bytes <= a->bytes ? a->near + (at - (uintptr_t)a->far) :
							    NULL;
}

int cuMemsetD8_v2(uint64_t at, unsigned char value, size_t bytes)
{
	char *near;

	pthread_mutex_lock(&lock);
	near = near_of(at, bytes);
	if (near)
		memset(work_add(near, bytes, bytes)->kept, value, bytes);
	pthread_mutex_unlock(&lock);
	return near && depth ? 0 : ERROR_VALUE;
}

/* A copy from host memory takes the present bytes. */
static void copy(char *to, const char *from, size_t bytes, bool is_to_gpu, bool is_from_gpu)
{
	if (!is_to_gpu) {
		work_all();
		memmove(to, from, bytes);
	} else if (is_from_gpu) {
		work_add(to, bytes, 0)->from = from;
	} else {
		memcpy(work_add(to, bytes, bytes)->kept, from, bytes);
	}
}

int cuMemcpy(uint64_t to, uint64_t from, size_t bytes)
{
	char *near_to, *near_from;

	if (getenv("CUDA_STUB_BROKEN"))
		return ERROR_VALUE;
	pthread_mutex_lock(&lock);
	near_to = near_of(to, bytes);
	near_from = near_of(from, bytes);
	if (near_to && near_from && depth)
		copy(near_to, near_from, bytes, find_allocation(to), find_allocation(from));
	pthread_mutex_unlock(&lock);
	return near_to && near_from && depth ? 0 : ERROR_VALUE;
}

/* The CPU cannot map the dma-buf of a GPU out of reach. */
int cuMemGetHandleForAddressRange(void *handle, uint64_t at, size_t bytes, int type,
				  unsigned long long flags)
{
	const struct allocation *a;

	pthread_mutex_lock(&lock);
	a = find_allocation(at);
	if (a)
		*(int *)handle = is_reached() ? dup(a->fd) : eventfd(0, EFD_CLOEXEC);
	pthread_mutex_unlock(&lock);
	return a && type == 1 && !flags && bytes <= a->bytes ? 0 : ERROR_VALUE;
}

int cuFlushGPUDirectRDMAWrites(int target, int scope)
{
	return target || scope != 100 || !depth ? ERROR_VALUE : 0;
}

int cuGetErrorString(int status, const char **text)
{
	*text = status == ERROR_NO_DEVICE ? "no CUDA-capable device is detected" :
					    "invalid argument";
	return 0;
}

/* For a device that reaches the GPU. */
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access)
{
	if (!is_reached() || offset || fd < 0) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return (ibv_reg_mr)(pd, (void *)(uintptr_t)iova, length, access);
}
