/* Any bytes as an index of a checkpoint (with the rules of shipped layouts), as an archive and as
 * an OCDBT manifest: readers end within them, and what is whole is not whole without its last
 * byte. ROOMS: recipe acore wire model base */
#include <stdlib.h>
#include <string.h>

#include "agent/core/ckpt/archive.h"
#include "agent/core/ckpt/ckpt.h"
#include "agent/core/text/pickle.h"
#include "lib/recipe/engine_file.h"
#include "lib/recipe/engine_load.h"
#include "agent/core/ckpt/ckpt_marker.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct ckpt_rules *shipped(const char *kind, const char **ret_marker)
{
	struct engine e;
	struct ckpt_rules *rules = NULL;

	mo_desc_init(&engine_desc, &e);
	if (engine_load(kind, &e, NULL) < 0 || ckpt_rules_new(&e.layout, &rules, NULL) < 0)
		abort();
	*ret_marker = mo_strdup(e.layout.markers[0]);
	mo_desc_done(&engine_desc, &e);
	return rules;
}

static void as_index(const struct ckpt_rules *rules, const char *marker, const char *text, size_t n)
{
	struct ckpt_entry e = { .iteration = 20, .directory = true, .asked = true };
	struct ckpt_marker *m = MO_GROW(e.markers, e.n_markers);

	*m = (struct ckpt_marker){ .name = mo_strdup(marker),
				   .present = true,
				   .bytes = (int64_t)n,
				   .iteration = MO_NONE,
				   .world = MO_NONE };
	ckpt_marker_content(rules, text, n, m);
	for (size_t i = 0; i < m->n_files && i < 1000; i++)
		*MO_GROW(e.files, e.n_files) =
			(struct ckpt_file){ .name = mo_strdup(m->files[i].name),
					    .bytes = m->files[i].least };
	free(ckpt_judge(rules, &e,
			&(struct ckpt_question){ .level = LEVEL_SIZES, .world = MO_NONE }));
	ckpt_entry_done(&e);
}

static void as_archive(const unsigned char *p, size_t n)
{
	struct archive a;
	struct archive_record r;
	size_t tail = MO_MIN(n, (size_t)ARCHIVE_TAIL), at = 0;
	int64_t content = 0;
	bool done = false;
	const char *why = archive_end(p + n - tail, tail, (int64_t)n, &a);

	if (!why &&
	    (a.begin < 0 || a.directory < a.begin || a.directory + a.directory_bytes > (int64_t)n))
		abort();
	while (!why && !done) {
		why = archive_next(&a, p + a.directory, &at, &r, &done);
		if (!why && !done && (r.at < a.begin || r.at + ARCHIVE_LOCAL > a.directory))
			abort();
		if (!why && !done)
			why = archive_local(&a, &r, p + r.at, &content);
		if (!why && !done && (content < 0 || content + r.stored > a.directory))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct ckpt_rules *rules[2];
	static const char *markers[2];
	char tp[] = "tensor_model_parallel_size", pp[] = "pipeline_model_parallel_size",
	     *names[] = { tp, pp };
	int64_t numbers[2];

	for (size_t i = 0; i < 2; i++) {
		if (!rules[i])
			rules[i] = shipped(i ? "megatron-lm" : "torchtitan", &markers[i]);
		as_index(rules[i], markers[i], (const char *)data, n);
	}
	if (n > 0 && !pickle_walk(data, n, NULL, NULL) && !pickle_walk(data, n - 1, NULL, NULL))
		abort();
	if (n > 0 && !ocdbt_manifest(data, n) && !ocdbt_manifest(data, n - 1))
		abort();
	(void)pickle_numbers(data, n, names, 2, numbers);
	(void)pickle_number_behind(data, n, "tensor_model_parallel_size iteration");
	(void)pickle_sum_behind(data, n, "tensor_model_parallel_size");
	as_archive(data, n);
	return 0;
}
