/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who else claims a port: the names of the sockets that hold one, and what excludes what.
 */
#ifndef WEIR_SOFTNIC_CM_CLAIMS_H
#define WEIR_SOFTNIC_CM_CLAIMS_H

#include <stddef.h>
#include <stdint.h>

#define CM_CLAIM_ADDR_MAX 64

/**
 * struct cm_claim - an address and port that somebody has
 * @addr: as text; that of a link-local address ends in %SCOPE
 * @port: in the host's order
 * @token: 0, or a number that tells claims with RDMA_OPTION_ID_REUSEADDR from each other
 */
struct cm_claim {
	char addr[CM_CLAIM_ADDR_MAX];
	uint16_t port;
	uint32_t token;
};

/**
 * cm_claim_name() - the name of the socket that holds a claim
 * @name: gets the name, without the zero byte that makes it abstract
 * @size: of @name; 107 bytes are enough
 * @space: the port space
 *
 * Return: its length.
 */
int cm_claim_name(char *name, size_t size, const char *space, const struct cm_claim *claim);

/**
 * cm_claim_parse() - the reverse of cm_claim_name()
 *
 * Return: 0, or -EINVAL: it is no name of this user's in @space.
 */
int cm_claim_parse(struct cm_claim *claim, const char *space, const char *name);

/**
 * cm_claim_conflict() - may both be held?
 *
 * The rule and its errors are those of the kernel's rdma_cm.
 *
 * Return: 0, -EADDRINUSE: it is one address; -EADDRNOTAVAIL: one of them is a wildcard.
 */
int cm_claim_conflict(const struct cm_claim *a, const struct cm_claim *b);

/**
 * cm_claims_check() - does anybody of this user hold what excludes a claim?
 * @own_token: of a claim of the same id that is about to end; or 0
 *
 * @claim itself is held already, and not looked at. Connected sockets hold nothing: those that
 * accept() returned have the name of their listener. Where /proc is missing nobody is found.
 *
 * Return: as cm_claim_conflict().
 */
int cm_claims_check(const char *space, const struct cm_claim *claim, uint32_t own_token);

#endif
