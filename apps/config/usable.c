/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/config/usable.h"

#include "apps/http/http_server.h"
#include "apps/http/http_socket.h"
#include "apps/key/key_list.h"
#include "apps/share/config.h"
#include "lib/base/error.h"
#include "lib/pool/client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <weir/key.h>

bool usable_key(const struct cmdline_option *option, const char *text, const void *options,
		struct weir_error *error)
{
	struct weir_key *key;

	(void)option;
	(void)options;
	if (weir_key_load(text, &key, error))
		return false;
	weir_key_free(key);
	return true;
}

bool usable_identity(const struct cmdline_option *option, const char *text, const void *options,
		     struct weir_error *error)
{
	struct weir_identity *identity;

	(void)option;
	(void)options;
	if (weir_identity_load(text, &identity, error))
		return false;
	weir_identity_free(identity);
	return true;
}

bool usable_keys(const struct cmdline_option *option, const char *text, const void *options,
		 struct weir_error *error)
{
	struct key_list *list = key_list_new();
	bool is_usable;

	(void)option;
	(void)options;
	if (!list) {
		weir_error_set(error, -ENOMEM, "out of memory");
		return false;
	}
	is_usable = !key_list_read_as_keeper(text, list, error);
	key_list_free(list);
	return is_usable;
}

static bool has_line(FILE *file, const char *word)
{
	char line[256];
	bool found = false;

	rewind(file);
	while (!found && fgets(line, sizeof(line), file))
		found = !strncmp(line, "-----BEGIN ", 11) && strstr(line, word);
	explicit_bzero(line, sizeof(line));
	return found;
}

static bool is_good_pem(FILE *file, const char *path, struct weir_error *error)
{
	struct stat st;
	int rc = 0;

	if (fstat(fileno(file), &st))
		rc = weir_error_set(error, -errno, "%s: %s", path, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		rc = weir_error_set(error, -EINVAL, "%s is not a regular file", path);
	else if (st.st_mode & 07)
		rc = weir_error_set(error, -EACCES,
				    "%s has mode %04o: others may read the private key; chmod 600 "
				    "it", path, st.st_mode & 07777);
	else if (!has_line(file, "CERTIFICATE-----"))
		rc = weir_error_set(error, -EINVAL, "%s: no certificate in it", path);
	else if (!has_line(file, "PRIVATE KEY-----"))
		rc = weir_error_set(error, -EINVAL, "%s: no private key in it", path);
	return !rc;
}

bool usable_pem(const struct cmdline_option *option, const char *text, const void *options,
		struct weir_error *error)
{
	FILE *file = fopen(text, "re");
	bool is_usable;

	(void)option;
	(void)options;
	if (!file) {
		weir_error_set(error, -errno, "%s: %s", text, strerror(errno));
		return false;
	}
	is_usable = is_good_pem(file, text, error);
	fclose(file);
	return is_usable;
}

bool usable_rules(const struct cmdline_option *option, const char *text, const void *options,
		  struct weir_error *error)
{
	struct share_config config;

	(void)option;
	(void)options;
	if (share_config_load(text, &config, error))
		return false;
	share_config_fini(&config);
	return true;
}

bool usable_pool(const struct cmdline_option *option, const char *text, const void *options,
		 struct weir_error *error)
{
	struct weir_pool_client *client;

	(void)option;
	(void)options;
	if (weir_pool_client_open(text, &client, error))
		return false;
	weir_pool_client_close(client);
	return true;
}

bool usable_page_address(const struct cmdline_option *option, const char *text,
			 const void *options, struct weir_error *error)
{
	const struct http_options *page =
		(const void *)((const char *)options + option->at -
			       offsetof(struct http_options, address));

	return !http_socket_check(text, page->tls, error);
}
