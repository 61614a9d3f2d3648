/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A donor: lends 64 MiB on the given address, and upper-cases what clients call it with.
 *
 *	donor 127.0.0.1:7474
 */
#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <weir/weir.h>

static void on_message(void *arg, struct weir_peer *peer, struct weir_call *call, const void *data,
		       size_t length)
{
	char text[WEIR_MESSAGE_MAX];
	size_t i;

	(void)arg;
	for (i = 0; i < length; i++)
		text[i] = (char)toupper(((const unsigned char *)data)[i]);
	if (call)
		weir_reply(call, text, length); /* the client waits for an answer */
	else
		weir_peer_send(peer, text, length); /* it does not, but gets a message */
}

int main(int argc, char **argv)
{
	struct weir_donor_options options = {
		.size = sizeof(options),
		.listen = argc > 1 ? argv[1] : "127.0.0.1",
		.memory_bytes = 64 << 20,
		.on_message = on_message,
	};
	struct weir_donor_info info;
	struct weir_donor *donor;
	struct weir_error error;
	sigset_t signals;
	int signal;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL); /* before the donor's thread inherits the mask */

	if (weir_donor_open(&options, &donor, &error)) {
		fprintf(stderr, "donor: %s\n", error.text);
		return 1;
	}
	weir_donor_info(donor, &info, sizeof(info));
	printf("%s\n", info.address);
	fflush(stdout);
	sigwait(&signals, &signal);
	weir_donor_close(donor);
	return 0;
}
