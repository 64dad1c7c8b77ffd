/* See space.h. */
#include "daemon/core/update/space.h"

#include "daemon/core/state/space.h"

/* Enough is said again only with a quarter more than that: others write there too, and what was
 * told is not told with each of their files. */
static bool plenty(const struct space *s)
{
	return s->level == SPACE_ENOUGH && s->fits > s->wanted + s->wanted / 4;
}

void space_measured(struct job *j, const struct scan_result *r, int64_t time)
{
	if (r->free_bytes == MO_NONE)
		return;
	j->progress.shown.checkpoint_free_bytes = MO_MAX(r->free_bytes, 0);
	j->saves.space_at = time;
	struct space s = space_of(j);
	j->progress.shown.checkpoints_fit = s.level == SPACE_UNKNOWN ? MO_NONE : s.fits;
	if (plenty(&s))
		j->saves.space_told = MO_NONE;
	else if (s.level > SPACE_ENOUGH)
		j->saves.space_told = MO_MAX(j->saves.space_told, s.level);
}
