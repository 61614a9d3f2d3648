/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A file server's state as bytes, and back: of a server whose host moves the bytes of files.
 *
 * Two servers with the same state have the same image. All servers loaded from an image give the
 * same answers to the same requests. The saved server may not: it may choose other blocks for a
 * new extent. So after saving, a server goes on from its own image.
 */
#ifndef WEIR_FSD_IMAGE_IMAGE_H
#define WEIR_FSD_IMAGE_IMAGE_H

#include "fsd/fsd.h"
#include "fsd/image/bytes.h"

/**
 * struct fsd_image_calls - how an image names requests waiting for a lock
 * @number: the number of a call
 * @call: the call of a client that waits, by the client's number in the server; NULL: there is none
 * @arg: passed to @call
 */
struct fsd_image_calls {
	uint64_t (*number)(const void *call);
	void *(*call)(void *arg, uint64_t client, uint64_t number);
	void *arg;
};

/* Appends the image. No request is deferred. Return: 0; -ENOMEM. */
int fsd_image_save(const struct fsd *fsd, const struct fsd_image_calls *calls,
		   struct fsd_bytes *image);

/**
 * fsd_image_load() - a server of an image
 * @host, @options: as for fsd_open()
 * @calls: makes the calls that wait
 * @image: receives the place after the image
 * @fsd: receives the server; the caller owes an fsd_close()
 *
 * Checks the state: extents lie apart from each other, each name leads to an inode, each inode has
 * as many names as it counts, directories are a tree, and a call waits for one lock.
 *
 * Return: 0; -ENOMEM; -EIO the image is damaged.
 */
int fsd_image_load(const struct fsd_host *host, const struct fsd_options *options,
		   const struct fsd_image_calls *calls, struct fsd_reader *image,
		   struct fsd **fsd);

#endif
