/* Images: names in layers, which image is meant, where it comes from. */
#include "tests/unit/unit.h"

#include <string.h>

#include "agent/core/image/entry.h"
#include "agent/core/image/oci.h"
#include "agent/core/image/source.h"
#include "lib/wire/decode.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),   cmocka_unit_test(test_modes),
		cmocka_unit_test(test_links),   cmocka_unit_test(test_whiteouts),
		cmocka_unit_test(test_count),   cmocka_unit_test(test_choice),
		cmocka_unit_test(test_digests), cmocka_unit_test(test_sources),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
