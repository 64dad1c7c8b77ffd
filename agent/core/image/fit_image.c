/* What an image is and has, beside what this node needs of it. */
#include "agent/core/image/fit_rows.h"

#include <string.h>

static void python(const struct fit *f, struct image_checks *to)
{
	const struct fit_program *p = &f->image.python;
	const struct program_found found = { .wanted = "python3",
					     .path = p->path,
					     .search = f->image.path,
					     .elsewhere = p->elsewhere,
					     .forbidden = p->forbidden,
					     .machine = p->machine,
					     .own = f->node.machine,
					     .by = p->by };
	_cleanup_(mo_freep) char *problem = program_problem(&found);

	if (problem)
		fit_say(to, "image.python", IMAGE_FAIL,
			p->elsewhere && !p->path
				? "name it with engine.python"
				: "name the image's interpreter with engine.python, "
				  "or take an image that has one",
			"%s", problem);
	else
		fit_say(to, "image.python", IMAGE_OK, NULL, "%s, along the image's PATH", p->path);
}

static void architecture(const struct fit *f, struct image_checks *to)
{
	const struct fit_program *p = f->image.python.machine ? &f->image.python : &f->image.shell;
	const char *own = fit_known(program_machine_name(f->node.machine));

	if (!p->machine)
		fit_say(to, "image.architecture", IMAGE_WARN, "look at it with file(1)",
			"neither python3 nor /bin/sh of the image says what machine it is for");
	else if (p->machine != f->node.machine)
		fit_say(to, "image.architecture", IMAGE_FAIL,
			"take the image of this architecture: skopeo and docker pull know "
			"--platform",
			"%s is for %s, and this node is %s", p->path,
			fit_known(program_machine_name(p->machine)), own);
	else
		fit_say(to, "image.architecture", IMAGE_OK, NULL, "%s, as this node", own);
}

static const struct amdgpu_release *release_of(const char *version, const struct image_fits *fits)
{
	for (size_t i = 0; i < fits->n_amdgpu; i++)
		if (mo_streq(fits->amdgpu[i].version, version))
			return &fits->amdgpu[i];
	return NULL;
}

static void rocm(const struct fit *f, const struct image_fits *fits, struct image_checks *to)
{
	static const char check[] = "image.rocm";
	const char *version = f->image.rocm;
	int64_t has = image_release(version);
	const struct amdgpu_release *r = release_of(f->node.amdgpu, fits);

	if (f->node.amd_gpus <= 0 && !version)
		fit_say(to, check, IMAGE_OK, NULL, "none, and this node has no AMD GPUs");
	else if (!version)
		fit_say(to, check, IMAGE_WARN, "is it an image for AMD GPUs?",
			"no /opt/rocm/.info/version in the image; its frameworks may bring their "
			"own");
	else if (f->node.amd_gpus <= 0)
		fit_say(to, check, IMAGE_WARN, "jobs with GPUs need a node that has AMD's",
			"ROCm %s, and this node has no AMD GPUs", version);
	else if (!r || has == MO_NONE)
		fit_say(to, check, IMAGE_WARN,
			"compare with AMD's support matrix; a row in images/fits.yaml says it for "
			"all",
			"ROCm %s over amdgpu %s, of which config/images/fits.yaml says nothing",
			version,
			f->node.amdgpu ? f->node.amdgpu : "of the kernel, without a version");
	else if (has < image_release(r->rocm_from) || has > image_release(r->rocm_to))
		fit_say(to, check, IMAGE_WARN,
			"take an image with a ROCm in that range, or another driver for the nodes",
			"ROCm %s over amdgpu %s (%s), for which AMD supports ROCm %s to %s",
			version, r->version, r->release, r->rocm_from, r->rocm_to);
	else
		fit_say(to, check, IMAGE_OK, NULL, "ROCm %s over amdgpu %s (%s)", version,
			r->version, r->release);
}

static void libraries(const struct fit *f, struct image_checks *to)
{
	bool wanted = f->node.amd_gpus > 0 || f->image.rocm;
	bool all = f->image.rccl && f->image.rocr;

	if (wanted)
		fit_say(to, "image.rccl", all ? IMAGE_OK : IMAGE_WARN,
			all ? NULL
			    : "a torch wheel may bring its own; else install rccl in the image",
			"librccl %s there, libhsa-runtime64 %s (/opt/rocm/lib)",
			f->image.rccl ? "is" : "is not", f->image.rocr ? "is" : "is not");
}

static const char *provider_of(const char *driver, const struct image_fits *fits)
{
	for (size_t i = 0; driver && i < fits->n_rdma; i++)
		if (mo_streq(fits->rdma[i].driver, driver))
			return fits->rdma[i].provider;
	return NULL;
}

static bool has_provider(const struct fit_image *image, const char *name)
{
	for (size_t i = 0; i < image->n_providers; i++)
		if (mo_streq(image->providers[i], name))
			return true;
	return false;
}

/* One row for each provider that the node's cards need. */
static void providers(const struct fit *f, const struct image_fits *fits, struct image_checks *to)
{
	static const char check[] = "image.rdma";
	const struct fit_node *n = &f->node;

	if (n->n_cards == 0)
		fit_say(to, check, IMAGE_OK, NULL,
			"this node has no RDMA cards: nothing is needed");
	for (size_t i = 0; i < n->n_cards; i++) {
		const struct fit_card *c = &n->cards[i];
		const char *name = provider_of(c->driver, fits);
		bool again = false;

		for (size_t k = 0; k < i; k++)
			again |= mo_streq(n->cards[k].driver, c->driver);
		if (again)
			continue;
		if (!name)
			fit_say(to, check, IMAGE_WARN,
				"a row in images/fits.yaml names its provider",
				"%s (driver %s): which provider it needs is not known", c->name,
				fit_known(c->driver));
		else if (has_provider(&f->image, name))
			fit_say(to, check, IMAGE_OK, NULL, "%s (driver %s): provider %s", c->name,
				c->driver, name);
		else
			fit_say(to, check, IMAGE_WARN,
				"install the vendor's user space in the image: RCCL goes over TCP "
				"without it",
				"%s (driver %s): no %s.driver with its library in the image's "
				"libibverbs.d",
				c->name, c->driver, name);
	}
}

void fit_image_rows(const struct fit *f, const struct image_fits *fits, struct image_checks *to)
{
	const char *config = f->image.config;

	if (f->image.error) {
		fit_say(to, "image.root", IMAGE_FAIL,
			"is it on this node, and may this user read it?", "%s", f->image.error);
		return;
	}
	fit_say(to, "image.root", config ? IMAGE_OK : IMAGE_WARN,
		config ? NULL
		       : "ranks get the node's PATH; moe-image unpack and enroot write the image's",
		"%s, read as %s: %s", to->image, to->user,
		config ? config : "it says nothing of its environment");
	architecture(f, to);
	python(f, to);
	rocm(f, fits, to);
	libraries(f, to);
	providers(f, fits, to);
}
