/* See images.h. */
#include "agent/images.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "agent/core/image/progress.h"
#include "agent/helper.h"
#include "agent/queue.h"
#include "lib/base/fd.h"
#include "lib/base/identity.h"
#include "lib/base/log.h"
#include "lib/loop/loop.h"

#define LOOK_US 500000 /* how far they are */
#define DEADLINE_US (12 * 3600 * 1000000LL)
#define TIDY_DEADLINE_US (3600 * 1000000LL)
#define OUT_MAX (8 * 1024 * 1024) /* a line each second, and two for each layer */
#define EXIT_REFUSED 3
/* what was asked for a moment ago, a step may be about to lock */
#define TIDY_UNUSED "10m"

struct bringing {
	struct images *all;
	int64_t number;
	char *image, *user;
	size_t seen; /* bytes of its output that were reported */
	struct helper *helper;
};
struct images {
	struct manager *m;
	struct bringing **items;
	size_t n;
	struct mo_timer *timer;
	struct helper *tidy;
	bool tidy_again;
};

static void forget(struct images *all, struct bringing *b)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->items[i] == b)
			all->items[i] = all->items[--all->n];
	helper_free(b->helper);
	free(b->image);
	free(b->user);
	free(b);
}

/* Its report is taken. */
static void tell(const struct bringing *b, bool over, struct image_report *r)
{
	queue_event(b->all->m,
		    &(struct agent_event){
			    .type = AE_IMAGE, .image = b->number, .ok = over, .report = r });
}

static void on_brought(void *arg, int status, const char *out, size_t n, const char *problem)
{
	struct bringing *b = arg;
	struct image_report *r = mo_desc_new(&image_report_desc);

	b->helper = NULL; /* frees itself */
	progress_read(out, n, r);
	r->ready = !problem && r->digest;
	r->refused = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_REFUSED;
	if (!r->ready)
		r->error = mo_strdup(problem ? problem : "moe-image named no image");
	if (r->ready)
		mo_log(MO_NOTICE, NULL, NULL, "image %s is here: %s", b->image, r->digest);
	else
		mo_log(MO_WARNING, NULL, NULL, "image %s is not brought: %s", b->image, r->error);
	tell(b, true, r);
	forget(b->all, b);
}

static void on_look(void *arg)
{
	struct images *all = arg;

	for (size_t i = 0; i < all->n; i++) {
		struct bringing *b = all->items[i];
		size_t n = 0;
		const char *out = b->helper ? helper_output(b->helper, &n) : "";
		struct image_report *r;

		if (n == b->seen)
			continue;
		b->seen = n;
		r = mo_desc_new(&image_report_desc);
		progress_read(out, n, r);
		tell(b, false, r);
	}
	if (all->n > 0)
		mo_timer_in(all->timer, LOOK_US);
}

static void add(char ***argv, size_t *n, const char *word, const char *value)
{
	mo_strs_add(argv, n, word);
	if (value)
		mo_strs_add(argv, n, value);
}

static void add_user(const struct agent_config *c, const struct image_order *o, char ***argv,
		     size_t *n)
{
	bool own = o && o->user;

	if (mo_uid() != 0)
		return;
	add(argv, n, "--user", own ? o->user : c->image_user);
	if (c->allow_root && (!own || o->allow_root))
		add(argv, n, "--allow-root", NULL);
}

static void add_mirrors(const char *mirrors, char ***argv, size_t *n)
{
	for (const char *at = mirrors; at && *at; at += strspn(at, ", ")) {
		size_t len = strcspn(at, ", ");
		_cleanup_(mo_freep) char *one = mo_strndup(at, len);

		add(argv, n, "--mirror", one);
		at += len;
	}
}

static int start(struct images *all, char **argv, int64_t deadline_us, helper_fn fn, void *arg,
		 struct helper **ret)
{
	return helper_start_group(all->m->loop, all->m->image_path, argv, deadline_us, OUT_MAX, fn,
				  arg, ret);
}

static char **words_of(const struct agent_config *c, const struct image_order *o, size_t *n)
{
	char **argv = NULL;

	_cleanup_(mo_freep) char *shared = mo_path(c->images_dir, IMAGE_SHARED);

	add(&argv, n, "moe-image", "pull");
	add(&argv, n, o->image, o->user ? c->images_dir : shared);
	if (o->digest)
		add(&argv, n, "--digest", o->digest);
	if (o->pull == PULL_NEVER)
		add(&argv, n, "--never", NULL);
	if (o->user)
		add(&argv, n, "--own", NULL);
	if (o->auth_file)
		add(&argv, n, "--auth", o->auth_file);
	add_mirrors(c->registry_mirrors, &argv, n);
	add_user(c, o, &argv, n);
	*MO_GROW(argv, *n) = NULL;
	return argv;
}

static void words_free(char **argv, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(argv[i]);
	free(argv);
}

void images_bring(struct images *all, int64_t number, const struct image_order *order)
{
	struct bringing *b = mo_alloc(sizeof(*b));
	size_t n = 0;
	char **argv = words_of(all->m->config, order, &n);

	*b = (struct bringing){ .all = all,
				.number = number,
				.image = mo_strdup(order->image),
				.user = mo_strdup(order->user) };
	*MO_GROW(all->items, all->n) = b;
	int r = start(all, argv, DEADLINE_US, on_brought, b, &b->helper);

	words_free(argv, n);
	if (r < 0)
		on_brought(b, 0, "", 0, strerror(-r));
	else
		mo_timer_in(all->timer, LOOK_US);
}

void images_stop(struct images *all, int64_t number)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->items[i]->number == number) {
			forget(all, all->items[i]);
			return;
		}
}

static void on_tidied(void *arg, int status, const char *out, size_t n, const char *problem)
{
	struct images *all = arg;

	all->tidy = NULL; /* frees itself */
	if (problem)
		mo_log(MO_WARNING, NULL, NULL, "images_dir %s: %s", all->m->config->images_dir,
		       problem);
	if (all->tidy_again)
		images_tidy(all);
}

void images_tidy(struct images *all)
{
	const struct agent_config *c = all->m->config;
	_cleanup_(mo_freep) char *shared = mo_path(c->images_dir, IMAGE_SHARED);
	_cleanup_(mo_freep) char *bytes = mo_printf("%lld", (long long)c->images_max);
	char **argv = NULL;
	size_t n = 0;

	all->tidy_again = all->tidy != NULL;
	if (all->tidy || all->n > 0 || mo_access(shared, F_OK) < 0)
		return;
	add(&argv, &n, "moe-image", "prune");
	add(&argv, &n, shared, NULL);
	add(&argv, &n, "--max-bytes", bytes);
	add(&argv, &n, "--unused-for", TIDY_UNUSED);
	add_user(c, NULL, &argv, &n);
	*MO_GROW(argv, n) = NULL;
	int r = start(all, argv, TIDY_DEADLINE_US, on_tidied, all, &all->tidy);

	words_free(argv, n);
	if (r < 0)
		on_tidied(all, 0, "", 0, strerror(-r));
}

struct images *images_free(struct images *all)
{
	if (!all)
		return NULL;
	while (all->n > 0)
		forget(all, all->items[0]);
	free(all->items);
	helper_free(all->tidy);
	mo_timer_free(all->timer);
	free(all);
	return NULL;
}

int images_new(struct manager *m, struct images **ret)
{
	_cleanup_(images_freep) struct images *all = mo_alloc(sizeof(*all));
	int r = mo_timer_new(m->loop, on_look, all, &all->timer);

	if (r < 0)
		return r;
	all->m = m;
	*ret = TAKE_PTR(all);
	return 0;
}
