/* test_files - atomic writes that fail in every way and keep the old file; whole reads; directories; content hashes. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/hash.h"
#include "base/memory.h"
#include "io/check.h"
#include "io/files.h"
#include <koine/io.h>
#include <koine/tensor.h>

static const char *old_content = "what was there before";

static const char *old_file(const char *name)
{
    const char *path = temporary(name);
    write_bytes(path, old_content, strlen(old_content));
    return path;
}

static void assert_old(const char *path, int files)
{
    assert_true(file_is(path, old_content, strlen(old_content)));
    assert_int_equal(count_files_beside(path), files); /* no temporary is left */
}

/* --- atomic writes ---------------------------------------------------------------------------- */

static void test_replaces(void **state)
{
    (void)state;
    const char *path = old_file("replaced");
    int files = count_files_beside(path);
    kn_atomic_file file;
    assert_ok(kn_file_begin(&file, path));
    assert_ok(kn_file_write(&file, "new", 3));
    assert_true(file_is(path, old_content, strlen(old_content))); /* until the commit */
    assert_ok(kn_file_end(&file, KN_OK));
    assert_true(file_is(path, "new", 3));
    assert_int_equal(count_files_beside(path), files);
}

static void test_abandons(void **state)
{
    (void)state;
    const char *path = old_file("abandoned");
    int files = count_files_beside(path);
    kn_atomic_file file;
    assert_ok(kn_file_begin(&file, path));
    assert_ok(kn_file_write(&file, "new", 3));
    kn_file_end(&file, KN_ERR_STATE);
    kn_file_end(&file, KN_ERR_STATE); /* already finished: no effect */
    assert_old(path, files);
}

static void test_keeps_permissions_and_links(void **state)
{
    (void)state;
    char path[1024], link_path[1024];
    snprintf(path, sizeof(path), "%s", old_file("target"));
    snprintf(link_path, sizeof(link_path), "%s", temporary("link"));
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(symlink(path, link_path), 0);
    kn_atomic_file file;
    assert_ok(kn_file_begin(&file, link_path));
    assert_ok(kn_file_write(&file, "new", 3));
    assert_ok(kn_file_end(&file, KN_OK));
    struct stat info;
    assert_int_equal(lstat(link_path, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0640);
    assert_true(file_is(path, "new", 3));
}

/* Renaming over a device would destroy it: /dev/null must survive a program that writes there. */
static void test_not_a_regular_file(void **state)
{
    (void)state;
    kn_atomic_file file;
    assert_fails(kn_file_begin(&file, "/dev/null"), KN_ERR_IO, "not a regular file");
    assert_fails(kn_file_begin(&file, "/tmp"), KN_ERR_IO, "it is a directory");
    assert_fails(kn_file_begin(&file, ""), KN_ERR_ARGUMENT, "empty");
    assert_fails(kn_file_begin(&file, temporary("absent/file")), KN_ERR_IO, "No such file");
}

/* Writes more than fits on the disk (here: the process's file size limit). */
static kn_status write_large(const char *path)
{
    static const char chunk[4096];
    kn_atomic_file file;
    kn_status status = kn_file_begin(&file, path);
    if (status != KN_OK)
        return status;
    for (int i = 0; i < 64 && status == KN_OK; i++)
        status = kn_file_write(&file, chunk, sizeof(chunk));
    return kn_file_end(&file, status);
}

static void set_file_limit(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void test_full_disk(void **state)
{
    (void)state;
    const char *path = old_file("full");
    int files = count_files_beside(path);
    signal(SIGXFSZ, SIG_IGN);
    set_file_limit(10000);
    kn_status status = write_large(path);
    set_file_limit(RLIM_INFINITY);
    assert_fails(status, KN_ERR_IO, strerror(EFBIG));
    assert_old(path, files);
}

/* The last bytes leave the buffer only when the file is committed. */
static void test_full_disk_at_commit(void **state)
{
    (void)state;
    const char *path = old_file("full2");
    int files = count_files_beside(path);
    kn_atomic_file file;
    assert_ok(kn_file_begin(&file, path));
    assert_ok(kn_file_write(&file, "0123456789", 10));
    set_file_limit(5);
    kn_status status = kn_file_end(&file, KN_OK);
    set_file_limit(RLIM_INFINITY);
    assert_fails(status, KN_ERR_IO, "full2");
    assert_old(path, files);
}

/* A failed write is remembered, even if nobody checked it and later writes succeed. */
static void test_failed_write_is_remembered(void **state)
{
    (void)state;
    const char *path = old_file("full3");
    int files = count_files_beside(path);
    kn_atomic_file file;
    assert_ok(kn_file_begin(&file, path));
    static const char large[100000];
    set_file_limit(5);
    assert_int_equal(kn_file_write(&file, large, sizeof large), KN_ERR_IO);
    kn_error_clear();
    set_file_limit(RLIM_INFINITY);
    assert_fails(kn_file_write(&file, "x", 1), KN_ERR_IO, "full3");
    assert_fails(kn_file_end(&file, KN_OK), KN_ERR_IO, "full3");
    assert_old(path, files);
}

/* Root may write anywhere, so the test switches to another user. */
static void test_read_only_folder(void **state)
{
    (void)state;
    char folder[1024], path[1100];
    snprintf(folder, sizeof(folder), "%s", temporary("locked"));
    snprintf(path, sizeof(path), "%s/file", folder);
    assert_ok(kn_make_directories(folder));
    write_bytes(path, old_content, strlen(old_content));
    assert_int_equal(chmod(folder, 0555), 0);
    bool is_root = geteuid() == 0;
    char parent[1024];
    snprintf(parent, sizeof(parent), "%s", folder);
    *strrchr(parent, '/') = '\0';
    assert_int_equal(chmod(parent, 0755), 0);
    if (is_root && seteuid(65534) != 0)
        skip();
    kn_status status = write_large(path);
    if (is_root)
        assert_int_equal(seteuid(0), 0);
    assert_fails(status, KN_ERR_IO, strerror(EACCES));
    assert_old(path, 1);
    chmod(folder, 0755);
    unlink(path);
}

static kn_tensor *zeros(int64_t size)
{
    return kn_zeros_with(1, &size, &(kn_tensor_options){.dtype = KN_U8, .device = kn_device_host()});
}

/* All of the library's writers use the same function. */
static void test_savers_keep_the_old_file(void **state)
{
    (void)state;
    const char *path = old_file("saved");
    int files = count_files_beside(path);
    kn_tensor *tensor = zeros(100000);
    kn_tensor_file *content = kn_tensor_file_new();
    assert_ok(kn_tensor_file_put(content, "x", tensor));
    set_file_limit(10000);
    kn_status npy = kn_save_npy(path, tensor);
    set_file_limit(RLIM_INFINITY);
    assert_fails(npy, KN_ERR_IO, "saved");
    set_file_limit(10000);
    kn_status safetensors = kn_save_safetensors(path, content);
    set_file_limit(RLIM_INFINITY);
    assert_fails(safetensors, KN_ERR_IO, "saved");
    assert_old(path, files);
    assert_fails(kn_save_safetensors("/dev/full", content), KN_ERR_IO, "/dev/full");
    kn_tensor_file_free(content);
    kn_release(tensor);
}

static void test_write_out_of_memory(void **state)
{
    (void)state;
    const char *path = old_file("memory");
    int files = count_files_beside(path);
    kn_status status = KN_ERR_MEMORY;
    for (long n = 1; status != KN_OK; n++) {
        assert_old(path, files);
        kn_fail_alloc_after(n, 0);
        status = write_large(path);
        kn_fail_alloc_after(0, 0);
        if (status != KN_OK)
            assert_fails(status, KN_ERR_MEMORY, "");
        assert_true(n < 50);
    }
}

/* --- reading ---------------------------------------------------------------------------------- */

static void test_read_all(void **state)
{
    (void)state;
    const char *path = old_file("read");
    size_t length = strlen(old_content), size = 0;
    char *data = NULL;
    assert_ok(kn_file_read_all(&data, &size, path, length));
    assert_int_equal(size, length);
    assert_string_equal(data, old_content);
    kn_free(data);
    assert_fails(kn_file_read_all(&data, &size, path, length - 1), KN_ERR_FORMAT, "more than the limit of 20");
    assert_fails(kn_file_read_all(&data, &size, temporary("absent"), 10), KN_ERR_IO, "No such file");
    assert_fails(kn_file_read_all(&data, &size, "/tmp", 10), KN_ERR_IO, "Is a directory");
    write_bytes(path, "", 0);
    assert_ok(kn_file_read_all(&data, &size, path, 0));
    assert_int_equal(size, 0);
    assert_string_equal(data, "");
    kn_free(data);
}

/* Files without a known size: read to the end, up to the limit. */
static void test_read_all_without_a_size(void **state)
{
    (void)state;
    char *data = NULL;
    size_t size = 0;
    assert_fails(kn_file_read_all(&data, &size, "/proc/self/status", 10), KN_ERR_FORMAT,
                 "larger than the limit of 10 bytes");
    assert_ok(kn_file_read_all(&data, &size, "/proc/self/status", 1 << 20));
    assert_true(size > 0 && strlen(data) == size);
    kn_free(data);
}

/* --- directories ------------------------------------------------------------------------------ */

static void test_directories(void **state)
{
    (void)state;
    char path[1024];
    snprintf(path, sizeof(path), "%s", temporary("a"));
    char *deep = kn_path_join(path, "b//c/"), *again = kn_path_join("x/", "y");
    assert_string_equal(again, "x/y");
    assert_false(kn_file_exists(path));
    assert_ok(kn_make_directories(deep));
    assert_ok(kn_make_directories(deep));
    assert_true(kn_file_exists(deep));
    assert_fails(kn_make_directories(""), KN_ERR_ARGUMENT, "empty");
    char below[1100];
    snprintf(below, sizeof(below), "%s/x", old_file("not-a-directory"));
    assert_fails(kn_make_directories(below), KN_ERR_IO, "Not a directory");
    for (int length = (int)strlen(deep); length > (int)strlen(path); length--) { /* c, then b */
        deep[length] = '\0';
        rmdir(deep);
    }
    kn_free(deep);
    kn_free(again);
}

static void assert_cache_directory(const char *expected)
{
    char *directory = kn_cache_directory();
    assert_string_equal(directory, expected);
    kn_free(directory);
}

static void test_cache_directory(void **state)
{
    (void)state;
    setenv("KOINE_CACHE_DIR", "/here", 1);
    setenv("XDG_CACHE_HOME", "/there", 1);
    setenv("HOME", "/home/me", 1);
    assert_cache_directory("/here");
    unsetenv("KOINE_CACHE_DIR");
    assert_cache_directory("/there/koine");
    setenv("XDG_CACHE_HOME", "not/absolute", 1);
    assert_cache_directory("/home/me/.cache/koine");
    unsetenv("XDG_CACHE_HOME");
    assert_cache_directory("/home/me/.cache/koine");
}

/* --- hashes ----------------------------------------------------------------------------------- */

static void test_hash(void **state)
{
    (void)state;
    char a[KN_HASH_TEXT], b[KN_HASH_TEXT];
    /* xxhsum -H2 of no bytes, and of "abc". */
    assert_string_equal(kn_hash_format(a, kn_hash_bytes("", 0)), "99aa06d3014798d86001c324468d497f");
    assert_string_equal(kn_hash_format(a, kn_hash_text("abc")), "06b05ab6733a618578af5f94892f3950");
    kn_hash x = kn_hash_text("x"), y = kn_hash_text("y");
    assert_string_not_equal(kn_hash_format(a, kn_hash_combine(x, y)), kn_hash_format(b, kn_hash_combine(y, x)));
    assert_string_equal(kn_hash_format(a, kn_hash_combine(x, y)), kn_hash_format(b, kn_hash_combine(x, y)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replaces),
        cmocka_unit_test(test_abandons),
        cmocka_unit_test(test_keeps_permissions_and_links),
        cmocka_unit_test(test_not_a_regular_file),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_full_disk_at_commit),
        cmocka_unit_test(test_failed_write_is_remembered),
        cmocka_unit_test(test_read_only_folder),
        cmocka_unit_test(test_savers_keep_the_old_file),
        cmocka_unit_test(test_write_out_of_memory),
        cmocka_unit_test(test_read_all),
        cmocka_unit_test(test_read_all_without_a_size),
        cmocka_unit_test(test_directories),
        cmocka_unit_test(test_cache_directory),
        cmocka_unit_test(test_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
