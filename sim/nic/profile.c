/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Parses profiles: SIM_PROFILE in profile.h defines the names, units and storage. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sim/nic/profile.h"

#define VALUE_MAX 1000000000000ull /* larger values are mistakes, and would overflow times */

/* Where each number is stored, and its number of decimals. */
struct profile_field {
	const char *name;
	size_t offset;
	int decimals;
};

#define FIELD_COUNT(name) { #name, offsetof(struct sim_profile, name), 0 },
#define FIELD_TIME(name) { #name "_ns", offsetof(struct sim_profile, name##_ps), 3 },
#define FIELD_RATE(name) { #name "_gbps", offsetof(struct sim_profile, name##_mbps), 3 },

static const struct profile_field fields[] = { SIM_PROFILE(FIELD_COUNT, FIELD_TIME, FIELD_RATE) };

#define NR_FIELDS (sizeof(fields) / sizeof(fields[0]))

/* "12.5" with three decimals is 12500. */
static int parse(const char *text, int decimals, uint64_t *value)
{
	uint64_t number = 0;
	int after = -1;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	for (; *text && after < decimals; text++) {
		if (*text == '.' && after < 0 && decimals) {
			after = 0;
			continue;
		}
		if (!isdigit((unsigned char)*text) || number > VALUE_MAX)
			return -EINVAL;
		number = number * 10 + (uint64_t)(*text - '0');
		after += after >= 0;
	}
	for (after = after < 0 ? 0 : after; after < decimals; after++)
		number *= 10;
	if (*text || number > VALUE_MAX)
		return -EINVAL;
	*value = number;
	return 0;
}

static const struct profile_field *field_find(const char *name)
{
	size_t i;

	for (i = 0; i < NR_FIELDS; i++) {
		if (!strcmp(fields[i].name, name))
			return &fields[i];
	}
	return NULL;
}

int sim_profile_set(struct sim_profile *profile, const char *name, const char *value)
{
	const struct profile_field *field = field_find(name);

	if (!field)
		return -ENOENT;
	return parse(value, field->decimals, (uint64_t *)((char *)profile + field->offset));
}

/* Splits a line. Return: 1: empty; 0: name and value; or -EINVAL. */
static int take_apart(char *line, char name[64], char value[64])
{
	char rest;
	int found;

	line[strcspn(line, "#\n")] = '\0';
	found = sscanf(line, " %63[a-z0-9_] = %63s %c", name, value, &rest);
	if (found == 2)
		return 0;
	return line[strspn(line, " \t")] ? -EINVAL : 1;
}

static int load_line(struct sim_profile *profile, char *line, bool seen[NR_FIELDS],
		     char why[SIM_PROFILE_WHY_BYTES])
{
	char name[64], value[64];
	int rc = take_apart(line, name, value);

	if (rc < 0)
		snprintf(why, SIM_PROFILE_WHY_BYTES, "not of the form 'name = value'");
	if (rc)
		return rc < 0 ? rc : 0;
	rc = sim_profile_set(profile, name, value);
	if (rc == -ENOENT)
		snprintf(why, SIM_PROFILE_WHY_BYTES, "there is no '%s'", name);
	else if (rc)
		snprintf(why, SIM_PROFILE_WHY_BYTES, "'%s' is no value for %s", value, name);
	if (rc)
		return -EINVAL;
	if (seen[field_find(name) - fields]) {
		snprintf(why, SIM_PROFILE_WHY_BYTES, "%s is given twice", name);
		return -EINVAL;
	}
	seen[field_find(name) - fields] = true;
	return 0;
}

static int check_all_seen(const bool seen[NR_FIELDS], const char *path,
			  char why[SIM_PROFILE_WHY_BYTES])
{
	size_t i;

	for (i = 0; i < NR_FIELDS; i++) {
		if (!seen[i]) {
			snprintf(why, SIM_PROFILE_WHY_BYTES, "%s: %s is missing", path,
				 fields[i].name);
			return -EINVAL;
		}
	}
	return 0;
}

int sim_profile_load(struct sim_profile *profile, const char *path, char why[SIM_PROFILE_WHY_BYTES])
{
	char line[512], reason[SIM_PROFILE_WHY_BYTES] = "";
	bool seen[NR_FIELDS] = { false };
	FILE *file = fopen(path, "re");
	int number = 0, rc = 0;

	if (!file) {
		snprintf(why, SIM_PROFILE_WHY_BYTES, "%s: %s", path, strerror(errno));
		return -EINVAL;
	}
	while (!rc && fgets(line, sizeof(line), file)) {
		number++;
		rc = load_line(profile, line, seen, reason);
	}
	fclose(file);
	if (!rc)
		return check_all_seen(seen, path, why);
	snprintf(why, SIM_PROFILE_WHY_BYTES, "%.100s:%d: %.130s", path, number, reason);
	return rc;
}

const char *sim_profile_check(const struct sim_profile *p)
{
	const struct {
		const char *name;
		uint64_t value, least, most;
	} bounds[] = {
		{ "cores", p->cores, 1, 1024 },
		{ "quantum_ns", p->quantum_ps, 1000, VALUE_MAX },
		{ "copy_gbps", p->copy_mbps, 1, VALUE_MAX },
		{ "page_bytes", p->page_bytes, 4096, 1ull << 30 },
		{ "poll_empty_ns", p->poll_empty_ps, 1000, VALUE_MAX },
		{ "uars", p->uars, 0, 1024 },
		{ "pcie_read_gbps", p->pcie_read_mbps, 1, VALUE_MAX },
		{ "pcie_write_gbps", p->pcie_write_mbps, 1, VALUE_MAX },
		{ "pcie_tags", p->pcie_tags, 1, 65536 },
		{ "pcie_read_bytes", p->pcie_read_bytes, 64, 65536 },
		{ "pus", p->pus, 1, 256 },
		{ "fetch_wqes", p->fetch_wqes, 1, 64 },
		{ "reads_max", p->reads_max, 1, 65536 },
		{ "cache_ways", p->cache_ways, 1, 64 },
		{ "wqe_ways", p->wqe_ways, 1, 64 },
		{ "wqe_entries", p->wqe_entries, 1, 1 << 24 },
		{ "wqe_slots_write", p->wqe_slots_write, 1, 16 },
		{ "qpc_entries", p->qpc_entries, 1, 1 << 24 },
		{ "mtt_entries", p->mtt_entries, 1, 1 << 24 },
		{ "mpt_entries", p->mpt_entries, 1, 1 << 24 },
		{ "tx_quantum_bytes", p->tx_quantum_bytes, p->burst_bytes, 1 << 30 },
		{ "burst_bytes", p->burst_bytes, p->mtu, 1 << 20 },
		{ "link_gbps", p->link_mbps, 1, VALUE_MAX },
		{ "mtu", p->mtu, 256, 65536 },
	};
	size_t i;

	for (i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
		if (bounds[i].value < bounds[i].least || bounds[i].value > bounds[i].most)
			return bounds[i].name;
	}
	return NULL;
}
