/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The mark of a sealed tree. */
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "apps/common/cmd.h"
#include "apps/mount/donor/call.h"
#include "apps/mount/sealed/sealed.h"
#include "core/base/platform.h"
#include "lib/base/clock.h"
#include "lib/conn/key.h"

#define MARK_VERSION 1
#define SALT 16u
#define LOOK_US 50000u /* between looks for the end of other mounts */
#define BUFFERS_BESIDE 8u /* more than receiving threads, of which some are added later */

struct mark {
	uint32_t version;
	uint32_t zero;
	uint8_t salt[SALT];
	uint8_t mac[WEIR_SLOT_STATE_MAC]; /* over all before it, by the tree's keys */
};

_Static_assert(sizeof(struct mark) == 56, "the mark has no padding");

/* Return: 0; -ENODATA: no mark; -EPROTO: another weir's; or an errno. */
static int fetch_mark(struct mount *m, struct mark *mark)
{
	struct donor_message q;
	struct donor_reply reply;
	int rc;

	call_begin(&q, FS_GETXATTR, FS_ROOT, sizeof(struct wire_fs_head), NULL);
	rc = call_add_name(&q, SEALED_MARK);
	if (!rc)
		rc = call(m, &q, &reply, 0);
	if (rc)
		return rc;
	if (reply.length != sizeof(reply.head) + sizeof(*mark))
		return -EPROTO;
	memcpy(mark, call_reply_body(&reply), sizeof(*mark));
	return mark->version == MARK_VERSION ? 0 : -EPROTO;
}

static int remove_mark(struct mount *m)
{
	struct donor_message q;
	struct donor_reply reply;
	int rc;

	call_begin(&q, FS_REMOVEXATTR, FS_ROOT, sizeof(struct wire_fs_head), NULL);
	rc = call_add_name(&q, SEALED_MARK);
	return rc ? rc : call_change(m, &q, &reply, sizeof(struct wire_fs_attr));
}

/* Return: 0; -EBUSY: another client has come; or an errno. */
static int store_mark(struct mount *m, const struct mark *mark)
{
	struct donor_message q;
	struct donor_reply reply;
	struct wire_fs_xattr *set =
		call_begin(&q, FS_SETXATTR, FS_ROOT, sizeof(struct wire_fs_xattr), NULL);
	int rc = call_add_name(&q, SEALED_MARK);

	set->flags = XATTR_CREATE;
	set->value_length = sizeof(*mark);
	if (!rc)
		rc = call_add_bytes(&q, mark, sizeof(*mark));
	if (!rc)
		rc = call_change(m, &q, &reply, sizeof(struct wire_fs_attr));
	if (rc || !reply.head.shared)
		return rc;
	rc = remove_mark(m); /* the other may have seen none, and write plaintext */
	return rc ? rc : -EBUSY;
}

/* Return: the keys of the tree with this salt; NULL: no memory. */
static struct weir_sealed_keys *derive_keys(const struct weir_key *key, const struct mark *mark)
{
	char name[sizeof("files ") + 2 * SALT] = "files ";

	sodium_bin2hex(name + strlen(name), 2 * SALT + 1, mark->salt, SALT);
	return weir_slot_keys_new(key, name);
}

static void mac_of(const struct weir_sealed_keys *keys, const struct mark *mark, uint8_t *mac)
{
	weir_slot_mac_state(keys, mark, offsetof(struct mark, mac), mac);
}

/* Marks an empty tree. */
static int make_mark(struct mount *m, const struct weir_key *key, struct weir_sealed_keys **keys)
{
	struct mark mark = { .version = MARK_VERSION };

	randombytes_buf(mark.salt, sizeof(mark.salt));
	*keys = derive_keys(key, &mark);
	if (!*keys)
		return -ENOMEM;
	mac_of(*keys, &mark, mark.mac);
	return store_mark(m, &mark);
}

/* Return: 0; -EKEYREJECTED: another key; -ENOMEM. */
static int check_mark(const struct weir_key *key, const struct mark *mark,
		      struct weir_sealed_keys **keys)
{
	uint8_t mac[WEIR_SLOT_STATE_MAC];

	*keys = derive_keys(key, mark);
	if (!*keys)
		return -ENOMEM;
	mac_of(*keys, mark, mac);
	return sodium_memcmp(mac, mark->mac, sizeof(mac)) ? -EKEYREJECTED : 0;
}

/*
 * A tree is sealed from its first file on, or never. Return: 0, with the tree's keys; -ENODATA: the
 * tree is empty and has no mark; -ENOTEMPTY; or another errno.
 */
static int find_keys(struct mount *m, const struct weir_key *key, const struct wire_fs_attr *root,
		     struct weir_sealed_keys **keys)
{
	struct mark mark;
	int rc = fetch_mark(m, &mark);

	if (rc == -ENODATA && root->size)
		return -ENOTEMPTY;
	return rc ? rc : check_mark(key, &mark, keys);
}

/*
 * Waits for the end of other mounts: the donor may still have to notice that a client was killed.
 * @root: receives the root's attributes. Return: 0; -EBUSY; or an errno.
 */
static int wait_until_alone(struct mount *m, struct wire_fs_attr *root)
{
	uint64_t end_ns = weir_now_ns() + m->options->timeout * WEIR_NS_PER_S;
	struct donor_message q;
	struct donor_reply reply;
	int rc;

	mount_log(WEIR_LOG_WARNING,
		  "waits donor=%s id=W504: another client has mounted it, and sealed files are for "
		  "one mount at a time: waiting for its end, up to %u seconds",
		  m->options->donor, m->options->timeout);
	do {
		usleep(LOOK_US);
		call_begin(&q, FS_GETATTR, FS_ROOT, sizeof(struct wire_fs_head), NULL);
		rc = call(m, &q, &reply, sizeof(*root));
		if (rc)
			return rc;
	} while (reply.head.shared && weir_now_ns() < end_ns);
	memcpy(root, call_reply_body(&reply), sizeof(*root));
	return reply.head.shared ? -EBUSY : 0;
}

/* Finds or makes the mark of a tree that no other client has mounted. @is_new: made. */
static int join_alone(struct mount *m, const struct weir_key *key,
		      const struct wire_fs_mounted *mounted, struct weir_sealed_keys **keys,
		      bool *is_new)
{
	struct wire_fs_attr root = mounted->root;
	int rc = find_keys(m, key, &root, keys);

	if (mounted->reply.shared && (!rc || rc == -ENODATA)) {
		weir_slot_keys_free(*keys); /* the mark may change until the others have left */
		*keys = NULL;
		rc = wait_until_alone(m, &root);
		if (!rc)
			rc = find_keys(m, key, &root, keys);
	}
	*is_new = rc == -ENODATA;
	return *is_new ? make_mark(m, key, keys) : rc;
}

static int explain(const struct mount *m, int rc)
{
	const struct mount_options *o = m->options;

	switch (rc) {
	case -EBUSY:
		return failure(o->cmd,
			       "another client has mounted %s: sealed files are for one mount at "
			       "a time, so unmount it there first",
			       o->donor);
	case -ENOTEMPTY:
		return failure(o->cmd,
			       "%s has files that are not sealed: mount it without --seal, or "
			       "begin with an empty donor",
			       o->donor);
	case -EKEYREJECTED:
		return failure(o->cmd, "the files of %s are sealed by another key than %s",
			       o->donor, o->seal_path);
	case -EPROTO:
		return failure(o->cmd, "the files of %s are sealed by another version of weir",
			       o->donor);
	default:
		return failure(o->cmd, "cannot tell whether the files of %s are sealed: %s",
			       o->donor, strerror(-rc));
	}
}

static int refuse_sealed_tree(struct mount *m, const struct wire_fs_attr *root)
{
	struct mark mark;
	int rc = root->flags & FS_ATTR_PLAIN ? -ENODATA : fetch_mark(m, &mark);

	if (rc == -ENODATA)
		return EXIT_OK;
	if (rc && rc != -EPROTO)
		return explain(m, rc);
	return failure(m->options->cmd, "the files of %s are sealed: give the key with --seal FILE",
		       m->options->donor);
}

static int load_key(const struct mount *m, struct weir_key **key)
{
	const struct mount_options *o = m->options;
	struct weir_error error;

	if (m->is_pool)
		return failure(o->cmd, "--seal: the files of a pool's volume cannot be sealed");
	if (weir_key_load(o->seal_path, key, &error))
		return failure(o->cmd, "%s", error.text);
	if (m->key && weir_key_same(*key, m->key)) {
		weir_key_free(*key);
		return failure(o->cmd,
			       "--seal: the donor knows %s, because it is also the --key: make "
			       "another with 'weir key new'",
			       o->seal_path);
	}
	return EXIT_OK;
}

/* The words for a state that does not know all that was there. */
static void tell_age(const struct mount *m, enum seal_state_age age, int64_t saved)
{
	const char *path = m->options->seal_state_path;
	struct tm tm = { 0 };
	time_t time = (time_t)saved;
	char text[32];

	if (age == SEAL_STATE_NEW)
		mount_log(WEIR_LOG_WARNING,
			  "no state file=%s id=W508: this mount trusts the first contents of each "
			  "block; the next mount will know them",
			  path);
	if (age != SEAL_STATE_OLD)
		return;
	strftime(text, sizeof(text), "%F %T %z", localtime_r(&time, &tm));
	mount_log(WEIR_LOG_WARNING,
		  "old state file=%s saved=\"%s\" id=W509: the last mount has not ended in order; "
		  "the donor could put blocks back that were written after this time",
		  path, text);
}

static int open_state(struct mount *m, bool is_new_tree)
{
	const struct mount_options *o = m->options;
	struct sealed_tree *tree = m->sealed;
	enum seal_state_age age;
	struct weir_error error;
	int64_t saved = 0;

	if (!o->seal_state_path)
		return EXIT_OK;
	if (seal_state_open(o->seal_state_path, tree->keys, &tree->seen, &tree->state, &age,
			    &saved, &error))
		return failure(o->cmd, "--seal-state: %s", error.text);
	if (age != SEAL_STATE_NEW || !is_new_tree)
		tell_age(m, age, saved);
	return EXIT_OK;
}

int sealed_join(struct mount *m, const struct wire_fs_mounted *mounted)
{
	const struct mount_options *o = m->options;
	struct weir_error error;
	struct sealed_tree *tree;
	struct weir_key *key;
	bool is_new = false;
	int rc;

	if (!o->seal_path)
		return m->is_pool ? EXIT_OK : refuse_sealed_tree(m, &mounted->root);
	rc = load_key(m, &key);
	if (rc)
		return rc;
	tree = m->sealed = calloc(1, sizeof(*tree));
	rc = tree ? join_alone(m, key, mounted, &tree->keys, &is_new) : -ENOMEM;
	weir_key_free(key);
	if (rc)
		return explain(m, rc);
	randombytes_buf(tree->writer, sizeof(tree->writer));
	tree->cipher = weir_slot_supports(WEIR_SEALED_AES256_GCM) ? WEIR_SEALED_AES256_GCM :
								    WEIR_SEALED_XCHACHA20_POLY1305;
	seen_init(&tree->seen);
	if (weir_pool_create(m->session, SEALED_BUFFER, o->threads + BUFFERS_BESIDE, &tree->pool,
			     &error))
		return failure(o->cmd, "%s", error.text);
	return open_state(m, is_new);
}

void sealed_leave(struct mount *m)
{
	struct sealed_tree *tree = m->sealed;

	int rc;

	if (!tree)
		return;
	rc = seal_state_close(tree->state);
	if (rc)
		mount_log(WEIR_LOG_ERROR, "state not written file=%s id=W510: %s",
			  m->options->seal_state_path, strerror(-rc));
	weir_pool_destroy(tree->pool);
	weir_slot_keys_free(tree->keys);
	seen_fini(&tree->seen);
	free(tree);
	m->sealed = NULL;
}

void sealed_warned(struct mount *m)
{
	if (!m->sealed || m->sealed->told)
		return;
	m->sealed->told = true;
	mount_log(WEIR_LOG_WARNING,
		  "second client donor=%s id=W505: another client has come; sealed files are for "
		  "one mount at a time, and it is refused, unless its weir does not know them and "
		  "damages files",
		  m->options->donor);
}
