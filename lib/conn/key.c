/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/conn/key.h"

#define KEY_NEW 32 /* random bytes of a new key; twice as many hexadecimal digits in the file */

static const char id_label[] = "weir-1 key id";

/* Reads up to @size bytes. Return: the number of bytes, or a negative errno. */
static ssize_t read_all(int fd, void *buf, size_t size)
{
	size_t done = 0;
	ssize_t n;

	while (done < size) {
		n = read(fd, (char *)buf + done, size - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		done += n;
	}
	return done;
}

int weir_key_check_file(int fd, const char *path, struct weir_error *error)
{
	struct stat st;

	if (fstat(fd, &st))
		return weir_error_set(error, -errno, "key file %s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return weir_error_set(error, -EINVAL, "key file %s is not a regular file", path);
	if (st.st_uid && st.st_uid != geteuid())
		return weir_error_set(
			error, -EACCES,
			"key file %s belongs to user %u, who may change it: chown it to "
			"user %u or root",
			path, st.st_uid, geteuid());
	if (st.st_mode & 077)
		return weir_error_set(error, -EACCES,
				      "key file %s has mode %04o: others may read it; chmod 600 it",
				      path, st.st_mode & 07777);
	return 0;
}

int weir_key_load(const char *path, struct weir_key **key, struct weir_error *error)
{
	uint8_t bytes[WEIR_KEY_MAX + 2]; /* for the newline, and to detect a longer key */
	struct weir_key *k;
	ssize_t length;
	int fd, rc;

	/* O_NONBLOCK: a FIFO must be refused without waiting for a writer. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return weir_error_set(error, -errno, "key file %s: %s", path, strerror(errno));
	rc = weir_key_check_file(fd, path, error);
	if (rc)
		goto out_close;
	length = read_all(fd, bytes, sizeof(bytes));
	if (length < 0) {
		rc = weir_error_set(error, length, "key file %s: %s", path, strerror(-length));
		goto out_close;
	}
	if (length && bytes[length - 1] == '\n')
		length--;
	if (length < WEIR_KEY_MIN || length > WEIR_KEY_MAX) {
		rc = weir_error_set(error, -EINVAL,
				    "key file %s holds %s%zd bytes; a key has %d to %d", path,
				    length > WEIR_KEY_MAX ? "at least " : "", length, WEIR_KEY_MIN,
				    WEIR_KEY_MAX);
		goto out_wipe;
	}
	k = malloc(sizeof(*k));
	if (!k) {
		rc = weir_error_set(error, -ENOMEM, "key file %s: out of memory", path);
		goto out_wipe;
	}
	k->length = length;
	memcpy(k->bytes, bytes, length);
	*key = k;
out_wipe:
	sodium_memzero(bytes, sizeof(bytes));
out_close:
	close(fd);
	return rc;
}

int weir_key_create(const char *path, struct weir_error *error)
{
	char digits[2 * KEY_NEW + 1];
	uint8_t bytes[KEY_NEW];
	ssize_t n;
	int fd, rc = 0;

	if (sodium_init() < 0)
		return weir_error_set(error, -EIO, "no source of random numbers");
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return weir_error_set(error, -errno, "key file %s: %s", path, strerror(errno));
	randombytes_buf(bytes, sizeof(bytes));
	sodium_bin2hex(digits, sizeof(digits), bytes, sizeof(bytes));
	digits[2 * KEY_NEW] = '\n';
	n = write(fd, digits, sizeof(digits));
	if (n == sizeof(digits) && !fsync(fd))
		goto out;
	rc = weir_error_set(error, n < 0 || n == sizeof(digits) ? -errno : -ENOSPC,
			    "key file %s: could not be written", path);
	unlink(path);
out:
	sodium_memzero(bytes, sizeof(bytes));
	sodium_memzero(digits, sizeof(digits));
	close(fd);
	return rc;
}

void weir_key_free(struct weir_key *key)
{
	if (!key)
		return;
	sodium_memzero(key, sizeof(*key));
	free(key);
}

uint64_t weir_key_id(const struct weir_key *key)
{
	crypto_hash_sha256_state state;
	uint8_t hash[crypto_hash_sha256_BYTES];
	uint64_t id;

	crypto_hash_sha256_init(&state);
	crypto_hash_sha256_update(&state, (const uint8_t *)id_label, sizeof(id_label));
	if (key)
		crypto_hash_sha256_update(&state, key->bytes, key->length);
	crypto_hash_sha256_final(&state, hash);
	memcpy(&id, hash, sizeof(id));
	return id;
}

void weir_key_mac(const struct weir_key *key, const struct iovec *pieces, int nr_pieces,
		  uint8_t mac[static WIRE_MAC])
{
	static const uint8_t none[1];
	crypto_auth_hmacsha256_state state;
	int i;

	static_assert(crypto_auth_hmacsha256_BYTES == WIRE_MAC, "MAC size");
	crypto_auth_hmacsha256_init(&state, key ? key->bytes : none, key ? key->length : 0);
	for (i = 0; i < nr_pieces; i++)
		crypto_auth_hmacsha256_update(&state, pieces[i].iov_base, pieces[i].iov_len);
	crypto_auth_hmacsha256_final(&state, mac);
	sodium_memzero(&state, sizeof(state));
}
