/*
 * client_owner.h - a client between a scripted peer and an owner that notes what it is told.
 */
#ifndef CLIENT_OWNER_H
#define CLIENT_OWNER_H

#include "base.h"
#include "client.h"
#include "fake_recorder.h"
#include "peer.h"

struct owner_seen {
	int phases, drained, closed, logs, failures, gone, released, hurries, answers;
	enum gt_plan_state answer; /* the last one */
	char log[128];
	char failure[512];
	struct gt_client_info info; /* as last told */
};

extern struct owner_seen seen;
extern uv_loop_t loop;
extern struct gt_client *client; /* NULL: released */
extern int peer;                 /* the other end, -1: closed */
extern pid_t process;            /* the traced one: a child that only lives; -1: ended */
extern struct gt_client_config config;

/* Set-up and tear-down: a new loop with a client that has connected. Nothing may be left over. */
int owner_start(void **state);
int owner_stop(void **state);

/* Connect another client, as this user. What gt_client_new() returned. */
int owner_connect(uid_t uid);

void owner_end_process(void);
void owner_close_peer(void);
void owner_run_until(const int *counter, int want);

/* For uv_timer_start(): ticks of the collector. */
void owner_tick(uv_timer_t *timer);

#define OWNER_TEST(name) cmocka_unit_test_setup_teardown(name, owner_start, owner_stop)

#endif
