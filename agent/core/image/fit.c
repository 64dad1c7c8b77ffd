/* See fit.h. */
#include "agent/core/image/fit.h"

#include <stdarg.h>
#include <stdio.h>

#include "agent/core/image/fit_rows.h"

#define TEXT_BYTES 1024

static void cards_free(struct fit_node *n)
{
	for (size_t i = 0; i < n->n_cards; i++) {
		free(n->cards[i].name);
		free(n->cards[i].driver);
	}
	free(n->cards);
}

static void program_done(struct fit_program *p)
{
	free(p->path);
	free(p->elsewhere);
	free(p->by);
}

void fit_done(struct fit *f)
{
	struct fit_devices *const devices[] = { &f->node.kfd, &f->node.render, &f->node.rdma };

	for (size_t i = 0; i < ELEMENTSOF(devices); i++) {
		free(devices[i]->closed);
		free(devices[i]->group);
	}
	cards_free(&f->node);
	free(f->node.amdgpu);
	free(f->node.kernel);
	free(f->node.layers);
	free(f->node.layers_error);
	free(f->node.images);
	free(f->image.error);
	free(f->image.config);
	free(f->image.path);
	program_done(&f->image.python);
	program_done(&f->image.shell);
	free(f->image.rocm);
	for (size_t i = 0; i < f->image.n_providers; i++)
		free(f->image.providers[i]);
	free(f->image.providers);
	*f = (struct fit){ 0 };
}

void fit_say(struct image_checks *to, const char *check, int state, const char *next,
	     const char *fmt, ...)
{
	struct image_check *c = MO_ADD(to, items, &image_check_desc);
	char text[TEXT_BYTES];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	c->check = mo_strdup(check);
	c->state = state;
	c->text = mo_strdup(text);
	c->next = mo_strdup(next);
}

void fit_judge(const struct fit *f, const struct image_fits *fits, struct image_checks *ret)
{
	fit_image_rows(f, fits, ret);
	fit_node_rows(f, ret);
}
