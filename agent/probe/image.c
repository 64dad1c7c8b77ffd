/* What is in an image: its own words, python, ROCm, providers of RDMA cards. Read by the user whose
 * job would run in it; names are looked up below its root and cannot leave it; nothing of it is
 * executed. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/core/stepd/image_config.h"
#include "agent/probe/probe_image.h"
#include "lib/base/fd.h"
#include "lib/base/rooted.h"
#include "lib/recipe/fits_file.h"
#include "lib/wire/cost.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

#define BUNDLE_CONFIG "config.json"
#define ENVIRONMENT "etc/environment"
/* where the image names none: that of the base profile */
#define PATH_DEFAULT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define LINE_BYTES_MAX 256

static bool is_there(int root, const char *path)
{
	_cleanup_(mo_closep) int fd = mo_open_in(root, path, O_PATH);

	return fd >= 0;
}

size_t fit_read_head(int root, const char *path, char ret[PROGRAM_HEAD_BYTES])
{
	_cleanup_(mo_closep) int fd = mo_open_plain_in(root, path, 0);
	ssize_t n = fd < 0 ? -1 : mo_read_at(fd, ret, PROGRAM_HEAD_BYTES, 0);

	return n > 0 ? (size_t)n : 0;
}

static bool may_execute(int root, const char *path)
{
	_cleanup_(mo_closep) int place = mo_open_in(root, path, O_PATH);
	char self[64];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", place);
	return place >= 0 && mo_access(self, X_OK) == 0;
}

/* A script is for the machine of what executes it. */
static void read_program(int root, struct fit_program *p)
{
	char head[PROGRAM_HEAD_BYTES], by[PROGRAM_NAME_MAX];
	size_t n = fit_read_head(root, p->path, head);

	p->forbidden = !may_execute(root, p->path);
	p->machine = program_machine(head, n);
	if (program_by(head, n, by) == 0)
		return;
	if (!is_there(root, by))
		mo_str_set(&p->by, by);
	else if (!p->machine)
		p->machine = program_machine(head, fit_read_head(root, by, head));
}

/* Along the directories, separated by ':'. Caller frees; NULL: in none. */
static char *find_along(int root, const char *dirs, const char *name)
{
	for (const char *at = dirs; at && *at;) {
		size_t n = strcspn(at, ":");
		_cleanup_(mo_freep) char *path = mo_printf("%.*s/%s", (int)n, at, name);

		if (n > 0 && *at == '/' && is_there(root, path))
			return TAKE_PTR(path);
		at += n + (at[n] != '\0');
	}
	return NULL;
}

static void find_python(int root, struct fit_image *i)
{
	i->python.path = find_along(root, i->path, "python3");
	if (i->python.path) {
		read_program(root, &i->python);
		return;
	}
	for (size_t k = 0; program_dirs[k] && !i->python.elsewhere; k++)
		i->python.elsewhere = find_along(root, program_dirs[k], "python3");
}

/* ---- what it says about itself ---- */

static int decode_bundle(const struct mo_buf *b, struct image_config *ret, struct mo_error *err)
{
	_cleanup_(image_bundle_done) struct image_bundle bundle;

	mo_desc_init(&image_bundle_desc, &bundle);
	int r = wire_affordable(b->data, b->len, err);

	if (r == 0)
		r = wire_decode(&image_bundle_desc, b->data, b->len, false, &bundle, err);
	return r < 0 ? r : image_config_bundle(&bundle, ret, err);
}

static void take_config(const struct image_config *c, const char *name, struct fit_image *i)
{
	for (size_t k = 0; k < c->n_env; k++)
		if (mo_streq(c->env[k].name, "PATH"))
			mo_str_set(&i->path, c->env[k].value);
	i->config = mo_printf("%s has %zu variable%s, PATH %s", name, c->n_env,
			      c->n_env == 1 ? "" : "s", i->path ? i->path : "not among them");
}

/* dir: of config.json, or of the root. */
static void read_config(int dir, const char *name, bool bundle, struct fit_image *i)
{
	_cleanup_(image_config_done) struct image_config config;
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	int r = mo_read_in(dir, name, 0, IMAGE_CONFIG_BYTES_MAX, &b);

	mo_desc_init(&image_config_desc, &config);
	if (r == -ENOENT || r == -ENOTDIR)
		return;
	mo_buf_str(&b, "");
	if (r == 0)
		r = bundle ? decode_bundle(&b, &config, &err)
			   : image_config_environment(b.data, b.len, &config, &err);
	if (r < 0)
		i->error = mo_printf("%s of the image cannot be used: %s", name,
				     mo_error_text(&err, r));
	else
		take_config(&config, name, i);
}

/* ---- ROCm and RDMA ---- */

static char *read_line(int root, const char *path)
{
	_cleanup_(mo_closep) int fd = mo_open_plain_in(root, path, 0);
	char text[LINE_BYTES_MAX];
	ssize_t n = fd < 0 ? -1 : mo_read_at(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return NULL;
	text[n] = '\0';
	text[strcspn(text, "\r\n")] = '\0';
	for (const char *p = text; *p; p++)
		if (*p <= ' ' || *p > '~')
			return NULL;
	return *text ? mo_strdup(text) : NULL;
}

/* Of lib and lib64, in them and in those of each architecture. */
static bool has_library(int root, const char *fmt_name)
{
	static const char *const dirs[] = { "/usr/lib/x86_64-linux-gnu/libibverbs",
					    "/usr/lib/aarch64-linux-gnu/libibverbs",
					    "/usr/lib64/libibverbs",
					    "/usr/lib/libibverbs",
					    "/usr/local/lib/libibverbs",
					    "/usr/local/lib64/libibverbs" };

	for (size_t i = 0; i < ELEMENTSOF(dirs); i++) {
		_cleanup_(mo_closep) int dir = mo_open_in(root, dirs[i], O_RDONLY | O_DIRECTORY);
		_cleanup_(mo_dir_freep) struct mo_dir *d =
			dir < 0 ? NULL : mo_dir_open(dir, ".", 0);
		for (const char *name; (name = mo_dir_next(d));)
			if (mo_starts_with(name, fmt_name))
				return true;
	}
	return false;
}

/* NAME.driver counts when a library lib*NAME* lies where libibverbs looks for it. */
static void find_providers(int root, struct fit_image *i)
{
	static const char *const dirs[] = { "/etc/libibverbs.d", "/usr/local/etc/libibverbs.d",
					    "/usr/etc/libibverbs.d" };

	for (size_t k = 0; k < ELEMENTSOF(dirs); k++) {
		_cleanup_(mo_closep) int dir = mo_open_in(root, dirs[k], O_RDONLY | O_DIRECTORY);
		_cleanup_(mo_dir_freep) struct mo_dir *d =
			dir < 0 ? NULL : mo_dir_open(dir, ".", 0);
		for (const char *name; (name = mo_dir_next(d));) {
			const char *end = strstr(name, ".driver");
			_cleanup_(mo_freep) char *provider =
				end && !end[strlen(".driver")]
					? mo_strndup(name, (size_t)(end - name))
					: NULL;
			_cleanup_(mo_freep) char *library =
				mo_printf("lib%s-rdmav", provider ? provider : "");

			if (provider && has_library(root, library))
				mo_strs_add(&i->providers, &i->n_providers, provider);
		}
	}
}

static void read_root(int root, struct fit_image *i)
{
	i->python.machine = i->shell.machine = 0;
	find_python(root, i);
	if (is_there(root, "/bin/sh")) {
		i->shell.path = mo_strdup("/bin/sh");
		read_program(root, &i->shell);
	}
	i->rocm = read_line(root, "/opt/rocm/.info/version");
	i->rccl = is_there(root, "/opt/rocm/lib/librccl.so.1");
	i->rocr = is_there(root, "/opt/rocm/lib/libhsa-runtime64.so.1");
	find_providers(root, i);
}

void fit_read_image(const char *path, struct fit_image *ret)
{
	_cleanup_(mo_closep) int top = mo_open_at(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);

	if (top < 0) {
		ret->error = mo_printf("%s cannot be opened: %s", path, strerror(errno));
		return;
	}
	_cleanup_(mo_closep) int rootfs =
		mo_open_in(top, "rootfs", O_PATH | O_DIRECTORY | O_NOFOLLOW);
	bool bundle = rootfs >= 0 && is_there(top, BUNDLE_CONFIG);

	read_config(top, bundle ? BUNDLE_CONFIG : ENVIRONMENT, bundle, ret);
	if (ret->error)
		return;
	if (!ret->path)
		ret->path = mo_strdup(PATH_DEFAULT);
	read_root(bundle ? rootfs : top, ret);
}

static int become(const struct image_options *o, struct mo_identity *who, struct mo_error *err)
{
	int r = mo_identity_resolve(o->user, &o->rule, who, err);

	if (r < 0)
		return r;
	r = mo_identity_become(who);
	return r < 0 ? mo_error_set(err, r, "cannot become user %s: %s", who->user, strerror(-r))
		     : 0;
}

int probe_image(const char *root, const struct image_options *o, struct mo_buf *ret,
		struct mo_error *err)
{
	_cleanup_(mo_identity_done) struct mo_identity who = { 0 };
	_cleanup_(fit_done) struct fit f = { 0 };
	_cleanup_(image_fits_done) struct image_fits fits;
	_cleanup_(image_checks_done) struct image_checks checks;
	struct probe_pass l = { 0 };
	struct probe p;

	mo_desc_init(&image_fits_desc, &fits);
	mo_desc_init(&image_checks_desc, &checks);
	mo_desc_init(&probe_desc, &p); /* what a pass cannot read is no finding here */
	int r = image_fits_load(&fits, err);

	if (r == 0 && (r = pass_open(root, &p, &l)) < 0)
		mo_error_set(err, r, "%s: %s", root, strerror(-r));
	if (r == 0) {
		fit_read_node(&l, o, &f.node);
		r = become(o, &who, err);
	}
	if (r == 0) {
		fit_read_devices(&l, &f.node);
		fit_read_image(o->image + strlen(IMAGE_DIR), &f.image);
		checks.image = mo_strdup(o->image);
		checks.user = mo_strdup(who.user);
		fit_judge(&f, &fits, &checks);
		wire_encode(&image_checks_desc, &checks, ret);
	}
	pass_done(&l);
	mo_desc_done(&probe_desc, &p);
	return r;
}
