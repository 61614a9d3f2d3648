/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The few driver functions needed are declared here, since few machines have the CUDA toolkit's
 * headers. Each call makes the primary context current while it runs: the caller's thread may
 * have another context, or none.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#include "lib/exchange/cuda.h"
#include "lib/base/error.h"

#define DRIVER "libcuda.so.1"
#define HANDLE_DMABUF 1 /* CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD */
#define ATTRIBUTE_WRITES_ORDERING 118 /* CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING */
#define ORDERING_OWNER 100 /* CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER */
#define ATTRIBUTE_SYNC_MEMOPS 6 /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS */
#define FLUSH_CURRENT 0 /* CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX */
#define FLUSH_TO_OWNER 100 /* CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER */

/**
 * struct weir_cuda - a GPU
 * @driver: handle of dlopen()
 * @device, @context: the driver's
 * @is_ordered: other devices' writes are in order for the GPU; no flush is needed
 */
struct weir_cuda {
	void *driver;
	int device;
	void *context;
	bool is_ordered;

	int (*init)(unsigned int flags);
	int (*device_get)(int *device, int ordinal);
	int (*attribute)(int *value, int attribute, int device);
	int (*retain)(void **context, int device);
	int (*release)(int device);
	int (*push)(void *context);
	int (*pop)(void **context);
	int (*alloc)(uint64_t *at, size_t bytes);
	int (*free)(uint64_t at);
	int (*mark)(const void *value, int attribute, uint64_t at);
	int (*set)(uint64_t at, unsigned char value, size_t bytes);
	int (*copy)(uint64_t to, uint64_t from, size_t bytes);
	int (*wait)(void *stream);
	int (*handle)(void *handle, uint64_t at, size_t bytes, int type, unsigned long long flags);
	int (*flush)(int target, int scope);
	int (*explain)(int status, const char **text);
};

static const char *explain(const struct weir_cuda *cuda, int status)
{
	const char *text = NULL;

	return !cuda->explain(status, &text) && text ? text : "an unknown error";
}

/* The optional functions exist in newer drivers only. */
static const char *find_all(struct weir_cuda *cuda)
{
	const struct {
		void *function;
		const char *name;
		bool is_optional;
	} wanted[] = {
		{ &cuda->init, "cuInit", false },
		{ &cuda->device_get, "cuDeviceGet", false },
		{ &cuda->attribute, "cuDeviceGetAttribute", false },
		{ &cuda->retain, "cuDevicePrimaryCtxRetain", false },
		{ &cuda->release, "cuDevicePrimaryCtxRelease_v2", false },
		{ &cuda->push, "cuCtxPushCurrent_v2", false },
		{ &cuda->pop, "cuCtxPopCurrent_v2", false },
		{ &cuda->alloc, "cuMemAlloc_v2", false },
		{ &cuda->free, "cuMemFree_v2", false },
		{ &cuda->mark, "cuPointerSetAttribute", false },
		{ &cuda->set, "cuMemsetD8_v2", false },
		{ &cuda->copy, "cuMemcpy", false },
		{ &cuda->wait, "cuStreamSynchronize", false },
		{ &cuda->explain, "cuGetErrorString", false },
		{ &cuda->handle, "cuMemGetHandleForAddressRange", true },
		{ &cuda->flush, "cuFlushGPUDirectRDMAWrites", true },
	};
	unsigned int i;

	for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		*(void **)wanted[i].function = dlsym(cuda->driver, wanted[i].name);
		if (!*(void **)wanted[i].function && !wanted[i].is_optional)
			return wanted[i].name;
	}
	return NULL;
}

static int hold(struct weir_cuda *cuda, unsigned int gpu, struct weir_error *error)
{
	int status = cuda->init(0), order = 0;

	if (status)
		return weir_error_set(error, -ENODEV,
				      "slots in a GPU's memory: the CUDA driver finds no GPU: %s",
				      explain(cuda, status));
	status = cuda->device_get(&cuda->device, (int)gpu);
	if (!status)
		status = cuda->retain(&cuda->context, cuda->device);
	if (status) {
		cuda->context = NULL;
		return weir_error_set(error, -ENODEV, "slots in the memory of GPU %u: %s", gpu,
				      explain(cuda, status));
	}
	cuda->is_ordered = !cuda->attribute(&order, ATTRIBUTE_WRITES_ORDERING, cuda->device) &&
			   order >= ORDERING_OWNER;
	return 0;
}

int weir_cuda_open(unsigned int gpu, struct weir_cuda **out, struct weir_error *error)
{
	struct weir_cuda *cuda = calloc(1, sizeof(*cuda));
	const char *missing;
	int rc;

	if (!cuda)
		return weir_error_set(error, -ENOMEM, "out of memory");
	cuda->driver = dlopen(DRIVER, RTLD_NOW | RTLD_LOCAL);
	if (!cuda->driver) {
		rc = weir_error_set(error, -ENODEV,
				    "slots in a GPU's memory need the CUDA driver, which cannot "
				    "be loaded: %s; without a GPU, use slots in host memory",
				    dlerror());
	} else {
		missing = find_all(cuda);
		rc = missing ? weir_error_set(error, -ENODEV,
					      DRIVER " has no %s: install a newer CUDA driver",
					      missing) :
			       hold(cuda, gpu, error);
	}
	if (rc)
		weir_cuda_close(cuda);
	else
		*out = cuda;
	return rc;
}

void weir_cuda_close(struct weir_cuda *cuda)
{
	if (!cuda)
		return;
	if (cuda->context)
		cuda->release(cuda->device);
	if (cuda->driver)
		dlclose(cuda->driver);
	free(cuda);
}

static int leave(struct weir_cuda *cuda, int status)
{
	void *context;

	cuda->pop(&context);
	return status;
}

static int enter(struct weir_cuda *cuda)
{
	return cuda->push(cuda->context);
}

/*
 * SYNC_MEMOPS: the user's own copies are synchronous, too, because other devices access the
 * memory.
 */
static int allocate(struct weir_cuda *cuda, uint64_t *base, size_t bytes)
{
	const unsigned int on = 1;
	int status = cuda->alloc(base, bytes);

	if (!status)
		status = cuda->mark(&on, ATTRIBUTE_SYNC_MEMOPS, *base);
	if (!status)
		status = cuda->set(*base, 0, bytes);
	return status ? status : cuda->wait(NULL);
}

int weir_cuda_alloc(struct weir_cuda *cuda, size_t bytes, struct weir_cuda_memory *memory,
		    struct weir_error *error)
{
	int status = enter(cuda);

	memory->base = 0;
	if (!status) {
		status = allocate(cuda, &memory->base, bytes + WEIR_CUDA_ALIGN);
		leave(cuda, status);
	}
	if (status) {
		weir_cuda_free(cuda, memory);
		return weir_error_set(error, -ENOMEM, "the GPU has no %zu bytes for slots: %s",
				      bytes, explain(cuda, status));
	}
	memory->at =
		(char *)((memory->base + WEIR_CUDA_ALIGN - 1) / WEIR_CUDA_ALIGN * WEIR_CUDA_ALIGN);
	return 0;
}

void weir_cuda_free(struct weir_cuda *cuda, struct weir_cuda_memory *memory)
{
	if (memory->base && !enter(cuda))
		leave(cuda, cuda->free(memory->base));
	*memory = (struct weir_cuda_memory){ 0 };
}

/*
 * Copies within a GPU, and some of pageable memory, return before they are done: see the
 * driver's documentation, "API synchronization behavior". They run in the default stream, so
 * wait for that.
 */
int weir_cuda_copy(struct weir_cuda *cuda, void *to, const void *from, size_t bytes)
{
	int status;

	if (!bytes)
		return 0;
	if (enter(cuda))
		return -EIO;
	status = cuda->copy((uintptr_t)to, (uintptr_t)from, bytes);
	if (!status)
		status = cuda->wait(NULL);
	return leave(cuda, status) ? -EIO : 0;
}

int weir_cuda_dmabuf(struct weir_cuda *cuda, const struct weir_cuda_memory *memory, size_t bytes)
{
	int fd = -1;

	if (!cuda->handle || (!cuda->is_ordered && !cuda->flush) || enter(cuda))
		return -EOPNOTSUPP;
	if (leave(cuda, cuda->handle(&fd, (uintptr_t)memory->at, bytes, HANDLE_DMABUF, 0)))
		return -EOPNOTSUPP;
	return fd;
}

int weir_cuda_flush(struct weir_cuda *cuda)
{
	if (cuda->is_ordered)
		return 0;
	if (!cuda->flush || enter(cuda))
		return -EIO;
	return leave(cuda, cuda->flush(FLUSH_CURRENT, FLUSH_TO_OWNER)) ? -EIO : 0;
}
