/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the strict mode reports: a rule, the place that states the rule, and the words of the case.
 */
#ifndef WEIR_SOFTNIC_STRICT_FINDING_H
#define WEIR_SOFTNIC_STRICT_FINDING_H

/* X(NAME, name, the section of the InfiniBand specification, volume 1, or the manual page) */
#define STRICT_RULES(X)                                                           \
	X(LOCAL_ACCESS, "local-access", "InfiniBand 10.6.3; ibv_reg_mr(3)")       \
	X(REMOTE_ACCESS, "remote-access", "InfiniBand 10.6.3; ibv_reg_mr(3)")     \
	X(LENGTH, "length", "InfiniBand 11.6.2; ibv_poll_cq(3)")                  \
	X(SEND_QUEUE, "send-queue", "InfiniBand 10.8.6; ibv_post_send(3)")        \
	X(SEND_BUFFER, "send-buffer", "ibv_post_send(3)")                         \
	X(RECEIVE_BUFFER, "receive-buffer", "ibv_post_recv(3), ibv_post_send(3)") \
	X(OVERLAP, "overlap", "ibv_post_recv(3), ibv_post_send(3)")               \
	X(FENCE, "fence", "InfiniBand 10.8.3.3; ibv_post_send(3)")                \
	X(RNR, "rnr", "InfiniBand 9.7.5.2.8; ibv_modify_qp(3)")                   \
	X(ATOMIC, "atomic", "InfiniBand 9.4.5; ibv_post_send(3)")                 \
	X(DEPTH, "depth", "ibv_modify_qp(3)")                                     \
	X(CQ_OVERRUN, "cq-overrun", "ibv_poll_cq(3)")                             \
	X(REGION, "region", "ibv_post_send(3), ibv_dereg_mr(3)")                  \
	X(ADDRESS, "address-handle", "ibv_post_send(3)")                          \
	X(BUSY, "busy", "the manual page of the verb")                            \
	X(ACK, "ack", "ibv_get_cq_event(3), ibv_get_async_event(3)")              \
	X(POST, "post", "ibv_post_send(3), ibv_post_recv(3)")                     \
	X(STATE, "state", "InfiniBand 10.3.1; ibv_modify_qp(3)")                  \
	X(DESTROYED, "destroyed", "the manual page of the verb")                  \
	X(LEAK, "leak", "the manual page of the verb that frees it")

enum strict_rule {
#define STRICT_ENUM(NAME, name, source) STRICT_##NAME,
	STRICT_RULES(STRICT_ENUM)
#undef STRICT_ENUM
		STRICT_RULES_NUM,
};

/* The exit status of a program with findings that would exit with 0. */
enum { STRICT_EXIT_STATUS = 86 };

/**
 * strict_find() - report a finding, and end the program if the option says so
 * @format: the call, the object and the case
 *
 * Context: Any thread, any lock.
 */
void strict_find(enum strict_rule rule, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** strict_report_at_exit() - at exit, print the sum of findings; @leaks: objects left, too */
void strict_report_at_exit(int leaks);

/** strict_forget_findings() - in the child of a fork */
void strict_forget_findings(void);

#endif
