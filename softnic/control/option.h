/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The options of the software device. WEIR_SOFTNIC=NAME=VALUE,... sets options when a program
 * starts. weir fault sets faults also in a running program.
 */
#ifndef WEIR_SOFTNIC_CONTROL_OPTION_H
#define WEIR_SOFTNIC_CONTROL_OPTION_H

#include <stddef.h>
#include <stdint.h>

/* The value of "after N" that means never. */
#define OPTION_NEVER UINT64_MAX
#define OPTION_PPM 1000000u

/*
 * X(NAME, name, kind, smallest, largest, default, help)
 *
 * A COUNT may end in K, M or G (powers of 1024), or be "never" if the default is never. A PERCENT
 * may have decimals, and is stored in millionths. A fault after N operations comes with the next
 * operation if N is 0.
 */
#define SOFTNIC_OPTIONS(X)                                                                     \
	X(DEVICES, "devices", COUNT, 1, 8, 1, "number of devices: softnic0, softnic1, ...")    \
	X(PORTS, "ports", COUNT, 1, 8, 1, "number of ports of each device")                    \
	X(TRUST_USER, "trust_user", COUNT, 0, 1, 0,                                            \
	  "1: any process of this user may reach all memory, also from other containers")      \
	X(WIRE, "wire", COUNT, 0, 1, 1, "0: open no UDP ports: no other host is reached")      \
	X(ENCRYPT, "encrypt", COUNT, 0, 2, 1,                                                  \
	  "packets to other hosts: 0: in clear text; 1: encrypted if a program or peer asks; " \
	  "2: encrypted if the peer can")                                                      \
	X(NEAR, "near", COUNT, 0, 1, 1, "0: programs of this host are reached over UDP, too")  \
	X(STRICT, "strict", COUNT, 0, 2, 0,                                                    \
	  "misuse of verbs is reported and fails as on a NIC: 1: exit status 86 at the end; "  \
	  "2: abort at once")                                                                  \
	X(STRICT_LEAKS, "strict_leaks", COUNT, 0, 1, 0,                                        \
	  "1: strict mode reports objects left at exit, too")                                  \
	X(SEED, "seed", COUNT, 0, INT64_MAX, 0, "seed of all random choices")                  \
	X(ERROR_AFTER, "error_after", COUNT, 0, INT64_MAX, OPTION_NEVER,                       \
	  "each queue pair: after N operations one fails, as without an answer")               \
	X(ERROR, "error", PERCENT, 0, OPTION_PPM, 0, "percentage of operations that fail so")  \
	X(RNR, "rnr", PERCENT, 0, OPTION_PPM, 0,                                               \
	  "percentage of attempts that find the receiver not ready")                           \
	X(DELAY_US, "delay_us", COUNT, 0, 10000000, 0,                                         \
	  "operations begin up to N microseconds late")                                        \
	X(PORT_DOWN_AFTER, "port_down_after", COUNT, 0, INT64_MAX, OPTION_NEVER,               \
	  "after N operations of the process all ports go down")                               \
	X(PORT_DOWN_MS, "port_down_ms", COUNT, 1, 3600000, 1000,                               \
	  "and come up again after N milliseconds")                                            \
	X(DEVICE_GONE_AFTER, "device_gone_after", COUNT, 0, INT64_MAX, OPTION_NEVER,           \
	  "after N operations of the process the devices disappear")                           \
	X(LOSS, "loss", PERCENT, 0, OPTION_PPM, 0,                                             \
	  "percentage of packets to other hosts that are lost")                                \
	X(DUPLICATE, "duplicate", PERCENT, 0, OPTION_PPM, 0,                                   \
	  "percentage of packets to other hosts that are sent twice")                          \
	X(REORDER, "reorder", PERCENT, 0, OPTION_PPM, 0,                                       \
	  "percentage of packets to other hosts that the next packet overtakes")               \
	X(CORRUPT, "corrupt", PERCENT, 0, OPTION_PPM, 0,                                       \
	  "percentage of packets to other hosts that arrive with a wrong bit")                 \
	X(PACKET_DELAY_US, "packet_delay_us", COUNT, 0, 10000000, 0,                           \
	  "packets to other hosts leave N microseconds late")                                  \
	X(MR_BYTES_MAX, "mr_bytes_max", COUNT, 0, INT64_MAX, OPTION_NEVER,                     \
	  "registering more than N bytes at a time fails with ENOMEM")

enum softnic_option {
#define OPTION_ENUM(NAME, name, kind, min, max, otherwise, help) OPTION_##NAME,
	SOFTNIC_OPTIONS(OPTION_ENUM)
#undef OPTION_ENUM
		OPTIONS,
	OPTION_FIRST_FAULT = OPTION_SEED,
};

struct softnic_options {
	uint64_t value[OPTIONS];
	uint32_t given; /* a bit for each option named */
};

/** option_defaults() - set all options to their defaults */
void option_defaults(struct softnic_options *o);

/**
 * option_parse() - parse NAME=VALUE,NAME=VALUE,...
 * @text: the string; may be empty
 * @first: options before this one are refused
 * @o: the named options are set; the others are unchanged
 * @why: written on failure: names the option, the value and the remedy
 * @why_size: room of @why in bytes
 *
 * Return: 0 or -EINVAL.
 */
int option_parse(const char *text, enum softnic_option first, struct softnic_options *o, char *why,
		 size_t why_size);

/** option_is_valid() - would option_parse() accept @value? */
int option_is_valid(uint32_t option, uint64_t value);

/** option_name(), option_help() - strings of a valid option */
const char *option_name(enum softnic_option option);
const char *option_help(enum softnic_option option);

#endif
