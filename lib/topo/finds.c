/* The collection of what was found (finds.h). */
#include "lib/topo/finds.h"

#include <stdarg.h>
#include <stdio.h>

#define FINDINGS_MAX 100 /* one odd driver must not fill the hello */

void finds_done(struct finds *f)
{
	for (size_t i = 0; i < f->n_gpus; i++) {
		mo_desc_done(&gpu_slot_desc, &f->gpus[i].slot);
		free(f->gpus[i].path);
	}
	for (size_t i = 0; i < f->n_nics; i++) {
		mo_desc_done(&nic_info_desc, &f->nics[i].nic);
		free(f->nics[i].path);
	}
	mo_vec_clear(&gpu_link_desc, (void **)&f->links, &f->n_links);
	mo_vec_clear(&node_finding_desc, (void **)&f->findings, &f->n_findings);
	free(f->gpus);
	free(f->nics);
	free(f->driver);
	*f = (struct finds){ 0 };
}

struct found_gpu *finds_add_gpu(struct finds *f)
{
	struct found_gpu *g = MO_GROW(f->gpus, f->n_gpus);

	mo_desc_init(&gpu_slot_desc, &g->slot);
	g->slot.index = (int64_t)f->n_gpus - 1;
	return g;
}

struct found_nic *finds_add_nic(struct finds *f)
{
	struct found_nic *n = MO_GROW(f->nics, f->n_nics);

	mo_desc_init(&nic_info_desc, &n->nic);
	return n;
}

void finds_odd(struct finds *f, const char *object, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (f->n_findings >= FINDINGS_MAX) {
		f->n_dropped++;
		return;
	}
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	struct node_finding *n = MO_ADD(f, findings, &node_finding_desc);
	n->object = mo_strdup(object);
	n->text = mo_strdup(text);
}
