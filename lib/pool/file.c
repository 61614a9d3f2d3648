/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A store in a file, shared by processes of one host. Each change reads the file under a lock,
 * and replaces the file. Leases end by the host's clock, which all its processes share. The first
 * process that reads the file after a lease has ended removes the keys of that lease.
 */
#include "lib/pool/file.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <libgen.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/pool/lock_file.h"

static struct weir_pool_file *file_of(struct weir_pool_store *store)
{
	return (struct weir_pool_file *)store;
}

/* The clock of leases: the same in all processes, and it goes on while the host sleeps. */
static uint64_t boot_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / WEIR_NS_PER_MS;
}

/* Reads the file under the lock, without the keys of ended leases. */
static int load_locked(struct weir_pool_file *file, struct weir_pool_image *image, int *fd,
		       struct weir_error *error)
{
	int rc;

	*fd = weir_lock_file_take(file->path, 0666, error);
	if (*fd < 0)
		return *fd;
	rc = weir_pool_image_load(file, image, error);
	if (!rc && weir_pool_image_expire(image, boot_ms())) {
		image->revision++;
		rc = weir_pool_image_store_keys(file, image, error);
		if (rc)
			weir_pool_image_free(image);
	}
	if (rc)
		close(*fd);
	return rc;
}

static void unlock(struct weir_pool_image *image, int fd)
{
	weir_pool_image_free(image);
	close(fd);
}

/*
 * Reads the file. A reader that finds ended leases removes their keys for all. A reader who may not
 * write just leaves the keys out.
 */
static int load(struct weir_pool_file *file, struct weir_pool_image *image,
		struct weir_error *error)
{
	int fd, rc = weir_pool_image_load(file, image, error);

	if (rc || !weir_pool_image_expire(image, boot_ms()))
		return rc;
	if (access(file->directory, W_OK))
		return 0;
	weir_pool_image_free(image);
	rc = load_locked(file, image, &fd, error);
	if (!rc)
		close(fd);
	return rc;
}

static void file_close(struct weir_pool_store *store)
{
	struct weir_pool_file *file = file_of(store);

	if (file->watch >= 0)
		close(file->watch);
	free(file);
}

static uint64_t uint_in(struct json_object *object, const char *name)
{
	struct json_object *value;

	return json_object_object_get_ex(object, name, &value) ? json_object_get_uint64(value) : 0;
}

static int file_list(struct weir_pool_store *store, const char *prefix,
		     struct weir_pool_listing *listing, struct weir_error *error)
{
	struct weir_pool_image image;
	struct json_object_iter iter;
	struct json_object *value;
	int rc = load(file_of(store), &image, error);

	if (rc)
		return rc;
	listing->revision = image.revision;
	json_object_object_foreachC(image.keys, iter)
	{
		if (rc || strncmp(iter.key, prefix, strlen(prefix)) ||
		    !json_object_object_get_ex(iter.val, "value", &value))
			continue;
		rc = weir_pool_listing_add(listing, iter.key, json_object_get_string(value),
					   uint_in(iter.val, "version"));
	}
	weir_pool_image_free(&image);
	return rc ? weir_error_set(error, rc, "out of memory") : 0;
}

static uint64_t version_of(const struct weir_pool_image *image, const char *key)
{
	struct json_object *entry;

	return json_object_object_get_ex(image->keys, key, &entry) ? uint_in(entry, "version") : 0;
}

static int check_versions(const struct weir_pool_image *image, const struct weir_pool_put *put,
			  struct weir_error *error)
{
	if (put->expected != WEIR_POOL_ANY_VERSION && version_of(image, put->key) != put->expected)
		return weir_error_set(error, -EAGAIN, "%s: somebody else has changed it",
				      put->key);
	if (put->guard && version_of(image, put->guard) != put->guard_version)
		return weir_error_set(error, -EAGAIN, "%s: somebody else has changed it",
				      put->guard);
	if (put->lease && !weir_pool_image_lease(image, put->lease, boot_ms()))
		return weir_error_set(error, -ESTALE, "%s: the lease is over", put->key);
	return 0;
}

static void set_key(struct weir_pool_image *image, const struct weir_pool_put *put)
{
	struct json_object *entry;

	image->revision++;
	json_object_object_del(image->keys, put->key);
	if (!put->value)
		return;
	entry = json_object_new_object();
	json_object_object_add(entry, "value", json_object_new_string(put->value));
	json_object_object_add(entry, "version", json_object_new_uint64(image->revision));
	if (put->lease)
		json_object_object_add(entry, "lease", json_object_new_uint64(put->lease));
	json_object_object_add(image->keys, put->key, entry);
}

static int file_put(struct weir_pool_store *store, const struct weir_pool_put *put,
		    uint64_t *version, struct weir_error *error)
{
	struct weir_pool_image image;
	int fd, rc = load_locked(file_of(store), &image, &fd, error);

	if (rc)
		return rc;
	rc = check_versions(&image, put, error);
	if (!rc) {
		set_key(&image, put);
		*version = image.revision;
		rc = weir_pool_image_store_keys(file_of(store), &image, error);
	}
	unlock(&image, fd);
	return rc;
}

/* Gives the lease its full length from now on. */
static void prolong(struct weir_pool_image *image, uint64_t lease, uint64_t ttl_ms)
{
	struct json_object *entry = json_object_new_object();
	char name[24];

	snprintf(name, sizeof(name), "%" PRIu64, lease);
	json_object_object_add(entry, "ttl_ms", json_object_new_uint64(ttl_ms));
	json_object_object_add(entry, "ends_ms", json_object_new_uint64(boot_ms() + ttl_ms));
	json_object_object_add(image->leases, name, entry);
}

/* Leaves out ended leases, whose keys are gone. */
static void drop_ended(struct weir_pool_image *image)
{
	struct json_object *left = json_object_new_object();
	struct json_object_iter iter;

	json_object_object_foreachC(image->leases, iter)
	{
		if (uint_in(iter.val, "ends_ms") > boot_ms())
			json_object_object_add(left, iter.key, json_object_get(iter.val));
	}
	json_object_put(image->leases);
	image->leases = left;
}

static int file_grant(struct weir_pool_store *store, uint32_t ttl_ms, uint64_t *lease,
		      struct weir_error *error)
{
	struct weir_pool_image image;
	uint64_t number;
	int fd, rc = load_locked(file_of(store), &image, &fd, error);

	if (rc)
		return rc;
	drop_ended(&image);
	do {
		randombytes_buf(&number, sizeof(number));
		number >>= 1; /* as etcd's, and as JSON's numbers */
	} while (!number || weir_pool_image_lease(&image, number, 0));
	prolong(&image, number, ttl_ms);
	rc = weir_pool_image_store_leases(file_of(store), &image, error);
	if (!rc)
		*lease = number;
	unlock(&image, fd);
	return rc;
}

static int file_keep(struct weir_pool_store *store, uint64_t lease, struct weir_error *error)
{
	struct weir_pool_image image;
	struct json_object *entry;
	int fd, rc = load_locked(file_of(store), &image, &fd, error);

	if (rc)
		return rc;
	entry = weir_pool_image_lease(&image, lease, boot_ms());
	if (entry) {
		prolong(&image, lease, uint_in(entry, "ttl_ms"));
		rc = weir_pool_image_store_leases(file_of(store), &image, error);
	} else {
		rc = weir_error_set(error, -ESTALE, "the lease is over");
	}
	unlock(&image, fd);
	return rc;
}

static int file_revoke(struct weir_pool_store *store, uint64_t lease, struct weir_error *error)
{
	struct weir_pool_image image;
	char name[24];
	int fd, rc = load_locked(file_of(store), &image, &fd, error);

	if (rc)
		return rc;
	if (!weir_pool_image_lease(&image, lease, boot_ms())) {
		unlock(&image, fd);
		return weir_error_set(error, -ESTALE, "the lease is over");
	}
	snprintf(name, sizeof(name), "%" PRIu64, lease);
	json_object_object_del(image.leases, name);
	rc = weir_pool_image_store_leases(file_of(store), &image, error);
	if (!rc && weir_pool_image_expire(&image, boot_ms())) {
		image.revision++;
		rc = weir_pool_image_store_keys(file_of(store), &image, error);
	}
	unlock(&image, fd);
	return rc;
}

static int begin_watch(struct weir_pool_file *file, struct weir_error *error)
{
	if (file->watch >= 0)
		return 0;
	file->watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (file->watch >= 0 &&
	    inotify_add_watch(file->watch, file->directory, IN_MOVED_TO | IN_DELETE) >= 0)
		return 0;
	if (file->watch >= 0)
		close(file->watch);
	file->watch = -1;
	return weir_error_set(error, -EIO,
			      "%s: cannot watch: %s; raise fs.inotify.max_user_instances",
			      file->directory, strerror(errno));
}

static void forget_events(int watch)
{
	char events[4096];

	while (read(watch, events, sizeof(events)) > 0)
		;
}

static int file_wait(struct weir_pool_store *store, uint64_t revision, unsigned int timeout_ms,
		     struct weir_error *error)
{
	struct weir_pool_file *file = file_of(store);
	uint64_t until_ms = boot_ms() + timeout_ms, now_ms, ends_ms;
	int rc = begin_watch(file, error);

	while (!rc) {
		struct pollfd ready = { .fd = file->watch, .events = POLLIN };
		struct weir_pool_image image;
		bool has_changed;

		forget_events(file->watch);
		rc = load(file, &image, error);
		if (rc)
			break;
		now_ms = boot_ms();
		ends_ms = weir_pool_image_deadline_ms(&image, now_ms);
		has_changed = image.revision != revision;
		weir_pool_image_free(&image);
		if (has_changed)
			return 0;
		if (now_ms >= until_ms)
			return weir_error_set(error, -ETIMEDOUT, "nothing has changed");
		if (ends_ms > until_ms)
			ends_ms = until_ms;
		poll(&ready, 1, ends_ms > now_ms ? (int)(ends_ms - now_ms) : 1);
	}
	return rc;
}

static const struct weir_pool_backend file_backend = {
	.close = file_close,
	.list = file_list,
	.put = file_put,
	.grant = file_grant,
	.keep = file_keep,
	.revoke = file_revoke,
	.wait = file_wait,
};

static void read_boot(char *text, size_t size)
{
	FILE *from = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (!from || !fgets(text, (int)size, from))
		snprintf(text, size, "unknown");
	if (from)
		fclose(from);
	text[strcspn(text, "\n")] = '\0';
}

static int set_paths(struct weir_pool_file *file, const char *where, struct weir_error *error)
{
	const char *slash, *name;
	char folder[PATH_MAX];

	if (!*where || strlen(where) >= PATH_MAX - 32 || where[strlen(where) - 1] == '/')
		return weir_error_set(error, -EINVAL, "file:%s: expected the path of a file",
				      where);
	snprintf(folder, sizeof(folder), "%s", where);
	if (!realpath(dirname(folder), file->directory))
		return weir_error_set(error, -ENOENT, "file:%s: the folder: %s", where,
				      strerror(errno));
	slash = strrchr(where, '/');
	name = slash ? slash + 1 : where;
	if (!weir_pool_map_is_name(name))
		return weir_error_set(error, -EINVAL,
				      "file:%s: the file's name is the pool's: up to 63 letters, "
				      "digits and . _ -",
				      where);
	snprintf(file->store.name, sizeof(file->store.name), "%s", name);
	if ((size_t)snprintf(file->path, sizeof(file->path), "%s/%s", file->directory,
			     file->store.name) >= sizeof(file->path) - 32)
		return weir_error_set(error, -EINVAL, "file:%s: the path is too long", where);
	return 0;
}

int weir_pool_file_open(const char *where, struct weir_pool_store **store,
			struct weir_error *error)
{
	struct weir_pool_file *file = calloc(1, sizeof(*file));
	int rc;

	if (!file)
		return weir_error_set(error, -ENOMEM, "out of memory");
	file->store.backend = &file_backend;
	file->watch = -1;
	rc = set_paths(file, where, error);
	if (rc) {
		free(file);
		return rc;
	}
	read_boot(file->boot, sizeof(file->boot));
	*store = &file->store;
	return 0;
}
