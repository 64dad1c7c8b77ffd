/* What this node gives jobs in images. */
#include "agent/core/image/fit_rows.h"

#define GIB (INT64_C(1) << 30)
#define SHM_LEAST (INT64_C(1) << 30)
#define MEMLOCK_LEAST (INT64_C(32) << 30) /* as the check host.memlock has it */
#define SPACE_LEAST (INT64_C(1) << 30)    /* what a step may write before it is lost */
#define SPACE_ENOUGH (INT64_C(20) << 30)  /* what engine.prepare of Primus installs and compiles */
#define IDMAPPED_OVERLAY 5019             /* image_release() of Linux 5.19 */

/* "11.8 GiB", "64 MiB"; caller frees */
static char *size_text(int64_t bytes)
{
	return bytes < GIB ? mo_printf("%lld MiB", (long long)(bytes >> 20))
			   : mo_printf("%.1f GiB", (double)bytes / (double)GIB);
}

static void closed(struct image_checks *to, const char *check, int state,
		   const struct fit_devices *d)
{
	_cleanup_(mo_freep) char *next =
		mo_printf("put %s into group %s on this node: usermod -aG %s %s", to->user,
			  fit_known(d->group), fit_known(d->group), to->user);

	fit_say(to, check, state, next, "%s may not open %s; %lld of %lld are open to him",
		to->user, d->closed, (long long)d->open, (long long)d->n);
}

static void gpus(const struct fit *f, struct image_checks *to)
{
	static const char check[] = "node.gpus";
	const struct fit_node *n = &f->node;

	if (n->amd_gpus <= 0)
		fit_say(to, check, IMAGE_OK, NULL, "no AMD GPUs");
	else if (n->kfd.n == 0 || n->render.n == 0)
		fit_say(to, check, IMAGE_FAIL, "is the driver loaded? modprobe amdgpu",
			"%lld AMD GPUs, and %s", (long long)n->amd_gpus,
			n->kfd.n ? "no /dev/dri/renderD*" : "no /dev/kfd");
	else if (n->kfd.closed)
		closed(to, check, IMAGE_FAIL, &n->kfd);
	else if (n->render.closed)
		closed(to, check, IMAGE_FAIL, &n->render);
	else
		fit_say(to, check, IMAGE_OK, NULL, "/dev/kfd and %lld render nodes are open to %s",
			(long long)n->render.n, to->user);
}

static void rdma(const struct fit *f, struct image_checks *to)
{
	static const char check[] = "node.rdma";
	const struct fit_node *n = &f->node;

	if (n->n_cards == 0)
		return;
	if (n->rdma.n == 0)
		fit_say(to, check, IMAGE_WARN, "modprobe ib_uverbs, or RCCL goes over TCP",
			"%zu RDMA cards, and nothing in /dev/infiniband", n->n_cards);
	else if (n->rdma.closed)
		closed(to, check, IMAGE_WARN, &n->rdma);
	else
		fit_say(to, check, IMAGE_OK, NULL, "%lld files in /dev/infiniband are open to %s",
			(long long)n->rdma.n, to->user);
}

static void shm(const struct fit *f, struct image_checks *to)
{
	int64_t half = f->node.mem_bytes == MO_NONE ? MO_NONE : f->node.mem_bytes / 2;
	_cleanup_(mo_freep) char *size = size_text(half);

	if (half == MO_NONE)
		fit_say(to, "node.shm", IMAGE_WARN, "say it in the recipe: engine.container.shm",
			"how much memory this node has is not known");
	else
		fit_say(to, "node.shm", half < SHM_LEAST ? IMAGE_WARN : IMAGE_OK,
			half < SHM_LEAST ? "give engine.container.shm a size" : NULL,
			"a /dev/shm of the job's own, %s where the recipe gives no size", size);
}

static void memlock(const struct fit *f, struct image_checks *to)
{
	const struct fit_node *n = &f->node;
	_cleanup_(mo_freep) char *size = size_text(n->memlock_bytes);
	bool little = n->n_cards > 0 && n->memlock_bytes < MEMLOCK_LEAST;

	if (n->memlock_bytes == MO_NONE)
		fit_say(to, "node.memlock", IMAGE_WARN, NULL,
			"the limit of locked memory is unknown");
	else if (n->memlock_bytes == INT64_MAX)
		fit_say(to, "node.memlock", IMAGE_OK, NULL, "locked memory without a limit");
	else
		fit_say(to, "node.memlock", little ? IMAGE_WARN : IMAGE_OK,
			little ? "set LimitMEMLOCK=infinity in the agent's unit" : NULL,
			"%s of locked memory%s", size,
			n->n_cards ? "" : ", which only RDMA cards need");
}

static void space(const struct fit *f, struct image_checks *to)
{
	static const char check[] = "node.space";
	const struct fit_node *n = &f->node;
	_cleanup_(mo_freep) char *size = size_text(n->layers_free);
	bool fails = n->layers_readonly || n->layers_free < SPACE_LEAST;
	bool little = n->layers_free < SPACE_ENOUGH;

	if (n->layers_error)
		fit_say(to, check, IMAGE_WARN, "look at state_dir of its agent.yaml",
			"what ranks write in the image goes to %s: %s", fit_known(n->layers),
			n->layers_error);
	else
		fit_say(to, check,
			fails    ? IMAGE_FAIL
			: little ? IMAGE_WARN
				 : IMAGE_OK,
			fails    ? "free space there, or say engine.container.writable: tmpfs"
			: little ? "engine.prepare may install more than that"
				 : NULL,
			"what ranks write in the image goes to %s: %s%s free", n->layers,
			n->layers_readonly ? "read-only, " : "", size);
}

static void locks(const struct fit *f, struct image_checks *to)
{
	const struct fit_node *n = &f->node;

	if (n->images)
		fit_say(to, "node.locks", n->no_locks ? IMAGE_WARN : IMAGE_OK,
			n->no_locks ? "mount it with locks, or name another images_dir" : NULL,
			n->no_locks ? "the file system of %s has no locks: an image in use is "
				      "known by its step here, or by its last day"
				    : "images in use are locked in %s",
			n->images);
}

static void namespaces(const struct fit *f, struct image_checks *to)
{
	const struct fit_node *n = &f->node;

	if (!n->root)
		fit_say(to, "node.namespace", IMAGE_FAIL,
			"run the agent as root: docs/operator.md, Images",
			"its agent is not root, and only root gives a job an image");
	else if (!n->overlay)
		fit_say(to, "node.namespace", IMAGE_WARN, "modprobe overlay",
			"the kernel (%s) has no overlayfs yet: it is loaded with the first job, or "
			"the job is refused",
			fit_known(n->kernel));
	else
		fit_say(to, "node.namespace", IMAGE_OK, NULL, "root, overlayfs, kernel %s",
			fit_known(n->kernel));
}

/* Linux 5.19: overlayfs takes layers whose owners are mapped. */
static void userns(const struct fit *f, struct image_checks *to)
{
	const struct fit_node *n = &f->node;
	int64_t release = image_release(n->kernel);

	fit_say(to, "node.userns", IMAGE_OK, NULL, "users may %smake user namespaces%s; %s",
		n->userns && !n->userns_restricted ? "" : "not ",
		n->userns_restricted ? " (AppArmor)" : "",
		release == MO_NONE || release < IDMAPPED_OVERLAY
			? "its kernel has no overlayfs over mapped owners (Linux 5.19)"
			: "overlayfs over mapped owners");
}

static void fourth_net(const struct fit *f, struct image_checks *to)
{
	static const char check[] = "node.fourth_net";
	const struct fit_node *n = &f->node;

	if (n->userns && !n->userns_restricted && !n->cgroup2)
		fit_say(to, check, IMAGE_WARN, "mount cgroup2, or set user.max_user_namespaces=0",
			"users may make namespaces and there is no cgroup2: what leaves its rank "
			"and "
			"the step's namespace is found by its environment only");
	else
		fit_say(to, check, IMAGE_OK, NULL, "what a rank leaves behind is found by %s%s",
			n->root ? "the step's namespace" : "its environment",
			n->cgroup2 ? " and its control group" : "");
}

void fit_node_rows(const struct fit *f, struct image_checks *to)
{
	gpus(f, to);
	rdma(f, to);
	shm(f, to);
	memlock(f, to);
	space(f, to);
	locks(f, to);
	namespaces(f, to);
	userns(f, to);
	fourth_net(f, to);
}
