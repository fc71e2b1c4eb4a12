/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Channels of librdmacm, and those who are not to harm them: children that close what they have
 * inherited, threads that wait while another one closes, and threads that are cancelled.
 *
 *   verbs-channels fork|copies|vfork|daemon|first|reuse|refuse|late|hasty|cancelled
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "channels.h"

#define ROUNDS 100

/* As one that does not know that there has to be a path. */
static int (*const volatile opens)(const char *path, int flags, ...) = open;

/* ---- children -------------------------------------------------------------------------------- */

static void
ends_well(pid_t pid)
{
	int status;

	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

/* The parent's listener and channel are as before. */
static void
a_child_closes(pid_t (*begin)(void))
{
	const int fd = channel_new();
	const uint32_t listener = id_new(fd);
	pid_t pid;

	listen_at(fd, listener);
	pid = begin();
	if (pid == 0) {
		close(fd); /* before what it is made of */
		for (int i = 3; i < 256; i++)
			close(i);
		_exit(0);
	}
	ends_well(pid);
	is_good(fd);
	id_end(fd, listener);
	CHECK(close(fd) == 0);
}

static pid_t
clone_bare(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

/*
 * A command of a child on its parent's ids is refused; a channel of its own is good, and knows none
 * of them. The inherited one becomes its own with the first id.
 */
static void
a_child_has_its_own(pid_t (*begin)(void))
{
	const int fd = channel_new();
	const uint32_t parents = id_new(fd);
	uint32_t id;
	pid_t pid;

	is_good(fd);
	pid = begin();
	if (pid == 0) {
		const uint64_t one = 1;
		int own;

		CHECK(!destroy_id(fd, parents) && errno == EBADF);
		own = channel_new();
		CHECK(!destroy_id(own, parents) && errno == ENOENT);
		is_good(own);
		CHECK(create_id(fd, &id) && !destroy_id(fd, parents + 1) && errno == ENOENT);
		id_end(fd, id);
		is_good(fd);
		is_good(own);
		CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
		CHECK(close(fd) == 0);
		CHECK(eventfd(0, 0) == fd);
		CHECK(write(fd, &one, sizeof(one)) == sizeof(one));
		CHECK(close(own) == 0);
		_exit(0);
	}
	ends_well(pid);
	is_good(fd);
	id_end(fd, parents);
	CHECK(close(fd) == 0);
	/* The path is the kernel's to judge. */
	CHECK(opens(NULL, O_RDONLY) == -1 && errno == EFAULT);
}

/* Its memory is its parent's, who would go on with what ends with the child. */
static void
a_child_without_memory_opens_none(void)
{
	const int fd = channel_new();
	volatile int err = 0;
	pid_t pid;

	pid = vfork();
	if (pid == 0) {
		err = opens("/dev/infiniband/rdma_cm", O_RDWR) == -1 ? errno : 0;
		_exit(0);
	}
	ends_well(pid);
	CHECK(err == EOPNOTSUPP);
	is_good(fd);
	CHECK(close(fd) == 0);
}

/* The usual order of a server: the parent ends, and its child goes on with the channel. */
static void
a_daemon_goes_on(void)
{
	const int fd = channel_new();
	char done = 0;
	int ends[2];
	pid_t pid;

	CHECK(pipe(ends) == 0);
	pid = fork();
	if (pid == 0) {
		const int channel = channel_new();

		CHECK(daemon(1, 1) == 0);
		listen_at(channel, id_new(channel));
		is_good(channel);
		CHECK(write(ends[1], "x", 1) == 1);
		_exit(0);
	}
	ends_well(pid);
	CHECK(close(ends[1]) == 0 && read(ends[0], &done, 1) == 1 && close(ends[0]) == 0);
	is_good(fd);
	CHECK(close(fd) == 0);
}

/* A server may wait for events, by whatever way, before it makes its first id. */
static void
waits_first(int fd)
{
	struct epoll_event e = { .events = EPOLLIN };
	const int flags = fcntl(fd, F_GETFL), set = epoll_create1(EPOLL_CLOEXEC);
	struct rdma_ucm_event_resp event;
	uint32_t id;

	CHECK(fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0);
	CHECK(epoll_ctl(set, EPOLL_CTL_ADD, fd, &e) == 0);
	CHECK(!get_event(fd, &event) && errno == EAGAIN);
	id = id_new(fd);
	resolve(fd, id);
	CHECK(epoll_wait(set, &e, 1, 60000) == 1);
	CHECK(get_event(fd, &event) && event.id == id);
	id_end(fd, id);
	CHECK(close(set) == 0);
}

/* Or give the channel an id that was made elsewhere. */
static void
moves_first(int fd)
{
	const int own = channel_new();
	const uint32_t id = id_new(own);
	struct rdma_ucm_event_resp event;

	migrate(own, fd, id);
	resolve(fd, id);
	CHECK(get_event(fd, &event) && event.id == id);
	id_end(fd, id);
	CHECK(close(own) == 0);
}

static void
a_child_does_first(void (*first)(int fd))
{
	const int fd = channel_new(), parents = channel_new();
	struct rdma_ucm_event_resp event;
	pid_t pid;

	(void)id_new(parents);
	pid = fork();
	if (pid == 0) {
		first(fd);
		/* Nothing that it waits for would come: the ids are its parent's. */
		CHECK(!get_event(parents, &event) && errno == EBADF);
		_exit(0);
	}
	ends_well(pid);
	is_good(fd);
	is_good(parents);
	CHECK(close(fd) == 0 && close(parents) == 0);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* A channel's descriptor becomes another file's: what is written is that file's. */
static void
a_number_is_used_again(void)
{
	static const char word[] = "a line of some length";
	char got[sizeof(word)];
	int ends[2], fd = channel_new();

	CHECK(pipe(ends) == 0);
	for (int i = 0; i < 3; i++) {
		if (i == 0)
			CHECK(dup2(ends[1], fd) == fd);
		else if (i == 1)
			CHECK(dup3(ends[1], fd, O_CLOEXEC) == fd);
		else
			CHECK(close_range((unsigned int)fd, (unsigned int)fd, 0) == 0 &&
				fcntl(ends[1], F_DUPFD, fd) == fd);
		CHECK(write(fd, word, sizeof(word)) == sizeof(word));
		CHECK(read(ends[0], got, sizeof(got)) == sizeof(got));
		CHECK(memcmp(got, word, sizeof(word)) == 0);
		CHECK(close(fd) == 0);
		fd = channel_new();
	}
	CHECK(dup2(-1, fd) == -1 && errno == EBADF); /* and nothing was closed */
	is_good(fd);
	CHECK(close(fd) == 0);
}

/* ---- connections ----------------------------------------------------------------------------- */

static struct rdma_ucm_event_resp
expect(int fd, uint32_t event)
{
	struct rdma_ucm_event_resp e;

	CHECK(get_event(fd, &e) && e.event == event);
	return e;
}

/* As the kernel does it: the peer is refused, and does not wait for an answer. */
static void
an_accept_that_fails(void)
{
	const int s = channel_new(), c = channel_new();
	const uint32_t listener = id_new(s), id = id_new(c);
	struct resolve_route route = { HEADER(RESOLVE_ROUTE, route, 0), { .id = id } };
	struct connect ask = { HEADER(CONNECT, ask, 0),
		{ .conn_param = { .retry_count = 7, .valid = 1 }, .id = id } };
	struct accept yes = { HEADER(ACCEPT, yes, 0),
		{ .conn_param = { .private_data_len = 200, .valid = 1 } } }; /* room is for 196 */
	struct rdma_ucm_event_resp e;
	struct end ends[2];

	ends_open(ends, 7);
	listen_at(s, listener);
	resolve(c, id);
	expect(c, ADDR_RESOLVED);
	CHECK(write(c, &route, sizeof(route)) == sizeof(route));
	expect(c, ROUTE_RESOLVED);
	ask.in.conn_param.qp_num = ends[0].qp->qp_num;
	CHECK(write(c, &ask, sizeof(ask)) == sizeof(ask));
	yes.in.id = expect(s, CONNECT_REQUEST).id;
	yes.in.conn_param.qp_num = ends[1].qp->qp_num;
	CHECK(write(s, &yes, sizeof(yes)) == -1 && errno == EINVAL);
	e = expect(c, REJECTED);
	CHECK(e.id == id && e.status == 28);
	id_end(s, yes.in.id);
	id_end(s, listener);
	id_end(c, id);
	CHECK(close(s) == 0 && close(c) == 0);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *
waits(void *channel)
{
	struct rdma_ucm_event_resp e;

	while (get_event((int)(intptr_t)channel, &e))
		;
	CHECK(errno == EBADF || errno == EINVAL); /* the number may be another file's by now */
	return NULL;
}

/*
 * One waits for an event, which comes while another one closes the channel, as in rping. It may
 * wait for ever, as with the kernel's.
 */
static void
one_closes_while_another_waits(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		const int fd = channel_new();
		const uint32_t id = id_new(fd);
		pthread_t thread;

		CHECK(pthread_create(&thread, NULL, waits, (void *)(intptr_t)fd) == 0);
		CHECK(pthread_detach(thread) == 0);
		resolve(fd, id);
		CHECK(close(fd) == 0);
	}
}

static pid_t _Atomic waiter;

static void *
waits_for_one(void *channel)
{
	struct rdma_ucm_event_resp e;

	waiter = gettid();
	CHECK(get_event((int)(intptr_t)channel, &e) && e.event == ADDR_RESOLVED);
	return NULL;
}

static bool
sleeps(pid_t tid)
{
	char path[64], text[128] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && close(fd) == 0);
	return strstr(text, ") S ") != NULL;
}

/* As programs do at their end: what is there is taken, whoever waits for more. */
static void
one_does_not_wait_while_another_does(void)
{
	const int fd = channel_new();
	const uint32_t id = id_new(fd);
	struct rdma_ucm_event_resp e;
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, waits_for_one, (void *)(intptr_t)fd) == 0);
	while (waiter == 0 || !sleeps(waiter))
		sched_yield();
	CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
	CHECK(!get_event(fd, &e) && errno == EAGAIN);
	resolve(fd, id);
	CHECK(pthread_join(thread, NULL) == 0);
	id_end(fd, id);
	CHECK(close(fd) == 0);
}

static void
ends_cancelled(pthread_t thread)
{
	void *end;

	CHECK(pthread_join(thread, &end) == 0 && end == PTHREAD_CANCELED);
}

static bool worked;

/* A datagram may be under way as its queue pair ends, which waits for it. */
static void
sends_and_ends(struct end *e, const struct end *peer)
{
	struct ibv_ah_attr path = { .port_num = 1 };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD,
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = { .max_send_wr = 64 } };
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1 };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .wr.ud = { .remote_qpn = 2 } }, *bad;
	struct ibv_qp *qp = ibv_create_qp(e->pd, &init);

	CHECK(qp != NULL);
	CHECK(ibv_create_ah(e->pd, &path) == NULL && errno == EINVAL);
	path.is_global = 1;
	path.grh.dgid = peer->gid;
	CHECK((wr.wr.ud.ah = ibv_create_ah(e->pd, &path)) != NULL);
	CHECK(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) ==
		0);
	a.qp_state = IBV_QPS_RTR;
	CHECK(ibv_modify_qp(qp, &a, IBV_QP_STATE) == 0);
	a.qp_state = IBV_QPS_RTS;
	CHECK(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
	for (int i = 0; i < 64; i++)
		CHECK(ibv_post_send(qp, &wr, &bad) == 0);
	CHECK(ibv_destroy_qp(qp) == 0);
	CHECK(ibv_destroy_ah(wr.wr.ud.ah) == 0);
}

static void
end_close(struct end *e)
{
	CHECK(ibv_destroy_qp(e->qp) == 0);
	CHECK(ibv_destroy_cq(e->cq) == 0);
	CHECK(ibv_dealloc_pd(e->pd) == 0);
	CHECK(ibv_close_device(e->ctx) == 0);
}

/* None of these is a point at which a thread ends. */
static void *
works_while_it_is_cancelled(void *memory)
{
	struct ibv_comp_channel *tells;
	struct ibv_port_attr port;
	struct ibv_mr *mr;
	struct end e[2];
	int fd;

	CHECK(setenv("ROCELANE_WHY", "1", 1) == 0); /* and writes a line for each refusal */
	pthread_cancel(pthread_self());
	ends_open(e, 7);
	CHECK(ibv_query_port(e[0].ctx, 1, &port) == 0);
	CHECK((mr = ibv_reg_mr(e[0].pd, memory, 4096, IBV_ACCESS_LOCAL_WRITE)) != NULL);
	CHECK(ibv_dereg_mr(mr) == 0);
	CHECK((tells = ibv_create_comp_channel(e[0].ctx)) != NULL);
	CHECK(ibv_destroy_comp_channel(tells) == 0);
	sends_and_ends(&e[0], &e[1]);
	end_close(&e[0]);
	end_close(&e[1]);
	fd = channel_new();
	id_end(fd, id_new(fd));
	CHECK(close(fd) == 0);
	worked = true;
	pthread_testcancel();
	return NULL;
}

/* No lock stays behind, whatever a thread was at when it was cancelled. */
static void
threads_are_cancelled(void)
{
	int fd = channel_new();
	void *memory = NULL;
	pthread_t thread;

	CHECK(posix_memalign(&memory, 4096, 4096) == 0);
	CHECK(pthread_create(&thread, NULL, works_while_it_is_cancelled, memory) == 0);
	ends_cancelled(thread);
	CHECK(worked);
	for (int i = 0; i < ROUNDS; i++) {
		const uint32_t id = id_new(fd);

		CHECK(pthread_create(&thread, NULL, waits, (void *)(intptr_t)fd) == 0);
		resolve(fd, id);
		pthread_cancel(thread);
		ends_cancelled(thread);
		id_end(fd, id);
	}
	CHECK(close(fd) == 0);
	fd = channel_new();
	is_good(fd);
	CHECK(close(fd) == 0);
	free(memory);
}

int
main(int argc, char **argv)
{
	CHECK(argc == 2);
	if (strcmp(argv[1], "fork") == 0) {
		a_child_closes(fork);
		a_child_has_its_own(fork);
	} else if (strcmp(argv[1], "copies") == 0) {
		a_child_closes(_Fork);
		a_child_has_its_own(_Fork);
		a_child_has_its_own(clone_bare);
	} else if (strcmp(argv[1], "daemon") == 0) {
		a_daemon_goes_on();
	} else if (strcmp(argv[1], "first") == 0) {
		a_child_does_first(waits_first);
		a_child_does_first(moves_first);
	} else if (strcmp(argv[1], "vfork") == 0) {
		a_child_closes(vfork);
		a_child_without_memory_opens_none();
	} else if (strcmp(argv[1], "reuse") == 0) {
		a_number_is_used_again();
	} else if (strcmp(argv[1], "refuse") == 0) {
		an_accept_that_fails();
	} else if (strcmp(argv[1], "late") == 0) {
		one_closes_while_another_waits();
	} else if (strcmp(argv[1], "hasty") == 0) {
		one_does_not_wait_while_another_does();
	} else {
		CHECK(strcmp(argv[1], "cancelled") == 0);
		threads_are_cancelled();
	}
	printf("good\n");
	return 0;
}
