/* moe-image: unpacks an image that lies on a disk into a directory in which steps can run, and is
 * gone. A program of its own, run by a user without rights: an image is somebody's, and its
 * archives are read by libraries.
 *   moe-image unpack SOURCE DEST [--max-bytes SIZE] [--user NAME] [--allow-root]
 * SOURCE: oci:DIR[:TAG] or docker-archive:FILE. DEST gets rootfs, config.json and digest; it is
 * there when the image is whole, or not at all. Run by root it becomes the user.
 *
 * Standard output: one line per layer, then the image's digest. Exit 0; 1 with one line on stderr:
 * this node could not; 2: bad usage; 3 with one line: the image or its source is refused, and will
 * be again. */
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "agent/image/unpack.h"
#include "lib/base/identity.h"
#include "lib/base/line.h"
#include "lib/base/parse.h"
#include "lib/base/proc.h"

#define BYTES_MAX (512LL << 30)
/* of this process: files of somebody are read */
#define MEMORY_MAX (4LL << 30)

static const char usage[] = "usage: moe-image unpack SOURCE DEST [--max-bytes SIZE] [--user NAME] "
			    "[--allow-root] | --version\n"
			    "SOURCE: oci:DIR[:TAG] or docker-archive:FILE\n";

struct wish {
	const char *source, *dest, *user;
	int64_t bytes_max;
	bool allow_root;
};

/* false: it is no usage. */
static bool read_args(int argc, char **argv, struct wish *w)
{
	if (argc < 4 || !mo_streq(argv[1], "unpack"))
		return false;
	w->source = argv[2];
	w->dest = argv[3];
	for (int i = 4; i < argc; i++) {
		if (mo_streq(argv[i], "--allow-root"))
			w->allow_root = true;
		else if (mo_streq(argv[i], "--user") && i + 1 < argc)
			w->user = argv[++i];
		else if (!mo_streq(argv[i], "--max-bytes") || i + 1 >= argc ||
			 mo_parse_size(argv[++i], &w->bytes_max) < 0)
			return false;
	}
	return *w->dest != 0;
}

static int become(const struct wish *w, struct mo_error *err)
{
	struct mo_identity_rule rule = { w->allow_root, 0 };
	_cleanup_(mo_identity_done) struct mo_identity who = { 0 };

	if (!w->user && !w->allow_root && mo_uid() == 0) {
		mo_error_set(err, -EPERM, "an image is not unpacked as root");
		mo_error_hint(err, "name who shall own it with --user NAME");
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

static int run(const struct wish *w, struct mo_error *err)
{
	_cleanup_(source_done) struct source from = { 0 };
	struct utsname node;
	int r = source_read(w->source, &from, err);

	if (r == 0)
		r = become(w, err);
	if (r < 0)
		return r;
	be_bounded();
	uname(&node);
	return unpack(&from, oci_architecture(node.machine), w->dest, w->bytes_max, err);
}

int main(int argc, char **argv)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct wish w = { .bytes_max = BYTES_MAX };

	if (argc == 2 && mo_streq(argv[1], "--version")) {
		printf("moe-image %s\n", MO_VERSION);
		return 0;
	}
	if (!read_args(argc, argv, &w)) {
		fputs(usage, stderr);
		return 2;
	}
	int r = run(&w, &err);

	if (r == 0)
		return 0;
	_cleanup_(mo_freep) char *line = mo_printf("%s%s%s", mo_error_text(&err, r),
						   err.hint ? "; " : "", err.hint ? err.hint : "");
	_cleanup_(mo_freep) char *plain = mo_line_plain_dup(line);

	fprintf(stderr, "moe-image: %s: %s\n", w.source, plain);
	return r == IMAGE_REFUSED ? 3 : 1;
}
