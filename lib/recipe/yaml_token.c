/* See yaml_token.h. */
#include "lib/recipe/yaml_token.h"

#include "lib/recipe/quoted.h"

/* Piece by piece, because in libfyaml 0.7.12 fy_token_get_text() leaks 2 kB
 * for a text of many pieces. */
void yaml_token_text(struct fy_token *token, struct mo_buf *b)
{
	struct fy_token_iter *it = token ? fy_token_iter_create(token) : NULL;
	const struct fy_iter_chunk *chunk = NULL;

	while (it && (chunk = fy_token_iter_chunk_next(it, chunk, NULL)))
		mo_buf_add(b, chunk->str, chunk->len);
	if (it)
		fy_token_iter_destroy(it);
}

bool yaml_scalar_text(const char *text, size_t n, struct fy_token *token, struct mo_buf *b)
{
	enum fy_scalar_style style = token ? fy_token_scalar_style(token) : FYSS_PLAIN;

	if (style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED) {
		const struct fy_mark *from = fy_token_start_mark(token),
				     *to = fy_token_end_mark(token);

		return from && to && from->input_pos <= to->input_pos && to->input_pos <= n &&
		       quoted_text(text + from->input_pos, to->input_pos - from->input_pos,
				   style == FYSS_SINGLE_QUOTED ? '\'' : '"', b);
	}
	yaml_token_text(token, b);
	return true;
}
