/* See images.h. What nodes said of images is struct live: an agent says it again with each sync,
 * so that only the digest is a record. */
#include "daemon/core/rules/images.h"

#include "daemon/core/rules/events.h"
#include "daemon/core/rules/prefetch.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/update/wake.h"
#include "lib/base/assert.h"
#include "lib/base/buf.h"
#include "lib/model/image.h"

/* nodes that were left out because enough are busy are asked when others are done */
#define LEFT_OUT_US 1000000LL

struct image_order *image_order_new(const struct job *j)
{
	const struct recipe_container *c = j->spec.recipe.engine.container;
	struct image_order *o = mo_desc_new(&image_order_desc);

	mo_assert(c);
	o->image = mo_strdup(c->image);
	o->digest = mo_strdup(j->image.digest);
	o->pull = c->pull == PULL_NEVER ? PULL_NEVER : PULL_MISSING;
	if (c->auth_file) {
		o->user = mo_strdup(j->spec.user);
		o->auth_file = mo_strdup(c->auth_file);
		o->allow_root = j->spec.allow_root;
	}
	return o;
}

/* A try that failed before the job was known says nothing of it. */
static const struct image_report *report_of(const struct live *l, const struct image_order *o,
					    int64_t job)
{
	for (size_t i = 0; l && i < l->n_images; i++)
		if (image_answers(&l->images[i], o))
			return l->images[i].error && l->images[i].job < job ? NULL : &l->images[i];
	return NULL;
}

/* It is at it, or has not said that it is not. What failed may be tried this moment; what is
 * refused costs its source a question every few minutes. */
static bool fetches(const struct live *l, const struct image_order *o)
{
	const struct image_report *r = report_of(l, o, MO_NONE);

	return !r || !(r->ready || r->refused);
}

/* It was asked for some, and brings one of them still. */
static bool is_busy(const struct core *c, const struct live *l)
{
	bool busy = false;

	for (size_t i = 0; i < l->n_pulls && !busy; i++) {
		const struct job *j = job_find(&c->state, l->pulls[i]);
		struct image_order *o = j ? image_order_new(j) : NULL;

		busy = o && fetches(l, o);
		mo_desc_free(&image_order_desc, o);
	}
	for (size_t i = 0; i < l->n_prefetches && !busy; i++) {
		const struct prefetch *p = prefetch_find(c, l->prefetches[i]);

		busy = p && fetches(l, &p->order);
	}
	return busy;
}

void images_pass(struct core *c)
{
	size_t n = c->n_askers;

	c->n_pulling = c->n_askers = 0;
	c->looked += (int64_t)n;
	for (size_t i = 0; i < n; i++) {
		struct live *l = c->askers[i];

		l->pulled = l->asks = is_busy(c, l);
		c->n_pulling += l->pulled;
		l->n_pulls = l->n_prefetches = 0;
		if (l->asks)
			c->askers[c->n_askers++] = l;
	}
}

static void asks(struct core *c, struct live *l)
{
	if (!l->asks)
		*MO_GROW(c->askers, c->n_askers) = l;
	l->asks = true;
}

bool images_may_ask(struct turn *t, struct live *l, bool idle)
{
	struct core *c = t->core;

	if (!idle && !l->pulled && l->n_pulls == 0 && l->n_prefetches == 0) {
		if ((int64_t)c->n_pulling >= c->config.pull_parallel) {
			turn_deadline(t, t->now + LEFT_OUT_US);
			return false;
		}
		c->n_pulling++;
	}
	asks(c, l);
	return true;
}

/* false: enough others are busy. */
static bool want(struct turn *t, const struct job *j, const char *node, bool idle)
{
	struct core *c = t->core;
	struct live *l = core_live(c, node);

	if (!images_may_ask(t, l, idle))
		return false;
	ids_add(&l->pulls, &l->n_pulls, j->id);
	wake_node(c, node);
	return true;
}

/* The first word of which image it is counts. */
static void resolved(struct turn *t, const struct job *j, const char *node, const char *digest)
{
	const char *image = j->spec.recipe.engine.container->image;
	_cleanup_(mo_buf_done) struct mo_buf data = { 0 };
	struct record r;

	record_init(&r, REC_IMAGE);
	r.job = j->id;
	r.node = mo_strdup(node);
	r.image->digest = mo_strdup(digest);
	turn_emit(t, &r);
	data_str(&data, "image", image);
	data_str(&data, "digest", digest);
	event_emit(t, EVENT_IMAGE_RESOLVED, j->id, node, MO_NONE, MO_NONE, data_end(&data),
		   "%s is %s for all attempts of %s", image, digest, j->spec.recipe.name);
}

static void say(struct waiting *w, const struct live *l, const struct image_report *r)
{
	free(w->error);
	w->error = mo_strdup(r ? r->error : NULL);
	w->done = r ? r->done : MO_NONE;
	w->size = r ? r->total : MO_NONE;
	w->unpacking = r && r->unpacking;
	if (!l->brings)
		mo_str_set(&w->error, "its agent does not bring images: it is of an older version");
}

/* Of the nodes that have it not, the first that is told of: a failure before all. */
static void choose(struct waiting *w, const char *node, const struct live *l,
		   const struct image_report *r)
{
	bool better = !w->node || (!w->error && r && (r->error || w->done == MO_NONE));

	w->nodes++;
	if (!better)
		return;
	mo_str_set(&w->node, node);
	say(w, l, r);
}

static char *refusal_text(const struct waiting *w)
{
	return mo_printf("image %s on %s: %s", w->image, w->node, w->error);
}

int images_wait(struct turn *t, const struct job *j, const struct place *places, size_t n,
		struct waiting *ret)
{
	const struct recipe_container *c = j->spec.recipe.engine.container;
	bool refused = false;

	if (!c || image_lies_there(c->image))
		return IMAGES_READY;
	struct image_order *o = image_order_new(j);
	const struct image_report *first = report_of(live_of(t->core, places[0].node), o, j->id);

	if (!o->digest && first && image_digest_valid(first->digest)) {
		resolved(t, j, places[0].node, first->digest);
		o->digest = mo_strdup(first->digest);
	}
	*ret = waiting_make(WAITING_IMAGE);
	ret->image = mo_strdup(c->image);
	ret->nodes = 0;
	for (size_t i = 0; i < (o->digest ? n : 1); i++) {
		const struct live *l = live_of(t->core, places[i].node);
		const struct image_report *r = report_of(l, o, j->id);
		bool ready = o->digest && r && r->ready;

		if (l->brings && !want(t, j, places[i].node, ready || (r && r->refused)))
			r = NULL;
		if (!ready)
			choose(ret, places[i].node, l, r);
		refused |= r && r->refused;
	}
	mo_desc_free(&image_order_desc, o);
	if (ret->nodes == 0) {
		waiting_done(ret);
		return IMAGES_READY;
	}
	if (!refused)
		return IMAGES_WAIT;
	if (j->attempt > 0)
		return IMAGES_STAY;
	char *why = refusal_text(ret);

	free(ret->error);
	ret->error = why;
	return IMAGES_NEVER;
}

static bool brings(const struct job *j, const struct live *l)
{
	const struct recipe_container *c = j->spec.recipe.engine.container;

	return c && !image_lies_there(c->image) && j->image.digest && l && l->brings;
}

char *images_words(const struct job *j, const struct live *l)
{
	struct image_order *o = brings(j, l) ? image_order_new(j) : NULL;
	const struct image_report *r = o ? report_of(l, o, j->id) : NULL;
	char *words = !o              ? mo_strdup("")
		      : r && r->ready ? mo_strdup(", its image is there")
		      : r && r->error ? mo_printf(", its image is not there: %s", r->error)
				      : mo_strdup(", its image is not there yet");

	mo_desc_free(&image_order_desc, o);
	return words;
}

void images_bring(struct turn *t, const struct job *j, const char *node)
{
	const struct live *l = live_of(t->core, node);

	if (!brings(j, l))
		return;
	struct image_order *o = image_order_new(j);
	const struct image_report *r = report_of(l, o, j->id);

	want(t, j, node, r && (r->ready || r->refused));
	mo_desc_free(&image_order_desc, o);
}

/* Numbers alone need no pass over the queue: what waits for them is told. */
static void say_progress(struct turn *t, const char *node, struct live *l)
{
	for (size_t i = 0; i < l->n_pulls; i++) {
		const struct job *j = job_find(&t->core->state, l->pulls[i]);
		struct waiting *w = queue_edit(&t->core->queue, l->pulls[i]);

		if (!j || !w || w->code != WAITING_IMAGE || !mo_streq(w->node, node))
			continue;
		struct image_order *o = image_order_new(j);

		say(w, l, report_of(l, o, j->id));
		mo_desc_free(&image_order_desc, o);
	}
}

static bool same_news(const struct image_report *a, const struct image_report *b)
{
	return mo_streq(a->image, b->image) && mo_streq(a->user, b->user) &&
	       mo_streq(a->digest, b->digest) && a->ready == b->ready && a->refused == b->refused &&
	       mo_streq(a->error, b->error) && a->job == b->job;
}

void images_reported(struct turn *t, const struct agent_sync *s)
{
	struct live *l = core_live(t->core, s->node);
	bool news = l->brings != s->pulls || l->n_images != s->n_images;

	for (size_t i = 0; !news && i < s->n_images; i++)
		news = !same_news(&l->images[i], &s->images[i]);
	l->brings = s->pulls;
	mo_vec_clear(&image_report_desc, (void **)&l->images, &l->n_images);
	for (size_t i = 0; i < s->n_images; i++)
		mo_desc_copy(&image_report_desc, MO_ADD(l, images, &image_report_desc),
			     &s->images[i]);
	prefetch_heard(t, s->node, news);
	if (news && t->core->n_unfinished > 0)
		t->core->queue_dirty = true;
	else
		say_progress(t, s->node, l);
}

bool images_known(const struct core *c, const char *node)
{
	const struct live *l = live_of(c, node);

	return l && l->brings;
}

static void add_job(const struct core *c, int64_t id, const char *digest, char ***ret,
		    size_t *n_ret)
{
	const struct job *j = job_find(&c->state, id);
	_cleanup_(mo_freep) char *text = mo_printf("j-%lld", (long long)id);

	if (!j || job_state_final(j->state) || !mo_streq(j->image.digest, digest))
		return;
	for (size_t i = 0; i < *n_ret; i++)
		if (mo_streq((*ret)[i], text))
			return;
	mo_strs_add(ret, n_ret, text);
}

void images_jobs(const struct core *c, const char *node, const char *digest, char ***ret,
		 size_t *n_ret)
{
	const struct live *l = live_of(c, node);

	for (size_t i = 0; l && digest && i < l->n_jobs; i++)
		add_job(c, l->jobs[i], digest, ret, n_ret);
	for (size_t i = 0; l && digest && i < l->n_pulls; i++)
		add_job(c, l->pulls[i], digest, ret, n_ret);
}

void images_remove(struct turn *t)
{
	const struct in_images_remove *in = t->input->images_remove;

	for (size_t i = 0; i < in->n_nodes; i++)
		if (!node_find(&t->core->state, in->nodes[i])) {
			turn_reply(t, 404, MO_NONE, "node %s: no such node; see 'moectl nodes'",
				   in->nodes[i]);
			return;
		}
	audit_emit(t, EVENT_AUDIT_IMAGES_REMOVED, in->n_nodes == 1 ? in->nodes[0] : NULL,
		   "%s has image %s removed from %s%s",
		   t->input->by.user ? t->input->by.user : "somebody", in->what,
		   in->n_nodes ? in->nodes[0] : "all nodes",
		   in->n_nodes > 1 ? " and other nodes" : "");
	turn_reply(t, 200, MO_NONE, NULL);
}
