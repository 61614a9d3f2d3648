/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/secret.h"
#include "lib/conn/key.h"

#define KEY_NEW 32 /* random bytes of a new key; twice as many hexadecimal digits in the file */

static const char id_label[] = "weir-1 key id";
static const char psk_label[] = "weir-4 psk";

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

/*
 * Whether systemd made the file for this service: LoadCredential=. Its mode seems to let a group
 * read, because an access list that names the service's user shows as that bit.
 */
static bool is_credential(const char *path)
{
	const char *folder = secure_getenv("CREDENTIALS_DIRECTORY");
	size_t length = folder ? strlen(folder) : 0;

	return length && !strncmp(path, folder, length) && path[length] == '/' &&
	       !strchr(path + length + 1, '/');
}

int weir_key_check_file(int fd, const char *path, uid_t user, struct weir_error *error)
{
	struct stat st;

	if (fstat(fd, &st))
		return weir_error_set(error, -errno, "key file %s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return weir_error_set(error, -EINVAL, "key file %s is not a regular file", path);
	if (st.st_uid && st.st_uid != user)
		return weir_error_set(
			error, -EACCES,
			"key file %s belongs to user %u, who may change it: chown it to "
			"user %u or root",
			path, st.st_uid, user);
	if (st.st_mode & (is_credential(path) ? 037 : 077))
		return weir_error_set(error, -EACCES,
				      "key file %s has mode %04o: others may read it; chmod 600 it",
				      path, st.st_mode & 07777);
	return 0;
}

/*
 * Takes the last line off @bytes, if it names a donor. Return: the length without it, or @length
 * unchanged.
 */
static size_t take_donor(const uint8_t *bytes, size_t length, uint8_t donor[static WIRE_KEY])
{
	const size_t word = sizeof(WEIR_KEY_DONOR) - 1;
	const uint8_t *line;
	size_t got;

	if (length < WEIR_KEY_DONOR_LINE)
		return length;
	line = bytes + length - (WEIR_KEY_DONOR_LINE - 1);
	if (line[-1] != '\n' || memcmp(line, WEIR_KEY_DONOR, word) ||
	    sodium_hex2bin(donor, WIRE_KEY, (const char *)line + word, 2 * WIRE_KEY, NULL, &got,
			   NULL) ||
	    got != WIRE_KEY)
		return length;
	return (size_t)(line - 1 - bytes);
}

/* Whether the key has what looks like a donor's line. A pin with a mistake must not become none. */
static bool has_bad_donor(const uint8_t *bytes, size_t length)
{
	static const char word[] = "\n" WEIR_KEY_DONOR;

	if (memmem(bytes, length, word, sizeof(word) - 2))
		return true;
	return length >= WEIR_KEY_DONOR_LINE - 1 &&
	       !memcmp(bytes + length - (WEIR_KEY_DONOR_LINE - 1), WEIR_KEY_DONOR,
		       sizeof(WEIR_KEY_DONOR) - 1);
}

/* The content of a file without its last newline. Return: 0; -EINVAL. */
static int parse_key(const uint8_t *bytes, size_t length, const char *path, struct weir_key *k,
		     struct weir_error *error)
{
	uint8_t donor[WIRE_KEY];
	size_t rest;

	k->nr_donors = 0;
	while ((rest = take_donor(bytes, length, donor)) != length) {
		if (k->nr_donors == WEIR_KEY_DONORS_MAX)
			return weir_error_set(error, -EINVAL, "key file %s: more than %d donors",
					      path, WEIR_KEY_DONORS_MAX);
		memcpy(k->donors[k->nr_donors++], donor, WIRE_KEY);
		length = rest;
	}
	if (has_bad_donor(bytes, length))
		return weir_error_set(error, -EINVAL,
				      "key file %s: a line of a donor has a mistake: each is "
				      "'donor', a space and %d hexadecimal digits, after the key",
				      path, 2 * WIRE_KEY);
	if (length > sizeof(WEIR_IDENTITY_WORD) - 1 &&
	    !memcmp(bytes, WEIR_IDENTITY_WORD, sizeof(WEIR_IDENTITY_WORD) - 1))
		return weir_error_set(error, -EINVAL,
				      "%s is the file of a donor's identity, and no key", path);
	if (length < WEIR_KEY_MIN || length > WEIR_KEY_MAX)
		return weir_error_set(error, -EINVAL,
				      "key file %s holds %s%zu bytes; a key has %d to %d", path,
				      length > WEIR_KEY_MAX ? "at least " : "", length,
				      WEIR_KEY_MIN, WEIR_KEY_MAX);
	k->length = length;
	memcpy(k->bytes, bytes, length);
	return 0;
}

ssize_t weir_key_read_file(const char *path, uint8_t *bytes, size_t size, struct weir_error *error)
{
	ssize_t length;
	int fd;

	/* O_NONBLOCK: a FIFO must be refused without waiting for a writer. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return weir_error_set(error, -errno, "key file %s: %s", path, strerror(errno));
	length = weir_key_check_file(fd, path, geteuid(), error);
	if (!length) {
		length = read_all(fd, bytes, size);
		if (length < 0)
			weir_error_set(error, (int)length, "key file %s: %s", path,
				       strerror((int)-length));
	}
	if (length > 0 && bytes[length - 1] == '\n')
		length--;
	close(fd);
	return length;
}

int weir_key_load(const char *path, struct weir_key **key, struct weir_error *error)
{
	const size_t size = WEIR_KEY_FILE_MAX + 2; /* for the newline, and to detect a longer key */
	uint8_t *bytes = weir_secret_alloc(size);
	struct weir_key *k = weir_secret_alloc(sizeof(*k));
	ssize_t length;
	int rc;

	if (!bytes || !k) {
		rc = weir_error_set(error, -ENOMEM, "key file %s: out of memory", path);
		goto out;
	}
	length = weir_key_read_file(path, bytes, size, error);
	rc = length < 0 ? (int)length : parse_key(bytes, (size_t)length, path, k, error);
out:
	if (rc)
		weir_key_free(k);
	else
		*key = k;
	weir_secret_free(bytes);
	return rc;
}

/* Writes "\n", the word and the digits, without a NUL. */
static void format_donor(const uint8_t donor[static WIRE_KEY],
			 uint8_t line[static WEIR_KEY_DONOR_LINE])
{
	char digits[2 * WIRE_KEY + 1];

	sodium_bin2hex(digits, sizeof(digits), donor, WIRE_KEY);
	line[0] = '\n';
	memcpy(line + 1, WEIR_KEY_DONOR, sizeof(WEIR_KEY_DONOR) - 1);
	memcpy(line + sizeof(WEIR_KEY_DONOR), digits, 2 * WIRE_KEY);
}

size_t weir_key_format(const struct weir_key *key, uint8_t *bytes)
{
	size_t at = key->length;

	memcpy(bytes, key->bytes, key->length);
	for (unsigned int i = 0; i < key->nr_donors; i++, at += WEIR_KEY_DONOR_LINE)
		format_donor(key->donors[i], bytes + at);
	return at;
}

/* Appends, so that a reader sees the old file, the new one, or a line that it refuses. */
int weir_key_trust(const char *path, const unsigned char identity[32], struct weir_error *error)
{
	uint8_t line[WEIR_KEY_DONOR_LINE + 1];
	struct weir_key *key;
	off_t end;
	ssize_t n;
	char last;
	int fd, rc = weir_key_load(path, &key, error);

	if (rc)
		return rc;
	if (key->nr_donors == WEIR_KEY_DONORS_MAX)
		rc = weir_error_set(error, -EINVAL, "key file %s names %d donors, the most", path,
				    WEIR_KEY_DONORS_MAX);
	weir_key_free(key);
	if (rc)
		return rc;
	fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		return weir_error_set(error, -errno, "key file %s: %s", path, strerror(errno));
	format_donor(identity, line);
	line[WEIR_KEY_DONOR_LINE] = '\n';
	end = lseek(fd, -1, SEEK_END) + 1;
	if (read(fd, &last, 1) != 1)
		last = 0;
	n = last == '\n' ? write(fd, line + 1, WEIR_KEY_DONOR_LINE) :
			   write(fd, line, sizeof(line));
	if (n < (ssize_t)WEIR_KEY_DONOR_LINE || fsync(fd)) {
		rc = weir_error_set(error, n < 0 ? -errno : -ENOSPC,
				    "key file %s: could not be written", path);
		if (end <= 0 || ftruncate(fd, end))
			rc = weir_error_set(error, rc,
					    "key file %s: a line was written in part: remove it",
					    path);
	}
	close(fd);
	return rc;
}

int weir_key_create(const char *path, struct weir_error *error)
{
	return weir_key_create_file(path, "", error);
}

int weir_key_create_file(const char *path, const char *prefix, struct weir_error *error)
{
	char digits[2 * KEY_NEW + 1];
	struct iovec pieces[] = { { (char *)prefix, strlen(prefix) }, { digits, sizeof(digits) } };
	ssize_t length = (ssize_t)(pieces[0].iov_len + sizeof(digits));
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
	n = writev(fd, pieces, 2);
	if (n == length && !fsync(fd))
		goto out;
	rc = weir_error_set(error, n < 0 || n == length ? -errno : -ENOSPC,
			    "key file %s: could not be written", path);
	unlink(path);
out:
	sodium_memzero(bytes, sizeof(bytes));
	sodium_memzero(digits, sizeof(digits));
	weir_secret_forget_registers();
	close(fd);
	return rc;
}

void weir_key_free(struct weir_key *key)
{
	weir_secret_free(key);
}

bool weir_key_same(const struct weir_key *a, const struct weir_key *b)
{
	return a->length == b->length && !sodium_memcmp(a->bytes, b->bytes, a->length);
}

static void hash_key(const struct weir_key *key, const char *label, size_t label_size,
		     uint8_t hash[static crypto_hash_sha256_BYTES])
{
	crypto_hash_sha256_state state;

	crypto_hash_sha256_init(&state);
	crypto_hash_sha256_update(&state, (const uint8_t *)label, label_size);
	if (key)
		crypto_hash_sha256_update(&state, key->bytes, key->length);
	crypto_hash_sha256_final(&state, hash);
	sodium_memzero(&state, sizeof(state));
	weir_secret_forget_registers();
}

uint64_t weir_key_id(const struct weir_key *key)
{
	uint8_t hash[crypto_hash_sha256_BYTES];
	uint64_t id;

	hash_key(key, id_label, sizeof(id_label), hash);
	memcpy(&id, hash, sizeof(id));
	return id;
}

void weir_key_psk(const struct weir_key *key, uint8_t psk[static WIRE_KEY])
{
	static_assert(crypto_hash_sha256_BYTES == WIRE_KEY, "psk size");
	hash_key(key, psk_label, sizeof(psk_label), psk);
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
	weir_secret_forget_registers();
}
