/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lib/span/settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/base/error.h"

#define RANDOM_BITS 56 /* of a trace's id, by W3C's Trace Context, level 2 */
#define ALL (1ull << RANDOM_BITS)
#define TRACEPARENT_LENGTH 55u /* of version 00; later versions may have more */
#define PAIR_MAX 256u
#define TRACES "/v1/traces"

static const char *value_of(char *(*get)(const char *name), const char *name)
{
	const char *value = get(name);

	return value && *value ? value : NULL;
}

/* Return: whether the value was taken. */
static bool take_text(char *text, size_t size, const char *name, const char *value,
		      struct weir_error *warning)
{
	if (strlen(value) < size && !strpbrk(value, "\r\n")) {
		strcpy(text, value);
		return true;
	}
	weir_error_set(warning, -EINVAL, "%s is ignored: it is longer than %zu bytes, or has line "
		       "breaks", name, size - 1);
	return false;
}

static void read_endpoint(struct weir_span_settings *s, char *(*get)(const char *name),
			  struct weir_error *warning)
{
	const char *exporter = value_of(get, "OTEL_TRACES_EXPORTER");
	const char *disabled = value_of(get, "OTEL_SDK_DISABLED");
	const char *traces = value_of(get, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
	const char *base = value_of(get, "OTEL_EXPORTER_OTLP_ENDPOINT");
	const char *name = traces ? "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" :
				    "OTEL_EXPORTER_OTLP_ENDPOINT";
	char url[sizeof(s->endpoint) - sizeof(TRACES) + 1];
	size_t length;

	if ((disabled && !strcasecmp(disabled, "true")) || (exporter && !strcmp(exporter, "none")))
		return;
	if (!traces && !base)
		return;
	if (!take_text(url, sizeof(url), name, traces ? traces : base, warning))
		return;
	if (strncmp(url, "http://", 7) && strncmp(url, "https://", 8)) {
		weir_error_set(warning, -EINVAL, "%s=%s is ignored: expected http://HOST:4318",
			       name, url);
		return;
	}
	length = strlen(url);
	while (!traces && url[length - 1] == '/')
		url[--length] = '\0';
	snprintf(s->endpoint, sizeof(s->endpoint), "%s%s", url, traces ? "" : TRACES);
}

static void read_service(struct weir_span_settings *s, char *(*get)(const char *name),
			 struct weir_error *warning)
{
	const char *service = value_of(get, "OTEL_SERVICE_NAME"), *list = s->attributes;
	char name[PAIR_MAX], value[PAIR_MAX];

	snprintf(s->service, sizeof(s->service), "%s", program_invocation_short_name);
	while (weir_span_settings_pair(&list, name, value, sizeof(name)))
		if (!strcmp(name, "service.name"))
			snprintf(s->service, sizeof(s->service), "%.*s",
				 (int)sizeof(s->service) - 1, value);
	if (service)
		take_text(s->service, sizeof(s->service), "OTEL_SERVICE_NAME", service, warning);
}

/* The argument of a sampler by ratio. */
static uint64_t read_skips(char *(*get)(const char *name), struct weir_error *warning)
{
	const char *text = value_of(get, "OTEL_TRACES_SAMPLER_ARG");
	double ratio = 1;
	char *end;

	if (!text)
		return 0;
	ratio = strtod(text, &end);
	if (*end || !(ratio >= 0 && ratio <= 1)) {
		weir_error_set(warning, -EINVAL,
			       "OTEL_TRACES_SAMPLER_ARG=%s is ignored: expected 0 to 1", text);
		return 0;
	}
	return (uint64_t)((1 - ratio) * (double)ALL);
}

static void read_sampler(struct weir_span_settings *s, char *(*get)(const char *name),
			 struct weir_error *warning)
{
	const char *sampler = value_of(get, "OTEL_TRACES_SAMPLER");
	const char *kind = sampler ? sampler : "parentbased_always_on";

	s->follows_parent = !strncmp(kind, "parentbased_", strlen("parentbased_"));
	if (s->follows_parent)
		kind += strlen("parentbased_");
	if (!strcmp(kind, "always_off")) {
		s->skips = ALL;
	} else if (!strcmp(kind, "traceidratio")) {
		s->skips = read_skips(get, warning);
	} else if (strcmp(kind, "always_on")) {
		s->follows_parent = true;
		weir_error_set(warning, -EINVAL,
			       "OTEL_TRACES_SAMPLER=%s is ignored: expected always_on, always_off "
			       "or traceidratio, or parentbased_ and one of these", sampler);
	}
}

/* Reads @digits hexadecimal digits, in lower case. */
static bool read_hex(const char *text, unsigned int digits, uint64_t *value)
{
	*value = 0;
	for (unsigned int i = 0; i < digits; i++) {
		if (!isdigit((unsigned char)text[i]) && !(text[i] >= 'a' && text[i] <= 'f'))
			return false;
		*value = *value << 4 | (uint64_t)(text[i] <= '9' ? text[i] - '0' :
								   text[i] - 'a' + 10);
	}
	return true;
}

/* VERSION-TRACE-PARENT-FLAGS, of 2, 32, 16 and 2 digits. */
static void read_parent(struct weir_span_settings *s, char *(*get)(const char *name),
			struct weir_error *warning)
{
	const char *text = value_of(get, "TRACEPARENT");
	uint64_t version, flags;
	size_t length;

	if (!text)
		return;
	length = strlen(text);
	s->has_parent = length >= TRACEPARENT_LENGTH && read_hex(text, 2, &version) &&
			text[2] == '-' && read_hex(text + 3, 16, &s->trace[0]) &&
			read_hex(text + 19, 16, &s->trace[1]) && text[35] == '-' &&
			read_hex(text + 36, 16, &s->parent) && text[52] == '-' &&
			read_hex(text + 53, 2, &flags) && version != 0xff &&
			(length == TRACEPARENT_LENGTH ||
			 (version && text[TRACEPARENT_LENGTH] == '-')) &&
			(s->trace[0] | s->trace[1]) && s->parent;
	if (s->has_parent)
		s->parent_is_sampled = flags & 1;
	else
		weir_error_set(warning, -EINVAL, "TRACEPARENT=%s is ignored: expected "
			       "00-TRACE-PARENT-FLAGS", text);
}

void weir_span_settings_read(struct weir_span_settings *s, char *(*get)(const char *name),
			     struct weir_error *warning)
{
	const char *list;

	*s = (struct weir_span_settings){ 0 };
	if (warning)
		*warning->text = '\0';
	read_endpoint(s, get, warning);
	if (!*s->endpoint)
		return;
	list = value_of(get, "OTEL_RESOURCE_ATTRIBUTES");
	if (list)
		take_text(s->attributes, sizeof(s->attributes), "OTEL_RESOURCE_ATTRIBUTES", list,
			  warning);
	list = value_of(get, "OTEL_EXPORTER_OTLP_HEADERS");
	if (list)
		take_text(s->headers, sizeof(s->headers), "OTEL_EXPORTER_OTLP_HEADERS", list,
			  warning);
	read_service(s, get, warning);
	read_sampler(s, get, warning);
	read_parent(s, get, warning);
}

bool weir_span_settings_sample(const struct weir_span_settings *s, const uint64_t trace[2])
{
	if (s->has_parent && s->follows_parent)
		return s->parent_is_sampled;
	return (trace[1] & (ALL - 1)) >= s->skips;
}

/* Decodes %XX, without spaces at both ends. Return: false: malformed or too long. */
static bool decode(const char *from, const char *end, char *to, size_t size)
{
	uint64_t byte;

	while (from < end && *from == ' ')
		from++;
	while (end > from && end[-1] == ' ')
		end--;
	for (; from < end; from++) {
		char hex[2] = { 0 };

		if (!--size)
			return false;
		*to++ = *from;
		if (*from != '%')
			continue;
		if (end - from < 3)
			return false;
		hex[0] = (char)tolower((unsigned char)from[1]);
		hex[1] = (char)tolower((unsigned char)from[2]);
		if (!read_hex(hex, 2, &byte) || byte < ' ')
			return false;
		to[-1] = (char)byte;
		from += 2;
	}
	*to = '\0';
	return true;
}

bool weir_span_settings_pair(const char **list, char *name, char *value, size_t size)
{
	while (**list) {
		const char *from = *list, *end = from + strcspn(from, ",");
		const char *equals = memchr(from, '=', (size_t)(end - from));

		*list = *end ? end + 1 : end;
		if (equals && decode(from, equals, name, size) && *name &&
		    decode(equals + 1, end, value, size))
			return true;
	}
	return false;
}
