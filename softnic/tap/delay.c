// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <stdlib.h>
#include <string.h>

#include "softnic/loop/loop.h"
#include "softnic/tap/delay.h"

enum { WAITING_MAX = 16384 };

struct late_packet {
	struct late_packet *next;
	uint64_t due_ns;
	struct udp_path path;
	size_t size;
	uint8_t bytes[];
};

/* Under udp.lock. */
static struct {
	struct late_packet *first, **end;
	uint32_t count;
	struct softnic_timer timer;
} late;

static void release(struct softnic_timer *timer)
{
	uint64_t now_ns = softnic_loop_now_ns();
	struct late_packet *p;

	send_begin();
	while ((p = late.first) && p->due_ns <= now_ns) {
		send_late(&p->path, p->bytes, p->size);
		late.first = p->next;
		late.count--;
		free(p);
	}
	if (p)
		softnic_timer_arm(timer, p->due_ns - now_ns, release);
	send_end();
}

void delay_packet(const struct udp_path *path, const uint8_t *bytes, size_t size,
		  uint64_t delay_ns)
{
	struct late_packet *p = late.count < WAITING_MAX ? malloc(sizeof(*p) + size) : NULL;

	if (!p)
		return;
	p->next = NULL;
	p->due_ns = softnic_loop_now_ns() + delay_ns;
	p->path = *path;
	p->size = size;
	memcpy(p->bytes, bytes, size);
	late.count++;
	if (late.first) {
		*late.end = p;
	} else {
		late.first = p;
		softnic_timer_arm(&late.timer, delay_ns, release);
	}
	late.end = &p->next;
}

void delay_reset(void)
{
	struct late_packet *p;

	while ((p = late.first)) {
		late.first = p->next;
		free(p);
	}
	memset(&late, 0, sizeof(late));
}
