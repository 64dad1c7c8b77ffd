/* moe-image: brings an image to this node as a directory in which steps can run, and is gone. A
 * program of its own, run by a user without rights: an image is somebody's, and its archives are
 * read by libraries.
 *   moe-image fetch NAME DIR        from a registry into an OCI image layout
 *   moe-image unpack SOURCE DEST    of a layout, or of what docker save wrote, into a directory
 *   moe-image list DIR              which images of --by-digest there are, and
 *   moe-image prune DIR             removes those that nobody has used for long
 *   moe-image stock DIR             the same for the agent, which asks for everybody's images
 *   moe-image pull IMAGE DIR        both, into a directory of images: what the agent starts
 *   moe-image make DIR              that directory, with more rights than an agent may have
 * NAME: docker://HOST/NAME[:TAG][@DIGEST]. SOURCE: oci:DIR[:TAG] or docker-archive:FILE. All are
 * safe to be killed and started again: fetch goes on where it was, and DEST is there when it is
 * whole, or not at all. Run by root it becomes the user, and to prune who owns DIR.
 *
 * Standard output: how far it is, then the image's digest. Exit 0; 1 with one line on stderr: this
 * node or the network could not; 2: bad usage; 3 with one line: the image or its source is refused,
 * and will be again. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "lib/model/reference.h"
#include "agent/image/args.h"
#include "agent/image/cache.h"
#include "agent/image/failure.h"
#include "agent/image/fetch.h"
#include "agent/image/pull.h"
#include "agent/image/stock.h"
#include "agent/image/unpack.h"
#include "lib/base/fd.h"
#include "lib/base/identity.h"
#include "lib/base/proc.h"

/* of this process: files of somebody are read */
#define MEMORY_MAX (4LL << 30)
#define DOCKER "docker://"

/* DIR, or DIR/UID. Root makes it, whoever owns it then. Where images are brought to, nobody else
 * enters: what all may write in an image, other users of the node would. */
static int open_cache(const struct args *a, const struct mo_identity *who, char **ret,
		      struct mo_error *err)
{
	*ret = a->own ? mo_path(a->dir, "%lld", (long long)who->uid) : mo_strdup(a->dir);
	int r = mo_mkdir_p(a->dir, 0755, false);

	if (r >= 0 && a->own && mo_mkdir(*ret, 0700) < 0 && errno != EEXIST)
		r = -errno;
	_cleanup_(mo_closep) int dir =
		r < 0 ? r : mo_open_at(AT_FDCWD, *ret, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	struct stat st;

	if (r >= 0 && dir < 0)
		r = dir;
	/* who has few rights only looks */
	bool made = r >= 0 && mo_stat_fd(dir, &st) == 0 && st.st_uid == who->uid &&
		    (st.st_mode & 07777) == 0700;
	if (r >= 0 && !made &&
	    ((who->change && fchown(dir, who->uid, who->gid) < 0) || fchmod(dir, 0700) < 0))
		r = -errno;
	return r < 0 ? mo_error_set(err, r, "%s cannot be made: %s", *ret, strerror(-r)) : 0;
}

/* Who owns the directory, which may be an account that is known no more. */
static int find_owner(const char *dir, struct mo_identity *ret, struct mo_error *err)
{
	struct stat st;
	int r = mo_stat(dir, &st);

	if (r < 0)
		return mo_error_set(err, r, "it cannot be read: %s", strerror(-r));
	*ret = (struct mo_identity){ .change = st.st_uid != mo_uid(),
				     .uid = st.st_uid,
				     .gid = st.st_gid,
				     .user = mo_printf("%u", (unsigned)st.st_uid) };
	return 0;
}

static int become(const struct args *a, char **ret_cache, struct mo_error *err)
{
	const struct mo_identity_rule any = { a->allow_root, 0 };
	const struct mo_identity_rule rule = { a->allow_root, a->min_uid };
	_cleanup_(mo_identity_done) struct mo_identity who = { 0 };
	bool owner = a->verb == VERB_PRUNE && !a->user && mo_uid() == 0;
	int r = owner ? find_owner(a->dir, &who, err) : 0;

	if (r == 0 && !a->user && !a->allow_root && mo_uid() == 0 && !who.change) {
		mo_error_set(err, -EPERM, "images are not brought as root");
		mo_error_hint(err, "name who shall own them with --user NAME");
		return -EPERM;
	}
	if (r == 0 && !owner)
		r = mo_identity_resolve(a->user, &any, &who, err);
	/* as of its ranks, it will be refused again */
	if (r == 0 && a->min_uid > 0 && who.change && !a->allow_root &&
	    mo_identity_system(&who, &rule, err) < 0)
		r = IMAGE_REFUSED;
	if (r == 0 && (a->verb == VERB_PULL || a->verb == VERB_MAKE))
		r = open_cache(a, &who, ret_cache, err);
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

static int run_unpack(const struct args *a, const char *architecture, struct mo_error *err)
{
	_cleanup_(source_done) struct source from = { 0 };
	int r = source_read(a->source, &from, err);

	const struct unpack_wish wish = { .by_digest = a->by_digest, .bytes_max = a->bytes_max };

	return r < 0 ? r : unpack(&from, architecture, a->dir, &wish, err);
}

static int run_fetch(const struct args *a, const char *architecture, struct mo_error *err)
{
	_cleanup_(reference_done) struct reference from = { 0 };
	const struct fetch_wish wish = { .auth_file = a->auth_file, .silence_s = a->silence_s };

	if (!mo_starts_with(a->source, DOCKER))
		return mo_error_set(err, IMAGE_REFUSED,
				    "it is no image of a registry; write " DOCKER "HOST/NAME:TAG");
	int r = reference_read(a->source + strlen(DOCKER), a->mirrors, a->n_mirrors, &from, err);

	return r < 0 ? r : fetch(&from, a->dir, architecture, &wish, err);
}

static int run(const struct args *a, struct mo_error *err)
{
	_cleanup_(mo_freep) char *cache = NULL;
	struct utsname node;
	int r = a->verb == VERB_STOCK ? 0 : become(a, &cache, err); /* it becomes several */

	if (r < 0)
		return r;
	be_bounded();
	uname(&node);
	const char *architecture = oci_architecture(node.machine);

	switch (a->verb) {
	case VERB_FETCH: return run_fetch(a, architecture, err);
	case VERB_UNPACK: return run_unpack(a, architecture, err);
	case VERB_LIST: return cache_list(a->dir, err);
	case VERB_MAKE: return 0;
	case VERB_STOCK: return stock(a, err);
	case VERB_PULL: return pull(a, cache, architecture, err);
	default: return cache_prune(a, err);
	}
}

int main(int argc, char **argv)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct args a;
	int r;

	if (argc == 2 && mo_streq(argv[1], "--version")) {
		printf("moe-image %s\n", MO_VERSION);
		return 0;
	}
	bool known = args_read(argc, argv, &a);

	r = known ? run(&a, &err) : 0;
	args_done(&a);
	if (!known) {
		fputs(args_usage, stderr);
		return 2;
	}
	if (r >= 0) /* of pull: what its part has told already */
		return r;
	return failure_told(a.source ? a.source : a.dir, r, &err);
}
