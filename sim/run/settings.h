/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The settings of a weir-sim run, "name=value" each. A name not defined here is a number of the
 * profile (profile.h), and the value replaces the profile's. A name with the prefix "bg_" belongs
 * to the background load, which is off while its threads are 0. sim/README.md describes each
 * setting.
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
enum sim_admission {
	SIM_ADMISSION_STATIC,
	SIM_ADMISSION_DELAY,
	SIM_ADMISSION_KNEE,
	SIM_ADMISSION_DELAY_WRS,
	SIM_ADMISSION_KNEE_WRS
};
enum sim_pattern_kind { SIM_PATTERN_SEQ, SIM_PATTERN_RANDOM, SIM_PATTERN_ZIPF, SIM_PATTERN_TRACE };

/**
 * struct sim_load_settings - one load: the work of each client's threads
 * @driver: an enum sim_driver
 * @threads: of each client
 * @depth: the most requests in flight for each thread
 * @batch: requests that a thread submits at a time
 * @chain: the most requests of a batch that are posted with one doorbell
 * @op: an enum sim_op
 * @size: bytes of each request
 * @qps: of each thread; weir: channels of each session
 * @share: verbs: number of QPs that all threads of a client share, with locks; 0: no sharing
 * @lock, @hold: of the shared QPs: an enum sim_lock_kind, and an enum sim_hold
 * @poll, @poll_wcs, @poll_retries: as struct weir_poll_config
 * @pattern: of targets: an enum sim_pattern_kind
 * @skew: of Zipf's law, in hundredths
 * @mrs, @region_bytes: number of regions of a server, and their size
 * @class: traffic class
 * @mr: an enum sim_mr: local memory is registered already, copied through a registered buffer, or
 *	registered for each request
 * @think_ps: CPU between two batches
 * @handle_ps: CPU for each completion
 * @poller: weir: a polling thread for each CQ
 * @cqs: weir: CQs shared by the sessions of a client; 0: one for each session
 * @sq_depth: weir: capacity of a channel in work requests
 * @lanes: weir: threads that compete get channels of their own
 * @lane_ps: weir: CPU of a lane for a request, at submission and again at completion
 * @core_ps: weir: CPU of the core for a request, at submission and again at completion
 * @merge, @sge_max, @fragment: weir: as struct weir_engine_config
 * @touched: weir: requests whose translations the servers' NICs hold at the start of the run
 * @unload, @hot: trip: an enum weir_path_policy; pages that fit in the target NIC's cache
 * @learn: trip: writes seen by the policy before the run
 * @parity: trip: an unloaded write completes when the target confirms the copy
 * @until: trip: an enum sim_until: end of the timed part
 * @conns: mux: connections of each client
 * @segment, @policy, @flow_wrs: mux: as struct weir_sched_config, for all classes
 * @low_bytes: mux: the most bytes in flight for all but the first class
 * @slots, @slot_bytes: exchange: the pool
 * @imm, @credit_batch: exchange: an immediate for each message, and slots returned in one message
 * @percent: exchange: the sender looks for free slots when fewer than this are free
 * @window, @window_wrs: weir: the most in flight, over all sessions of a client
 * @admission: weir: an enum sim_admission
 */
struct sim_load_settings {
	uint64_t driver, threads, depth, batch, op, size, qps, share, lock, hold;
	uint64_t poll, poll_wcs, poll_retries, pattern, skew, mrs, region_bytes, class;
	uint64_t mr, think_ps, handle_ps, poller, cqs, sq_depth, core_ps;
	uint64_t lanes, lane_ps;
	uint64_t chain, merge, sge_max, fragment, window, window_wrs, admission, touched;
	uint64_t unload, hot, learn, parity, until;
	uint64_t conns, segment, policy, flow_wrs, low_bytes;
	uint64_t slots, slot_bytes, imm, credit_batch, percent;
};

/**
 * struct sim_settings - all settings of a run
 * @profile: with changes applied
 * @profile_path: file of the profile
 * @trace: for loads with the trace pattern
 * @sizes: lengths of an exchange's messages, in turn; empty: the load's size
 * @seed: any number
 * @clients, @servers: hosts; each client's QPs go to the servers in turn
 * @both: clients are servers too: @servers is 0 and all other clients are peers
 * @warmup_ps, @run_ps: time before counting starts, and time counted
 * @load, @background: the loads
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

#define SIM_ROOM_MAX (1 << 22) /* the most requests that all queues may have room for */
#define SIM_SETTINGS_WHY_BYTES 512
#define SIM_CLIENTS_MAX 64

/**
 * sim_settings_parse() - read the command line
 * @settings: receives the settings
 * @profiles: folder of the profiles known by name
 * @argc, @argv: "name=value" each; "profile" is read first, at any position
 * @why: receives the error
 *
 * Return: 0: the caller owes sim_settings_fini(); or -EINVAL.
 */
int sim_settings_parse(struct sim_settings *settings, const char *profiles, int argc,
		       char *const argv[], char why[SIM_SETTINGS_WHY_BYTES]);

void sim_settings_fini(struct sim_settings *settings);

#endif
