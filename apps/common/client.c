/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/common/client.h"
#include "apps/common/cmd.h"
#include "apps/common/device.h"

#include <string.h>

static enum weir_encryption encryption;

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
