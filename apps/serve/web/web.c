/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/serve/web/web.h"

#include "apps/serve/web/state.h"
#include "page.h"

static void write_index(struct http_answer *answer, void *arg)
{
	(void)arg;
	answer->type = "text/html; charset=utf-8";
	fwrite(page_index_html, 1, sizeof(page_index_html), answer->out);
}

static void write_style(struct http_answer *answer, void *arg)
{
	(void)arg;
	answer->type = "text/css; charset=utf-8";
	fwrite(page_weir_css, 1, sizeof(page_weir_css), answer->out);
}

static void write_script(struct http_answer *answer, void *arg)
{
	(void)arg;
	answer->type = "text/javascript; charset=utf-8";
	fwrite(page_weir_js, 1, sizeof(page_weir_js), answer->out);
}

static void write_icon(struct http_answer *answer, void *arg)
{
	(void)arg;
	answer->type = "image/svg+xml";
	fwrite(page_icon_svg, 1, sizeof(page_icon_svg), answer->out);
}

static void write_state(struct http_answer *answer, void *arg)
{
	answer->type = "application/json";
	state_write(answer->out, arg);
}

/* The browser loads nothing else, runs no other script, and shows the page in no other page. */
static const struct http_header headers[] = {
	{ "Content-Security-Policy",
	  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
	  "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
	  "require-trusted-types-for 'script'" },
	{ "X-Content-Type-Options", "nosniff" },
	{ "Referrer-Policy", "no-referrer" },
	{ "Cross-Origin-Opener-Policy", "same-origin" },
	{ "Cross-Origin-Resource-Policy", "same-origin" },
	{ "Cache-Control", "no-store" },
	{ NULL },
};

int web_open(struct http_server **server, const char *cmd, const struct http_options *options,
	     struct weir_donor *donor)
{
	static const struct http_page pages[] = {
		{ "/", write_index },	     { "/weir.css", write_style },
		{ "/weir.js", write_script }, { "/icon.svg", write_icon },
		{ "/state.json", write_state }, { NULL },
	};
	const struct http_site site = {
		.what = "page",
		.home = "/",
		.pages = pages,
		.headers = headers,
		.arg = donor,
	};

	return http_server_open(server, cmd, options, &site);
}
