/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What weir-sim is asked to run, "name=value" each. Names that are none of these are numbers of
 * the profile (profile.h) and change it; a name that begins with "bg_" is of the load in the
 * background, which is off while its threads are 0. sim/README.md tells what each means.
 */
#ifndef WEIR_SIM_RUN_SETTINGS_H
#define WEIR_SIM_RUN_SETTINGS_H

#include "sim/nic/profile.h"
#include "sim/load/sizes.h"
#include "sim/load/request_trace.h"

enum sim_driver {
	SIM_DRIVER_VERBS,
	SIM_DRIVER_WEIR,
	SIM_DRIVER_PINGPONG,
	SIM_DRIVER_MUX,
	SIM_DRIVER_EXCHANGE
};
enum sim_hold { SIM_HOLD_POST, SIM_HOLD_OP };
enum sim_mr { SIM_MR_USER, SIM_MR_PRE, SIM_MR_DYN };
enum sim_lock_kind { SIM_LOCK_SPIN, SIM_LOCK_MUTEX };
enum sim_until { SIM_UNTIL_ANSWER, SIM_UNTIL_COMPLETE };
enum sim_pattern_kind { SIM_PATTERN_SEQ, SIM_PATTERN_RANDOM, SIM_PATTERN_ZIPF, SIM_PATTERN_TRACE };

/**
 * struct sim_load_settings - one load: what each client's threads do
 * @driver: an enum sim_driver
 * @threads: of each client
 * @depth: requests that each thread has under way at most
 * @batch: requests that it submits at a time
 * @chain: of those, how many are posted with one doorbell at most
 * @op: an enum sim_op
 * @size: bytes of each
 * @qps: of each thread; weir: channels of each session
 * @share: verbs: so many QPs for all threads of a client instead, with locks
 * @lock, @hold: of those: an enum sim_lock_kind, and while what is done it is held
 * @poll, @poll_wcs, @poll_retries: as struct weir_poll_config
 * @pattern: where to: an enum sim_pattern_kind
 * @skew: of Zipf's law, in hundredths
 * @mrs, @region_bytes: how many regions a server has, how large each
 * @class: traffic class
 * @mr: an enum sim_mr: memory is registered already, copied through some that is, or registered
 *	for each request
 * @think_ps: CPU between two batches
 * @handle_ps: CPU for each completion
 * @poller: weir: a thread of its own polls each CQ
 * @cqs: weir: CQs that the sessions of a client share; 0: one each
 * @sq_depth: weir: work requests that a channel holds
 * @core_ps: weir: CPU that the core takes for a request when it is submitted, and when it is done
 * @merge, @sge_max, @fragment: weir: as struct weir_engine_config
 * @touched: weir: requests of which the servers' NICs have the translations when the run begins
 * @unload, @hot: trip: an enum weir_path_policy; pages that the target's NIC has room for
 * @learn: trip: writes that the policy has seen before the run
 * @parity: trip: what was unloaded is complete when the target says that it has copied
 * @until: trip: an enum sim_until: what is timed
 * @conns: mux: connections of each client
 * @segment, @policy, @flow_wrs: mux: as struct weir_sched_config, of all classes
 * @low_bytes: mux: what all but the first class have in flight
 * @slots, @slot_bytes: exchange: the pool
 * @imm, @gives: exchange: an immediate for each message, and a message for so many slots given back
 * @percent: exchange: with fewer slots free than this the sender looks for free ones
 * @window, @window_wrs: weir: what may be in flight, of all sessions of a client
 */
struct sim_load_settings {
	uint64_t driver, threads, depth, batch, op, size, qps, share, lock, hold;
	uint64_t poll, poll_wcs, poll_retries, pattern, skew, mrs, region_bytes, class;
	uint64_t mr, think_ps, handle_ps, poller, cqs, sq_depth, core_ps;
	uint64_t chain, merge, sge_max, fragment, window, window_wrs, touched;
	uint64_t unload, hot, learn, parity, until;
	uint64_t conns, segment, policy, flow_wrs, low_bytes;
	uint64_t slots, slot_bytes, imm, gives, percent;
};

/**
 * struct sim_settings - all of a run
 * @profile: with what was changed of it
 * @profile_path: where it came from
 * @trace: of loads whose pattern says so
 * @sizes: lengths of an exchange's messages, in turn; none: all are as long as the load says
 * @seed: any
 * @clients, @servers: hosts; each client's QPs go round the servers
 * @both: clients are servers too: @servers is 0 and each has the others for peers
 * @warmup_ps, @run_ps: how long before, and while, is counted
 * @load, @background: what the clients do
 */
struct sim_settings {
	struct sim_profile profile;
	char profile_path[256];
	struct sim_request_trace trace;
	struct sim_sizes sizes;
	uint64_t seed, clients, servers, both;
	uint64_t warmup_ps, run_ps;
	struct sim_load_settings load, background;
};

#define SIM_ROOM_MAX (1 << 22) /* requests that all queues have room for */
#define SIM_SETTINGS_WHY_BYTES 512
#define SIM_CLIENTS_MAX 64

/**
 * sim_settings_parse() - read the command line
 * @settings: receives them
 * @profiles: folder of the profiles that are called by name
 * @argc, @argv: "name=value" each; "profile" is read first wherever it stands
 * @why: receives what is wrong
 *
 * Return: 0: sim_settings_fini() is owed; or -EINVAL.
 */
int sim_settings_parse(struct sim_settings *settings, const char *profiles, int argc,
		       char *const argv[], char why[SIM_SETTINGS_WHY_BYTES]);

void sim_settings_fini(struct sim_settings *settings);

#endif
