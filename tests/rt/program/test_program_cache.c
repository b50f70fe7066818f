/* The on-disk cache of compiled programs: filled, used, and rebuilt when damaged. Each step runs in a child process,
 * because programs are cached per process. */
#include "rt/rt_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/koine-cache-XXXXXX";

/* Adds two tensors in a new process; 0 if the result is correct. */
static int add_in_child(void)
{
    pid_t child = fork();
    if (child == 0) {
        double value = 0;
        {
            KN_SCOPE;
            if (kn_item(kn_sum(kn_add(kn_ones(KN_SHAPE(100)), kn_ones(KN_SHAPE(100)))), &value) != KN_OK)
                fprintf(stderr, "%s\n", kn_error_message());
        }
        _exit(value == 200 && kn_error_status() == KN_OK ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Calls `change` for each file of the cache; returns how many there are. */
static int each_file(void (*change)(const char *path))
{
    char programs[128], path[512];
    snprintf(programs, sizeof programs, "%s/programs", folder);
    DIR *directory = opendir(programs);
    int count = 0;
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", programs, entry->d_name);
        assert_non_null(strstr(entry->d_name, ".bin")); /* no temporary file is left */
        if (change)
            change(path);
        count++;
    }
    if (directory)
        closedir(directory);
    return count;
}

static void truncate_file(const char *path) { assert_int_equal(truncate(path, 40), 0); }
static void empty_file(const char *path) { assert_int_equal(truncate(path, 0), 0); }

static void flip_byte(const char *path)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    fseek(file, 200, SEEK_SET);
    int byte = fgetc(file);
    fseek(file, 200, SEEK_SET);
    fputc(byte ^ 0x55, file);
    fclose(file);
}

static void cache_is_filled_and_survives_damage(void **state)
{
    (void)state;
    assert_int_equal(add_in_child(), 0);
    int files = each_file(NULL);
    assert_true(files > 0);
    assert_int_equal(add_in_child(), 0);
    assert_int_equal(each_file(NULL), files);
    void (*const damages[])(const char *) = {truncate_file, empty_file, flip_byte};
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        assert_int_equal(each_file(damages[i]), files);
        assert_int_equal(add_in_child(), 0); /* compiled and stored again */
        assert_int_equal(each_file(NULL), files);
        assert_int_equal(add_in_child(), 0);
    }
}

/* --- ownership of files --------------------------------------------------------------------- */

static void remove_file(const char *path) { assert_int_equal(unlink(path), 0); }

static const char *programs(void)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/programs", folder);
    return path;
}

static void folders_are_private(void **state)
{
    (void)state;
    struct stat info;
    assert_int_equal(add_in_child(), 0);
    assert_int_equal(stat(programs(), &info), 0);
    assert_int_equal(info.st_mode & 07777, 0700);
}

static void folders_of_others_are_not_used(void **state)
{
    (void)state;
    assert_int_equal(add_in_child(), 0);
    int files = each_file(NULL);
    each_file(remove_file);
    const mode_t open_to_others[] = {0770, 0707, 01777};
    for (size_t i = 0; i < sizeof open_to_others / sizeof open_to_others[0]; i++) {
        assert_int_equal(chmod(programs(), open_to_others[i]), 0);
        assert_int_equal(add_in_child(), 0);
        assert_int_equal(each_file(NULL), 0);
    }
    assert_int_equal(chmod(programs(), 0755), 0);
    assert_int_equal(chmod(folder, 0777), 0);
    assert_int_equal(add_in_child(), 0);
    assert_int_equal(each_file(NULL), 0);
    assert_int_equal(chmod(folder, 01777), 0); /* like /tmp: our own files are safe there */
    assert_int_equal(add_in_child(), 0);
    assert_int_equal(each_file(remove_file), files);
    assert_int_equal(chmod(folder, 0700), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(programs(), 12345, (gid_t)-1), 0);
        assert_int_equal(add_in_child(), 0);
        assert_int_equal(each_file(NULL), 0);
        assert_int_equal(chown(programs(), 0, (gid_t)-1), 0);
    }
    assert_int_equal(add_in_child(), 0);
    assert_int_equal(each_file(NULL), files);
}

static char two_paths[2][512];
static int num_paths;

static void keep_path(const char *path)
{
    if (num_paths < 2)
        snprintf(two_paths[num_paths++], sizeof two_paths[0], "%s", path);
}

/* A valid entry of another program. */
static void an_entry_under_another_name_is_built_again(void **state)
{
    (void)state;
    char command[2 * sizeof two_paths[0] + 32];
    assert_int_equal(add_in_child(), 0);
    num_paths = 0;
    assert_true(each_file(keep_path) >= 2);
    snprintf(command, sizeof command, "cp '%s' '%s'", two_paths[0], two_paths[1]);
    assert_int_equal(system(command), 0);
    assert_int_equal(add_in_child(), 0);
    snprintf(command, sizeof command, "cmp -s '%s' '%s'", two_paths[0], two_paths[1]);
    assert_int_not_equal(system(command), 0);
}

/* With other options of the driver's own it makes other code. */
static void the_drivers_options_are_part_of_the_key(void **state)
{
    (void)state;
    const char *given = getenv("POCL_EXTRA_BUILD_FLAGS");
    char *before = strdup(given ? given : ""), other[256];
    each_file(remove_file);
    assert_int_equal(add_in_child(), 0);
    const int files = each_file(NULL);
    snprintf(other, sizeof other, "%s -DKN_OTHER", before);
    setenv("POCL_EXTRA_BUILD_FLAGS", other, 1);
    assert_int_equal(add_in_child(), 0);
    assert_int_equal(each_file(NULL), 2 * files);
    if (given)
        setenv("POCL_EXTRA_BUILD_FLAGS", before, 1);
    else
        unsetenv("POCL_EXTRA_BUILD_FLAGS");
    free(before);
    each_file(remove_file);
}

/* --- unrelated failures -------------------------------------------------------------- */

/* No free descriptor to read the entries: they are not removed. */
static void entries_that_cannot_be_read_stay(void **state)
{
    (void)state;
    assert_int_equal(add_in_child(), 0);
    int files = each_file(NULL);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit few = {64, 64};
        kn_device *device = test_device();
        setrlimit(RLIMIT_NOFILE, &few);
        while (open("/dev/null", O_RDONLY) >= 0)
            continue;
        KN_SCOPE;
        kn_tensor *x = kn_ones(KN_SHAPE(100), .device = device);
        kn_sum(kn_add(x, x));
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(each_file(NULL), files);
}

/* An expression fails; then another's program cannot be stored: the first error is kept. */
static void an_unread_error_stays(void **state)
{
    (void)state;
    setenv("KOINE_CACHE_DIR", "/proc/no-such-folder", 1);
    pid_t child = fork();
    if (child == 0) {
        KN_SCOPE;
        kn_tensor *x = kn_ones(KN_SHAPE(100)), *wrong = kn_add(x, kn_ones(KN_SHAPE(7)));
        kn_tensor *y = kn_exp(x);
        _exit(!wrong && y && kn_error_status() == KN_ERR_SHAPE ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    setenv("KOINE_CACHE_DIR", folder, 1);
}

static void a_folder_that_cannot_be_written_is_no_error(void **state)
{
    (void)state;
    setenv("KOINE_CACHE_DIR", "/proc/no-such-folder", 1);
    assert_int_equal(add_in_child(), 0);
    setenv("KOINE_CACHE_DIR", folder, 1);
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    setenv("KOINE_CACHE_DIR", folder, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cache_is_filled_and_survives_damage),
        cmocka_unit_test(folders_are_private),
        cmocka_unit_test(folders_of_others_are_not_used),
        cmocka_unit_test(an_entry_under_another_name_is_built_again),
        cmocka_unit_test(the_drivers_options_are_part_of_the_key),
        cmocka_unit_test(entries_that_cannot_be_read_stay),
        cmocka_unit_test(an_unread_error_stays),
        cmocka_unit_test(a_folder_that_cannot_be_written_is_no_error),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[160];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) == 0 ? failed : 1;
}
