/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What can be set, by WEIR_SOFTNIC=NAME=VALUE,... when a program starts, and the faults
 * also while it runs, by weir fault.
 */
#ifndef WEIR_SOFTNIC_CONTROL_OPTION_H
#define WEIR_SOFTNIC_CONTROL_OPTION_H

#include <stddef.h>
#include <stdint.h>

/* "After N": this number stands for never. */
#define OPTION_NEVER UINT64_MAX
#define OPTION_PPM 1000000u

/*
 * X(NAME, name, kind, smallest, largest, if not given, what it is)
 *
 * A COUNT may end in K, M or G (powers of 1024), or be "never" where that is what holds
 * otherwise; a PERCENT may have decimals, and is kept in millionths. What comes after N operations
 * comes with the next one if N is 0.
 */
#define SOFTNIC_OPTIONS(X)                                                                  \
	X(DEVICES, "devices", COUNT, 1, 8, 1, "devices: softnic0, softnic1, ...")           \
	X(PORTS, "ports", COUNT, 1, 8, 1, "ports of each device")                           \
	X(SEED, "seed", COUNT, 0, INT64_MAX, 0, "what all that is random depends on")       \
	X(ERROR_AFTER, "error_after", COUNT, 0, INT64_MAX, OPTION_NEVER,                    \
	  "each queue pair: after so many operations one fails, as if nobody answered")     \
	X(ERROR, "error", PERCENT, 0, OPTION_PPM, 0, "operations that fail so, in percent") \
	X(RNR, "rnr", PERCENT, 0, OPTION_PPM, 0,                                            \
	  "tries that find the receiver not ready though it is, in percent")                \
	X(DELAY_US, "delay_us", COUNT, 0, 10000000, 0,                                      \
	  "operations begin later by up to so many microseconds")                           \
	X(PORT_DOWN_AFTER, "port_down_after", COUNT, 0, INT64_MAX, OPTION_NEVER,            \
	  "after so many operations of the process all ports go down")                      \
	X(PORT_DOWN_MS, "port_down_ms", COUNT, 1, 3600000, 1000,                            \
	  "and come up again after so long")                                                \
	X(DEVICE_GONE_AFTER, "device_gone_after", COUNT, 0, INT64_MAX, OPTION_NEVER,        \
	  "after so many operations of the process the devices disappear")                  \
	X(MR_BYTES_MAX, "mr_bytes_max", COUNT, 0, INT64_MAX, OPTION_NEVER,                  \
	  "registering more than so many bytes at a time fails with ENOMEM")

enum softnic_option {
#define OPTION_ENUM(NAME, name, kind, min, max, otherwise, help) OPTION_##NAME,
	SOFTNIC_OPTIONS(OPTION_ENUM)
#undef OPTION_ENUM
		OPTIONS,
	OPTION_FIRST_FAULT = OPTION_SEED,
};

struct softnic_options {
	uint64_t value[OPTIONS];
	uint32_t given; /* a bit for each that was named */
};

/** option_defaults() - what holds if nothing is said */
void option_defaults(struct softnic_options *o);

/**
 * option_parse() - NAME=VALUE,NAME=VALUE,...
 * @text: to parse; empty is fine
 * @first: only this option and those after it are known
 * @o: what is named is set, the rest stays
 * @why: on failure a sentence that names the option, the value and the remedy
 * @why_size: its room in bytes
 *
 * Return: 0 or -EINVAL.
 */
int option_parse(const char *text, enum softnic_option first, struct softnic_options *o, char *why,
		 size_t why_size);

/** option_is_valid() - is this a value it may have, as option_parse() would have it? */
int option_is_valid(uint32_t option, uint64_t value);

/** option_name(), option_help() - of one that exists */
const char *option_name(enum softnic_option option);
const char *option_help(enum softnic_option option);

#endif
