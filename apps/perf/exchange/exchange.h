/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weir perf exchange: the cost of messages confirmed by bitmaps, by immediates, and over TCP. The
 * center is a process, and each peer is another. They write their counts to shared memory.
 */
#ifndef WEIR_APPS_PERF_EXCHANGE_EXCHANGE_H
#define WEIR_APPS_PERF_EXCHANGE_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/exchange.h>

#define PEERS_MAX 64u

enum carrier { CARRIER_BITMAP, CARRIER_IMM, CARRIER_TCP, CARRIERS };
enum flow { FLOW_ONE, FLOW_BROADCAST, FLOW_GATHER };

/**
 * struct exchange_options - the command line
 * @carriers: a bit for each enum carrier
 * @peers: number of processes besides the center
 * @size: bytes per message
 * @messages: per sender and receiver; 0: for @seconds
 * @address: where the processes connect
 */
struct exchange_options {
	const char *cmd, *device, *key_path, *address;
	const struct weir_key *key;
	enum weir_exchange_memory memory;
	unsigned int carriers, peers, slots;
	enum flow flow;
	uint64_t size, messages;
	double seconds;
	bool json;
};

/* Counts of an end: work requests without receives, and fields of weir_exchange_info. */
struct exchange_tally {
	uint64_t messages; /* sent, or received */
	uint64_t wrs, doorbells, recvs, completions, events;
	uint64_t confirms; /* work requests without data, including receives */
	uint64_t cpu_ns, wall_ns;
};

/* Whether the center sends; otherwise the peers do. */
static inline bool center_sends(const struct exchange_options *o)
{
	return o->flow != FLOW_GATHER;
}

/* Return: CMDLINE_PARSED, or an exit status after --help or a message. */
int exchange_options_parse(int argc, char **argv, struct exchange_options *o);

extern const char *const carrier_names[];
extern const char *const flow_names[];
extern const char *const memory_names[];

/**
 * struct outcome - results of a carrier
 * @sent: summed over all senders; the time is the maximum
 * @received: the same for all receivers
 */
struct outcome {
	enum carrier carrier;
	char device[64];
	bool is_staged; /* the device cannot access the GPU's memory */
	struct exchange_tally sent, received;
};

/* Return: 0, or an exit status after a message. */
int exchange_run(const struct exchange_options *o, struct outcome *outcomes, unsigned int *count);

void exchange_report_text(const struct exchange_options *o, const struct outcome *outcomes,
			  unsigned int count);
void exchange_report_json(const struct exchange_options *o, const struct outcome *outcomes,
			  unsigned int count);

#endif
