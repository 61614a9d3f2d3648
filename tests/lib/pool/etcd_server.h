/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* An etcd on loopback, with a temporary folder, that ends with the test. */
#ifndef WEIR_TESTS_LIB_POOL_ETCD_SERVER_H
#define WEIR_TESTS_LIB_POOL_ETCD_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

/**
 * struct etcd_server - all zero before etcd_server_start()
 * @pid: the process; 0: it does not run
 * @port: for clients; @peer_port: for other members
 * @folder: its data; made by etcd_server_start() unless it has a name
 * @url: "http://127.0.0.1:PORT", or "https:"
 * @option: one more option, or NULL
 * @has_tls: with etcd_server_make_certificate()
 */
struct etcd_server {
	pid_t pid;
	int port, peer_port;
	char folder[64], url[64];
	const char *option;
	bool has_tls;
};

/* Whether etcd is installed. */
bool etcd_server_is_there(void);

/* Writes FOLDER/cert.pem, which certifies itself, and FOLDER/key.pem. */
void etcd_server_make_certificate(const char *folder);

/* Starts it, again with its old data if it ran before, and waits until it answers. */
void etcd_server_start(struct etcd_server *server);
/* Kills it; the data stays. */
void etcd_server_kill(struct etcd_server *server);
/* Kills it, and removes the data. */
void etcd_server_remove(struct etcd_server *server);

/* A port of loopback that nobody listens at now. */
int etcd_server_free_port(void);

#endif
