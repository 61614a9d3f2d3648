/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Checks of files and addresses in the configuration, for 'weir config check': is_usable in struct
 * cmdline_option. Each returns whether a service can use the file or address, else sets @error.
 */
#ifndef WEIR_APPS_CONFIG_USABLE_H
#define WEIR_APPS_CONFIG_USABLE_H

#include "apps/common/cmdline.h"

/* A key, and a donor's identity: of this user or root, and private. */
bool usable_key(const struct cmdline_option *option, const char *text, const void *options,
		struct weir_error *error);
bool usable_identity(const struct cmdline_option *option, const char *text, const void *options,
		     struct weir_error *error);

/* A list of keys, whose donor may be another user. */
bool usable_keys(const struct cmdline_option *option, const char *text, const void *options,
		 struct weir_error *error);

/* A private file with a certificate and its key. */
bool usable_pem(const struct cmdline_option *option, const char *text, const void *options,
		struct weir_error *error);

/* The rules of weir share. */
bool usable_rules(const struct cmdline_option *option, const char *text, const void *options,
		  struct weir_error *error);

/* A pool's name with a place, or a place. Nobody asks etcd. */
bool usable_pool(const struct cmdline_option *option, const char *text, const void *options,
		 struct weir_error *error);

/* Where pages are served: the address of a struct http_options, which may need its certificate. */
bool usable_page_address(const struct cmdline_option *option, const char *text,
			 const void *options, struct weir_error *error);

#endif
