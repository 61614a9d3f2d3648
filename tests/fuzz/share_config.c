/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A configuration of weir share with arbitrary content. The parser refuses it with a line of
 * text, or every user's settings are within bounds.
 */
#include <assert.h>
#include <string.h>

#include "apps/share/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * Turn bytes into pieces of lines with small errors; user names, which are looked up, come
 * separately.
 */
static size_t compose(const uint8_t *data, size_t size, char *text, size_t room)
{
	static const char *const pieces[] = {
		"default ", "user 7",  "cgroup /a", "/b",    " weight ", " class ", " connections ",
		" memory ", " peers ", " rate ",    " deny", "\n",	 "#",	    "1",
		"9",	    "G",       " ",
	};
	const size_t nr = sizeof(pieces) / sizeof(*pieces);
	size_t i, length = 0;

	for (i = 0; i < size && length + 16 < room; i++)
		length += strlen(strcpy(text + length, pieces[data[i] % nr]));
	return length;
}

static void check(const char *text, size_t length)
{
	struct weir_error error = { "" };
	struct share_config config;
	struct share_policy terms;

	if (share_config_parse(text, length, &config, &error)) {
		assert(error.text[0]);
		return;
	}
	terms = share_config_policy(&config, 7, "/a/b");
	assert(terms.weight >= 1 && terms.weight <= 1024);
	assert(terms.class_nr <= 7);
	assert(terms.connections >= 1 && terms.connections <= 65535);
	assert(terms.memory_bytes);
	share_config_fini(&config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[4096] = "";

	if (!size)
		return 0;
	check((const char *)data, size);
	check(text, compose(data, size, text, sizeof(text)));
	return 0;
}
