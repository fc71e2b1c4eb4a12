/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups that ids have joined. librdmacm attaches the queue pair itself when it hears the event. */
#include <stdlib.h>
#include <string.h>

#include "ucm.h"

#include "include/rocelane_mcast.h"

struct join {
	struct join *next;
	struct ucm_id *id;
	uint64_t uid; /* librdmacm's name of it */
	uint32_t number;
	uint32_t events; /* that were told */
	struct sockaddr_in6 group;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct join *joins; /* oldest first */
static uint32_t numbers;

/* Lock held: the last link whose join is none of these. */
static struct join **
find(const struct ucm_id *id, uint32_t number)
{
	struct join **at = &joins;

	while (*at != NULL && (id != NULL ? (*at)->id != id : (*at)->number != number))
		at = &(*at)->next;
	return at;
}

/* Of an id, or of a number. @return NULL: none; else the caller's to free. */
static struct join *
take(const struct ucm_id *id, uint32_t number)
{
	struct join **at, *j;

	pthread_mutex_lock(&lock);
	at = find(id, number);
	j = *at;
	if (j != NULL)
		*at = j->next;
	pthread_mutex_unlock(&lock);
	return j;
}

void
ucm_joins_inherited(void)
{
	pthread_mutex_init(&lock, NULL);
	joins = NULL;
}

int
ucm_join_ip(const struct ucm_call *call)
{
	const struct rdma_ucm_join_ip_mcast *c = &call->in->join_ip;
	struct rdma_ucm_create_id_resp resp;
	struct join *j = calloc(1, sizeof(*j));
	int rc;

	if (j == NULL)
		return ucm_fail(ENOMEM, "out of memory");
	*j = (struct join){ .id = call->id, .uid = c->uid, .group = c->addr };
	pthread_mutex_lock(&lock);
	j->number = numbers++;
	*find(NULL, UINT32_MAX) = j;
	resp.id = j->number;
	pthread_mutex_unlock(&lock);
	ucm_answer(call, c->response, &resp, sizeof(resp)); /* the event may come at once */
	rc = rl_cm_join_multicast(call->id->rl, (const struct sockaddr *)&c->addr);
	if (rc != 0)
		free(take(NULL, resp.id));
	return rc;
}

int
ucm_leave(const struct ucm_call *call)
{
	struct rdma_ucm_destroy_id_resp resp;
	struct join *j = take(NULL, call->in->destroy_id.id);

	if (j == NULL)
		return ucm_fail(ENOENT, "no such group was joined");
	resp.events_reported = j->events;
	rl_cm_leave_multicast(j->id->rl, (const struct sockaddr *)&j->group);
	free(j);
	ucm_answer(call, call->in->destroy_id.response, &resp, sizeof(resp));
	return 0;
}

void
ucm_leave_all(const struct ucm_id *id)
{
	struct join *j;

	while ((j = take(id, 0)) != NULL)
		free(j);
}

bool
ucm_joined(struct ucm_id *id, struct rdma_ucm_event_resp *resp)
{
	struct rdma_ucm_ud_param *ud = &resp->param.ud;
	union rl_gid gid;
	struct join *j;

	pthread_mutex_lock(&lock);
	for (j = joins; j != NULL && (j->id != id || j->events != 0);)
		j = j->next;
	if (j != NULL) {
		j->events = 1;
		resp->uid = j->uid;
		resp->id = j->number;
		gid = ucm_gid_of((const struct sockaddr *)&j->group);
	}
	pthread_mutex_unlock(&lock);
	if (j == NULL)
		return false; /* it was left meanwhile */
	id->events++;
	ud->qp_num = RL_MCAST_QPN;
	ud->qkey = UCM_QKEY;
	ucm_path_to(id->rl, &(struct rl_ah_attr){ .grh = { .dgid = gid, .hop_limit = 64 } },
		&ud->ah_attr);
	return true;
}
