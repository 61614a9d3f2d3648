/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The public headers of libweir.so.0 when their structs began to carry their sizes, as far as
 * first_program.c needs them. Frozen: never change this file. A change of include/weir that breaks
 * the program breaks all users' programs.
 */
#ifndef WEIR_TESTS_LIB_ABI_FIRST_H
#define WEIR_TESTS_LIB_ABI_FIRST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_EXCHANGE_FOREVER UINT64_MAX

struct weir_error {
	char text[512];
};

const char *weir_strerror(int status);
struct weir_key;
struct weir_session;
struct weir_peer;
struct weir_call;
typedef void weir_message_fn(void *arg, struct weir_peer *peer, struct weir_call *call,
			     const void *data, size_t length);
enum weir_batching {
	WEIR_BATCHING_DEFAULT,
	WEIR_BATCHING_SINGLE,
	WEIR_BATCHING_DOORBELL,
	WEIR_BATCHING_MERGE,
	WEIR_BATCHING_HYBRID,
};

enum weir_admission {
	WEIR_ADMISSION_DEFAULT,
	WEIR_ADMISSION_STATIC,
	WEIR_ADMISSION_DELAY,
	WEIR_ADMISSION_KNEE,
};

enum weir_mr {
	WEIR_MR_DEFAULT,
	WEIR_MR_AUTO,
	WEIR_MR_PRE,
	WEIR_MR_DYN,
};

struct weir_session_tuning {
	size_t size;
	uint64_t window_bytes;
	enum weir_admission admission;
	unsigned int depth;
	enum weir_batching batching;
	unsigned int chain_max;
	size_t fragment_bytes;
	enum weir_mr mr;
	size_t pool_bytes_max;
	size_t mr_dyn_bytes;
	unsigned int unload_hot_pages;
	unsigned int cqs;
	unsigned int comp_vectors;
	unsigned int poll_wcs_max;
	unsigned int poll_retries_max;
	unsigned int poll_percent_max;
};

enum weir_preset {
	WEIR_PRESET_DEFAULT,
	WEIR_PRESET_RDMABOX,
	WEIR_PRESET_SINGLE,
	WEIR_PRESET_ACCELIO,
};

enum weir_unloading {
	WEIR_UNLOAD_DEFAULT,
	WEIR_UNLOAD_OFF,
	WEIR_UNLOAD_ALWAYS,
	WEIR_UNLOAD_HINTS,
	WEIR_UNLOAD_FREQUENCY,
	WEIR_UNLOAD_MEASURED,
};

enum weir_polling {
	WEIR_POLLING_DEFAULT,
	WEIR_POLLING_ADAPTIVE,
	WEIR_POLLING_BUSY,
	WEIR_POLLING_EVENT,
	WEIR_POLLING_EVENT_BATCH,
	WEIR_POLLING_HYBRID,
	WEIR_POLLING_SCQ,
};

struct weir_session_options {
	size_t size;
	const struct weir_key *key;
	const char *device;
	unsigned int channels;
	enum weir_preset preset;
	enum weir_polling polling;
	enum weir_unloading unload;
	unsigned int retries;
	bool no_thread;
	uint64_t timeout_ns;
	uint64_t keepalive_ns;
	weir_message_fn *on_message;
	void (*on_down)(void *arg, int status);
	void *arg;
	const struct weir_session_tuning *tuning;
};

int weir_session_open(const char *donor, const struct weir_session_options *options,
		      struct weir_session **session, struct weir_error *error);
void weir_session_close(struct weir_session *session);
struct weir_session_info {
	size_t size;
	char device[64];
	char peer[64];
	unsigned int channels;
	enum weir_preset preset;
	enum weir_batching batching;
	enum weir_mr mr;
	enum weir_polling polling;
	uint64_t incarnation;
	uint64_t quota_bytes;
	uint64_t requests, work_requests, doorbells, completions, events;
	uint64_t merged;
	uint64_t split;
	uint64_t chains;
	uint64_t window_waits;
	size_t mr_dyn_bytes;
	uint64_t pre, dyn;
	uint64_t inlined;
	uint64_t empty_polls, arms, sleeps;
	uint64_t bytes_read, bytes_written, retries, errors, reconnects;
	uint64_t small, hot;
	uint64_t unloaded, unload_full;
	uint64_t pages;
};

int weir_session_info(const struct weir_session *session, struct weir_session_info *info,
		      size_t size);
struct weir_donor_state {
	size_t size;
	uint64_t incarnation;
	uint64_t memory_bytes, lent_bytes;
	uint64_t quota_bytes, held_bytes;
	unsigned int clients, regions;
};

int weir_session_donor_state(struct weir_session *session, struct weir_donor_state *state,
			     size_t size);
struct weir_region;
int weir_region_create(struct weir_session *session, const char *name, uint64_t length,
		       unsigned int flags, struct weir_region **region, struct weir_error *error);
void weir_region_close(struct weir_region *region);
struct weir_region_entry {
	size_t size;
	char name[64];
	uint64_t length;
	uint32_t holders;
	uint32_t flags;
};

int weir_region_list(struct weir_session *session,
		     void (*fn)(void *arg, const struct weir_region_entry *entry), void *arg);
int weir_read(struct weir_region *region, uint64_t offset, void *buf, size_t length);
int weir_write(struct weir_region *region, uint64_t offset, const void *buf, size_t length);
struct weir_donor;
enum weir_log_level { WEIR_LOG_ERROR, WEIR_LOG_WARNING, WEIR_LOG_INFO, WEIR_LOG_DEBUG };

struct weir_donor_options {
	size_t size;
	const char *listen;
	const char *device;
	const struct weir_key *const *keys;
	unsigned int nr_keys;
	uint64_t memory_bytes;
	uint64_t quota_bytes;
	unsigned int clients_max;
	unsigned int absence_ms;
	unsigned int keepalive_ms;
	bool no_huge_pages;
	unsigned int unload_percent_max;
	weir_message_fn *on_message;
	void (*on_join)(void *arg, struct weir_peer *peer);
	void (*on_leave)(void *arg, struct weir_peer *peer);
	void (*on_log)(void *arg, enum weir_log_level level, const char *line);
	void *arg;
};

int weir_donor_open(const struct weir_donor_options *options, struct weir_donor **donor,
		    struct weir_error *error);
void weir_donor_close(struct weir_donor *donor);
struct weir_donor_info {
	size_t size;
	char device[64];
	char address[64];
	uint64_t incarnation;
	uint64_t memory_bytes, lent_bytes;
	unsigned int clients, regions;
	bool huge_pages;
	uint64_t joins, rejects, messages;
	uint64_t unloaded, unload_refused;
	uint64_t unload_pauses;
};

int weir_donor_info(struct weir_donor *donor, struct weir_donor_info *info, size_t size);
struct weir_exchange;
struct weir_exchange_listener;
enum weir_exchange_mode {
	WEIR_EXCHANGE_BITMAP,
	WEIR_EXCHANGE_IMM,
};

enum weir_exchange_memory {
	WEIR_EXCHANGE_HOST,
	WEIR_EXCHANGE_CUDA,
};

struct weir_exchange_options {
	size_t size;
	const struct weir_key *key;
	const char *device;
	enum weir_exchange_mode mode;
	unsigned int slots;
	size_t slot_bytes;
	uint64_t receive_bytes_max;
	bool busy;
	unsigned int percent_min;
	uint64_t timeout_ns;
	enum weir_exchange_memory memory;
	unsigned int gpu;
	uint64_t pool_bytes;
	unsigned int exchanges;
	bool unordered;
	bool (*goes_on)(void *arg);
	void *goes_on_arg;
};

int weir_exchange_listen(const char *address, const struct weir_exchange_options *options,
			 struct weir_exchange_listener **listener, struct weir_error *error);
const char *weir_exchange_address(const struct weir_exchange_listener *listener);
int weir_exchange_accept(struct weir_exchange_listener *listener, uint64_t timeout_ns,
			 struct weir_exchange **x, struct weir_error *error);
void weir_exchange_unlisten(struct weir_exchange_listener *listener);
int weir_exchange_connect(const char *peer, const struct weir_exchange_options *options,
			  struct weir_exchange **x, struct weir_error *error);
int weir_exchange_put(struct weir_exchange *x, const void *data, size_t length, uint64_t timeout_ns,
		      size_t *done);
int weir_exchange_get(struct weir_exchange *x, void *data, size_t max, size_t *length,
		      uint64_t timeout_ns);
struct weir_exchange_info {
	size_t size;
	char device[64];
	char peer[64];
	enum weir_exchange_mode mode;
	enum weir_exchange_memory memory;
	bool staged;
	unsigned int slots, peer_slots;
	size_t slot_bytes, peer_slot_bytes;
	uint64_t put;
	uint64_t arrived;
	uint64_t released;
	uint64_t taken;
	uint64_t bytes_put, bytes_taken;
	uint64_t writes;
	uint64_t bitmap_reads;
	uint64_t imm_writes;
	uint64_t wakeups;
	uint64_t credits;
	uint64_t recvs;
	uint64_t doorbells, completions, events, sleeps;
};

int weir_exchange_info(const struct weir_exchange *x, struct weir_exchange_info *info, size_t size);
void weir_exchange_close(struct weir_exchange *x);
struct weir_mux;
struct weir_mux_listener;
struct weir_mux_conn;
enum weir_mux_policy {
	WEIR_MUX_POLICY_FAIR,
	WEIR_MUX_POLICY_ROUND_ROBIN,
};

struct weir_mux_class {
	size_t size;
	unsigned int level;
	unsigned int weight;
	enum weir_mux_policy policy;
	uint32_t segment_bytes;
	unsigned int depth;
	unsigned int tos;
	uint64_t pass_bytes_max;
};

struct weir_mux_options {
	size_t size;
	const char *listen;
	const char *device;
	const struct weir_key *key;
	const struct weir_mux_class *classes;
	unsigned int nr_classes;
	uint64_t low_bytes_max;
	unsigned int connections_max;
	uint32_t ring_bytes;
	unsigned int buffers;
	uint64_t timeout_ns;
	const char *share;
	uint64_t idle_poll_ns;
	uint64_t idle_ns;
};

int weir_mux_open(const struct weir_mux_options *options, struct weir_mux **mux,
		  struct weir_error *error);
void weir_mux_close(struct weir_mux *mux);
struct weir_mux_info {
	size_t size;
	char address[64];
	unsigned int connections, queue_pairs;
	uint64_t work_requests, doorbells;
	uint64_t bytes_sent, bytes_received;
	uint64_t bytes_written;
	uint64_t credits;
	uint64_t sleeps;
	uint64_t ahead_bytes_max;
};

int weir_mux_info(struct weir_mux *mux, struct weir_mux_info *info, size_t size);
int weir_mux_listen(struct weir_mux *mux, uint32_t service, unsigned int backlog,
		    struct weir_mux_listener **listener);
int weir_mux_listener_accept(struct weir_mux_listener *listener, struct weir_mux_conn **conn);
int weir_mux_listener_fd(const struct weir_mux_listener *listener);
void weir_mux_listener_close(struct weir_mux_listener *listener);
struct weir_mux_conn_options {
	size_t size;
	unsigned int class_nr;
	unsigned int weight;
	uint64_t ring_bytes;
};

int weir_mux_connect(struct weir_mux *mux, const char *peer, uint32_t service,
		     const struct weir_mux_conn_options *options, struct weir_mux_conn **conn,
		     struct weir_error *error);
int weir_mux_conn_send(struct weir_mux_conn *conn, const void *data, size_t length, int flags);
int weir_mux_conn_recv(struct weir_mux_conn *conn, void *buffer, size_t size, size_t *length,
		       int flags);
void weir_mux_conn_close(struct weir_mux_conn *conn);

#endif
