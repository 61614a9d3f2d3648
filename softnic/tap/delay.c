// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <stdlib.h>
#include <string.h>

#include "softnic/control/fault.h"
#include "softnic/loop/loop.h"
#include "softnic/tap/delay.h"

enum { WAITING_MAX = 16384, HOLD_NS = 1000000 };

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
	struct late_packet *held;
	struct softnic_timer hold_timer;
} late;

static struct late_packet *copy_packet(const struct udp_path *path, const uint8_t *bytes,
				       size_t size)
{
	struct late_packet *p = malloc(sizeof(*p) + size);

	if (!p)
		return NULL;
	*p = (struct late_packet){ .path = *path, .size = size };
	memcpy(p->bytes, bytes, size);
	return p;
}

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
	struct late_packet *p =
		late.count < WAITING_MAX ? copy_packet(path, bytes, size) : NULL;

	if (!p)
		return;
	p->due_ns = softnic_loop_now_ns() + delay_ns;
	late.count++;
	if (late.first) {
		*late.end = p;
	} else {
		late.first = p;
		softnic_timer_arm(&late.timer, delay_ns, release);
	}
	late.end = &p->next;
}

void delay_release_held(void)
{
	uint64_t delay_ns = fault_packet_delay_ns();
	struct late_packet *p = late.held;

	if (!p)
		return;
	late.held = NULL;
	if (delay_ns)
		delay_packet(&p->path, p->bytes, p->size, delay_ns);
	else
		send_late(&p->path, p->bytes, p->size);
	free(p);
}

static void hold_ends(struct softnic_timer *timer)
{
	(void)timer;
	send_begin();
	delay_release_held();
	send_end();
}

bool delay_hold(const struct udp_path *path, const uint8_t *bytes, size_t size)
{
	if (late.held)
		return false;
	late.held = copy_packet(path, bytes, size);
	if (late.held)
		softnic_timer_arm(&late.hold_timer, HOLD_NS, hold_ends);
	return late.held;
}

void delay_reset(void)
{
	struct late_packet *p;

	free(late.held);
	while ((p = late.first)) {
		late.first = p->next;
		free(p);
	}
	memset(&late, 0, sizeof(late));
}
