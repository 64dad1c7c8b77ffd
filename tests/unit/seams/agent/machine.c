/* In place of agent/helper.c, agent/reserve.c, agent/unit.c, agent/shutdown.c and
 * lib/loop/ready.c. */
#include "agent/helper.h"
#include "agent/reserve.h"
#include "agent/shutdown.h"
#include "agent/step_talk.h"
#include "agent/unit.h"
#include "lib/loop/ready.h"
#include "tests/unit/seams/agent/bed.h"

#include <errno.h>

const char *seam_found;
void (*seam_on_start)(const char *dir, int64_t job, int64_t attempt);

/* ---- helpers ---- */

struct helper {
	bool used;
	helper_fn fn;
	void *arg;
};
static struct helper helpers[8];

int helper_start(sd_event *loop, const char *path, char *const *argv, int64_t deadline_us,
		 size_t max_out, helper_fn fn, void *arg, struct helper **ret)
{
	for (size_t i = 0; i < ELEMENTSOF(helpers); i++)
		if (!helpers[i].used) {
			helpers[i] = (struct helper){ true, fn, arg };
			*ret = &helpers[i];
			return 0;
		}
	return -EAGAIN;
}

int helper_start_group(sd_event *loop, const char *path, char *const *argv, int64_t deadline_us,
		       size_t max_out, helper_fn fn, void *arg, struct helper **ret)
{
	return helper_start(loop, path, argv, deadline_us, max_out, fn, arg, ret);
}

void helper_on_end(struct helper *h, void (*fn)(void *arg), void *arg)
{
	fail_msg("no helper is late here");
}

bool helper_is_late(const struct helper *h)
{
	return false;
}

const char *helper_output(const struct helper *h, size_t *ret_n)
{
	*ret_n = 0;
	return "";
}

pid_t helper_pid(const struct helper *h)
{
	return 1;
}

char *const *child_environment(void)
{
	return NULL;
}

struct helper *helper_free(struct helper *h)
{
	if (h)
		h->used = false;
	return NULL;
}

/* ---- supervisors ---- */

static struct {
	struct manager *m;
	struct starter starter;
	int64_t job, attempt; /* whose start is not answered yet, 0 none */
} starting;

static void start(struct starter *s, struct step_dir *d)
{
	if (!seam_acts())
		return;
	seam_on_start(d->path, d->job, d->attempt);
	starting.job = d->job;
	starting.attempt = d->attempt;
}

static void starter_done(struct starter *s) {}

int unit_starter_new(struct manager *m, struct starter **ret, struct mo_error *err)
{
	return 1; /* no systemd */
}

int reserve_starter_new(struct manager *m, struct starter **ret)
{
	starting.m = m;
	starting.job = 0;
	starting.starter = (struct starter){ .start = start, .free = starter_done };
	*ret = &starting.starter;
	return 0;
}

void seam_machine_answers(void)
{
	for (size_t i = 0; i < ELEMENTSOF(helpers); i++) {
		struct helper h = helpers[i];

		if (!h.used || !seam_found)
			continue;
		helpers[i].used = false;
		h.fn(h.arg, 0, seam_found, strlen(seam_found), NULL);
	}
	struct step_dir *d =
		starting.job > 0 ? step_dir_find(starting.m, starting.job, starting.attempt) : NULL;
	starting.job = 0;
	if (d)
		step_talk_started(d, NULL);
}

/* ---- systemd ---- */

int shutdown_watch(sd_bus *bus, void (*job)(void *arg),
		   void (*answer)(void *arg, enum shutdown_answer answer), void *arg,
		   struct shutdown_watch **ret)
{
	return -ENOSYS;
}

int shutdown_ask(struct shutdown_watch *w)
{
	return -ENOSYS;
}

struct shutdown_watch *shutdown_unwatch(struct shutdown_watch *w)
{
	return NULL;
}

/* ---- readiness ---- */

struct mo_ready {
	bool used;
	int fd;
	void (*fn)(void *arg);
	void *arg;
};
static struct mo_ready ready[16];

static bool one_is_ready(void)
{
	for (size_t i = 0; i < ELEMENTSOF(ready); i++)
		if (ready[i].used && seam_readable(ready[i].fd)) {
			ready[i].fn(ready[i].arg);
			return true;
		}
	return false;
}

int mo_ready_new(sd_event *loop, int fd, void (*fn)(void *arg), void *arg, struct mo_ready **ret)
{
	seam_ready = one_is_ready;
	for (size_t i = 0; i < ELEMENTSOF(ready); i++)
		if (!ready[i].used) {
			ready[i] = (struct mo_ready){ true, fd, fn, arg };
			*ret = &ready[i];
			return 0;
		}
	return -EAGAIN;
}

struct mo_ready *mo_ready_free(struct mo_ready *r)
{
	if (r)
		r->used = false;
	return NULL;
}

void seam_machine_done(void)
{
	memset(helpers, 0, sizeof(helpers));
	memset(ready, 0, sizeof(ready));
	starting.job = 0;
}
