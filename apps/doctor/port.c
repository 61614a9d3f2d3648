/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Checks whether the donor's port is free. librdmacm has its own ports, separate from TCP's. */
#include "apps/doctor/check.h"
#include "softnic/control/squatter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weir/session.h>

/*
 * A listener on a specific address keeps others off the wildcard: rdma_cm then returns
 * EADDRNOTAVAIL.
 */
static int try_to_listen(void)
{
	struct sockaddr_in any = {
		.sin_family = AF_INET,
		.sin_port = htons(WEIR_PORT_DEFAULT),
	};
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = NULL;
	int error = 0;

	if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(id, (struct sockaddr *)&any) || rdma_listen(id, 1))
		error = errno;
	if (id)
		rdma_destroy_id(id);
	if (channel)
		rdma_destroy_event_channel(channel);
	return error;
}

/* In a child: a process that has used a device should not fork, and check_path() forks. */
static int try_in_child(void)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(try_to_listen());
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

/* Any process may bind the names of another user's softnics, and so keep these from the device. */
static void report_names_taken(struct report *report)
{
	char holder[64] = "a process that does not answer";
	uid_t uid;

	if (!softnic_squatter_find(&uid)) {
		report_add(report, "port", VERDICT_FAIL,
			   "this user's processes use all of softnic's names");
		report_remedy(report, "end some: weir stat lists them");
		return;
	}
	if (uid != SQUATTER_UNKNOWN)
		snprintf(holder, sizeof(holder), "another user's process (user %u)",
			 (unsigned int)uid);
	report_add(report, "port", VERDICT_FAIL, "%s holds softnic's names", holder);
	report_remedy(report, "as root, find and end the process: ss -xlp | grep @weir-softnic-%u-",
		      (unsigned int)geteuid());
}

void check_port(struct report *report)
{
	int error = try_in_child();

	switch (error) {
	case 0:
		report_add(report, "port", VERDICT_OK, "%u is free for a donor", WEIR_PORT_DEFAULT);
		break;
	case EADDRINUSE:
	case EADDRNOTAVAIL:
		report_add(report, "port", VERDICT_OK, "%u is taken, probably by a donor",
			   WEIR_PORT_DEFAULT);
		report_remedy(report, "for a second donor: weir serve --listen ADDRESS:PORT");
		break;
	case EUSERS:
		report_names_taken(report);
		break;
	default:
		report_add(report, "port", VERDICT_FAIL, "cannot listen for RDMA connections: %s",
			   strerror(error));
		report_remedy(report,
			      "modprobe rdma_ucm; between hosts let UDP port 4791 (RoCE v2) pass");
	}
}
