/* See images.h. One order is one pull, however many jobs want it; a pull that began without a
 * digest is the one that a later order means by the digest that it found. */
#include "agent/core/agent/images.h"

#include <string.h>

#include "agent/core/agent/link.h"
#include "lib/base/assert.h"
#include "lib/model/limits.h"

#define RETRY_US 2000000LL /* after a failure that may pass; doubled by each */
#define RETRY_MAX_US (300 * 1000000LL)
/* A try that brings less has failed: it would keep others from the registry for hours. Longer than
 * a disk needs to take what was unpacked. */
#define MOVED_BYTES (16 * 1000000LL)
#define STILL_MIN 30
#define STILL_US (STILL_MIN * 60 * 1000000LL)

static bool means(const struct pull *p, const struct image_order *o)
{
	return image_answers(&p->report, o) ||
	       (mo_streq(p->order.image, o->image) && mo_streq(p->order.user, o->user) &&
		mo_streq(p->order.digest, o->digest));
}

static void begin(struct pull *p, int64_t now, struct agent_out *out)
{
	struct agent_effect *x = agent_effect(out, AX_IMAGE, 0, 0);

	mo_assert(!p->going && !p->report.ready);
	p->going = true;
	if (p->job > p->report.job) { /* that failure was an earlier job's */
		mo_str_set(&p->report.error, NULL);
		p->report.refused = false;
	}
	p->report.job = p->job;
	p->retry_at = INT64_MAX;
	p->moved_at = now;
	p->moved_bytes = 0;
	x->image = p->id;
	x->command = mo_desc_new(&command_desc);
	x->command->kind = CMD_IMAGE;
	x->command->image = mo_desc_dup(&image_order_desc, &p->order);
}

static void drop(struct agent_core *s, size_t i)
{
	mo_desc_done(&image_order_desc, &s->pulls[i].order);
	mo_desc_done(&image_report_desc, &s->pulls[i].report);
	memmove(&s->pulls[i], &s->pulls[i + 1], (s->n_pulls - i - 1) * sizeof(*s->pulls));
	s->n_pulls--;
}

void agent_core_image(struct agent_core *s, const struct command *c, int64_t now,
		      struct agent_out *out)
{
	if (c->epoch < s->epoch || !c->image || !c->image->image)
		return;
	for (size_t i = 0; i < s->n_pulls; i++) {
		struct pull *p = &s->pulls[i];

		if (!means(p, c->image))
			continue;
		if (c->job > p->job && !p->going && !p->report.ready)
			p->retry_at = now; /* what an earlier job was refused may be mended */
		p->job = MO_MAX(p->job, c->job);
		if (c->image->digest && !p->order.digest) /* tries after this one know it */
			p->order.digest = mo_strdup(c->image->digest);
		return;
	}
	if (s->n_pulls >= MO_IMAGES_PER_NODE_MAX)
		return;
	struct pull *p = MO_GROW(s->pulls, s->n_pulls);

	*p = (struct pull){ .id = ++s->pulls_so_far, .job = c->job, .retry_at = INT64_MAX };
	mo_desc_init(&image_order_desc, &p->order);
	mo_desc_copy(&image_order_desc, &p->order, c->image);
	mo_desc_init(&image_report_desc, &p->report);
	p->report.image = mo_strdup(c->image->image);
	p->report.user = mo_strdup(c->image->user);
	p->report.digest = mo_strdup(c->image->digest);
	begin(p, now, out);
}

void agent_core_images_due(struct agent_core *s, const struct sync_reply *r, struct agent_out *out)
{
	size_t before = s->n_pulls;

	for (size_t i = s->n_pulls; i-- > 0;) {
		bool due = false;

		for (size_t k = 0; k < r->n_commands && !due; k++)
			due = r->commands[k].kind == CMD_IMAGE && r->commands[k].image &&
			      means(&s->pulls[i], r->commands[k].image);
		if (due)
			continue;
		if (s->pulls[i].going)
			agent_effect(out, AX_IMAGE_STOP, 0, 0)->image = s->pulls[i].id;
		drop(s, i);
	}
	if (before > 0 && s->n_pulls == 0)
		agent_effect(out, AX_IMAGES_TIDY, 0, 0);
}

static void ended(struct pull *p, const struct image_report *now_is, int64_t now)
{
	struct image_report *r = &p->report;
	int64_t wait = RETRY_US << MO_MIN(r->tries == MO_NONE ? 0 : r->tries, 8);

	p->going = false;
	p->urgent = true;
	r->ready = now_is->ready;
	r->refused = now_is->refused;
	mo_str_set(&r->error, now_is->error);
	if (r->ready)
		return;
	r->tries = MO_MAX(r->tries, 0) + 1;
	r->unpacking = false;
	p->retry_at = now + (r->refused ? RETRY_MAX_US : MO_MIN(wait, RETRY_MAX_US));
	if (p->job > r->job) /* who came meanwhile is owed a try */
		p->retry_at = now;
}

/* Another stage, or enough bytes more. */
static bool has_moved(const struct pull *p, const struct image_report *is)
{
	const struct image_report *was = &p->report;

	return !mo_streq(is->digest, was->digest) || is->unpacking != was->unpacking ||
	       is->done < p->moved_bytes || is->done - p->moved_bytes >= MOVED_BYTES;
}

/* A registry that trickles, a file that nobody writes to, a disk that hangs. */
static void end_still(struct pull *p, int64_t now, struct agent_out *out)
{
	struct image_report *failed = mo_desc_new(&image_report_desc);

	agent_effect(out, AX_IMAGE_STOP, 0, 0)->image = p->id;
	failed->error = mo_printf("less than %lld MB of it %s in %d min: that try was ended",
				  MOVED_BYTES / 1000000,
				  p->report.unpacking ? "were unpacked" : "came", STILL_MIN);
	ended(p, failed, now);
	mo_desc_free(&image_report_desc, failed);
}

/* It is not the one that was ordered: the name means another one here. */
static void be_other(struct agent_core *s, struct pull *p, const struct image_report *is,
		     int64_t now)
{
	struct image_report *refused = mo_desc_new(&image_report_desc);

	refused->refused = true;
	refused->error =
		mo_printf("node %s has %s, the job has %s", s->node, is->digest, p->order.digest);
	ended(p, refused, now);
	mo_desc_free(&image_report_desc, refused);
}

void agent_core_image_news(struct agent_core *s, const struct agent_event *e, int64_t now,
			   struct agent_out *out)
{
	const struct image_report *is = e->report;

	for (size_t i = 0; i < s->n_pulls; i++) {
		struct pull *p = &s->pulls[i];

		if (p->id != e->image || !p->going)
			continue;
		if (e->ok && is->digest && p->order.digest &&
		    !mo_streq(is->digest, p->order.digest)) {
			be_other(s, p, is, now);
			agent_core_send_urgent(s, now, out);
			return;
		}
		if (has_moved(p, is)) {
			p->moved_at = now;
			p->moved_bytes = MO_MAX(is->done, 0);
		}
		if (is->digest && !mo_streq(is->digest, p->report.digest)) {
			mo_str_set(&p->report.digest, is->digest);
			p->urgent = true;
		}
		p->report.done = is->done;
		p->report.total = is->total;
		p->report.unpacking = is->unpacking;
		if (e->ok)
			ended(p, is, now);
		if (p->urgent)
			agent_core_send_urgent(s, now, out);
		return;
	}
}

void agent_core_images_tick(struct agent_core *s, int64_t now, struct agent_out *out)
{
	for (size_t i = 0; i < s->n_pulls; i++) {
		struct pull *p = &s->pulls[i];

		if (!p->going && now >= p->retry_at)
			begin(p, now, out);
		else if (p->going && now >= p->moved_at + STILL_US) {
			end_still(p, now, out);
			agent_core_send_urgent(s, now, out);
		}
	}
}

int64_t agent_core_images_deadline(const struct agent_core *s)
{
	int64_t d = INT64_MAX;

	for (size_t i = 0; i < s->n_pulls; i++) {
		const struct pull *p = &s->pulls[i];

		d = MO_MIN(d, p->going ? p->moved_at + STILL_US : p->retry_at);
	}
	return d;
}

bool agent_core_images_urgent(const struct agent_core *s)
{
	for (size_t i = 0; i < s->n_pulls; i++)
		if (s->pulls[i].urgent)
			return true;
	return false;
}

void agent_core_images_report(struct agent_core *s, struct agent_sync *ret)
{
	for (size_t i = 0; i < s->n_pulls; i++) {
		mo_desc_copy(&image_report_desc, MO_ADD(ret, images, &image_report_desc),
			     &s->pulls[i].report);
		s->pulls[i].urgent = false; /* syncs carry it again */
	}
}

bool agent_core_images(const struct agent_core *s, char ***ret, size_t *n_ret)
{
	bool known = true;

	for (size_t i = 0; i < s->n_pulls; i++) {
		const struct pull *p = &s->pulls[i];

		if (p->report.digest)
			mo_strs_add(ret, n_ret, p->report.digest);
		known &= p->report.digest || !p->going;
	}
	return known;
}

void agent_core_images_done(struct agent_core *s)
{
	while (s->n_pulls > 0)
		drop(s, s->n_pulls - 1);
	free(s->pulls);
}
