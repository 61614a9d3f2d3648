/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "tests/lib/pool/etcd_server.h"

#include "tests/support/cmocka_all.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/pool/etcd_http.h"

#include <json-c/json.h>

#define PATIENCE_S 60
#define STARTS_MAX 5 /* another process may take the port first */

bool etcd_server_is_there(void)
{
	return !system("command -v etcd >/dev/null 2>&1");
}

int etcd_server_free_port(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
	close(fd);
	return ntohs(address.sin_port);
}

void etcd_server_make_certificate(const char *folder)
{
	char command[512];

	snprintf(command, sizeof(command),
		 "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
		 "-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 "
		 "-keyout %s/key.pem -out %s/cert.pem >/dev/null 2>&1",
		 folder, folder);
	assert_int_equal(system(command), 0);
}

static void run_etcd(const struct etcd_server *server)
{
	char peer[64], cluster[80], log[80], cert[96], key[96];
	/* Neither a slow disk nor slow passwords are what is tested. */
	const char *arguments[24] = {
		"etcd", "--data-dir", server->folder, "--listen-client-urls", server->url,
		"--advertise-client-urls", server->url, "--listen-peer-urls", peer,
		"--initial-advertise-peer-urls", peer, "--initial-cluster", cluster,
		"--unsafe-no-fsync", "--bcrypt-cost=4",
	};
	size_t count = 15;
	int fd;

	snprintf(peer, sizeof(peer), "http://127.0.0.1:%d", server->peer_port);
	snprintf(cluster, sizeof(cluster), "default=%s", peer);
	snprintf(log, sizeof(log), "%s/log", server->folder);
	snprintf(cert, sizeof(cert), "--cert-file=%s/cert.pem", server->folder);
	snprintf(key, sizeof(key), "--key-file=%s/key.pem", server->folder);
	if (server->option)
		arguments[count++] = server->option;
	if (server->has_tls) {
		arguments[count++] = cert;
		arguments[count++] = key;
	}
	fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execvp("etcd", (char *const *)arguments);
	_exit(127);
}

/* Return: whether it answers; false: it has ended. */
static bool wait_until_up(struct etcd_server *server)
{
	uint64_t until_ns = weir_now_ns() + PATIENCE_S * WEIR_NS_PER_S;
	struct weir_pool_etcd_http *http;
	struct json_object *reply;
	int rc = -1;

	assert_int_equal(weir_pool_etcd_http_open(server->url, &http, NULL), 0);
	while (rc) {
		struct json_object *request = json_object_new_object();

		assert_true(weir_now_ns() < until_ns);
		if (waitpid(server->pid, NULL, WNOHANG))
			break;
		/* Any answer but silence will do: the server may ask for a password. */
		rc = weir_pool_etcd_http_call(http, "/v3/maintenance/status", request, &reply,
					      NULL);
		if (!rc)
			json_object_put(reply);
		rc = rc == -EHOSTUNREACH;
		if (rc)
			usleep(20000);
	}
	weir_pool_etcd_http_close(http);
	return !rc;
}

void etcd_server_start(struct etcd_server *server)
{
	bool has_data = server->port;

	if (!*server->folder) {
		snprintf(server->folder, sizeof(server->folder), "/tmp/weir-etcd-XXXXXX");
		assert_non_null(mkdtemp(server->folder));
	}
	for (int i = 0; i < STARTS_MAX; i++) {
		if (!has_data) {
			server->port = etcd_server_free_port();
			server->peer_port = etcd_server_free_port();
		}
		snprintf(server->url, sizeof(server->url), "http%s://127.0.0.1:%d",
			 server->has_tls ? "s" : "", server->port);
		server->pid = fork();
		if (!server->pid)
			run_etcd(server);
		if (wait_until_up(server))
			return;
	}
	fail_msg("etcd does not start: see %s/log", server->folder);
}

void etcd_server_kill(struct etcd_server *server)
{
	kill(server->pid, SIGKILL);
	waitpid(server->pid, NULL, 0);
	server->pid = 0;
}

void etcd_server_remove(struct etcd_server *server)
{
	char command[128];

	if (server->pid)
		etcd_server_kill(server);
	snprintf(command, sizeof(command), "rm -rf %s", server->folder);
	assert_int_equal(system(command), 0);
	*server = (struct etcd_server){ 0 };
}
