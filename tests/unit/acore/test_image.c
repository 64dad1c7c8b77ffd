/* Images: names in layers, which image is meant, where it comes from. */
#include "tests/unit/unit.h"

#include <string.h>

#include "agent/core/image/cache.h"
#include "lib/model/image.h"
#include "agent/core/image/challenge.h"
#include "agent/core/image/entry.h"
#include "agent/core/image/oci.h"
#include "lib/model/reference.h"
#include "agent/core/image/source.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

/* "KIND DIR NAME LINK_DIR LINK MODE", or the error's text. */
static void expect(enum entry_kind kind, const char *path, const char *link, int64_t mode,
		   const char *wanted)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(entry_done) struct entry e = { 0 };
	struct entry_said said = { .kind = kind, .path = path, .link = link, .mode = mode };
	int r = entry_read(&said, &e, &err);
	_cleanup_(mo_freep) char *seen =
		mo_printf("%d %s %s %s %s %o", (int)e.kind, e.dir, e.name ? e.name : "-",
			  e.link_dir ? e.link_dir : "-", e.link ? e.link : "-", e.mode);

	assert_int_equal(r, strchr(wanted, ':') ? IMAGE_REFUSED : 0);
	assert_string_equal(r < 0 ? mo_error_text(&err, r) : seen, wanted);
}

static void test_names(void **state)
{
	expect(ENTRY_FILE, "a", NULL, 0644, "2  a - - 644");
	expect(ENTRY_FILE, "/./a//b/./c/", NULL, 0644, "2 a/b c - - 644");
	expect(ENTRY_FILE, "a/..b/...", NULL, 0644, "2 a/..b ... - - 644");
	expect(ENTRY_DIRECTORY, "./", NULL, 0755, "0  - - - 755");
	expect(ENTRY_FILE, "..", NULL, 0, "a name in it leads upwards (..): ..");
	expect(ENTRY_FILE, "a/../b", NULL, 0, "a name in it leads upwards (..): a/../b");
}

static void test_modes(void **state)
{
	expect(ENTRY_FILE, "su", NULL, 06755, "2  su - - 755");
	expect(ENTRY_FILE, "none", NULL, 0, "2  none - - 400");
	expect(ENTRY_DIRECTORY, "tmp", NULL, 01777, "1  tmp - - 1777");
	expect(ENTRY_DIRECTORY, "none", NULL, 02000, "1  none - - 700");
}

static void test_links(void **state)
{
	expect(ENTRY_SYMLINK, "s", "../../x", 0777, "3  s - ../../x 777");
	expect(ENTRY_SYMLINK, "s", "", 0777, "a symbolic link is empty or too long: s");
	expect(ENTRY_HARDLINK, "d/h", "/d/x/y", 0644, "4 d h d/x y 644");
	expect(ENTRY_HARDLINK, "h", "../y", 0644, "a name in it leads upwards (..): ../y");
	expect(ENTRY_HARDLINK, "h", "/", 0644, "a hard link leads nowhere: h");
}

static void test_whiteouts(void **state)
{
	expect(ENTRY_FILE, "d/.wh.x", NULL, 0, "5 d x - - 400");
	expect(ENTRY_HARDLINK, "d/.wh.x", ".wh..wh.orph", 0, "5 d x - - 400");
	expect(ENTRY_FILE, "d/.wh..wh..opq", NULL, 0, "6 d .wh..wh..opq - - 400");
	expect(ENTRY_FILE, ".wh..wh.aufs", NULL, 0, "0  .wh..wh.aufs - - 400");
	expect(ENTRY_FILE, ".wh.", NULL, 0, "0  .wh. - - 400");
	expect(ENTRY_FILE, "d/.wh...", NULL, 0, "it takes away what is no name: d/.wh...");
	expect(ENTRY_FILE, "d/.wh..", NULL, 0, "it takes away what is no name: d/.wh..");
}

static void test_count(void **state)
{
	struct entry_sum sum = { .bytes_max = 10 };

	assert_int_equal(entry_count(&sum, 10, NULL), 0);
	assert_int_equal(entry_count(&sum, 1, NULL), IMAGE_REFUSED);
	assert_int_equal(entry_count(&sum, -1, NULL), IMAGE_REFUSED);
	assert_int_equal(entry_count(&sum, INT64_MAX, NULL), IMAGE_REFUSED);
	sum.entries = ENTRIES_MAX - 1;
	assert_int_equal(entry_count(&sum, 0, NULL), 0);
	assert_int_equal(entry_count(&sum, 0, NULL), IMAGE_REFUSED);
}

static const char two[] =
	"{\"manifests\":["
	"{\"digest\":\"a\",\"platform\":{\"architecture\":\"amd64\",\"os\":\"linux\"},"
	"\"annotations\":{\"org.opencontainers.image.ref.name\":\"v1\"}},"
	"{\"digest\":\"b\",\"platform\":{\"architecture\":\"arm64\",\"os\":\"linux\"},"
	"\"annotations\":{\"org.opencontainers.image.ref.name\":\"v1\"}},"
	"{\"digest\":\"c\",\"annotations\":{\"org.opencontainers.image.ref.name\":\"v2\"}}]}";

/* The digest, or the error's text. */
static void chosen(const char *json, const char *tag, const char *architecture, const char *wanted)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(oci_index_done) struct oci_index index;

	mo_desc_init(&oci_index_desc, &index);
	assert_int_equal(wire_decode(&oci_index_desc, json, strlen(json), false, &index, &err), 0);
	const struct oci_descriptor *d = oci_choose(&index, tag, architecture, &err);

	assert_string_equal(d ? d->digest : err.text, wanted);
}

static void test_choice(void **state)
{
	chosen(two, "v1", "amd64", "a");
	chosen(two, "v1", "arm64", "b");
	chosen(two, "v2", "s390x", "c");
	chosen(two, NULL, "s390x", "c");
	chosen(two, NULL, "amd64", "it has 2 images for amd64 (amd64 v1, arm64 v1, v2)");
	chosen(two, "v1", "s390x",
	       "it has no image for linux on s390x (there is: amd64 v1, arm64 v1, v2)");
	chosen(two, "v3", "amd64",
	       "it has no image with the tag v3 (there is: amd64 v1, arm64 v1, v2)");
	chosen("{\"manifests\":[]}", NULL, "amd64", "it has no image");
	chosen("{}", NULL, "amd64", "it has no image");
	assert_string_equal(oci_architecture("x86_64"), "amd64");
	assert_string_equal(oci_architecture("aarch64"), "arm64");
	assert_string_equal(oci_architecture("riscv64"), "riscv64");
}

static void test_digests(void **state)
{
	char digest[] = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

	assert_true(oci_digest_valid(digest));
	digest[10] = 'A';
	assert_false(oci_digest_valid(digest));
	digest[10] = '/';
	assert_false(oci_digest_valid(digest));
	digest[10] = 0;
	assert_false(oci_digest_valid(digest));
	assert_false(oci_digest_valid(NULL));
}

/* "KIND PATH TAG", NULL: it is refused. */
static void from(const char *text, const char *wanted)
{
	_cleanup_(source_done) struct source s;
	int r = source_read(text, &s, NULL);
	_cleanup_(mo_freep) char *seen =
		mo_printf("%d %s %s", (int)s.kind, s.path, s.tag ? s.tag : "-");

	assert_int_equal(r, wanted ? 0 : IMAGE_REFUSED);
	if (wanted)
		assert_string_equal(seen, wanted);
}

static void test_sources(void **state)
{
	from("oci:/nfs/primus", "0 /nfs/primus -");
	from("oci:/nfs/primus:v26.5", "0 /nfs/primus v26.5");
	from("oci:/nfs/a:b/primus", "0 /nfs/a:b/primus -");
	from("oci:primus:", "0 primus -");
	from("docker-archive:/nfs/p:1.tar", "1 /nfs/p:1.tar -");
	from("oci:", NULL);
	from("oci::v1", NULL);
	from("docker-archive:", NULL);
	from("/nfs/primus", NULL);
	from("", NULL);
}

static void test_puts(void **state)
{
	_cleanup_(oci_index_done) struct oci_index index;
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	mo_desc_init(&oci_index_desc, &index);
	oci_index_put(&index, "v1", "a", 1, NULL);
	oci_index_put(&index, NULL, "b", 2, "kind");
	oci_index_put(&index, NULL, "c", 3, "kind");
	oci_index_put(&index, "v2", "d", 4, "kind");
	oci_index_put(&index, "v1", "e", 5, "kind");
	wire_encode(&oci_index_desc, &index, &b);
	assert_string_equal(b.data,
			    "{\"schemaVersion\":2,\"manifests\":["
			    "{\"mediaType\":\"kind\",\"digest\":\"c\",\"size\":3},"
			    "{\"mediaType\":\"kind\",\"digest\":\"d\",\"size\":4,\"annotations\":"
			    "{\"org.opencontainers.image.ref.name\":\"v2\"}},"
			    "{\"mediaType\":\"kind\",\"digest\":\"e\",\"size\":5,\"annotations\":"
			    "{\"org.opencontainers.image.ref.name\":\"v1\"}}]}");
}

#define DIGEST "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* "HOST NAME WANTED", NULL: it is refused. */
static void named(const char *text, const char *wanted)
{
	static char *const mirrors[] = { (char *)"ghcr.io=reg.site:5000/ghcr", (char *)"none",
					 (char *)"docker.io/rocm/x=other/y" };
	_cleanup_(reference_done) struct reference r;
	int result = reference_read(text, mirrors, ELEMENTSOF(mirrors), &r, NULL);
	_cleanup_(mo_freep) char *seen =
		mo_printf("%s %s %s", r.host, r.name, reference_wanted(&r));

	assert_int_equal(result, wanted ? 0 : IMAGE_REFUSED);
	if (wanted)
		assert_string_equal(seen, wanted);
}

static void test_references(void **state)
{
	named("docker.io/rocm/primus:v26.5", "registry-1.docker.io rocm/primus v26.5");
	named("rocm/primus", "registry-1.docker.io rocm/primus latest");
	named("debian:12", "registry-1.docker.io library/debian 12");
	named("docker.io/debian", "registry-1.docker.io library/debian latest");
	named("reg.site:5000/a/b_c", "reg.site:5000 a/b_c latest");
	named("localhost/a", "localhost a latest");
	named("reg.site/a@" DIGEST, "reg.site a " DIGEST);
	named("reg.site/a:v1@" DIGEST, "reg.site a " DIGEST);
	named("ghcr.io/a/b:v1", "reg.site:5000 ghcr/a/b v1");
	named("ghcr.iox/a", "ghcr.iox a latest");
	named("rocm/x:v1", "other y v1");
	named("rocm/x/z", "other y/z latest");
	named("rocm/xy", "registry-1.docker.io rocm/xy latest");
	named("reg.site/a@sha256:12", NULL);
	named("reg.site/a:", NULL);
	named("reg.site/a:v 1", NULL);
	named("reg.site/A", NULL);
	named("reg.site/a/../b", NULL);
	named("reg.site/a//b", NULL);
	named("reg.site/", NULL);
	named("reg.site:x/a", NULL);
	named("me@reg.site/a", NULL);
	named("-x.y/a", NULL);
	named("", NULL);
}

static void test_loopback(void **state)
{
	struct {
		const char *host;
		bool loopback;
	} rows[] = { { "localhost", true },      { "localhost:5000", true },
		     { "127.0.0.1:1", true },    { "127.1.2.3", true },
		     { "127.evil.org", false },  { "localhost.org", false },
		     { "reg.site:5000", false }, { "1127.0.0.1", false } };

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct reference r = { .host = (char *)rows[i].host };

		assert_int_equal(reference_is_loopback(&r), rows[i].loopback);
	}
}

/* "REALM SERVICE SCOPE", "basic", or NULL: neither is wanted. */
static void challenged(const char *header, const char *wanted)
{
	_cleanup_(challenge_done) struct challenge c;
	bool known = challenge_read(header, &c);
	_cleanup_(mo_freep) char *seen =
		mo_printf("%s %s %s", c.realm ? c.realm : "-", c.service ? c.service : "-",
			  c.scope ? c.scope : "-");

	assert_int_equal(known, wanted != NULL);
	if (known)
		assert_string_equal(c.bearer ? seen : "basic", wanted);
}

static void test_challenges(void **state)
{
	challenged("Bearer realm=\"https://a/t\",service=\"s\",scope=\"repository:x:pull,push\"",
		   "https://a/t s repository:x:pull,push");
	challenged(" bearer  REALM = \"a\\\"b\" , scope=x", "a\"b - x");
	challenged("Basic realm=\"r\", Bearer realm=\"t\"", "t - -");
	challenged("Bearer realm=\"t\", Basic realm=\"r\"", "t - -");
	challenged("Basic realm=\"r\"", "basic");
	challenged("BASIC", "basic");
	challenged("Bearer service=\"s\"", NULL);
	challenged("Negotiate", NULL);
	challenged("Bearer realm=\"cut", "cut - -");
	challenged("=\"\"=,,\"", NULL);
	challenged("", NULL);
}

/* Letters of those that go. */
static void going(int64_t most, const char *wanted, int64_t rest)
{
	struct cached all[] = {
		{ .name = (char *)"c", .bytes = 30, .used_us = 3 },
		{ .name = (char *)"b", .bytes = 20, .used_us = 1 },
		{ .name = (char *)"d", .bytes = 40, .used_us = 2, .in_use = true },
		{ .name = (char *)"a", .bytes = 10, .used_us = 1 },
	};
	char seen[ELEMENTSOF(all) + 1] = "";
	size_t n = 0;

	cache_sort(all, ELEMENTSOF(all));
	assert_int_equal(cache_choose(all, ELEMENTSOF(all), most), rest);
	for (size_t i = 0; i < ELEMENTSOF(all); i++)
		if (all[i].goes)
			seen[n++] = all[i].name[0];
	assert_string_equal(seen, wanted);
}

static void test_cache(void **state)
{
	going(100, "", 100);
	going(99, "a", 90);
	going(89, "ab", 70);
	going(69, "abc", 40);
	going(0, "abc", 40);
	assert_int_equal(cache_choose(NULL, 0, 0), 0);
	_cleanup_(mo_freep) char *name = image_dir_name("id:sha256:12");

	assert_string_equal(name, "id-sha256-12");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),    cmocka_unit_test(test_modes),
		cmocka_unit_test(test_links),    cmocka_unit_test(test_whiteouts),
		cmocka_unit_test(test_count),    cmocka_unit_test(test_choice),
		cmocka_unit_test(test_digests),  cmocka_unit_test(test_sources),
		cmocka_unit_test(test_puts),     cmocka_unit_test(test_references),
		cmocka_unit_test(test_loopback), cmocka_unit_test(test_challenges),
		cmocka_unit_test(test_cache),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
