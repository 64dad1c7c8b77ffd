/* See mask.h. Too much is hidden rather than too little for variables, whose names say little of
 * their values; arguments have names that the engines chose, and hiding a plan's own figures
 * (num_tokens) would make plans of masked recipes wrong. */
#include "lib/model/mask.h"

#include <ctype.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/parse.h"

#define TOKEN_ID 8
#define TOKEN_SECRET 64

bool mo_mask_variable(const char *name)
{
	static const char *const words[] = { "KEY",   "TOKEN",      "SECRET",
					     "PASSW", "CREDENTIAL", "WEBHOOK" };

	for (size_t i = 0; i < ELEMENTSOF(words); i++)
		for (const char *at = name; (at = strcasestr(at, words[i])); at++)
			/* TOKENIZED_DATA, TOKENIZERS_PARALLELISM: a hidden path would be a wrong
			 * configuration */
			if (!mo_streq(words[i], "TOKEN") || strncasecmp(at, "tokeniz", 7) != 0)
				return true;
	return false;
}

static bool mask_argument(const char *name, size_t n)
{
	static const char *const last[] = { "key",         "apikey", "token",      "secret",
					    "password",    "passwd", "passphrase", "credential",
					    "credentials", "webhook" };
	size_t from = n;

	while (from > 0 && !strchr("-_.", name[from - 1]))
		from--;
	for (size_t i = 0; i < ELEMENTSOF(last); i++)
		if (strlen(last[i]) == n - from && strncasecmp(name + from, last[i], n - from) == 0)
			return true;
	return false;
}

bool mo_mask_argument(const char *name)
{
	return mask_argument(name, strlen(name));
}

static bool is_number(const char *s, size_t n)
{
	size_t digits = 0;

	while (digits < n && strchr("0123456789.-+", s[digits]))
		digits++;
	return digits == n;
}

/* Length of "moe_1f2e3d4c_" and its like when a secret follows, else 0. */
static size_t own_token(const char *s)
{
	static const char *const prefixes[] = { "moe_", "moej_", "moes_" };

	for (size_t i = 0; i < ELEMENTSOF(prefixes); i++) {
		size_t n = strlen(prefixes[i]) + TOKEN_ID;

		if (mo_starts_with(s, prefixes[i]) && strnlen(s, n) == n && s[n] == '_' &&
		    strspn(s + n + 1, "0123456789abcdef_") >= TOKEN_SECRET)
			return n + 1;
	}
	return 0;
}

/* Behind "://": length of "user:" when a password and an @ follow before the host ends, else 0;
 * *ret_password its length. */
static size_t url_password(const char *s, size_t *ret_password)
{
	size_t authority = strcspn(s, "/?# \t\n\"'<>"), user = strcspn(s, ":@/?# \t\n\"'<>");
	const char *at = memrchr(s, '@', authority);

	if (!at || user >= authority || s[user] != ':' || s + user > at)
		return 0;
	*ret_password = (size_t)(at - (s + user + 1));
	return user + 1;
}

static size_t word_length(const char *s)
{
	size_t n = 0;

	while (isalnum((unsigned char)s[n]) || (s[n] && strchr("_-.", s[n])))
		n++;
	return n;
}

/* A value ends where the text or its quotes do. */
static size_t value_length(const char *s)
{
	return *s == '"' || *s == '\'' ? 1 + strcspn(s + 1, *s == '"' ? "\"" : "'")
				       : strcspn(s, " \t\r\n,;&\"'");
}

/* "NAME=" whose value is to be hidden: its length with the =, else 0. */
static size_t named(const char *s, size_t name)
{
	if (s[name] != '=' || name == 0)
		return 0;
	_cleanup_(mo_freep) char *text = mo_strndup(s, name);
	bool upper = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == name;
	if (!(upper && mo_mask_variable(text)) && !mask_argument(text, name))
		return 0;
	size_t value = value_length(s + name + 1);
	return value == 0 || is_number(s + name + 1, value) ? 0 : name + 1;
}

char *mo_mask_text(const char *text)
{
	struct mo_buf b = { 0 };

	for (const char *p = text; *p;) {
		size_t password, retained, word = word_length(p);

		if ((retained = own_token(p))) {
			mo_buf_add(&b, p, retained);
			mo_buf_str(&b, MO_MASKED);
			p += retained + strspn(p + retained, "0123456789abcdef_");
		} else if ((retained = named(p, word))) {
			mo_buf_add(&b, p, retained);
			mo_buf_str(&b, MO_MASKED);
			p += retained + value_length(p + retained);
		} else if (mo_starts_with(p, "://") &&
			   (retained = url_password(p + 3, &password))) {
			mo_buf_add(&b, p, 3 + retained);
			mo_buf_str(&b, MO_MASKED);
			p += 3 + retained + password;
		} else {
			mo_buf_add(&b, p, MO_MAX(word, (size_t)1));
			p += MO_MAX(word, (size_t)1);
		}
	}
	return b.data ? mo_buf_take(&b) : mo_strdup("");
}

char *mo_mask_value(const char *name, const char *value)
{
	return !value ? NULL : mo_mask_variable(name) ? mo_strdup(MO_MASKED) : mo_mask_text(value);
}

void mo_mask_words(char **words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool behind = i > 0 && mo_starts_with(words[i - 1], "-") &&
			      !strchr(words[i - 1], '=') && mo_mask_argument(words[i - 1]);
		char *masked = behind && !mo_starts_with(words[i], "--") &&
					       !is_number(words[i], strlen(words[i]))
				       ? mo_strdup(MO_MASKED)
				       : mo_mask_text(words[i]);

		free(words[i]);
		words[i] = masked;
	}
}
