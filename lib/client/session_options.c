/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/sized.h"
#include "lib/client/session_options.h"
#include "lib/client/session.h"
#include "lib/conn/encryption.h"

/* Choices of each preset, where the user makes none: see RDMAbox, section VI-B. */
static const struct option_preset {
	enum weir_batching batching;
	enum weir_mr mr;
	enum weir_polling polling;
} presets[] = {
	[WEIR_PRESET_RDMABOX] = { WEIR_BATCHING_HYBRID, WEIR_MR_AUTO, WEIR_POLLING_ADAPTIVE },
	[WEIR_PRESET_SINGLE] = { WEIR_BATCHING_SINGLE, WEIR_MR_AUTO, WEIR_POLLING_ADAPTIVE },
	[WEIR_PRESET_ACCELIO] = { WEIR_BATCHING_DOORBELL, WEIR_MR_DYN, WEIR_POLLING_EVENT_BATCH },
};

static void apply_preset(struct weir_session_options *o, struct weir_session_tuning *t,
			 const struct option_preset *preset)
{
	if (!t->batching)
		t->batching = preset->batching;
	if (!t->mr)
		t->mr = preset->mr;
	if (!o->polling)
		o->polling = preset->polling;
}

static void fill_defaults(struct weir_session_options *o, struct weir_session_tuning *t)
{
	if (!t->admission)
		t->admission = WEIR_ADMISSION_STATIC;
	t->window_wrs = t->window_wrs ? t->window_wrs : WEIR_WINDOW_WRS_DEFAULT;
	o->channels = o->channels ? o->channels : WEIR_CHANNELS_DEFAULT;
	if (!t->cqs)
		t->cqs = o->polling == WEIR_POLLING_SCQ ? 1 : o->channels;
	o->unload = o->unload ? o->unload : WEIR_UNLOAD_OFF;
	t->unload_hot_pages = t->unload_hot_pages ? t->unload_hot_pages :
						    WEIR_PATH_HOT_PAGES_DEFAULT;
	t->depth = t->depth ? t->depth : WEIR_DEPTH_DEFAULT;
	t->window_bytes = t->window_bytes ? t->window_bytes : WEIR_WINDOW_BYTES_DEFAULT;
	t->fragment_bytes = t->fragment_bytes ? t->fragment_bytes : WEIR_FRAGMENT_BYTES_DEFAULT;
	t->chain_max = t->chain_max ? t->chain_max : WEIR_BATCH_MAX;
	o->timeout_ns = o->timeout_ns ? o->timeout_ns : WEIR_TIMEOUT_NS_DEFAULT;
	o->keepalive_ns = o->keepalive_ns ? o->keepalive_ns : WEIR_KEEPALIVE_NS_DEFAULT;
	if (!t->pool_bytes_max)
		t->pool_bytes_max = t->mr == WEIR_MR_PRE ? WEIR_POOL_BYTES_DEFAULT_PRE :
							   WEIR_POOL_BYTES_DEFAULT;
	if (!o->retries)
		o->retries = WEIR_RETRIES_DEFAULT;
	else if (o->retries == WEIR_RETRIES_NONE)
		o->retries = 0;
	t->poll_wcs_max = t->poll_wcs_max ? t->poll_wcs_max : WEIR_POLL_WCS_MAX;
	t->poll_percent_max = t->poll_percent_max ? t->poll_percent_max : WEIR_POLL_PERCENT_DEFAULT;
}

static int check_numbers(const struct weir_session_options *o, const struct weir_session_tuning *t,
			 struct weir_error *error)
{
	const struct {
		uint64_t value, min, max;
		const char *what;
	} bounds[] = {
		{ o->channels, 1, WEIR_CHANNEL_MAX - (o->unload > WEIR_UNLOAD_OFF),
		  o->unload > WEIR_UNLOAD_OFF ? "channels beside the unload channel" : "channels" },
		{ t->cqs, 1, o->polling == WEIR_POLLING_SCQ ? WEIR_CHANNEL_MAX : o->channels,
		  "completion queues" },
		{ t->depth, 1, WEIR_DEPTH_MAX, "work requests of depth" },
		{ t->window_bytes, WEIR_WINDOW_BYTES_MIN, UINT64_MAX, "bytes of window" },
		{ t->fragment_bytes, WEIR_FRAGMENT_BYTES_MIN, WEIR_FRAGMENT_BYTES_MAX,
		  "bytes of fragment" },
		{ t->chain_max, 1, WEIR_BATCH_MAX, "work requests in a chain" },
		{ t->pool_bytes_max, WEIR_BOUNCE_POOL_BYTES, SIZE_MAX, "bytes of buffers" },
		{ o->retries, 0, UINT8_MAX, "retries" },
		{ o->keepalive_ns, WEIR_NS_PER_MS, UINT64_MAX, "nanoseconds between keep-alives" },
		{ t->poll_wcs_max, 1, WEIR_POLL_WCS_MAX, "completions at a time" },
		{ t->poll_percent_max, 1, 100, "percent of the time" },
		{ t->weight, 0, WEIR_SCHED_WEIGHT_MAX, "parts of weight" },
	};
	unsigned int i;

	for (i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
		if (bounds[i].value < bounds[i].min)
			return weir_error_set(error, -EINVAL, "%llu %s are too few: at least %llu",
					      (unsigned long long)bounds[i].value, bounds[i].what,
					      (unsigned long long)bounds[i].min);
		if (bounds[i].value > bounds[i].max)
			return weir_error_set(error, -EINVAL, "%llu %s are too many: at most %llu",
					      (unsigned long long)bounds[i].value, bounds[i].what,
					      (unsigned long long)bounds[i].max);
	}
	return 0;
}

static int check_choices(const struct weir_session_options *o, const struct weir_session_tuning *t,
			 struct weir_error *error)
{
	const struct {
		unsigned int value, max;
		const char *what;
	} choices[] = {
		{ o->preset, WEIR_PRESET_ACCELIO, "preset" },
		{ t->batching, WEIR_BATCHING_HYBRID, "way of batching" },
		{ t->admission, WEIR_ADMISSION_KNEE_WRS, "way of admission" },
		{ t->mr, WEIR_MR_DYN, "way to register memory" },
		{ o->polling, WEIR_POLLING_SCQ, "way of polling" },
		{ o->unload, WEIR_UNLOAD_MEASURED, "way of unloading" },
		{ t->class_nr, WEIR_CLASS_BULK, "class" },
	};
	unsigned int i;

	for (i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
		if (choices[i].value > choices[i].max)
			return weir_error_set(error, -EINVAL,
					      "there is no %s number %u: at most %u",
					      choices[i].what, choices[i].value, choices[i].max);
	}
	return 0;
}

static int check_window_policy(const struct weir_session_tuning *t, struct weir_error *error)
{
	struct weir_window_policy policy;
	int rc;

	if (!t->window_policy)
		return 0;
	if (t->admission)
		return weir_error_set(error, -EINVAL,
				      "a policy of the window and way of admission number %u: "
				      "choose one",
				      t->admission);
	rc = weir_sized_in(&policy, sizeof(policy), t->window_policy, "weir_window_policy", error);
	if (!rc && !policy.completed)
		return weir_error_set(error, -EINVAL, "the policy of the window has no completed");
	return rc;
}

int weir_session_options_fill(struct weir_session_options *filled,
			      struct weir_session_tuning *tuning,
			      const struct weir_session_options *given, struct weir_error *error)
{
	int rc = weir_sized_in(filled, sizeof(*filled), given, "weir_session_options", error);

	if (!rc)
		rc = weir_sized_in(tuning, sizeof(*tuning), filled->tuning, "weir_session_tuning",
				   error);
	if (!rc)
		rc = check_choices(filled, tuning, error);
	if (!rc)
		rc = check_window_policy(tuning, error);
	if (rc)
		return rc;
	filled->tuning = tuning;
	if (!filled->preset)
		filled->preset = WEIR_PRESET_RDMABOX;
	apply_preset(filled, tuning, &presets[filled->preset]);
	fill_defaults(filled, tuning);
	if (filled->no_thread && filled->polling == WEIR_POLLING_SCQ)
		return weir_error_set(error, -EINVAL,
				      "shared completion queues need a thread: "
				      "do not combine them with no_thread");
	if (filled->unload > WEIR_UNLOAD_OFF && filled->polling == WEIR_POLLING_SCQ)
		return weir_error_set(error, -EINVAL,
				      "the unload channel completes on a queue of its own: "
				      "do not combine it with shared completion queues");
	rc = weir_encryption_check(filled->encryption, filled->key, error);
	return rc ? rc : check_numbers(filled, tuning, error);
}
