/* The on-disk cache of compiled programs: filled, used, and rebuilt when damaged. Each step runs in a child process,
 * since a process keeps its programs. */
#include "rt_test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/koine-cache-XXXXXX";

/* Adds two tensors in a new process; 0 when the result is right. */
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
        _exit(value == 200 ? 0 : 1);
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
        assert_non_null(strstr(entry->d_name, ".bin")); /* no temporary is left behind */
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
        assert_int_equal(add_in_child(), 0); /* built again, and stored whole again */
        assert_int_equal(each_file(NULL), files);
        assert_int_equal(add_in_child(), 0);
    }
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
        cmocka_unit_test(a_folder_that_cannot_be_written_is_no_error),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[160];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) == 0 ? failed : 1;
}
