/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/common/notify.h"

#include "apps/common/number.h"
#include "lib/base/clock.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define TEXT_MAX 512

static void send_text(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	socklen_t length;
	int fd;

	if (!path || strlen(path) < 2 || strlen(path) >= sizeof(at.sun_path))
		return;
	memcpy(at.sun_path, path, strlen(path));
	length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	if (path[0] == '@')
		at.sun_path[0] = '\0'; /* an abstract socket */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	(void)!sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&at, length);
	close(fd);
}

void notify_ready(const char *format, ...)
{
	char text[TEXT_MAX] = "READY=1\nSTATUS=";
	size_t used = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + used, sizeof(text) - used, format, args);
	va_end(args);
	send_text(text);
}

void notify_reloading(void)
{
	char text[TEXT_MAX];

	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, weir_now_ns() / 1000);
	send_text(text);
}

void notify_stopping(void)
{
	send_text("STOPPING=1");
}

uint64_t notify_interval_ns(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	uint64_t allowed_us, wanted;

	if (!usec || !number_parse(usec, 1, UINT64_MAX / 1000, &allowed_us))
		return 0;
	if (pid && (!number_parse(pid, 1, INT32_MAX, &wanted) || wanted != (uint64_t)getpid()))
		return 0;
	return allowed_us * 1000 / 3;
}

void notify_alive(void)
{
	send_text("WATCHDOG=1");
}
