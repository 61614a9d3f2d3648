/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Each file is replaced by a new one under its name: a reader without the lock sees the old or the
 * new contents, and so does a reader after a crash.
 */
#include "lib/pool/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/error.h"

#define FORMAT 1
#define TEXT_FLAGS (JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | \
		    JSON_C_TO_STRING_NOSLASHESCAPE)

static uint64_t member(struct json_object *object, const char *name)
{
	struct json_object *value;

	return json_object_object_get_ex(object, name, &value) ? json_object_get_uint64(value) : 0;
}

/* Takes the object @name out of @root, or makes an empty one. */
static struct json_object *take_object(struct json_object *root, const char *name)
{
	struct json_object *found;

	if (root && json_object_object_get_ex(root, name, &found) &&
	    json_object_is_type(found, json_type_object))
		return json_object_get(found);
	return json_object_new_object();
}

/* Reads a file of JSON. @root: receives NULL if there is no file. */
static int read_json(const char *path, struct json_object **root, struct weir_error *error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	*root = NULL;
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return weir_error_set(error, errno == EACCES ? -EPERM : -EIO, "%s: %s", path,
				      strerror(errno));
	*root = json_object_from_fd(fd);
	close(fd);
	if (*root && json_object_is_type(*root, json_type_object))
		return 0;
	json_object_put(*root);
	*root = NULL;
	return weir_error_set(error, -EPROTO,
			      "%s: not the file of a pool, or damaged: restore it or remove it",
			      path);
}

static int load_leases(const struct weir_pool_file *file, struct weir_pool_image *image,
		       struct weir_error *error)
{
	char path[PATH_MAX + 8];
	struct json_object *root, *boot;
	int rc;

	snprintf(path, sizeof(path), "%s.leases", file->path);
	rc = read_json(path, &root, error);
	if (rc)
		return rc;
	/* The host has started again, so that no holder of a lease is left. */
	if (root && (!json_object_object_get_ex(root, "boot", &boot) ||
		     strcmp(json_object_get_string(boot), file->boot))) {
		json_object_put(root);
		root = NULL;
	}
	image->leases = take_object(root, "leases");
	json_object_put(root);
	return 0;
}

int weir_pool_image_load(const struct weir_pool_file *file, struct weir_pool_image *image,
			 struct weir_error *error)
{
	struct json_object *root;
	int rc = read_json(file->path, &root, error);

	*image = (struct weir_pool_image){ 0 };
	if (rc)
		return rc;
	if (root && member(root, "weir_pool") != FORMAT) {
		json_object_put(root);
		return weir_error_set(error, -EPROTO,
				      "%s: not the file of a pool, or of another version of weir",
				      file->path);
	}
	image->revision = root ? member(root, "revision") : 0;
	image->keys = take_object(root, "keys");
	json_object_put(root);
	rc = load_leases(file, image, error);
	if (rc)
		weir_pool_image_free(image);
	return rc;
}

void weir_pool_image_free(struct weir_pool_image *image)
{
	json_object_put(image->keys);
	json_object_put(image->leases);
	*image = (struct weir_pool_image){ 0 };
}

static int write_all(int fd, const char *text)
{
	size_t left = strlen(text);

	while (left) {
		ssize_t written = write(fd, text, left);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return -1;
		text += written;
		left -= (size_t)written;
	}
	return 0;
}

static void sync_directory(const struct weir_pool_file *file)
{
	int fd = open(file->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)fsync(fd); /* some file systems cannot; the file itself is on the disk */
	close(fd);
}

/* Takes @root. */
static int replace(const struct weir_pool_file *file, const char *path, struct json_object *root,
		   bool to_disk, struct weir_error *error)
{
	char fresh[PATH_MAX + 16];
	int fd, failed;

	snprintf(fresh, sizeof(fresh), "%s.new", path);
	fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	failed = fd < 0 || write_all(fd, json_object_to_json_string_ext(root, TEXT_FLAGS)) ||
		 (to_disk && fsync(fd));
	failed = failed ? errno : 0;
	if (fd >= 0)
		close(fd);
	json_object_put(root);
	if (!failed && rename(fresh, path))
		failed = errno;
	if (failed) {
		unlink(fresh);
		return weir_error_set(error, failed == ENOSPC ? -ENOSPC : -EIO,
				      "%s: cannot write: %s; nothing has changed", path,
				      strerror(failed));
	}
	if (to_disk)
		sync_directory(file);
	return 0;
}

int weir_pool_image_store_keys(const struct weir_pool_file *file, struct weir_pool_image *image,
			       struct weir_error *error)
{
	struct json_object *root = json_object_new_object();

	json_object_object_add(root, "weir_pool", json_object_new_int(FORMAT));
	json_object_object_add(root, "revision", json_object_new_uint64(image->revision));
	json_object_object_add(root, "keys", json_object_get(image->keys));
	return replace(file, file->path, root, true, error);
}

int weir_pool_image_store_leases(const struct weir_pool_file *file, struct weir_pool_image *image,
				 struct weir_error *error)
{
	struct json_object *root = json_object_new_object();
	char path[PATH_MAX + 8];

	snprintf(path, sizeof(path), "%s.leases", file->path);
	json_object_object_add(root, "boot", json_object_new_string(file->boot));
	json_object_object_add(root, "leases", json_object_get(image->leases));
	return replace(file, path, root, false, error);
}

struct json_object *weir_pool_image_lease(const struct weir_pool_image *image, uint64_t lease,
					  uint64_t now_ms)
{
	struct json_object *found;
	char name[24];

	snprintf(name, sizeof(name), "%" PRIu64, lease);
	if (!json_object_object_get_ex(image->leases, name, &found) ||
	    member(found, "ends_ms") <= now_ms)
		return NULL;
	return found;
}

unsigned int weir_pool_image_expire(struct weir_pool_image *image, uint64_t now_ms)
{
	struct json_object_iter iter;
	struct json_object *left = json_object_new_object();
	unsigned int gone = 0;

	json_object_object_foreachC(image->keys, iter)
	{
		uint64_t lease = member(iter.val, "lease");

		if (lease && !weir_pool_image_lease(image, lease, now_ms))
			gone++;
		else
			json_object_object_add(left, iter.key, json_object_get(iter.val));
	}
	json_object_put(image->keys);
	image->keys = left;
	return gone;
}

uint64_t weir_pool_image_deadline_ms(const struct weir_pool_image *image, uint64_t now_ms)
{
	struct json_object_iter iter;
	uint64_t deadline_ms = UINT64_MAX;

	json_object_object_foreachC(image->keys, iter)
	{
		uint64_t lease = member(iter.val, "lease"), ends_ms;
		struct json_object *found;

		if (!lease)
			continue;
		found = weir_pool_image_lease(image, lease, now_ms);
		ends_ms = found ? member(found, "ends_ms") : now_ms;
		if (ends_ms < deadline_ms)
			deadline_ms = ends_ms;
	}
	return deadline_ms;
}
