/* See prepare.h. */
#include "agent/stepd/prepare.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>
#include "agent/core/bind/env.h"
#include "agent/core/stepd/box.h"
#include "agent/stepd/child.h"
#include "agent/stepd/error_file.h"
#include "agent/stepd/output.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/idset.h"
#include "lib/base/log.h"
#include "lib/base/proc.h"
#include "lib/base/socket.h"
#include "lib/model/recorder.h"
#include "lib/wire/encode.h"

#define MEM_NODES_MAX 1024

void prepared_close_ends(struct prepared *p)
{
	p->out_fd = mo_close(p->out_fd);
	p->err_fd = mo_close(p->err_fd);
}

struct prepared *prepared_free(struct prepared *p)
{
	if (!p)
		return NULL;
	prepared_close_ends(p);
	mo_close(p->null_fd);
	free(p->ifname);
	for (size_t i = 0; p->given && i < p->n; i++)
		mo_vec_clear(&env_item_desc, (void **)&p->given[i].items, &p->given[i].n);
	free(p->given);
	for (size_t i = 0; i < p->n_files; i++)
		mo_buf_done(&p->files[i].text);
	free(p->files);
	for (size_t i = 0; i < p->n_memory; i++)
		free(p->memory[i]);
	free(p->memory);
	free(p->plans);
	free(p);
	return NULL;
}

void prepare_leave_record(struct stepd *s, const struct prepared *p)
{
	_cleanup_(mo_freep) char *here = mo_path(s->dir, "env.json"),
				 *retained = mo_path(s->spool.log_dir, "env.json");
	char *const paths[] = { here, retained }; /* the second outlives the step, as the logs do */
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct env_record record = { 0 };
	for (size_t i = 0; i < p->n; i++)
		env_record_add(&record, s->ranks[i].rank, p->given[i].items, p->given[i].n);
	wire_encode(&env_record_desc, &record, &b);
	mo_desc_done(&env_record_desc, &record);
	for (size_t i = 0; i < ELEMENTSOF(paths); i++) {
		int r = mo_write_file(paths[i], b.data, b.len, 0600, false);
		if (r < 0)
			mo_log(MO_WARNING, NULL, NULL,
			       "%s: %s: moectl explain env shows what is expected instead of what "
			       "was given",
			       paths[i], strerror(-r));
	}
}

void *prepared_keep(struct prepared *p, void *memory)
{
	*MO_GROW(p->memory, p->n_memory) = memory;
	return memory;
}

/* What was read of its file, judged. */
static int file_value(const struct stepd *s, const struct env_item *item, struct file_text *f,
		      struct mo_error *err)
{
	const char *node = s->spool.node;
	struct mo_buf *b = &f->text;
	if (f->error == -ETIMEDOUT)
		return mo_error_set(err, f->error,
				    "env.%s: file %s on %s was not read within %d s: its file "
				    "system does not answer, or it is slow; put the file on "
				    "another one, or look at the mount",
				    item->name, item->file, node, FILES_MS / 1000);
	if (f->error == -EMEDIUMTYPE)
		return mo_error_set(err, -EINVAL,
				    "env.%s: %s on %s is no plain file: name one that holds the "
				    "value",
				    item->name, item->file, node);
	if (f->error == -EFBIG)
		return mo_error_set(err, f->error,
				    "env.%s: file %s on %s is larger than %d kB: a variable holds "
				    "one value",
				    item->name, item->file, node, ENV_FILE_MAX >> 10);
	if (f->error < 0)
		return mo_error_set(err, f->error, "env.%s: file %s on %s: %s", item->name,
				    item->file, node, strerror(-f->error));
	while (b->len > 0 && (b->data[b->len - 1] == '\n' || b->data[b->len - 1] == '\r'))
		b->data[--b->len] = '\0';
	if (b->len && memchr(b->data, '\0', b->len))
		return mo_error_set(err, -EINVAL, "env.%s: file %s on %s holds a NUL byte",
				    item->name, item->file, node);
	return 0;
}

static struct file_text *file_of(const struct prepared *p, const char *path)
{
	for (size_t i = 0; i < p->n_files; i++)
		if (mo_streq(p->files[i].path, path))
			return &p->files[i];
	return NULL;
}

static int env_value(const struct stepd *s, const struct prepared *p, const struct env_item *item,
		     struct mo_buf *b, struct mo_error *err)
{
	if (!item->file) {
		mo_buf_str(b, item->value ? item->value : "");
		return 0;
	}
	struct file_text *f = file_of(p, item->file);
	int r = file_value(s, item, f, err);
	if (r == 0)
		mo_buf_add(b, f->text.data, f->text.len);
	return r;
}

/* What a rank is given, as far as it is known before its files are read: the first all of it, of
 * the others what is another one. */
static void compose(struct stepd *s, struct prepared *p, const struct rank *r)
{
	_cleanup_(mo_freep) char *socket = mo_path(s->dir, "notify.%lld", (long long)r->rank);
	_cleanup_(mo_freep) char *error_file = error_file_path(s, r);
	_cleanup_(mo_freep) char *recorder = mo_path(s->dir, RECORDER_DIR);
	/* a long runtime path: the same socket through our descriptor */
	if (strlen(socket) >= sizeof(((struct sockaddr_un *)NULL)->sun_path)) {
		free(socket);
		socket = mo_printf("/proc/%d/fd/%d/notify.%lld", (int)mo_proc_self(), s->dir_fd,
				   (long long)r->rank);
	}
	struct env_rank er = {
		.local_rank = (int64_t)r->local,
		.step_id = s->spool.step_id,
		.notify_socket = socket,
		.error_file = error_file,
		.recorder_dir = recorder,
		.home = s->who.home,
		.user = s->box && s->box->user ? s->box->user : s->who.user,
		.shell = s->who.shell,
		.tmpdir = s->spool.tmpdir && !s->spool.launch.container ? s->spool.tmpdir : "/tmp",
		.ifname = p->ifname,
	};
	struct given *g = &p->given[r->local];
	const struct launch *l = &s->spool.launch;
	const struct env_first first = { p->given[0].items, p->given[0].n, &s->spool.binds[0] };
	const struct rank_bind *b = &s->spool.binds[r->local];
	if (r->local == 0)
		env_compose(l, &s->spool.info, b, &er, &g->items, &g->n);
	else
		env_compose_next(l, &s->spool.info, &first, b, &er, &g->items, &g->n);
	for (size_t i = 0; i < g->n; i++)
		if (g->items[i].file && !file_of(p, g->items[i].file))
			*MO_GROW(p->files, p->n_files) =
				(struct file_text){ .path = g->items[i].file };
}

static size_t env_index(char *const *env, const char *name)
{
	size_t n = strlen(name), i = 0;
	while (env[i] && (strncmp(env[i], name, n) != 0 || env[i][n] != '='))
		i++;
	return i;
}

/* Beside what is its own, a rank's words are the first rank's: each fork copies the pages that they
 * lie in. */
static int make_env(const struct stepd *s, struct prepared *p, const struct rank *r, char ***ret,
		    struct mo_error *err)
{
	const struct given *g = &p->given[r->local];
	size_t n = p->given[0].n;
	char **env = prepared_keep(p, mo_alloc_array(n + 1, sizeof(char *)));
	int e = 0;
	for (size_t i = 0; r->local > 0 && i < n; i++)
		env[i] = p->plans[0].envp[i];
	for (size_t i = 0; i < g->n && e == 0; i++) {
		const struct env_item *item = &g->items[i];
		_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
		if (!item->value && !item->file)
			continue; /* unset */
		mo_buf_printf(&b, "%s=", item->name);
		e = env_value(s, p, item, &b, err);
		env[env_index(env, item->name)] = prepared_keep(p, mo_buf_take(&b));
	}
	*ret = env;
	return e;
}

static const char *env_find(char *const *env, const char *name)
{
	const char *found = env[env_index(env, name)];
	return found ? found + strlen(name) + 1 : NULL;
}

char **prepared_candidates(struct prepared *p, const char *program, char *const *env)
{
	const char *path = env_find(env, "PATH");
	char **list = NULL;
	size_t n = 0;
	if (strchr(program, '/'))
		mo_strs_add(&list, &n, program);
	for (const char *at = strchr(program, '/') ? NULL : path ? path : "/usr/bin:/bin"; at;) {
		size_t len = strcspn(at, ":");
		_cleanup_(mo_freep) char *full =
			mo_printf("%.*s%s%s", (int)len, at, len ? "/" : "./", program);
		mo_strs_add(&list, &n, full);
		at = at[len] ? at + len + 1 : NULL;
	}
	char **out = prepared_keep(p, mo_alloc_array(n + 1, sizeof(char *)));
	for (size_t i = 0; i < n; i++)
		out[i] = prepared_keep(p, list[i]);
	free(list);
	return out;
}

static int make_cpus(struct prepared *p, const struct rank_bind *b, struct child_plan *c,
		     struct mo_error *err)
{
	_cleanup_(mo_idset_done) struct mo_idset set = { 0 };
	if (!b->cpus || b->simulated)
		return 0;
	int r = mo_idset_parse(b->cpus, &set);
	if (r < 0 || mo_idset_count(&set) == 0)
		return mo_error_set(err, -EINVAL, "cpu list '%s' is not one", b->cpus);
	size_t top = 0;
	for (int64_t id = mo_idset_next(&set, 0); id >= 0; id = mo_idset_next(&set, id + 1))
		top = (size_t)id;
	c->cpus_size = CPU_ALLOC_SIZE(top + 1);
	cpu_set_t *cpus = prepared_keep(p, mo_alloc(c->cpus_size));
	for (int64_t id = mo_idset_next(&set, 0); id >= 0; id = mo_idset_next(&set, id + 1))
		CPU_SET_S((size_t)id, c->cpus_size, cpus);
	c->cpus = cpus;
	return 0;
}

static int make_memory(struct prepared *p, const struct rank_bind *b, struct child_plan *c,
		       struct mo_error *err)
{
	static const int policies[] = { [MEM_NONE] = -1,
					[MEM_PREFERRED] = MPOL_PREFERRED,
					[MEM_BIND] = MPOL_BIND,
					[MEM_INTERLEAVE] = MPOL_INTERLEAVE };
	_cleanup_(mo_idset_done) struct mo_idset set = { 0 };
	c->mem_policy = -1;
	if (b->simulated || b->mem_policy <= MEM_NONE || b->mem_policy > MEM_INTERLEAVE ||
	    !b->mem_nodes)
		return 0;
	if (mo_idset_parse(b->mem_nodes, &set) < 0 || mo_idset_next(&set, MEM_NODES_MAX) >= 0)
		return mo_error_set(err, -EINVAL, "memory node list '%s' is not one", b->mem_nodes);
	const size_t bits = 8 * sizeof(unsigned long);
	unsigned long *mask = prepared_keep(p, mo_alloc_array(MEM_NODES_MAX / bits, sizeof(*mask)));
	for (int64_t id = mo_idset_next(&set, 0); id >= 0; id = mo_idset_next(&set, id + 1))
		mask[(size_t)id / bits] |= 1UL << ((size_t)id % bits);
	c->mem_policy = b->mem_policy == MEM_PREFERRED && mo_idset_count(&set) > 1
				? MPOL_PREFERRED_MANY
				: policies[b->mem_policy];
	c->mem_nodes = mask;
	c->mem_bits = MEM_NODES_MAX + 1; /* the kernel takes one off */
	return 0;
}

/* Of the user: ranks make their pipes in it (RECORDER_PIPE). */
static int make_recorder_dir(const struct stepd *s, struct mo_error *err)
{
	_cleanup_(mo_freep) char *path = mo_path(s->dir, RECORDER_DIR);

	if ((mo_mkdir(path, 0700) < 0 && errno != EEXIST) ||
	    (s->who.change && mo_chown(path, s->who.uid, s->who.gid) < 0))
		return mo_error_set(err, -errno, "%s: %s", path, strerror(errno));
	return 0;
}

static char **argv_of(struct prepared *p, const struct launch *l)
{
	char **argv = prepared_keep(p, mo_alloc_array(l->n_argv + 1, sizeof(char *)));
	memcpy(argv, l->argv, l->n_argv * sizeof(char *));
	return argv;
}

static int prepare_rank(struct stepd *s, struct prepared *p, size_t i, const char **ret_cause,
			struct mo_error *err)
{
	struct rank *r = &s->ranks[i];
	const struct launch *l = &s->spool.launch;
	struct child_plan *c = &p->plans[i];
	const struct child_plan *first = i > 0 ? &p->plans[0] : NULL;
	char **env = NULL;
	*c = (struct child_plan){ .argv = first ? first->argv : argv_of(p, l),
				  .workdir = l->workdir ? l->workdir : s->who.home,
				  .is_home = !l->workdir,
				  .in_fd = p->null_fd,
				  .report_fd = -1,
				  .cgroup_fd = s->cgroup_procs_fd,
				  .mnt_fd = s->mnt_fd,
				  .in_image = l->container != NULL,
				  .user_fd = s->user_fd,
				  .parent = mo_proc_self(),
				  .who = &s->who };
	*ret_cause = "bind";
	int e = make_cpus(p, &s->spool.binds[i], c, err);
	if (e == 0)
		e = make_memory(p, &s->spool.binds[i], c, err);
	if (e < 0)
		return e;
	*ret_cause = "exec";
	e = make_env(s, p, r, &env, err);
	if (e < 0)
		return e;
	c->envp = env;
	c->candidates = first && env_find(env, "PATH") == env_find(first->envp, "PATH")
				? first->candidates
				: prepared_candidates(p, c->argv[0], env);
	return 0;
}

int prepare_files(struct stepd *s, struct prepared *p, size_t i, struct mo_error *err)
{
	int e = error_file_make(s, &s->ranks[i], err);
	if (e == 0)
		e = output_open(s, &s->ranks[i], &p->out_fd, &p->err_fd, err);
	p->plans[i].out_fd = p->out_fd;
	p->plans[i].err_fd = p->err_fd;
	return e;
}

int prepare_begin(struct stepd *s, struct prepared **ret, const char **ret_cause,
		  struct mo_error *err)
{
	_cleanup_(prepared_freep) struct prepared *p = mo_alloc(sizeof(*p));
	p->out_fd = p->err_fd = -1;
	p->null_fd = mo_open_at(AT_FDCWD, "/dev/null", O_RDONLY, 0);
	p->plans = mo_alloc_array(s->n_ranks, sizeof(*p->plans));
	p->given = mo_alloc_array(s->n_ranks, sizeof(*p->given));
	p->n = s->n_ranks;
	p->ifname =
		s->spool.launch.n_nodes > 1 ? mo_socket_interface(s->spool.launch.address) : NULL;
	*ret_cause = "bind";
	if (s->spool.bind_error)
		return mo_error_set(err, -EINVAL, "%s", s->spool.bind_error);
	if (s->spool.n_binds != s->n_ranks)
		return mo_error_set(err, -EINVAL, "the spool entry binds %zu of %zu ranks",
				    s->spool.n_binds, s->n_ranks);
	*ret_cause = "user";
	mo_identity_done(&s->who); /* of engine.prepare */
	const struct mo_identity_rule rule = { s->spool.allow_root, s->spool.min_uid };
	int r = mo_identity_resolve(s->spool.launch.user, &rule, &s->who, err);
	if (r < 0)
		return r;
	*ret_cause = "exec";
	if (p->null_fd < 0)
		return mo_error_set(err, -errno, "/dev/null: %s", strerror(errno));
	r = mo_mkdir_p(s->spool.log_dir, 0755, false);
	if (r < 0)
		return mo_error_set(err, r, "%s: %s", s->spool.log_dir, strerror(-r));
	r = make_recorder_dir(s, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < s->n_ranks; i++)
		compose(s, p, &s->ranks[i]);
	*ret = TAKE_PTR(p);
	return 0;
}

int prepare_end(struct stepd *s, struct prepared *p, const char **ret_cause, struct mo_error *err)
{
	int r = 0;
	for (size_t i = 0; i < s->n_ranks && r == 0; i++)
		r = prepare_rank(s, p, i, ret_cause, err);
	return r;
}
