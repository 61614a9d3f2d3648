/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Volumes: a range of bytes over the memory of several donors. The bytes outlive any one donor.
 * The donors are a list, or those of a pool. A pool's volume outlives its client, too.
 *
 * A volume is cut into units of 256 KiB, which go round over extents at different donors, and each
 * extent has as many copies as the options say. A read or a write may begin and end anywhere. Whole
 * pages of 4 KiB move without a copy; a write of a part of a page reads the page first.
 *
 * Order: requests of one volume that share a page take effect in the order submitted, unless both
 * are reads. All others are unordered. A request is before another if its call returned before the
 * other call began.
 *
 * Completion: a write is done when every serving copy has it. A copy that missed the write, because
 * its donor failed, is taken out before the write is reported, and is never read again. Reads go
 * to another copy. So the death of a donor is a pause, not an error, while a copy is left. In the
 * background the volume asks other donors for memory, and fills new copies there. A donor that
 * comes back is empty, and is used again in the same way.
 *
 * Checksums: the volume keeps a keyed checksum of each page in this process's memory, 31 bits, so
 * 1 MiB for each GiB, and compares every read with the last write. A page that differs is read from
 * another copy, and the wrong copy is replaced. The key is random and never leaves this process. So
 * a donor, the network or another client that changes, exchanges or restores pages is noticed too,
 * except with a probability of 2^-31 a try. All of them can read the pages.
 *
 * What is not promised:
 *
 *	- The data of a list of donors end with weir_volume_close() and with this process, as for a
 *	  block device. No second process can open such a volume.
 *	- A failed write leaves old data, new data, or a mixture. All later reads agree on it.
 *	- The checksums are this process's. Of a pool's volume, a page that an earlier client wrote
 *	  has one from the copy that weir_volume_open() makes, or else from the next write.
 *	- If all donors of an extent die, its written pages are lost: reads end with -EIO, and never
 *	  with other bytes. After a discard of the whole extent it can be written again.
 *
 * A volume of a pool:
 *
 *	- One client has it open. The pool holds the claim by a lease. Its donors refuse a client of
 *	  an earlier claim: no late write of that client lands after the next opening.
 *	- Opening makes all copies equal: the last client may have died during writes. This
 *	  reads and writes each copy but one, in the background. A request waits for its extents
 *	  only, and these come first.
 *	- The map of the pool decides which copies serve. The client reports a donor that fails. A
 *	  write that missed a copy ends when the map shows that copy as out, or when a later try has
 *	  succeeded there. So a request waits while the pool waits for a donor.
 *	- If the map cannot be reached, requests go on. A failed donor is then a pause until the map
 *	  is back.
 *	- A client that is cut off from the map may lose the volume to another without notice. It
 *	  can then complete no write. It can read old bytes only from a donor that is cut off from
 *	  the others as well.
 *	- A discard writes zeroes, and no memory goes back to the donors.
 *	- With a code k+r, the copies of an extent are k + r parts, and any k are enough. A stripe
 *	  is 16 KiB in each of k parts. A failed write leaves each stripe old or new. A write of a
 *	  part of a stripe reads the rest and writes all: so a code suits writes of whole stripes.
 *	- A session holds at most 1024 regions, one for each copy of an extent at a donor. Give a
 *	  large volume large extents, by "weir pool volume create --extent".
 */
#ifndef WEIR_VOLUME_H
#define WEIR_VOLUME_H

#include <stddef.h>
#include <stdint.h>
#include <weir/error.h>
#include <weir/key.h>
#include <weir/request.h>
#include <weir/tuning.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_volume;

#define WEIR_VOLUME_COPIES_MAX 4
#define WEIR_VOLUME_DONORS_MAX 64

/* How to open a volume. Zero means the default, except where noted. */
struct weir_volume_options {
	size_t size; /* sizeof(struct weir_volume_options) */
	/* "host", "host:port" or "[v6]:port" of each donor; required. Each is another machine */
	const char *const *donors;
	unsigned int nr_donors; /* 1 to WEIR_VOLUME_DONORS_MAX; required */
	uint64_t bytes; /* size of the volume; required */
	/* copies of each extent, at most nr_donors; default 2, or 1 with one donor */
	unsigned int copies;
	const struct weir_key *key; /* as for a session; kept until close */
	const char *device; /* as for a session */
	unsigned int channels; /* QPs to each donor; default 2 */
	/*
	 * How long a donor may be silent: timeout of the sessions, and how long a write waits for
	 * memory; default 3 s, and in a pool two thirds of the pool's lease if that is less. A
	 * request to a donor that vanished takes up to twice as long: then the donor is out.
	 */
	uint64_t timeout_ns;
	/*
	 * A volume of a pool, POOL/VOLUME: "etcd:http://h1:2379,h2:2379/NAME/VOLUME",
	 * "file:PATH/VOLUME" or "pool:NAME/VOLUME". Then the pool says donors, bytes and copies,
	 * which must be 0 here. kept until close
	 */
	const char *volume;
	uint64_t encryption; /* enum weir_encryption, for donors on other hosts */
	const struct weir_session_tuning *tuning; /* of the sessions: weir/tuning.h; copied */
	/*
	 * The key to prove to a donor that refuses @key, while keys are being replaced: NULL: none;
	 * kept until close
	 */
	const struct weir_key *old_key;
};

/**
 * weir_volume_open() - borrow the memory of a volume of zeroes
 * @options: copied, except the key
 * @volume: receives the volume
 * @error: may be NULL
 *
 * Connects to all donors, and borrows all memory that the volume lacks. A pool's volume has the
 * bytes of its last client. The caller owes a weir_volume_close().
 *
 * Context: Any thread outside callbacks; sleeps.
 * Return: 0, or
 *	-EINVAL  an option is missing or out of range, or a donor is named twice;
 *	-ENODEV  encryption is required, and the device does not encrypt;
 *	-E2BIG   an option that this library does not know;
 *	-ENOSPC  the donors have too little memory;
 *	-ENOMEM  out of memory;
 *	-EBUSY   another client has the pool's volume open, or died within a lease: try again;
 *	-ENOENT  no such pool or volume;
 *	-EAGAIN  the pool has too few donors, or no coordinator yet;
 *	-ETIMEDOUT  a group waits for a donor, and nothing has changed for three leases;
 *	-EIO     a group of the pool has lost its data;
 *	-EOPNOTSUPP  the volume holds files, which 'weir mount' opens;
 *	or as weir_session_open() if a donor cannot be reached.
 */
int weir_volume_open(const struct weir_volume_options *options, struct weir_volume **volume,
		     struct weir_error *error);

/**
 * weir_volume_close() - end a volume, and with it the data, unless a pool has them
 * @volume: the volume; no call on it may be in progress
 *
 * Requests that wait for memory end with -ECANCELED; those at a donor end first. All callbacks
 * have returned when this call returns.
 *
 * Context: Any thread outside callbacks; sleeps, up to three timeouts if donors do not answer.
 */
void weir_volume_close(struct weir_volume *volume);

/**
 * weir_volume_read_async(), weir_volume_write_async() - move bytes
 * @volume: the volume
 * @offset, @length: in bytes, within the volume; @length at least 1
 * @buf: must stay valid, and unchanged by others, until completion: a write whose bytes change
 *	under way ends in copies that differ, which a later read detects
 * @done: called once with @arg and the status
 * @arg: passed to @done
 *
 * @done may be called before the call returns. Callbacks of one volume run one at a time, in any
 * thread. A callback may submit. It must not block, take a lock that a caller of weir holds, or
 * close the volume.
 *
 * Context: Any thread; does not block.
 * Return: 0 (exactly one completion follows), or no completion and
 *	-EINVAL  bad bounds;
 *	-ENOMEM  out of memory.
 *
 * Status of the completion: 0, or
 *	-EIO        no copy could be read, or none has the write; the extent may be lost;
 *	-ENOSPC     a write to discarded bytes, and no donor gives memory;
 *	-ENOMEM     out of memory, or over the locked-memory limit;
 *	-ECANCELED  the volume is being closed;
 *	-ESTALE     another client has opened the pool's volume: nothing succeeds any more;
 *	otherwise that of the last copy tried: see docs/reference/errors.md.
 */
int weir_volume_read_async(struct weir_volume *volume, uint64_t offset, void *buf, size_t length,
			   weir_done_fn *done, void *arg);
int weir_volume_write_async(struct weir_volume *volume, uint64_t offset, const void *buf,
			    size_t length, weir_done_fn *done, void *arg);

/**
 * weir_volume_discard_async() - turn bytes into zeroes
 * @volume: the volume
 * @offset, @length: in bytes, within the volume
 * @done, @arg: as for weir_volume_write_async()
 *
 * Memory of extents without other bytes goes back to the donors, except a reserve. Pools keep
 * the memory.
 *
 * Context: Any thread; does not block.
 * Return: as for weir_volume_write_async().
 */
int weir_volume_discard_async(struct weir_volume *volume, uint64_t offset, uint64_t length,
			      weir_done_fn *done, void *arg);

/*
 * Completes after all requests submitted before it, whatever their status. Later requests do not
 * wait for it. A completed write needs no flush. Context: any thread; does not block.
 * Return: as for weir_volume_write_async().
 */
int weir_volume_flush_async(struct weir_volume *volume, weir_done_fn *done, void *arg);

/* Blocking forms. Context: any thread outside callbacks; sleep. Return: the request's status. */
int weir_volume_read(struct weir_volume *volume, uint64_t offset, void *buf, size_t length);
int weir_volume_write(struct weir_volume *volume, uint64_t offset, const void *buf, size_t length);
int weir_volume_discard(struct weir_volume *volume, uint64_t offset, uint64_t length);
int weir_volume_flush(struct weir_volume *volume);

/* A volume's state and counters. */
struct weir_volume_info {
	size_t size; /* bytes that the library has written */
	uint64_t bytes;
	unsigned int copies, donors;
	unsigned int donors_up;
	uint64_t extent_bytes;
	uint32_t extents;
	uint32_t whole; /* extents with all copies */
	uint32_t lean; /* with at least one copy, but not all */
	uint32_t lost; /* whose data are lost */
	uint64_t copied_bytes; /* copied to new copies, since open */
	uint64_t failovers; /* reads tried again at another copy */
	uint64_t mismatches; /* reads whose checksum was wrong */
	uint64_t missed_writes; /* writes that a copy missed */
	uint64_t sessions; /* opened to donors since open: more than donors after failures */
	/* parts that are enough to read an extent: 1 copy, or k of a code k+r, of k + r "copies" */
	unsigned int data;
	uint64_t repaired_bytes; /* replaced at a pool's donors that returned wrong bytes */
};

/*
 * Reads a volume's state. @size: sizeof(*@info). Context: any thread outside callbacks; sleeps.
 * Return: 0; -EINVAL @size is too small.
 */
int weir_volume_info(struct weir_volume *volume, struct weir_volume_info *info, size_t size);

#ifdef __cplusplus
}
#endif
#endif
