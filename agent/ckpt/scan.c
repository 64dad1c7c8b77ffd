/* See scan.h. One entry's files are in memory at a time. What is asked of an entry:
 *   it was verified before (order->known)   is its manifest the same? nothing is read of it
 *   the same, suspected (order->only too)   its content against its checksums; without any all of
 *                                           it is read, and compared with what files carry
 *   it was announced (order->known too)     is it whole? it needs no marker
 *   after its save (order->only)            is it whole, and at level crc: checksums of this
 *                                           node's part of its files
 *   else                                    is it whole? offline at level crc: are its checksums
 *                                           those of its manifest? */
#include "agent/ckpt/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/model/limits.h"

#define NAMES_MAX 1000000 /* names of the checkpoint directory */
/* before an attempt the files of this many whole ones are opened; the others are not what it
 * resumes from */
#define THOROUGH 2

struct scan {
	const struct command *order;
	enum ckpt_level level;
	int64_t bandwidth;
	const char *dir;
	int dir_fd;
	struct ckpt_rules *rules;
	struct ckpt_question question;
	size_t n_whole;
	/* entries that hold nothing; whether they are passed over */
	size_t n_empty;
	bool no_empty;
};

static void report(const struct scan *s, const struct ckpt_entry *e, char *reason,
		   struct scan_result *ret)
{
	struct found_checkpoint *f = MO_ADD(ret, items, &found_checkpoint_desc);
	int64_t marked = MO_NONE;

	f->iteration = e->iteration;
	f->path = mo_path(s->dir, "%s", e->name);
	f->complete = !reason;
	f->reason = reason;
	mo_str_set(&f->fixed, e->fixed);
	f->held = reason ? NULL : ckpt_held(s->rules, e, &s->question);
	f->bytes = 0;
	for (size_t i = 0; i < e->n_files; i++)
		f->bytes += e->files[i].bytes;
	for (size_t i = 0; i < e->n_markers; i++)
		if (e->markers[i].present)
			marked = MO_MAX(marked, e->markers[i].mtime_ns);
	/* times are reported in ms */
	f->saved_at = (marked == MO_NONE ? e->mtime_ns : marked) / 1000000 * 1000;
}

/* ---- the directory ---- */

struct names {
	struct ckpt_entry *items;
	size_t n;
};

static void names_done(struct names *l)
{
	for (size_t i = 0; i < l->n; i++)
		ckpt_entry_done(&l->items[i]);
	free(l->items);
}

static int newest_first(const void *a, const void *b)
{
	const struct ckpt_entry *x = a, *y = b;

	if (x->iteration == y->iteration && x->mtime_ns != y->mtime_ns)
		return (x->mtime_ns < y->mtime_ns) - (x->mtime_ns > y->mtime_ns);
	return x->iteration != y->iteration
		       ? (x->iteration < y->iteration) - (x->iteration > y->iteration)
		       : strcmp(x->name, y->name);
}

static void list_names(DIR *d, const struct ckpt_rules *rules, bool unnumbered, struct names *ret)
{
	size_t seen = 0;

	for (struct dirent *de; (de = readdir(d)) && seen < NAMES_MAX; seen++) {
		int64_t iteration;
		bool unfinished;
		struct stat st;
		if (de->d_name[0] == '.' ||
		    !ckpt_is_entry(rules, de->d_name, &iteration, &unfinished))
			continue;
		if (fstatat(dirfd(d), de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !(S_ISDIR(st.st_mode) || S_ISREG(st.st_mode) || S_ISLNK(st.st_mode)))
			continue;
		struct ckpt_entry *e = MO_GROW(ret->items, ret->n);
		e->name = mo_strdup(de->d_name);
		e->iteration = iteration;
		if (unnumbered)
			e->mtime_ns = st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec;
		if (unfinished)
			e->damage = mo_strdup("its name says that the save was not finished");
	}
	if (ret->items)
		qsort(ret->items, ret->n, sizeof(*ret->items), newest_first);
}

static enum ckpt_tracker read_tracker(int dir_fd, const struct ckpt_rules *rules, const char *name,
				      int64_t *ret)
{
	char text[64];

	if (!name)
		return TRACKER_NONE;
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT  ? TRACKER_MISSING
		       : errno == ELOOP ? TRACKER_LINK
					: TRACKER_DAMAGED;
	ssize_t n = read(fd, text, sizeof(text));
	close(fd);
	return n < 0 ? TRACKER_DAMAGED : ckpt_tracker_parse(rules, text, (size_t)n, ret);
}

static void prune(const struct scan *s, struct names *names)
{
	size_t retained = 0;

	if (s->order->job != MO_NONE)
		prune_leftovers(s->dir_fd);
	for (size_t i = 0; i < names->n; i++) {
		if (prune_ordered(s->dir_fd, s->dir, s->order, &names->items[i]) &&
		    prune_entry(s->dir_fd, names->items[i].name)) {
			ckpt_entry_done(&names->items[i]);
			continue;
		}
		names->items[retained++] = names->items[i];
	}
	names->n = retained;
}

/* ---- one entry ---- */

/* The announced path is the entry or lies in it; without one any entry of its iteration is
 * meant. */
static bool meant(const struct scan *s, const char *path, const struct ckpt_entry *e)
{
	_cleanup_(mo_freep) char *entry = mo_path(s->dir, "%s", e->name),
				 *clean_name = mo_path_clean(entry),
				 *clean = path ? mo_path_clean(path) : NULL;
	size_t n = strlen(clean_name);

	return !path ||
	       (strncmp(clean, clean_name, n) == 0 && (clean[n] == '\0' || clean[n] == '/'));
}

static const struct found_checkpoint *known_of(const struct scan *s, const struct ckpt_entry *e)
{
	for (size_t i = 0; i < s->order->n_known; i++)
		if (s->order->known[i].iteration == e->iteration && s->order->known[i].manifest &&
		    meant(s, s->order->known[i].path, e))
			return &s->order->known[i];
	return NULL;
}

/* What the order says of it beside a manifest: announced, to be opened. */
static const struct found_checkpoint *told_of(const struct scan *s, const struct ckpt_entry *e)
{
	for (size_t i = 0; i < s->order->n_known; i++)
		if (s->order->known[i].iteration == e->iteration && !s->order->known[i].manifest &&
		    meant(s, s->order->known[i].path, e))
			return &s->order->known[i];
	return NULL;
}

/* It is not as it was verified: which file? */
static char *what_changed(const struct scan *s, const struct ckpt_entry *e)
{
	struct ckpt_file *was = NULL;
	size_t n = 0;
	char *reason = NULL;

	if (manifest_load(s->dir_fd, e->name, &was, &n) == 0)
		reason = manifest_difference(was, n, e->files, e->n_files, false);
	ckpt_files_done(was, n);
	return reason ? reason
		      : mo_strdup("its files changed since it was verified (which ones is not "
				  "known: " MANIFEST_DIR " does not say)");
}

static struct checksums checksums_of(const struct scan *s, const struct ckpt_entry *e)
{
	const struct command *o = s->order;

	return (struct checksums){ .dir_fd = s->dir_fd,
				   .entry = e->name,
				   .part = o->parts > 1 ? o->part : 0,
				   .parts = o->parts > 1 ? o->parts : 1,
				   .bandwidth = s->bandwidth };
}

static char *verify(const struct scan *s, struct ckpt_entry *e, enum ckpt_level *reached)
{
	struct checksums c = checksums_of(s, e);
	char *reason = NULL;
	int r;

	if (s->level == LEVEL_CRC && c.part < c.parts)
		reason = checksums_make(&c, e->files, e->n_files);
	else if (s->level == LEVEL_CRC)
		reason = checksums_join(&c, e->files, e->n_files);
	if (reason)
		return reason;
	*reached = s->level;
	if (c.parts > 1 && c.part < c.parts) {
		r = checksums_save_part(&c, e->files, e->n_files);
		return r < 0 ? mo_printf("its checksums cannot be kept in " MANIFEST_DIR ": %s",
					 strerror(-r))
			     : NULL;
	}
	manifest_save(s->dir_fd, e->name, e->files, e->n_files);
	return NULL;
}

/* What the reading of all of it says, where nothing was found. */
static char *read_words(size_t n_own, size_t n)
{
	if (n_own == 0)
		return mo_strdup("all of it can be read; its files carry no checksums, so nothing "
				 "says whether they are as they were saved");
	return mo_printf("all of it can be read; %zu of its %zu files carry checksums (CRC-32), "
			 "which are right%s",
			 n_own, n, n_own < n ? "; nothing is said of the others" : "");
}

/* There are no checksums of after its save: every byte, or this node's part of them, is read, and
 * what files carry themselves is compared. Also what level marker did not look at. */
static char *read_content(const struct scan *s, const struct ckpt_entry *e, char **note)
{
	struct checksums c = checksums_of(s, e);
	struct ckpt_question question = s->question;
	struct ckpt_entry all = { .name = mo_strdup(e->name), .iteration = e->iteration };
	char *reason;

	c.own = true;
	question.level = LEVEL_SIZES;
	ckpt_entry_read(s->dir_fd, s->order->layout, s->rules, LEVEL_SIZES, true, true, &all);
	reason = ckpt_judge(s->rules, &all, &question);
	reason = reason ? reason : checksums_make(&c, all.files, all.n_files);
	if (!reason && (c.parts == 1 || c.part == c.parts))
		*note = read_words(checksums_own(&c, all.files, all.n_files), all.n_files);
	ckpt_entry_done(&all);
	return reason;
}

/* Its content, or this node's part of it, against the checksums of its manifest; without any it is
 * read all the same. Offline what was copied has other times and inodes. */
static char *compare_checksums(const struct scan *s, struct ckpt_entry *e, enum ckpt_level *reached,
			       char **note)
{
	struct checksums c = checksums_of(s, e);
	struct ckpt_file *was = NULL;
	size_t n = 0, n_summed = 0;
	char *reason = NULL;
	int r = manifest_load(s->dir_fd, e->name, &was, &n);

	for (size_t i = 0; i < n; i++)
		n_summed += was[i].crc != MO_NONE;
	if (r < 0 || n_summed < n) {
		_cleanup_(mo_freep) char *read = NULL;

		reason = read_content(s, e, &read);
		*note = mo_printf("no checksums to compare with: %s%s%s",
				  r == -EINVAL ? "its manifest is damaged"
					       : "it was not verified at level crc",
				  read ? "; " : "", read ? read : "");
	} else {
		reason = manifest_difference(was, n, e->files, e->n_files, true);
		reason = reason ? reason : checksums_make(&c, e->files, e->n_files);
		for (size_t i = 0; i < n && !reason; i++)
			if (manifest_part(was[i].name, c.parts) == c.part &&
			    was[i].crc != e->files[i].crc)
				reason = mo_printf("%s: its content is not what was verified "
						   "(CRC32C %08llx, it was %08llx)",
						   e->files[i].name,
						   (unsigned long long)e->files[i].crc,
						   (unsigned long long)was[i].crc);
		*reached = LEVEL_CRC;
	}
	ckpt_files_done(was, n);
	return reason;
}

/* A manifest that is there and still true is kept: it may have checksums. */
static void keep_manifest(const struct scan *s, const struct ckpt_entry *e)
{
	struct ckpt_file *was = NULL;
	size_t n = 0;
	_cleanup_(mo_freep) char *differs =
		manifest_load(s->dir_fd, e->name, &was, &n) < 0
			? mo_strdup("none")
			: manifest_difference(was, n, e->files, e->n_files, false);

	ckpt_files_done(was, n);
	if (differs)
		manifest_save(s->dir_fd, e->name, e->files, e->n_files);
}

static void examine(struct scan *s, struct ckpt_entry *e, struct scan_result *ret)
{
	const struct found_checkpoint *known = known_of(s, e), *told = told_of(s, e);
	struct ckpt_question question = s->question;
	bool offline = s->order->job == MO_NONE, only = s->order->only != MO_NONE;
	bool thorough = !known && (offline || only || s->level == LEVEL_MARKER ||
				   s->n_whole < THOROUGH || (told && told->level));
	enum ckpt_level reached =
		s->level == LEVEL_MARKER || !thorough ? LEVEL_MARKER : LEVEL_SIZES;
	/* of what is known, nothing else is looked at */
	enum ckpt_level compared = LEVEL_MARKER;
	bool suspected = known && only && known->level, was_known = known;
	char *reason, *note = NULL;

	question.announced |= told && told->complete;
	ckpt_entry_read(s->dir_fd, s->order->layout, s->rules, s->level, !known, thorough, e);
	_cleanup_(mo_freep) char *digest =
		e->directory ? manifest_digest(e->files, e->n_files) : NULL;
	if (known && e->directory && !e->damage) {
		reason = mo_streq(digest, known->manifest)
				 ? ckpt_judge_tracker(s->rules, e, &s->question)
				 : what_changed(s, e);
		if (!reason && suspected && mo_streq(known->level, "crc"))
			reason = compare_checksums(s, e, &compared, &note);
		else if (!reason && suspected)
			reason = read_content(s, e, &note);
	} else {
		reason = ckpt_judge(s->rules, e, &question);
		known = NULL;
		suspected = false;
		if (!reason && e->directory && only)
			reason = verify(s, e, &reached);
		else if (!reason && e->directory && offline && s->level == LEVEL_CRC)
			reason = compare_checksums(s, e, &reached, &note);
		else if (!reason && e->directory && !offline && thorough)
			keep_manifest(s, e);
	}
	report(s, e, reason, ret);
	struct found_checkpoint *f = &ret->items[ret->n_items - 1];
	s->n_whole += f->complete;
	if (f->complete && !known)
		mo_str_set(&f->level, ckpt_level_names[reached]);
	else if (f->complete && suspected)
		mo_str_set(&f->level, compared == LEVEL_CRC ? "crc" : "read");
	if (was_known || (f->complete && thorough))
		/* what was not opened is judged again when it is among the newest; of what is
		 * damaged it says whether that shows by names, sizes and times */
		mo_str_set(&f->manifest, digest || f->complete ? digest : "cannot be read");
	if (note && f->complete)
		mo_str_set(&f->reason, note);
	free(note);
}

/* Several entries of one iteration (a step directory and a log of the same number): the complete
 * one counts. */
static void keep_one(struct scan_result *ret)
{
	size_t n = ret->n_items;

	if (n < 2 || ret->items[n - 1].iteration != ret->items[n - 2].iteration)
		return;
	bool later_is_better = ret->items[n - 1].complete && !ret->items[n - 2].complete;
	mo_vec_remove(&found_checkpoint_desc, ret->items, &ret->n_items,
		      later_is_better ? n - 2 : n - 1);
}

/* Entries without a number of their own, the newest first: the first whole one counts, else the
 * newest. */
static void newest_whole(struct scan_result *ret)
{
	size_t n = ret->n_items;

	if (n > 1)
		mo_vec_remove(&found_checkpoint_desc, ret->items, &ret->n_items,
			      !ret->items[0].complete && ret->items[1].complete ? 0 : 1);
}

/* The tracker names what is not there: it was written before the data, or the data was removed. */
static void report_missing(const struct scan *s, struct scan_result *ret)
{
	struct ckpt_entry e = { .iteration = s->question.tracker_says };

	if (s->question.tracker != TRACKER_SAYS || e.iteration == INT64_MAX ||
	    s->order->only != MO_NONE || ret->n_items >= MO_CHECKPOINTS_MAX)
		return;
	for (size_t i = 0; i < ret->n_items; i++)
		if (ret->items[i].iteration == e.iteration)
			return;
	struct found_checkpoint *f = MO_ADD(ret, items, &found_checkpoint_desc);
	f->iteration = e.iteration;
	f->path = mo_strdup(s->dir);
	f->bytes = 0;
	f->reason = mo_printf("the tracker file %s names it, but it is not there",
			      s->order->layout->tracker);
}

/* Where only a marker tells, any name with a number may be of something else: logs of a day.
 * From the second attempt on it may be what the job announced; then only what holds nothing is
 * passed over, and that only where nothing is whole. */
static bool is_beside(struct scan *s, const struct ckpt_entry *e)
{
	const struct command *o = s->order;
	const struct found_checkpoint *told = told_of(s, e);
	bool empty;

	if (!o->layout->announced_is_complete || o->layout->given || o->only != MO_NONE ||
	    known_of(s, e) || (told && told->complete))
		return false;
	if (!unread_is_beside(s->dir_fd, e->name, s->rules, &empty))
		return false;
	s->n_empty += empty;
	return empty ? s->no_empty : o->job == MO_NONE || o->attempt == 1;
}

static void pass_through(struct scan *s, struct names *names, struct scan_result *ret)
{
	const struct command *order = s->order;

	for (size_t i = 0; i < names->n && ret->n_items < MO_CHECKPOINTS_MAX; i++) {
		struct ckpt_entry *e = &names->items[i];
		if (order->only != MO_NONE &&
		    (e->iteration != order->only || !meant(s, order->path, e)))
			continue;
		if (is_beside(s, e))
			continue;
		examine(s, e, ret);
		if (order->layout->unnumbered)
			newest_whole(ret);
		else
			keep_one(ret);
		ckpt_entry_done(e);
	}
}

static void pass_again(struct scan *s, DIR *d, struct scan_result *ret)
{
	_cleanup_(names_done) struct names again = { 0 };

	mo_vec_clear(&found_checkpoint_desc, (void **)&ret->items, &ret->n_items);
	rewinddir(d);
	list_names(d, s->rules, s->order->layout->unnumbered, &again);
	pass_through(s, &again, ret);
}

/* Nothing whole lies there: a save was cut, or what this job saved is gone. */
static bool wants_back(const struct command *order, const struct scan_result *found)
{
	return order->restore && order->layout->unnumbered &&
	       (found->n_items ? !found->items[0].complete : order->attempt > 1);
}

int scan_directory(const struct command *order, enum ckpt_level level, int64_t bandwidth,
		   struct scan_result *ret, struct mo_error *err)
{
	_cleanup_(ckpt_rules_freep) struct ckpt_rules *rules = NULL;
	_cleanup_(names_done) struct names names = { 0 };
	const struct ckpt_layout *layout = order->layout;
	_cleanup_(mo_freep) char *dir =
		layout->subdir ? mo_path(order->dir, "%s", layout->subdir) : mo_strdup(order->dir);
	int r = ckpt_rules_new(layout, &rules, err);

	if (r < 0)
		return r;
	_cleanup_(directory_close) DIR *d = directory_open(AT_FDCWD, dir, true);
	if (!d && errno == ENOENT)
		return 0;
	if (!d)
		return mo_error_set(err, -errno, "it cannot be read: %s", strerror(errno));
	struct scan s = { .order = order,
			  .level = level,
			  .bandwidth = bandwidth,
			  .dir = dir,
			  .dir_fd = dirfd(d),
			  .rules = rules };
	s.question = (struct ckpt_question){ .level = level,
					     .world = order->world,
					     .announced = order->announced,
					     .tracker_says = MO_NONE };
	list_names(d, rules, layout->unnumbered, &names);
	prune(&s, &names);
	s.question.tracker =
		read_tracker(s.dir_fd, rules, layout->tracker, &s.question.tracker_says);
	pass_through(&s, &names, ret);
	s.no_empty = s.n_empty > 0 && s.n_whole == 0;
	if (s.no_empty)
		pass_again(&s, d, ret);
	_cleanup_(mo_freep) char *back =
		wants_back(order, ret) ? keep_put_back(s.dir_fd, layout, rules) : NULL;
	if (back) {
		pass_again(&s, d, ret);
		if (ret->n_items && ret->items[0].complete)
			mo_str_set(&ret->items[0].reason, back);
	}
	report_missing(&s, ret);
	return 0;
}

int scan_probe(const char *dir, struct mo_error *err)
{
	_cleanup_(mo_freep) char *tag = mo_random_hex(8);
	_cleanup_(mo_freep) char *path = mo_path(dir, ".moe-probe-%s", tag ? tag : "x");
	int r = mo_mkdir_p(dir, 0777, false);
	int fd =
		r < 0 ? -1 : open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (r == 0 && fd < 0)
		r = -errno;
	if (fd >= 0) {
		r = mo_write_all(fd, "probe\n", 6);
		if (r == 0 && fsync(fd) < 0)
			/* a full disk or a used-up quota may show only here */
			r = -errno;
		close(fd);
		unlink(path);
	}
	return r < 0 ? mo_error_set(err, r, "it cannot be written: %s", strerror(-r)) : 0;
}
