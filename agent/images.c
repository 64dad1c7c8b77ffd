/* See images.h. */
#include "agent/images.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>

#include "agent/core/image/cache.h"
#include "agent/core/image/progress.h"
#include "agent/helper.h"
#include "agent/image_asks.h"
#include "agent/queue.h"
#include "agent/runtimes.h"
#include "agent/service.h"
#include "agent/starter.h"
#include "lib/base/fd.h"
#include "lib/base/identity.h"
#include "lib/base/log.h"
#include "lib/base/parse.h"
#include "lib/loop/loop.h"
#include "lib/model/runtime.h"

#define LOOK_US 500000 /* how far they are */
#define DEADLINE_US (12 * 3600 * 1000000LL)
#define TIDY_DEADLINE_US (3600 * 1000000LL)
#define MAKE_DEADLINE_US (60 * 1000000LL)
#define MAKE_OUT_MAX 4096
#define OUT_MAX (8 * 1024 * 1024) /* a line each second, and two for each layer */
#define EXIT_REFUSED 3
/* what was asked for a moment ago, a step may be about to lock */
#define TIDY_UNUSED "10m"

struct bringing {
	struct images *all;
	int64_t number;
	char *image, *user;
	char **argv; /* of the pull */
	size_t n_argv;
	size_t seen; /* bytes of its output that were reported */
	struct helper *helper;
};
struct images {
	struct manager *m;
	struct bringing **items;
	size_t n;
	struct mo_timer *timer;
	struct helper *tidy;
	bool lockless; /* and it was said */
	char **untidy; /* directories that it has not come to; the last is the next */
	size_t n_untidy;
};

static void words_free(char **argv, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(argv[i]);
	free(argv);
}

static void forget(struct images *all, struct bringing *b)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->items[i] == b)
			all->items[i] = all->items[--all->n];
	helper_free(b->helper);
	free(b->image);
	free(b->user);
	words_free(b->argv, b->n_argv);
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
	bool own = o->user != NULL;

	if (mo_uid() != 0)
		return;
	_cleanup_(mo_freep) char *min_uid = mo_printf("%lld", (long long)c->min_uid);

	add(argv, n, "--user", own ? o->user : c->image_user);
	if (own) /* images for all are a system account's */
		add(argv, n, "--min-uid", min_uid);
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

/* Where it is brought to, and whose it is. */
static void add_place(const struct agent_config *c, const struct image_order *o, char ***argv,
		      size_t *n)
{
	_cleanup_(mo_freep) char *shared = mo_path(c->images_dir, IMAGE_SHARED);

	add(argv, n, o->user ? c->images_dir : shared, o->user ? "--own" : NULL);
	add_user(c, o, argv, n);
}

static char **words_of(const struct agent_config *c, const struct image_order *o, size_t *n)
{
	char **argv = NULL;

	add(&argv, n, "moe-image", "pull");
	add(&argv, n, o->image, NULL);
	add_place(c, o, &argv, n);
	if (o->digest)
		add(&argv, n, "--digest", o->digest);
	if (o->pull == PULL_NEVER)
		add(&argv, n, "--never", NULL);
	if (o->auth_file)
		add(&argv, n, "--auth", o->auth_file);
	add_mirrors(c->registry_mirrors, &argv, n);
	*MO_GROW(argv, *n) = NULL;
	return argv;
}

static void pull(struct bringing *b)
{
	int r = start(b->all, b->argv, DEADLINE_US, on_brought, b, &b->helper);

	if (r < 0)
		on_brought(b, 0, "", 0, strerror(-r));
	else
		mo_timer_in(b->all->timer, LOOK_US);
}

static void on_made(void *arg, int status, const char *out, size_t n, const char *problem)
{
	struct bringing *b = arg;

	b->helper = NULL; /* frees itself */
	if (problem)
		on_brought(b, status, "", 0, problem);
	else
		pull(b);
}

/* The directory is another account's: only root with all rights gives it to it. */
static void make_place(struct bringing *b, const struct image_order *o)
{
	const struct manager *m = b->all->m;
	char **argv = NULL;
	size_t n = 0;

	service_words(m, m->image_path, &argv, &n);
	add(&argv, &n, "make", NULL);
	add_place(m->config, o, &argv, &n);
	*MO_GROW(argv, n) = NULL;
	int r = helper_start_group(m->loop, service_path(m, m->image_path), argv, MAKE_DEADLINE_US,
				   MAKE_OUT_MAX, on_made, b, &b->helper);

	words_free(argv, n);
	if (r < 0)
		on_brought(b, 0, "", 0, strerror(-r));
}

static void stop_tidying(struct images *all)
{
	all->tidy = helper_free(all->tidy);
	mo_strs_clear(&all->untidy, &all->n_untidy);
}

/* "ERRNO WHAT": what the runtime was asked and has not, it will not have a moment later. */
static void on_told(void *arg, int status, const char *out, size_t n, const char *problem)
{
	_cleanup_(mo_freep) char *said = mo_strndup(n > 0 ? out : "", n);
	char *what = strchr(said, ' ');
	int64_t error = 0;

	if (!problem) {
		on_brought(arg, status, out, n, NULL);
		return;
	}
	if (what)
		*what++ = '\0';
	if (what && mo_parse_i64(said, 1, MO_FIT_INT, &error) == 0 && error == ENOENT)
		status = W_EXITCODE(EXIT_REFUSED, 0);
	if (what)
		what[strcspn(what, "\n")] = '\0';
	on_brought(arg, status, "", 0, what && *what ? what : problem);
}

/* Which image its name is in the store of a runtime here. */
static void ask_store(struct images *all, struct bringing *b, const char *runtime, const char *name)
{
	if (!runtimes_allowed(all->m->runtimes, runtime)) {
		_cleanup_(mo_freep) char *why =
			mo_printf("%s does not use the images of %s: name it in `runtimes` of its "
				  "agent.yaml, or say dir:/PATH",
				  all->m->config->node, runtime);

		on_brought(b, W_EXITCODE(EXIT_REFUSED, 0), "", 0, why);
		return;
	}
	int r = runtimes_digest(all->m->runtimes, runtime, name, on_told, b, &b->helper);

	if (r < 0)
		on_brought(b, 0, "", 0, strerror(-r));
}

void images_bring(struct images *all, int64_t number, const struct image_order *order)
{
	struct bringing *b = mo_alloc(sizeof(*b));

	*b = (struct bringing){ .all = all,
				.number = number,
				.image = mo_strdup(order->image),
				.user = mo_strdup(order->user) };
	b->argv = words_of(all->m->config, order, &b->n_argv);
	/* it takes away what nobody holds: also what was fetched and is about to be unpacked */
	stop_tidying(all);
	*MO_GROW(all->items, all->n) = b;
	const char *name, *runtime = runtime_of_image(order->image, &name);

	if (runtime)
		ask_store(all, b, runtime, name);
	else if (image_asks_remove(all->m->image_asks))
		on_brought(b, 0, "", 0, "an image is being removed there");
	else if (all->m->starter->in_units)
		make_place(b, order);
	else
		pull(b);
}

void images_stop(struct images *all, int64_t number)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->items[i]->number == number) {
			forget(all, all->items[i]);
			return;
		}
}

static void tidy_next(struct images *all);

static void on_tidied(void *arg, int status, const char *out, size_t n, const char *problem)
{
	struct images *all = arg;
	_cleanup_(mo_freep) char *text = mo_strndup(out, n);

	all->tidy = NULL; /* frees itself */
	if (problem)
		mo_log(MO_WARNING, NULL, NULL, "images_dir %s: %s", all->m->config->images_dir,
		       problem);
	if (!all->lockless && mo_starts_with(text, CACHE_LOCKLESS)) {
		all->lockless = true;
		mo_log(MO_WARNING, NULL, NULL,
		       "images_dir %s: its file system has no locks (flock), by which images in "
		       "use are known: those of steps here stay, and what was used within a day",
		       all->m->config->images_dir);
	}
	tidy_next(all);
}

static int prune(struct images *all, const char *dir)
{
	const struct agent_config *c = all->m->config;
	_cleanup_(mo_freep) char *bytes = mo_printf("%lld", (long long)c->images_max);
	char **argv = NULL, **kept = NULL;
	size_t n = 0, n_kept = 0;

	(void)image_asks_wanted(all->m, &kept, &n_kept); /* nothing is being brought */
	add(&argv, &n, "moe-image", "prune");
	add(&argv, &n, dir, NULL);
	add(&argv, &n, "--max-bytes", bytes);
	add(&argv, &n, "--unused-for", TIDY_UNUSED);
	for (size_t i = 0; i < n_kept; i++)
		add(&argv, &n, "--keep", kept[i]);
	mo_strs_clear(&kept, &n_kept);
	if (c->allow_root)
		add(&argv, &n, "--allow-root", NULL);
	*MO_GROW(argv, n) = NULL;
	int r = start(all, argv, TIDY_DEADLINE_US, on_tidied, all, &all->tidy);

	words_free(argv, n);
	return r;
}

static void tidy_next(struct images *all)
{
	while (!all->tidy && all->n_untidy > 0) {
		_cleanup_(mo_freep) char *dir = all->untidy[--all->n_untidy];
		int r = prune(all, dir);

		if (r < 0)
			mo_log(MO_WARNING, NULL, NULL, "images_dir %s: %s", dir, strerror(-r));
	}
}

/* What is for all jobs, and what is one user's: each is bounded by itself. A user can keep that
 * which runs as he waiting: the first is that for all jobs. */
void images_tidy(struct images *all)
{
	const char *top = all->m->config->images_dir, *name;

	if (all->n > 0)
		return;
	stop_tidying(all);
	_cleanup_(mo_dir_freep) struct mo_dir *d = mo_dir_open(AT_FDCWD, top, 0);
	_cleanup_(mo_freep) char *shared = mo_path(top, IMAGE_SHARED);

	while (d && (name = mo_dir_next(d))) {
		_cleanup_(mo_freep) char *own = mo_path(top, "%s", name);

		if (strspn(name, "0123456789") == strlen(name))
			mo_strs_add(&all->untidy, &all->n_untidy, own);
	}
	if (mo_access(shared, F_OK) == 0)
		mo_strs_add(&all->untidy, &all->n_untidy, shared);
	tidy_next(all);
}

struct images *images_free(struct images *all)
{
	if (!all)
		return NULL;
	while (all->n > 0)
		forget(all, all->items[0]);
	free(all->items);
	stop_tidying(all);
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
