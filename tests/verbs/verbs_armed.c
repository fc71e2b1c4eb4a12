/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When a completion channel tells of completions (CQ-06). Some programs poll until there is
 * nothing, arm, and wait (UCX): what came in between has to be told. Others arm with the event and
 * poll then (perftest): they are not to hear of the same once more. With "ended": all who wait hear
 * of the dataplane's end.
 */
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "ends.h"

#define WAIT_MS 20000
#define WAITERS 16
#define ROUNDS  200

static struct end e[2];
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq; /* of what the first one receives */

/* The first end's receives complete into a queue with a channel. */
static void
open_all(void)
{
	int n;
	struct ibv_device **list = ibv_get_device_list(&n);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 32, .max_recv_sge = 1 } };
	struct ibv_recv_wr *bad;

	CHECK(list != NULL && n >= 2);
	end_open(&e[0], list[0]);
	end_open(&e[1], list[1]);
	ibv_free_device_list(list);
	CHECK((channel = ibv_create_comp_channel(e[0].ctx)) != NULL);
	CHECK((cq = ibv_create_cq(e[0].ctx, 32, NULL, channel, 0)) != NULL);
	init.send_cq = e[0].cq;
	init.recv_cq = cq;
	CHECK(ibv_destroy_qp(e[0].qp) == 0);
	CHECK((e[0].qp = ibv_create_qp(e[0].pd, &init)) != NULL);
	end_connect(&e[0], &e[1], 7);
	end_connect(&e[1], &e[0], 7);
	for (int i = 0; i < 32; i++)
		CHECK(ibv_post_recv(e[0].qp, &(struct ibv_recv_wr){ .wr_id = 1 }, &bad) == 0);
}

/* A message of the second one, and back comes its ACK: what it leaves at the first one is there. */
static void
message(enum ibv_wr_opcode opcode, unsigned int flags)
{
	struct ibv_send_wr wr = { .opcode = opcode, .send_flags = IBV_SEND_SIGNALED | flags }, *bad;
	struct ibv_wc wc;
	int n;

	CHECK(ibv_post_send(e[1].qp, &wr, &bad) == 0);
	while ((n = ibv_poll_cq(e[1].cq, 1, &wc)) == 0)
		;
	CHECK(n == 1 && wc.status == IBV_WC_SUCCESS);
}

static void
arrives(void)
{
	message(IBV_WR_SEND, 0);
}

static void
arms(int solicited_only)
{
	CHECK(ibv_req_notify_cq(cq, solicited_only) == 0);
}

static void
hears(void)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };
	struct ibv_cq *of;
	void *context;

	CHECK(poll(&p, 1, WAIT_MS) == 1);
	CHECK(ibv_get_cq_event(channel, &of, &context) == 0 && of == cq);
	ibv_ack_cq_events(cq, 1);
}

/* Some WRITEs of nothing there and back: the worker has looked what is due, more than once. */
static void
hears_nothing(void)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };

	for (int i = 0; i < 8; i++)
		message(IBV_WR_RDMA_WRITE, 0);
	CHECK(poll(&p, 1, 0) == 0);
}

static void
polls(int want)
{
	struct ibv_wc wc[32];

	CHECK(ibv_poll_cq(cq, 32, wc) == want);
}

static void
any_completion(void)
{
	/* One that is there, and that nobody was told of. */
	arrives();
	arms(0);
	hears();
	/* Armed with the event, polled then: no more of it. */
	arms(0);
	hears_nothing();
	polls(1);
	hears_nothing();
	/* Armed still. */
	arrives();
	hears();
	polls(1);
	/* Polled, but what came before it is armed is told. */
	polls(0);
	arrives();
	arms(0);
	hears();
	/* One that came behind the one that was told of. */
	arrives();
	arms(0);
	hears();
	polls(2);
	arms(0);
	hears_nothing();
	arms(0);
	hears_nothing();
}

static void
solicited_alone(void)
{
	arrives();
	hears();
	polls(1);
	arms(1);
	arrives();
	hears_nothing();
	polls(1);
	message(IBV_WR_SEND, IBV_SEND_SOLICITED);
	hears();
	polls(1);
	arrives();
	message(IBV_WR_SEND, IBV_SEND_SOLICITED);
	arrives();
	arms(1);
	hears();
	polls(3);
	arrives();
	arms(1);
	hears_nothing();
	arms(0);
	hears();
	polls(1);
}

/* ---- signals --------------------------------------------------------------------------------- */

static atomic_int signals;

static void
count(int number)
{
	(void)number;
	signals++;
}

static void
handle(int flags)
{
	const struct sigaction a = { .sa_handler = count, .sa_flags = flags };

	CHECK(sigaction(SIGUSR1, &a, NULL) == 0);
}

/* Until it has come three times while the other thread waits, or had time to. */
static void *
disturbs(void *other)
{
	for (int n = 0; n < 3; n++) {
		CHECK(pthread_kill(*(pthread_t *)other, SIGUSR1) == 0);
		while (signals == n)
			sched_yield();
	}
	arrives();
	return NULL;
}

/* As read(): a handler with SA_RESTART does not end the wait. */
static void
a_wait_goes_on(void)
{
	pthread_t self = pthread_self(), thread;
	struct ibv_cq *of;
	void *context;

	handle(SA_RESTART);
	arms(0);
	CHECK(pthread_create(&thread, NULL, disturbs, &self) == 0);
	CHECK(ibv_get_cq_event(channel, &of, &context) == 0 && of == cq);
	ibv_ack_cq_events(cq, 1);
	CHECK(pthread_join(thread, NULL) == 0 && signals == 3);
	polls(1);
}

static void *
disturbs_until_told(void *other)
{
	while (signals >= 0) {
		pthread_kill(*(pthread_t *)other, SIGUSR1);
		sched_yield();
	}
	return NULL;
}

static void
a_wait_ends(void)
{
	pthread_t self = pthread_self(), thread;
	struct ibv_cq *of;
	void *context;

	handle(0);
	signals = 0;
	CHECK(pthread_create(&thread, NULL, disturbs_until_told, &self) == 0);
	CHECK(ibv_get_cq_event(channel, &of, &context) == -1 && errno == EINTR);
	handle(SA_RESTART);
	signals = INT_MIN;
	CHECK(pthread_join(thread, NULL) == 0);
}

/* ---- the end --------------------------------------------------------------------------------- */

static _Atomic int told;

/* Each event wakes all of them, and one has it. */
static void *
waits(void *none)
{
	struct ibv_cq *of;
	void *context;

	while (ibv_get_cq_event(channel, &of, &context) == 0) {
		ibv_ack_cq_events(cq, 1);
		told++;
	}
	CHECK(errno == EIO);
	return none;
}

static void
end_the_dataplane(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct ucred who;
	socklen_t len = sizeof(who);

	strncpy(at.sun_path, getenv("ROCELANE_SOCKET"), sizeof(at.sun_path) - 1);
	CHECK(connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0);
	CHECK(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0);
	CHECK(kill(who.pid, SIGKILL) == 0);
}

static void
all_waits_end(void)
{
	struct timespec end;
	struct ibv_recv_wr *bad;
	pthread_t thread[WAITERS];

	for (int i = 0; i < WAITERS; i++)
		CHECK(pthread_create(&thread[i], NULL, waits, NULL) == 0);
	for (int n = 0; n < ROUNDS; n++) {
		arms(0);
		arrives();
		while (told == n)
			sched_yield();
		polls(1);
		CHECK(ibv_post_recv(e[0].qp, &(struct ibv_recv_wr){ .wr_id = 1 }, &bad) == 0);
	}
	end_the_dataplane();
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += WAIT_MS / 1000;
	for (int i = 0; i < WAITERS; i++)
		CHECK(pthread_timedjoin_np(thread[i], NULL, &end) == 0);
}

int
main(int argc, char **argv)
{
	open_all();
	if (argc > 1 && strcmp(argv[1], "ended") == 0) {
		all_waits_end();
		printf("told\n");
		return 0;
	}
	any_completion();
	solicited_alone();
	a_wait_goes_on();
	a_wait_ends();
	printf("told\n");
	return 0;
}
