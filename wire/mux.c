/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "wire/mux.h"

static bool window_is_valid(uint32_t bytes)
{
	return bytes >= WIRE_MUX_WINDOW_MIN && bytes <= WIRE_MUX_WINDOW_MAX;
}

static bool grant_is_valid(const struct wire_mux_control *m)
{
	return m->to && m->from && m->rights &&
	       m->rights <= (WIRE_MUX_MAY_READ | WIRE_MUX_MAY_WRITE) && m->length &&
	       m->position + m->length > m->position;
}

/* The receiver's ring, which the peer writes to; stream positions are taken modulo its length. */
static bool ring_is_valid(const struct wire_mux_control *m)
{
	if (!window_is_valid(m->value) || m->rights || m->length > UINT32_MAX)
		return false;
	if (!m->position)
		return !m->length;
	return !(m->value & (m->value - 1)) && m->position + m->value > m->position;
}

static bool is_valid(const struct wire_mux_control *m)
{
	if (m->type == WIRE_MUX_GRANT)
		return grant_is_valid(m);
	if (m->type == WIRE_MUX_OPEN)
		return m->from && ring_is_valid(m);
	if (m->type == WIRE_MUX_ACCEPT)
		return m->to && m->from && ring_is_valid(m);
	if (m->rights || m->length)
		return false;
	switch (m->type) {
	case WIRE_MUX_REFUSE:
		return m->to && !m->from && m->value && m->value < 4096 && !m->position;
	case WIRE_MUX_CREDIT:
		return m->to && !m->from && !m->value;
	case WIRE_MUX_FIN:
		return m->to && !m->from && m->value < 4096 && !m->position;
	case WIRE_MUX_WITHDRAW:
	case WIRE_MUX_WITHDRAWN:
		return m->to && m->from && !m->value && !m->position;
	case WIRE_MUX_LEAVE:
	case WIRE_MUX_LEFT:
	case WIRE_MUX_STAY:
		return !m->to && !m->from && !m->value && !m->position;
	default:
		return false;
	}
}

int wire_mux_control_decode(const void *data, size_t length, struct wire_mux_control *out)
{
	struct wire_mux_control m;

	if (length != sizeof(m))
		return -EPROTO;
	memcpy(&m, data, sizeof(m));
	if (!is_valid(&m))
		return -EPROTO;
	*out = m;
	return 0;
}
