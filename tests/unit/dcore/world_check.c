/* What holds after every step of a world. */
#include "tests/unit/dcore/world_inner.h"

#include "daemon/core/rules/refusal.h"
#include "daemon/core/update/check.h"
#include "tests/event_check.h"
#include "tests/shadow.h"
#include "daemon/core/state/slots.h"

/* What placement would refuse is what every view says, with what ends it. */
static void check_refusals(const struct state *s)
{
	struct slots slots;

	slots_init(s, &slots);
	for (size_t i = 0; i < s->n_nodes; i++) {
		_cleanup_(refusal_done) struct refusal r = { 0 };
		bool refuses = node_refuses(s, s->nodes[i], &r);

		if (refuses == (slots.nodes[i]->usable && slots.nodes[i]->well))
			fail_msg("node %s: placement and views disagree: %s", s->nodes[i]->name,
				 refuses ? r.text : "it takes work");
		assert_true(!refuses || (r.text && r.next));
	}
	slots_done(&slots);
}

/* Each event that is stored is an effect with the same event, in the same order. */
static void check_events(const struct core_out *out)
{
	size_t fx = 0;

	for (size_t i = 0; i < out->n_records; i++) {
		if (out->records[i].type != REC_EVENT)
			continue;
		while (fx < out->n_effects && out->effects[fx].type != FX_EVENT)
			fx++;
		assert_true(fx < out->n_effects);
		assert_true(mo_desc_equal(&event_desc, out->records[i].event,
					  out->effects[fx].event->event));
		assert_string_equal(event_registry[out->effects[fx].event->type].type,
				    out->records[i].event->type);
		char *wrong = event_wrong(out->records[i].event);

		if (wrong)
			fail_msg("%s", wrong);
		fx++;
	}
	for (; fx < out->n_effects; fx++)
		assert_int_not_equal(out->effects[fx].type, FX_EVENT);
}

/* Each effect explains itself: it has what belongs to its type, and can be written and read. */
static void check_effects(const struct core_out *out)
{
	for (size_t i = 0; i < out->n_effects; i++) {
		const struct effect *fx = &out->effects[i];
		const char *type = effect_type_names[fx->type];

		mo_desc_free(&effect_desc, written_and_read(&effect_desc, type, fx));
		assert_int_equal(!!fx->reply, fx->type == FX_REPLY);
		assert_int_equal(!!fx->welcome, fx->type == FX_WELCOME);
		assert_int_equal(!!fx->event, fx->type == FX_EVENT);
		assert_int_equal(fx->request == 1, fx->type <= FX_HOLD);
	}
}

void world_check(struct world *w)
{
	const struct state *s = core_state(w->core);
	char *wrong = NULL;

	if (w->unwatched)
		return;
	for (size_t i = 0; i < w->out.n_records && !wrong; i++)
		wrong = shadow_feed(w->shadow, &w->out.records[i]);
	if (wrong)
		fail_msg("record %s", wrong);
	wrong = shadow_differs(w->core, w->shadow);
	if (wrong)
		fail_msg("replay differs at %s", wrong);
	check_effects(&w->out);
	check_events(&w->out);
	wrong = state_check(w->core);
	if (!wrong)
		wrong = state_check_placed(w->core);
	if (wrong)
		fail_msg("after the turn: %s", wrong);
	wrong = state_check(w->shadow);
	if (wrong)
		fail_msg("after the replay: %s", wrong);
	check_refusals(s);
}
