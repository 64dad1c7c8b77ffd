/* moe-image: brings an image to this node as a directory in which steps can run, and is gone. A
 * program of its own, run by a user without rights: an image is somebody's, and its archives are
 * read by libraries.
 *   moe-image fetch NAME DIR        from a registry into an OCI image layout
 *   moe-image unpack SOURCE DEST    of a layout, or of what docker save wrote, into a directory
 * NAME: docker://HOST/NAME[:TAG][@DIGEST]. SOURCE: oci:DIR[:TAG] or docker-archive:FILE. Both are
 * safe to be killed and started again: fetch goes on where it was, and DEST is there when it is
 * whole, or not at all. Run by root it becomes the user.
 *
 * Standard output: how far it is, then the image's digest. Exit 0; 1 with one line on stderr: this
 * node or the network could not; 2: bad usage; 3 with one line: the image or its source is refused,
 * and will be again. */
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "agent/core/image/reference.h"
#include "agent/image/fetch.h"
#include "agent/image/unpack.h"
#include "lib/base/identity.h"
#include "lib/base/line.h"
#include "lib/base/parse.h"
#include "lib/base/proc.h"

#define BYTES_MAX (512LL << 30)
#define SECOND_US 1000000LL
#define SILENCE_S 60
/* of this process: files of somebody are read */
#define MEMORY_MAX (4LL << 30)

static const char usage[] =
	"usage: moe-image fetch docker://HOST/NAME[:TAG][@DIGEST] DIR [--auth FILE]\n"
	"                 [--mirror FROM=TO] .. [--silence DURATION]\n"
	"       moe-image unpack oci:DIR[:TAG]|docker-archive:FILE DEST [--max-bytes SIZE]\n"
	"       both: [--user NAME] [--allow-root]\n"
	"       moe-image --version\n";

#define DOCKER "docker://"

struct wish {
	bool fetch; /* else unpack */
	const char *source, *dest, *user;
	int64_t bytes_max, silence_us;
	const char *auth_file;
	char **mirrors;
	size_t n_mirrors;
	bool allow_root;
};

/* An option with its value; false: it is none of this verb. */
static bool read_option(struct wish *w, const char *name, const char *value)
{
	if (mo_streq(name, "--user"))
		w->user = value;
	else if (mo_streq(name, "--auth") && w->fetch)
		w->auth_file = value;
	else if (mo_streq(name, "--mirror") && w->fetch && strchr(value, '='))
		mo_strs_add(&w->mirrors, &w->n_mirrors, value);
	else if (mo_streq(name, "--silence") && w->fetch)
		return mo_parse_duration_us(value, &w->silence_us) == 0 &&
		       w->silence_us >= SECOND_US;
	else if (mo_streq(name, "--max-bytes") && !w->fetch)
		return mo_parse_size(value, &w->bytes_max) == 0;
	else
		return false;
	return true;
}

/* false: it is no usage. */
static bool read_args(int argc, char **argv, struct wish *w)
{
	if (argc < 4 || !*argv[3])
		return false;
	w->fetch = mo_streq(argv[1], "fetch");
	w->source = argv[2];
	w->dest = argv[3];
	if (!w->fetch && !mo_streq(argv[1], "unpack"))
		return false;
	for (int i = 4; i < argc; i++) {
		if (mo_streq(argv[i], "--allow-root"))
			w->allow_root = true;
		else if (i + 1 == argc || !read_option(w, argv[i], argv[i + 1]))
			return false;
		else
			i++;
	}
	return true;
}

static int become(const struct wish *w, struct mo_error *err)
{
	struct mo_identity_rule rule = { w->allow_root, 0 };
	_cleanup_(mo_identity_done) struct mo_identity who = { 0 };

	if (!w->user && !w->allow_root && mo_uid() == 0) {
		mo_error_set(err, -EPERM, "images are not brought as root");
		mo_error_hint(err, "name who shall own them with --user NAME");
		return -EPERM;
	}
	int r = mo_identity_resolve(w->user, &rule, &who, err);

	if (r < 0)
		return r;
	r = mo_identity_become(&who);
	return r < 0 ? mo_error_set(err, r, "cannot become user %s: %s", who.user, strerror(-r))
		     : 0;
}

static void be_bounded(void)
{
	mo_proc_go_first();
#ifndef __SANITIZE_ADDRESS__ /* its shadow memory is larger */
	setrlimit(RLIMIT_DATA, &(struct rlimit){ MEMORY_MAX, MEMORY_MAX });
#endif
	umask(0);
	/* names in archives are UTF-8 */
	setlocale(LC_CTYPE, "C.UTF-8");
}

static int run_unpack(const struct wish *w, const char *architecture, struct mo_error *err)
{
	_cleanup_(source_done) struct source from = { 0 };
	int r = source_read(w->source, &from, err);

	return r < 0 ? r : unpack(&from, architecture, w->dest, w->bytes_max, err);
}

static int run_fetch(const struct wish *w, const char *architecture, struct mo_error *err)
{
	_cleanup_(reference_done) struct reference from = { 0 };
	struct fetch_wish wish = { w->auth_file, w->silence_us / SECOND_US };

	if (!mo_starts_with(w->source, DOCKER))
		return mo_error_set(err, IMAGE_REFUSED,
				    "it is no image of a registry; write " DOCKER "HOST/NAME:TAG");
	int r = reference_read(w->source + strlen(DOCKER), w->mirrors, w->n_mirrors, &from, err);

	return r < 0 ? r : fetch(&from, w->dest, architecture, &wish, err);
}

static int run(const struct wish *w, struct mo_error *err)
{
	struct utsname node;
	int r = become(w, err);

	if (r < 0)
		return r;
	be_bounded();
	uname(&node);
	const char *architecture = oci_architecture(node.machine);

	return w->fetch ? run_fetch(w, architecture, err) : run_unpack(w, architecture, err);
}

int main(int argc, char **argv)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct wish w = { .bytes_max = BYTES_MAX, .silence_us = SILENCE_S * SECOND_US };

	if (argc == 2 && mo_streq(argv[1], "--version")) {
		printf("moe-image %s\n", MO_VERSION);
		return 0;
	}
	if (!read_args(argc, argv, &w)) {
		fputs(usage, stderr);
		return 2;
	}
	int r = run(&w, &err);

	mo_strs_clear(&w.mirrors, &w.n_mirrors);
	if (r == 0)
		return 0;
	_cleanup_(mo_freep) char *line = mo_printf("%s%s%s", mo_error_text(&err, r),
						   err.hint ? "; " : "", err.hint ? err.hint : "");
	_cleanup_(mo_freep) char *plain = mo_line_plain_dup(line);

	fprintf(stderr, "moe-image: %s: %s\n", w.source, plain);
	return r == IMAGE_REFUSED ? 3 : 1;
}
