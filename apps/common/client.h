/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opens a session for a command: loads the key and connects to the donor. */
#ifndef WEIR_APPS_COMMON_CLIENT_H
#define WEIR_APPS_COMMON_CLIENT_H

#include <weir/key.h>
#include <weir/session.h>
#include <weir/tuning.h>
#include "apps/config/usable.h"

/* --key for commands that call client_open(). */
#define CLIENT_KEY_OPTION(type, member) \
	{ "key", 'k', "FILE", "the key that the other end was given", \
	  CMDLINE_TEXT(type, member), .is_usable = usable_key }

/* --encrypt for commands that call client_open(), or client_encryption(). */
#define CLIENT_ENCRYPT_OPTION \
	{ "encrypt", 0, "MODE", \
	  "softnic, to another host with a key: required (the default),\n" \
	  "auto (clear text if the other end does not encrypt), or off", \
	  CMDLINE_PARSE(client_parse_encrypt, "required, auto or off"), \
	  .names = client_encrypt_names, .nr_names = CLIENT_ENCRYPT_NAMES }

#define CLIENT_ENCRYPT_NAMES 3
extern const char *const client_encrypt_names[CLIENT_ENCRYPT_NAMES];

/* --window, --window-wrs and --class for commands that call client_window(). */
#define CLIENT_WINDOW_OPTIONS(letter) \
	{ "window", letter, "HOW", "off, BYTES in flight, delay or knee; default 8M", \
	  CMDLINE_PARSE(client_parse_window, \
			"off, delay, knee or at least 64K; only one limit can be learned") }, \
	{ "window-wrs", 0, "HOW", "N work requests in flight, delay or knee; default 4096", \
	  CMDLINE_PARSE(client_parse_window_wrs, \
			"delay, knee or at least 1; only one limit can be learned") }, \
	{ "class", 0, "CLASS[:WEIGHT]", \
	  "urgent, normal or bulk: who goes first on the NIC, in this\n" \
	  "process; bulk has at most 128K in flight. Default none", \
	  CMDLINE_PARSE(client_parse_class, CLIENT_CLASS_EXPECTED) }

#define CLIENT_CLASS_EXPECTED "none, urgent, normal or bulk, and a weight from 1 to 1024"

/* Take the arguments of these options. Return: false if they are none. */
bool client_parse_window(const char *text, void *options);
bool client_parse_window_wrs(const char *text, void *options);
bool client_parse_class(const char *text, void *options);

/* The class of a session, and its weight; 0: the default. */
struct client_class {
	enum weir_class class_nr;
	unsigned int weight;
};

/* Reads CLASS[:WEIGHT]. Return: false if @text is none. */
bool client_class_of(const char *text, struct client_class *class);
extern const char *const client_class_names[];

/* struct client_window_names - the arguments of --window and --window-wrs, or the defaults */
struct client_window_names {
	const char *bytes, *wrs;
};

/* Puts the limits and the class of these options into @tuning. Return: the limits' names. */
struct client_window_names client_window(struct weir_session_tuning *tuning);

/* Takes the argument of --encrypt; before device_choose(). Return: false if it is none. */
bool client_parse_encrypt(const char *text, void *options);
/* The mode that --encrypt has named. */
enum weir_encryption client_encryption(void);

struct cmd_client {
	struct weir_key *key;
	struct weir_session *session;
};

/**
 * client_open() - open a session, or print the reason on standard error
 * @client: receives key and session
 * @cmd: argv[0] of the command
 * @donor: the donor's name
 * @device: from device_choose()
 * @key_path: a file, or NULL
 *
 * On success the caller owes a client_close().
 *
 * Return: 0, or an exit status.
 */
int client_open(struct cmd_client *client, const char *cmd, const char *donor, const char *device,
		const char *key_path);
/* Like client_open(), with the session options in @given; the key still comes from @key_path. */
int client_open_with(struct cmd_client *client, const char *cmd, const char *donor,
		     const struct weir_session_options *given, const char *key_path);
void client_close(struct cmd_client *client);

#endif
