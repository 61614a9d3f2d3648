/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/common/client.h"
#include "apps/common/cmd.h"
#include "apps/common/device.h"
#include "apps/common/number.h"
#include "apps/common/size.h"

#include <limits.h>
#include <string.h>

#define WINDOW_MIN_BYTES 65536 /* the library's minimum */

static enum weir_encryption encryption;
static struct {
	enum weir_admission learned;
	uint64_t bytes;
	unsigned int wrs;
	struct client_window_names names;
} window = { .names = { "8M", "4096" } };
static struct client_class client_class;

const char *const client_class_names[] = { "none", "urgent", "normal", "bulk", NULL };

const char *const client_encrypt_names[] = { "required", "auto", "off" };

bool client_parse_encrypt(const char *text, void *options)
{
	(void)options;
	if (!strcmp(text, "off")) {
		encryption = WEIR_ENCRYPTION_AUTO;
		return !device_leave_clear("weir");
	}
	encryption = !strcmp(text, "auto") ? WEIR_ENCRYPTION_AUTO : WEIR_ENCRYPTION_REQUIRED;
	return encryption == WEIR_ENCRYPTION_AUTO || !strcmp(text, "required");
}

enum weir_encryption client_encryption(void)
{
	return encryption;
}

/* The second name of a learned limit is refused if it is of the other limit. */
static bool is_learned(const char *text, enum weir_admission delay, enum weir_admission knee,
		       bool *is_refused)
{
	enum weir_admission named = !strcmp(text, "delay") ? delay :
				    !strcmp(text, "knee")  ? knee :
							     WEIR_ADMISSION_DEFAULT;

	*is_refused = named && window.learned && window.learned != delay && window.learned != knee;
	if (named)
		window.learned = named;
	else if (window.learned == delay || window.learned == knee)
		window.learned = WEIR_ADMISSION_DEFAULT;
	return named;
}

bool client_parse_window(const char *text, void *options)
{
	bool is_refused;

	(void)options;
	window.names.bytes = text;
	window.bytes = 0;
	if (is_learned(text, WEIR_ADMISSION_DELAY, WEIR_ADMISSION_KNEE, &is_refused))
		return !is_refused;
	if (!strcmp(text, "off")) {
		window.bytes = UINT64_MAX;
		return true;
	}
	return !size_parse(text, &window.bytes) && window.bytes >= WINDOW_MIN_BYTES;
}

bool client_parse_window_wrs(const char *text, void *options)
{
	bool is_refused;

	(void)options;
	window.names.wrs = text;
	window.wrs = 0;
	if (is_learned(text, WEIR_ADMISSION_DELAY_WRS, WEIR_ADMISSION_KNEE_WRS, &is_refused))
		return !is_refused;
	return number_parse_uint(text, 1, UINT_MAX, &window.wrs);
}

bool client_class_of(const char *text, struct client_class *class)
{
	size_t length = strcspn(text, ":");
	int i;

	*class = (struct client_class){ 0 };
	if (text[length] && !number_parse_uint(text + length + 1, 1, 1024, &class->weight))
		return false;
	for (i = 0; client_class_names[i]; i++) {
		if (strlen(client_class_names[i]) == length &&
		    !memcmp(text, client_class_names[i], length)) {
			class->class_nr = (enum weir_class)i;
			return true;
		}
	}
	return false;
}

bool client_parse_class(const char *text, void *options)
{
	(void)options;
	return client_class_of(text, &client_class);
}

struct client_window_names client_window(struct weir_session_tuning *tuning)
{
	tuning->admission = window.learned;
	tuning->window_bytes = window.bytes;
	tuning->window_wrs = window.wrs;
	tuning->class_nr = client_class.class_nr;
	tuning->weight = client_class.weight;
	return window.names;
}

int client_open(struct cmd_client *client, const char *cmd, const char *donor, const char *device,
		const char *key_path)
{
	const struct weir_session_options options = { .device = device };

	return client_open_with(client, cmd, donor, &options, key_path);
}

int client_open_with(struct cmd_client *client, const char *cmd, const char *donor,
		     const struct weir_session_options *given, const char *key_path)
{
	struct weir_session_options options = *given;
	struct weir_error error;

	*client = (struct cmd_client){ 0 };
	if (key_path && weir_key_load(key_path, &client->key, &error))
		return failure(cmd, "%s", error.text);
	options.size = sizeof(options);
	options.key = client->key;
	options.encryption = encryption;
	if (weir_session_open(donor, &options, &client->session, &error)) {
		weir_key_free(client->key);
		return failure(cmd, "%s", error.text);
	}
	return 0;
}

void client_close(struct cmd_client *client)
{
	weir_session_close(client->session);
	weir_key_free(client->key);
}
