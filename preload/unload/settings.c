/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "preload/unload/settings.h"

#define CPU_PERCENT 50
#define PATIENCE_MS 30000

enum weir_path_policy settings_policy(void)
{
	const char *name = getenv("WEIR_UNLOAD");

	if (name && !strcmp(name, "always"))
		return WEIR_PATH_POLICY_UNLOAD;
	if (name && !strcmp(name, "frequency"))
		return WEIR_PATH_POLICY_FREQUENCY;
	return WEIR_PATH_POLICY_MEASURED;
}

const char *settings_key(void)
{
	return getenv("WEIR_UNLOAD_KEY");
}

static uint32_t number(const char *name, unsigned long max, uint32_t otherwise)
{
	const char *text = getenv(name);
	unsigned long n = text ? strtoul(text, NULL, 10) : 0;

	return n && n <= max ? (uint32_t)n : otherwise;
}

uint32_t settings_hot_pages(void)
{
	return number("WEIR_UNLOAD_HOT_PAGES", UINT32_MAX, WEIR_PATH_HOT_PAGES_DEFAULT);
}

uint32_t settings_cpu_percent(void)
{
	return number("WEIR_UNLOAD_CPU", 100, CPU_PERCENT);
}

uint64_t settings_stall_timeout_ns(void)
{
	return number("WEIR_UNLOAD_PATIENCE_MS", UINT32_MAX, PATIENCE_MS) * WEIR_NS_PER_MS;
}
