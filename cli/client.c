/* The controller as seen by the verbs (see client.h). Address and token: option, environment,
 * ~/.config/moe/config.yaml (url, token, token_file, ca_file), default. */
#include "cli/client.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "cli/local_cluster.h"
#include "cli/options.h"
#include "cli/value.h"
#include "cli/visible.h"
#include "lib/base/address.h"
#include "lib/base/options.h"
#include "lib/base/secret.h"
#include "lib/loop/http_client.h"
#include "lib/loop/http_fetch.h"
#include "lib/wire/parse.h"

#define DEFAULT_URL "unix:/run/moe/moed.sock"
#define BODY_MAX (256u << 20)

struct client {
	char *url, *token, *token_file, *ca_file;
	const char *token_from; /* what said the token, for people */
	const char *url_from;   /* the same of the address; NULL: nobody did */
};

static const struct mo_option config_options[] = {
	{ "url", MO_OPTION_STR, offsetof(struct client, url), NULL,
	  "Controller: http(s)://host:port or unix:/path." },
	{ "token", MO_OPTION_STR, offsetof(struct client, token), NULL, "Bearer token." },
	{ "token_file", MO_OPTION_PATH, offsetof(struct client, token_file), NULL,
	  "File that holds the bearer token." },
	{ "ca_file", MO_OPTION_PATH, offsetof(struct client, ca_file), NULL,
	  "Certificates that vouch for an https controller." },
};
static const struct mo_options config = { config_options, ELEMENTSOF(config_options) };

struct client *client_free(struct client *c)
{
	if (c)
		mo_options_done(&config, c);
	free(c);
	return NULL;
}

void answer_done(struct answer *a)
{
	mo_buf_done(&a->body);
	json_object_put(a->doc);
	mo_error_done(&a->err);
	*a = (struct answer){ 0 };
}

static int config_read(struct client *c)
{
	const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	_cleanup_(mo_freep) char *path = NULL;
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	if (xdg && *xdg)
		path = mo_printf("%s/moe/config.yaml", xdg);
	else if (home && *home)
		path = mo_printf("%s/.config/moe/config.yaml", home);
	if (!path || access(path, F_OK) < 0)
		return 0;
	int r = mo_options_file(&config, c, path, &err);
	if (r >= 0 && c->token && (r = mo_secret_check(path, &err)) < 0)
		return cli_fail(CLI_USAGE, "the configuration has a token: %s",
				mo_error_text(&err, r));
	return r < 0 ? cli_fail(CLI_USAGE, "%s%s%s", mo_error_text(&err, r), err.hint ? "; " : "",
				err.hint ? err.hint : "")
		     : 0;
}

static int token_read(struct client *c, const char *path, const char *from)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(mo_freep) char *token = NULL;
	int r = mo_token_read(path, &token, &err);
	if (r == -EPERM)
		return cli_fail(CLI_USAGE, "token file %s", mo_error_text(&err, r));
	if (r < 0)
		return cli_fail(CLI_USAGE,
				"token file %s; check MOE_TOKEN_FILE, --token-file or token_file "
				"in the configuration",
				mo_error_text(&err, r));
	mo_str_set(&c->token, token);
	mo_str_set(&c->token_file, path);
	c->token_from = from;
	return 0;
}

static int url_check(const char *url)
{
	if (mo_url_clear_text(url))
		return cli_fail(CLI_USAGE,
				"controller address %s: everything, your token too, would go there "
				"in clear text; use https:// (http:// is for this machine alone; "
				"`ssh -L 7070:127.0.0.1:7070 HOST` makes a remote port one of it)",
				url);
	if ((mo_starts_with(url, "unix:/") && url[6]) ||
	    (mo_starts_with(url, "http://") && url[7]) ||
	    (mo_starts_with(url, "https://") && url[8]))
		return 0;
	return cli_fail(CLI_USAGE,
			"controller address %s: unknown form; use http(s)://host:port or "
			"unix:/path in MOE_URL or --url",
			url);
}

/* The controller of this machine, or else the local cluster in its usual place: a second shell
 * need not be reported. */
static char *default_url(void)
{
	_cleanup_(mo_freep) char *dir =
		access(strchr(DEFAULT_URL, '/'), F_OK) == 0 ? NULL : local_default_dir();
	_cleanup_(mo_freep) char *socket = dir ? mo_printf("%s/moed.sock", dir) : NULL;
	return socket && access(socket, F_OK) == 0 ? mo_printf("unix:%s", socket)
						   : mo_strdup(DEFAULT_URL);
}

int client_open(struct cli *cli)
{
	if (cli->client)
		return 0;
	struct client *c = cli->client = mo_alloc(sizeof(*c));
	mo_options_init(&config, c);
	const char *env = NULL;
	int r = config_read(c);
	if (r)
		return r;
	c->url_from = c->url ? "url of the configuration file" : NULL;
	if (cli->url) {
		mo_str_set(&c->url, cli->url);
		c->url_from = "--url";
	} else if ((env = getenv("MOE_URL")) && *env) {
		mo_str_set(&c->url, env);
		c->url_from = "MOE_URL";
	}
	if (!c->url)
		c->url = default_url();
	if ((r = url_check(c->url)))
		return r;
	for (size_t n = strlen(c->url); n && c->url[n - 1] == '/'; n--)
		c->url[n - 1] = 0;
	if (cli->token_file)
		return token_read(c, cli->token_file, "--token-file");
	if ((env = getenv("MOE_TOKEN")) && *env) {
		mo_str_set(&c->token, env);
		c->token_from = "MOE_TOKEN";
		return 0;
	}
	if ((env = getenv("MOE_TOKEN_FILE")) && *env)
		return token_read(c, env, "MOE_TOKEN_FILE");
	c->token_from = "token in the configuration file";
	return !c->token && c->token_file
		       ? token_read(c, c->token_file, "token_file in the configuration file")
		       : 0;
}

const char *client_url(const struct cli *cli)
{
	return cli->client ? cli->client->url : DEFAULT_URL;
}

int client_send(struct cli *cli, const struct request *q, struct answer *ret)
{
	int r = client_open(cli);
	if (r)
		return r;
	const struct mo_http_call call = {
		.url = cli->client->url,
		.path = q->path,
		.method = q->method ? q->method : "GET",
		.body = q->body,
		.body_len = q->n,
		.token = cli->client->token,
		.content_type = q->content_type,
		.timeout_ms = q->timeout_ms ? MO_MAX(q->timeout_ms, 0) : 30000,
		.max_body = BODY_MAX,
		.headers = q->headers,
		.ca_file = cli->client->ca_file,
	};
	answer_done(ret);
	ret->error = mo_http_fetch(&call, q->on_data, q->arg, &ret->status, &ret->body, &ret->err);
	if (ret->error < 0 && ret->status < 300)
		ret->status = 0;
	if (ret->status && ret->body.len)
		(void)wire_parse(ret->body.data, ret->body.len, &ret->doc, NULL);
	if (!cli->raw && !cli->json)
		visible_json(ret->doc);
	return 0;
}

bool problem_print_recipe(struct json_object *doc, const char *file)
{
	struct json_object *errors = js_get(doc, "errors");
	fflush(stdout);
	for (size_t i = 0; i < js_len(errors); i++) {
		struct json_object *e = js_at(errors, i);
		const char *hint = js_str(e, "hint"), *message = js_str(e, "message");
		int64_t line = js_int(e, "line"), column = js_int(e, "column");
		if (line > 0)
			fprintf(stderr, "%s:%lld:%lld: ", file, (long long)line,
				(long long)MO_MAX(column, 1));
		else
			fputs("moectl: ", stderr);
		fprintf(stderr, "%s%s%s\n", message ? message : "invalid", hint ? "; " : "",
			hint ? hint : "");
	}
	return js_len(errors) > 0;
}

static int exit_of(int status)
{
	switch (status) {
	case 401:
	case 403: return CLI_DENIED;
	case 404:
	case 410: return CLI_NOT_FOUND;
	case 400:
	case 413:
	case 415:
	case 422: return CLI_USAGE;
	default: return status >= 200 && status < 300 ? CLI_OK : CLI_FAILED;
	}
}

/* Whether what listens there understands the other of http and https. The words of a failed
 * handshake depend on who closes first, so it is asked, without a credential; a certificate that
 * is not vouched for is TLS all the same. */
bool client_wrong_scheme(const struct cli *cli, const struct answer *a)
{
	const char *url = client_url(cli);
	bool tls = mo_starts_with(url, "https:");
	if (a->status || a->error == -ECONNREFUSED || (!tls && !mo_starts_with(url, "http:")) ||
	    strstr(mo_error_text(&a->err, a->error), "certificate"))
		return false;
	_cleanup_(mo_freep) char *other =
		mo_printf("http%s%s", tls ? "" : "s", url + strlen(tls ? "https" : "http"));
	_cleanup_(mo_buf_done) struct mo_buf body = { 0 };
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	const struct mo_http_call call = { .url = other,
					   .path = "/healthz",
					   .method = "GET",
					   .timeout_ms = 2000,
					   .max_body = 65536 };
	int status = 0, r = mo_http_fetch(&call, NULL, NULL, &status, &body, &err);
	return status > 0 || (!tls && strstr(mo_error_text(&err, r), "certificate"));
}

/* libcurl speaks of localhost and port 80 even for a UNIX socket: there the reason is found by
 * looking at it. */
static int unreachable(const struct cli *cli, const struct answer *a)
{
	const char *url = client_url(cli), *text = mo_error_text(&a->err, a->error);
	if (mo_starts_with(url, "unix:") && a->error == -ECONNREFUSED) {
		if (access(url + 5, F_OK) < 0)
			text = errno == EACCES ? "the directory may not be entered"
					       : "there is no such socket";
		else if (access(url + 5, W_OK) < 0)
			return cli_fail(CLI_DENIED,
					"controller %s: you may not use this socket; ask for "
					"membership of its group, or use the TCP address with a "
					"token",
					url);
		else
			text = "nobody listens there";
	} else if (mo_starts_with(text, url) && text[strlen(url)] == ':') {
		text += strlen(url) + 2;
	}
	if (client_wrong_scheme(cli, a))
		return cli_fail(CLI_UNREACHABLE,
				mo_starts_with(url, "https:")
					? "controller %s: what answers there does not speak TLS; "
					  "use http:// on this machine, or give moed a certificate "
					  "(tls_cert, tls_key)"
					: "controller %s: what answers there speaks TLS, not plain "
					  "HTTP; use https://",
				url);
	if (mo_starts_with(url, "https:") && (strstr(text, "certificate") || strstr(text, "SSL")))
		return cli_fail(CLI_UNREACHABLE,
				"controller %s: %s; name the CA that signed it as ca_file in "
				"~/.config/moe/config.yaml, and an address that is in it",
				url, text);
	const char *from = cli->client->url_from;
	if (from)
		return cli_fail(CLI_UNREACHABLE,
				"controller %s: %s; start moed there, or correct the address: it "
				"is from %s",
				url, text, from);
	return cli_fail(CLI_UNREACHABLE,
			"controller %s: %s; start moed (or `moectl local up`), or set MOE_URL", url,
			text);
}

/* 401: nothing was shown, or something that is not accepted; then what said it is named. */
static int no_credential(const struct cli *cli)
{
	const struct client *c = cli->client;
	if (!c->token)
		return cli_fail(CLI_DENIED,
				"controller %s: it wants a token and none was given; name a file "
				"with one in MOE_TOKEN_FILE (`moectl token create` makes one)",
				c->url);
	return cli_fail(CLI_DENIED,
			"controller %s: the token (%s%s%s) is wrong, was revoked or has expired; "
			"ask for a new one (`moectl token create`)",
			c->url, c->token_from,
			mo_streq(c->token_from, "MOE_TOKEN") || !c->token_file ? "" : " ",
			mo_streq(c->token_from, "MOE_TOKEN") || !c->token_file ? ""
									       : c->token_file);
}

int client_judge(struct cli *cli, const char *what, const struct answer *a)
{
	if (!a->status)
		return unreachable(cli, a);
	int code = exit_of(a->status);
	if (!code)
		return 0;
	if (cli->json && a->doc)
		print_answer(a);
	if (!cli->raw)
		visible_json(a->doc); /* what follows goes to people, with --json too */
	if (a->status == 401)
		return no_credential(cli);
	if (a->status == 422 && what && problem_print_recipe(a->doc, what))
		return code;
	const char *detail = js_str(a->doc, "detail"), *hint = js_str(a->doc, "hint");
	if (!detail)
		detail = js_str(a->doc, "title");
	if (detail)
		return cli_fail(code, "%s%s%s%s%s", what && !strstr(detail, what) ? what : "",
				what && !strstr(detail, what) ? ": " : "", detail, hint ? "; " : "",
				hint ? hint : "");
	return cli_fail(code, "%s: the controller answered %d without a reason; see its log",
			what ? what : client_url(cli), a->status);
}

static int call(struct cli *cli, const char *method, const char *what, const char *body,
		struct answer *ret, const char *path)
{
	const struct request q = { .method = method,
				   .path = path,
				   .body = body,
				   .n = body ? strlen(body) : 0,
				   .content_type = body ? "application/json" : NULL };
	int r = client_send(cli, &q, ret);
	if (!r)
		r = client_judge(cli, what, ret);
	if (!r && !ret->doc && ret->status != 204)
		return cli_fail(CLI_FAILED,
				"controller %s: the answer to %s is no JSON; is something else "
				"listening there?",
				client_url(cli), path);
	return r;
}

int client_call(struct cli *cli, const char *method, const char *what, const char *body,
		struct answer *ret, const char *path_fmt, ...)
{
	va_list ap;
	va_start(ap, path_fmt);
	_cleanup_(mo_freep) char *path = mo_vprintf(path_fmt, ap);
	va_end(ap);
	return call(cli, method, what, body, ret, path);
}

int client_get(struct cli *cli, const char *what, struct answer *ret, const char *path_fmt, ...)
{
	va_list ap;
	va_start(ap, path_fmt);
	_cleanup_(mo_freep) char *path = mo_vprintf(path_fmt, ap);
	va_end(ap);
	return call(cli, "GET", what, NULL, ret, path);
}

char *url_quote(const char *s)
{
	struct mo_buf b = { 0 };
	for (; *s; s++)
		if (strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~",
			   *s))
			mo_buf_add(&b, s, 1);
		else
			mo_buf_printf(&b, "%%%02X", (unsigned char)*s);
	return mo_buf_take(&b);
}

int print_answer(const struct answer *a)
{
	size_t n = a->body.len;
	while (n && a->body.data[n - 1] == '\n')
		n--;
	print_json(a->body.data ? a->body.data : "", n);
	return CLI_OK;
}
