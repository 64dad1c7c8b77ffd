/* The files that an engine writes while it works (engine.heartbeat: torchtitan's JSON lines),
 * one per rank: a child of this process reads them as the job's user and tells each rank's
 * notify socket its phase and last iteration, once a second. It is a process of its own because
 * those files lie on the user's file systems: a hung one stops it, never the supervisor. It ends
 * with the supervisor and is killed with the step. Its cost is bounded: what a rank writes
 * beyond TICK_BYTES a second is skipped, from a whole line on. */
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "agent/core/text/words.h"
#include "agent/stepd/heartbeat.h"
#include "agent/stepd/process.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/socket.h"
#include "lib/wire/parse.h"

#define TICK_MS 1000
#define TICK_BYTES (256 * 1024)
#define NAMES_MAX 100000 /* read in one directory */

/* A rank's file as the child follows it. */
struct follow {
	int64_t rank;
	int socket, fd;
	off_t at;
	bool skipping; /* in the middle of a line that is not read */
	pcre2_code *name;
	int64_t iteration, reported_iteration;
	int phase, reported_phase;
};
struct reader {
	const struct engine_heartbeat *h;
	char *dir;
	time_t since;
	struct follow *ranks;
	size_t n;
	char *chunk;
};

/* {rank} replaced; NULL when the pattern is none (the engine file was checked with {rank} in
 * it). */
static pcre2_code *name_of(const struct engine_heartbeat *h, int64_t rank)
{
	const char *at = strstr(h->file, "{rank}");
	_cleanup_(mo_freep) char *pattern =
		mo_printf("%.*s%lld%s", (int)(at ? at - h->file : 0), h->file, (long long)rank,
			  at ? at + strlen("{rank}") : h->file);
	int code;
	PCRE2_SIZE offset;
	return pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, 0, &code, &offset, NULL);
}

static bool name_matches(const struct follow *f, const char *name)
{
	pcre2_match_data *data =
		f->name ? pcre2_match_data_create_from_pattern(f->name, NULL) : NULL;
	bool found =
		data && pcre2_match(f->name, (PCRE2_SPTR)name, strlen(name), 0, 0, data, NULL) >= 0;
	pcre2_match_data_free(data);
	return found;
}

/* The newest file of this attempt for every rank that has none yet. */
static void find_files(struct reader *r)
{
	_cleanup_(mo_dir_freep) struct mo_dir *d = mo_dir_open(AT_FDCWD, r->dir, 0);
	_cleanup_(mo_freep) time_t *newest = mo_alloc_array(r->n, sizeof(*newest));
	size_t names = 0;
	for (const char *name; names < NAMES_MAX && (name = mo_dir_next(d)); names++) {
		struct stat st;
		for (size_t i = 0; i < r->n; i++) {
			struct follow *f = &r->ranks[i];
			if ((f->fd >= 0 && newest[i] == 0) || !name_matches(f, name))
				continue;
			int fd = mo_open_at(mo_dir_fd(d), name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK,
					    0);
			if (fd >= 0 && mo_stat_fd(fd, &st) == 0 && S_ISREG(st.st_mode) &&
			    st.st_mtime >= r->since && st.st_mtime >= newest[i]) {
				mo_close(f->fd);
				f->fd = fd;
				newest[i] = MO_MAX(st.st_mtime, 1);
			} else
				mo_close(fd);
		}
	}
}

static const char *text_of(struct json_object *o, const char *key)
{
	struct json_object *v = NULL;
	return key && json_object_object_get_ex(o, key, &v) &&
			       json_object_is_type(v, json_type_string)
		       ? json_object_get_string(v)
		       : NULL;
}

static void take_line(const struct reader *r, struct follow *f, const char *line, size_t n)
{
	struct json_object *o = NULL, *v = NULL;
	if (n < 2 || n > MO_LINE_MAX || wire_parse(line, n, &o, NULL) < 0)
		return;
	const char *event =
		json_object_is_type(o, json_type_object) ? text_of(o, r->h->event) : NULL;
	for (size_t i = 0; event && i < r->h->n_phases; i++)
		if (mo_streq(r->h->phases[i].key, event))
			f->phase = mo_enum_parse(phase_names, _PHASE_N, r->h->phases[i].value);
	bool counts = json_object_is_type(o, json_type_object) &&
		      (!r->h->done || mo_streq(event, r->h->done));
	if (counts && json_object_object_get_ex(o, r->h->iteration, &v) &&
	    json_object_is_type(v, json_type_int) && json_object_get_int64(v) >= 0)
		f->iteration = json_object_get_int64(v);
	json_object_put(o);
}

/* Whole lines of what came since; the rest is read again the next time. */
static void read_on(const struct reader *r, struct follow *f)
{
	struct stat st;
	if (f->fd < 0 || mo_stat_fd(f->fd, &st) < 0)
		return;
	if (st.st_size < f->at)
		f->at = 0;
	if (st.st_size - f->at > TICK_BYTES) {
		f->at = st.st_size - TICK_BYTES;
		f->skipping = true;
	}
	ssize_t n = mo_read_at(f->fd, r->chunk, TICK_BYTES, f->at);
	size_t from = 0;
	for (char *nl; n > 0 && (nl = memchr(r->chunk + from, '\n', (size_t)n - from));
	     from = (size_t)(nl - r->chunk) + 1) {
		if (!f->skipping)
			take_line(r, f, r->chunk + from, (size_t)(nl - r->chunk) - from);
		f->skipping = false;
	}
	if (n > MO_LINE_MAX && from == 0) { /* a line that has no end */
		from = (size_t)n;
		f->skipping = true;
	}
	f->at += (off_t)from;
}

static void tell(struct follow *f)
{
	char text[96];
	if (f->iteration == f->reported_iteration && f->phase == f->reported_phase)
		return;
	int n = snprintf(text, sizeof(text), "PHASE=%s\n",
			 phase_names[f->phase > PHASE_NONE ? f->phase : PHASE_TRAIN]);
	if (f->iteration != MO_NONE)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "ITERATION=%lld\n",
			      (long long)f->iteration);
	if (mo_socket_send(f->socket, text, (size_t)n) == n) {
		f->reported_iteration = f->iteration;
		f->reported_phase = f->phase;
	}
}

/* What the child is made for. */
struct following {
	const struct stepd *s;
	time_t since;
};

static void reader_begin(struct reader *r, const struct following *a)
{
	const struct launch *l = &a->s->spool.launch;
	const char *home = a->s->who.home, *workdir = l->workdir ? l->workdir : home ? home : "/";
	_cleanup_(mo_freep) char *dir = words_expand(l, 0, home, l->heartbeat->dir);

	*r = (struct reader){ .h = l->heartbeat,
			      .dir = dir[0] == '/' ? mo_strdup(dir) : mo_path(workdir, "%s", dir),
			      .since = a->since,
			      .n = a->s->n_ranks,
			      .chunk = mo_alloc(TICK_BYTES) };
	r->ranks = mo_alloc_array(r->n, sizeof(*r->ranks));
	for (size_t i = 0; i < r->n; i++)
		r->ranks[i] = (struct follow){ .rank = a->s->ranks[i].rank,
					       .socket = PROCESS_FIRST_FD + 1 + (int)i,
					       .fd = -1,
					       .iteration = MO_NONE,
					       .reported_iteration = MO_NONE,
					       .phase = PHASE_NONE,
					       .reported_phase = PHASE_NONE,
					       .name = name_of(l->heartbeat, a->s->ranks[i].rank) };
}

/* The child: until the other end of its first descriptor closes. */
static void follow(void *arg)
{
	struct reader r;

	reader_begin(&r, arg);
	while (mo_clock_rest_unless(PROCESS_FIRST_FD, TICK_MS)) {
		find_files(&r);
		for (size_t i = 0; i < r.n; i++) {
			read_on(&r, &r.ranks[i]);
			tell(&r.ranks[i]);
		}
	}
}

/* Connected before the change of user: the step's directory is not his. */
int notify_connect(const struct stepd *s, int64_t rank)
{
	char name[32];
	snprintf(name, sizeof(name), "notify.%lld", (long long)rank);
	return mo_socket_connect_to_bound(s->dir_fd, name);
}

void heartbeat_start(struct stepd *s)
{
	const struct launch *l = &s->spool.launch;
	struct following arg = { .s = s, .since = (time_t)(mo_clock_wall_us() / 1000000) - 1 };
	int fds[PROCESS_FDS_MAX], r = 0;
	size_t n = 1;

	if (!l->heartbeat || !l->heartbeat->dir || !l->heartbeat->file ||
	    !l->heartbeat->iteration || process_pipe(0, &fds[0], &s->heartbeat_fd) < 0)
		return;
	for (size_t i = 0; r >= 0 && i < s->n_ranks; i++)
		r = fds[n++] = notify_connect(s, s->ranks[i].rank);
	if (r >= 0)
		r = process_as(&(struct process_work){ .who = &s->who,
						       .fds = fds,
						       .n_fds = n,
						       .apart = true,
						       /* the files lie in the ranks' image */
						       .mnt_fd = s->root_fd >= 0 ? s->mnt_fd : 0,
						       .user_fd = s->user_fd,
						       .run = follow,
						       .arg = &arg });
	for (size_t i = 0; i < n; i++)
		mo_close(fds[i]);
	if (r < 0)
		mo_log(MO_WARNING, NULL, NULL, "the engine's heartbeat files are not read: %s",
		       strerror(-r));
}
