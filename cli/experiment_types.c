/* Values of an experiment that the engine takes otherwise than they look: its YAML and its
 * command line read `1e-5` as a text, every text that is not empty is true where Python asks for
 * truth, and of a key that is given twice the last one counts. The engine says none of it, so it
 * is reported; nothing is refused, because a text may be meant. */
#include "cli/experiment_types.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli/places.h"
#include "cli/visible.h"
#include "lib/base/parse.h"
#include "lib/recipe/config_scalar.h"

#define REPORTED_MAX 10
#define DIGITS "0123456789"

/* Did something that v replaced have this kind? */
static bool replaces(const struct config_value *v, enum config_kind kind)
{
	for (v = v->over; v; v = v->over)
		if (v->kind == kind)
			return true;
	return false;
}

/* What the writer of a text meant by a truth value: "true", "false"; NULL: none. */
static const char *truth_of(const char *text)
{
	static const char *const yes[] = { "true", "yes", "on" }, *const no[] = { "false", "no",
										  "off" };

	for (size_t i = 0; i < ELEMENTSOF(yes); i++)
		if (strcasecmp(text, yes[i]) == 0 || strcasecmp(text, no[i]) == 0)
			return strcasecmp(text, yes[i]) == 0 ? "true" : "false";
	return NULL;
}

/* Digits and an exponent, without the dot and the sign that YAML 1.1 asks for. */
static bool is_power(const char *text)
{
	const char *s = text + (*text == '-' || *text == '+');
	double v;

	s += strspn(s, DIGITS ".");
	return s > text && (*s == 'e' || *s == 'E') && mo_parse_double(text, &v) == 0;
}

/* Did something else stand there that was a text, and meant as one? */
static bool replaces_text(const struct config_value *v)
{
	for (v = v->over; v; v = v->over)
		if (v->kind == CONFIG_TEXT && !truth_of(v->text) && !is_power(v->text))
			return true;
	return false;
}

/* The same number as the engine reads it for one (caller frees). */
static char *number_as(const char *text)
{
	size_t sign = *text == '-' || *text == '+', whole = strspn(text + sign, DIGITS);
	const char *rest = text + sign + whole, *dot = *rest == '.' ? "" : ".0";
	const char *power = rest + strcspn(rest, "eE");

	if (!*power)
		return mo_strdup(text);
	return mo_printf("%.*s%s%s%.*se%s%s", (int)(sign + whole), text, whole ? "" : "0", dot,
			 (int)(power - rest), rest, power[1] == '-' || power[1] == '+' ? "" : "+",
			 power + 1);
}

/* What the engine makes of the value and what to write instead (caller frees); NULL: what it
 * looks like. */
static char *misread(const struct config_value *v)
{
	bool number = replaces(v, CONFIG_INT) || replaces(v, CONFIG_REAL);
	double n;

	if (v->kind != CONFIG_TEXT || replaces_text(v))
		return NULL;
	if (replaces(v, CONFIG_BOOL) && truth_of(v->text))
		return mo_printf("\"%s\" is a text for the engine, and any text is true where it "
				 "asks for a truth value: write %s",
				 v->text, truth_of(v->text));
	if (!is_power(v->text) && (!number || mo_parse_double(v->text, &n) < 0))
		return NULL;
	_cleanup_(mo_freep) char *as = number_as(v->text);

	return mo_printf("\"%s\" is a text for the engine's %s: write %s", v->text,
			 v->place.file >= 0 ? "YAML" : "command line", as);
}

/* Where it stands for its writer (caller frees); NULL: not in a file of the user's and not in
 * the recipe. */
static char *place_of(const struct recipe_input *in, const struct experiment *x,
		      const struct config_teller *t, struct config_place place)
{
	struct config_source from = config_source(t, place);
	_cleanup_(mo_freep) char *moectl = from.moectl;

	if (from.file)
		return strstr(from.file, PLACES_PRESETS "/") ? NULL : experiment_place(x, place);
	return from.recipe ? mo_printf("%s: %s", in->file, from.recipe) : NULL;
}

static void tell(const char *place, const char *key, const char *what, size_t *reported)
{
	if (++*reported > REPORTED_MAX)
		return;
	_cleanup_(mo_freep) char *text = mo_printf("%s: warning: %s: %s", place, key, what);
	_cleanup_(mo_freep) char *shown = visible(text);

	fprintf(stderr, "%s\n", shown);
}

static void tell_repeats(const struct experiment *x, size_t *reported)
{
	for (size_t i = 0; i < x->n_repeats; i++) {
		const struct experiment_repeat *again = &x->repeats[i];
		_cleanup_(mo_freep) char *place = experiment_place(x, again->place);
		_cleanup_(mo_freep) char *what =
			mo_printf("given in line %lld already: the engine takes this one, and "
				  "drops the other: remove one of them",
				  (long long)again->first);

		if (!strstr(place, PLACES_PRESETS "/"))
			tell(place, again->key, what, reported);
	}
}

void experiment_misread_values(const struct recipe_input *in, const struct experiment *x,
			       const struct config_teller *t)
{
	struct config_item *items = NULL;
	size_t n = 0, reported = 0;

	tell_repeats(x, &reported);
	config_items(x->merged, &items, &n);
	for (size_t i = 0; i < n; i++) {
		_cleanup_(mo_freep) char *what = misread(items[i].value);
		_cleanup_(mo_freep) char *place =
			what ? place_of(in, x, t, items[i].value->place) : NULL;

		if (place)
			tell(place, items[i].key, what, &reported);
	}
	config_items_free(items, n);
	if (reported > REPORTED_MAX)
		fprintf(stderr,
			"%s: warning: the engine takes %zu more values otherwise than they look\n",
			in->file, reported - REPORTED_MAX);
}
