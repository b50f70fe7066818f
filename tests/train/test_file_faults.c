/* test_file_faults.c - each file system call fails in turn while every kind of file is saved and loaded: the result is
 * an error with a message or success, the thread's error agrees with it, and the file is either the old or the new
 * one. */
#include "trainer_case.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/system.h"
#include "rt/program/program.h"
#include "rt/tuning/tuning.h"
#include "train/history.h"

static char folder[4096]; /* for the files */
static trainer_case one;  /* what they contain: versions 1 and 2 differ in a parameter's value */

/* --- the kinds of files --------------------------------------------------------------------------------------- */

/* Saves version 1 or 2; loads it and returns which it was. NULL: not applicable. */
typedef struct kind {
    const char *file;
    kn_status (*save)(const char *path, int version);
    kn_status (*load)(const char *path, int *version);
} kind;

static kn_tensor *host_tensor(int version) { return kn_full(KN_SHAPE(3, 5), version, .device = kn_device_host()); }

static kn_status version_of(kn_status status, kn_tensor *tensor, int *version)
{
    double value = 0;
    if (status == KN_OK)
        status = kn_item(kn_max(tensor), &value);
    *version = (int)value;
    return status;
}

static kn_status save_npy(const char *path, int version) { return kn_save_npy(path, host_tensor(version)); }

static kn_status load_npy(const char *path, int *version)
{
    kn_tensor *tensor = NULL;
    kn_status status = kn_status_of(tensor = kn_load_npy(path));
    *version = status == KN_OK ? (int)((const float *)kn_data(tensor))[14] : 0;
    return status;
}

/* The library does not write these: the minimum for loading. */
static kn_status load_idx(const char *path, int *version)
{
    kn_tensor *tensor = NULL;
    kn_status status = kn_status_of(tensor = kn_load_idx(path));
    *version = status == KN_OK ? ((const uint8_t *)kn_data(tensor))[2] : 0;
    return status;
}

static kn_status save_idx(const char *path, int version)
{
    const char content[] = {0, 0, 8, 1, 0, 0, 0, 3, 7, 7, (char)version};
    kn_atomic_file file;
    kn_status status = kn_file_begin(&file, path);
    if (status == KN_OK)
        status = kn_file_write(&file, content, sizeof content);
    return kn_file_end(&file, status);
}

static kn_status save_tensors(const char *path, int version)
{
    kn_tensor_file *file = kn_tensor_file_new();
    kn_status status = kn_tensor_file_put(file, "x", host_tensor(version));
    if (status == KN_OK)
        status = kn_save_safetensors(path, file);
    kn_tensor_file_free(file);
    return status;
}

static kn_status load_tensors(const char *path, int *version)
{
    kn_tensor_file *file = NULL;
    kn_status status = kn_status_of(file = kn_load_safetensors(path));
    *version = status == KN_OK ? (int)((const float *)kn_data(kn_tensor_file_get(file, "x")))[0] : 0;
    kn_tensor_file_free(file);
    return status;
}

static kn_tensor *first_parameter(void) { return kn_module_parameters(one.net).tensors[0]; }

static kn_status fill_parameter(int value)
{
    KN_NO_GRAD;
    return kn_fill_(first_parameter(), value) ? KN_OK : kn_error_status();
}

static kn_status save_module(const char *path, int version)
{
    CHECK_OK(fill_parameter(version));
    return kn_module_save(one.net, path);
}

static kn_status load_module(const char *path, int *version)
{
    CHECK_OK(fill_parameter(0));
    kn_status status = kn_module_load(one.net, path);
    kn_status asked = version_of(KN_OK, first_parameter(), version);
    if (asked != KN_OK || (status != KN_OK && *version != 0))
        fail_msg("a module is changed by what could not be loaded");
    return status;
}

static kn_status save_optim(const char *path, int version)
{
    kn_optim_set_lr(one.optim, version);
    return kn_optim_save(one.optim, path);
}

static kn_status load_optim(const char *path, int *version)
{
    kn_optim_set_lr(one.optim, 7);
    kn_status status = kn_optim_load(one.optim, path);
    *version = (int)kn_optim_lr(one.optim);
    if (status != KN_OK && *version != 7)
        fail_msg("an optimizer is changed by what could not be loaded");
    return status;
}

static void history_of(kn_history *history, int version)
{
    const double row[] = {1, version, 0.1};
    *history = (kn_history){0};
    CHECK_OK(kn_history_start(history, NULL, 0, false, false));
    CHECK_OK(kn_history_append(history, row));
}

static kn_status save_csv(const char *path, int version)
{
    kn_history history;
    history_of(&history, version);
    kn_status status = kn_history_save_csv(&history, path);
    kn_history_clear(&history);
    return status;
}

static kn_status save_plot(const char *path, int version)
{
    kn_history history;
    history_of(&history, version);
    kn_status status = kn_history_save_plot(&history, path);
    kn_history_clear(&history);
    return status;
}

/* In the folder, not in the tests' cache. */
static kn_status store_result(const char *path, int version)
{
    char number[8];
    kn_tuning_result result = {0};
    (void)path;
    snprintf(number, sizeof number, "%d", version);
    kn_status status = kn_tuning_add(&result, number, 1, 1);
    result.question = kn_strdup("which?");
    if (status == KN_OK)
        status = kn_tuning_store(kn_device_current(), &result);
    kn_tuning_free(&result);
    return status;
}

/* In memory or, after kn_tuning_forget, on disk. */
static kn_status find_result(const char *path, int *version)
{
    kn_tuning_result result;
    const bool found = kn_tuning_find(&result, kn_device_current(), "which?");
    *version = found ? atoi(result.choice) : 0;
    kn_tuning_free(&result);
    (void)path;
    return found ? KN_OK : KN_ERR_IO; /* a query is not an error */
}

static kn_status import_result(const char *path, int *version)
{
    kn_tuning_forget();
    kn_status status = kn_tuning_import(kn_device_current(), path);
    *version = 0;
    return status == KN_OK ? find_result(path, version) : status;
}

static kn_status export_result(const char *path, int version)
{
    (void)version;
    return kn_tuning_export(kn_device_current(), path);
}

static const kind kinds[] = {
    {"array.npy", save_npy, load_npy},
    {"images.idx", save_idx, load_idx},
    {"tensors.safetensors", save_tensors, load_tensors},
    {"module.safetensors", save_module, load_module},
    {"optim.safetensors", save_optim, load_optim},
    {"history.csv", save_csv, NULL},
    {"history.svg", save_plot, NULL},
};

/* --- failing -------------------------------------------------------------------------------------------------- */

static char *content_of(const char *path, size_t *size)
{
    char *data = NULL;
    *size = 0;
    if (kn_file_exists(path))
        CHECK_OK(kn_file_read_all(&data, size, path, 1 << 24));
    return data;
}

static bool same(const char *a, size_t a_size, const char *b, size_t b_size)
{
    return a && b && a_size == b_size && memcmp(a, b, a_size) == 0;
}

/* The thread's error has the returned status and a message. */
static void check_slot(kn_status status, const char *file, long n)
{
    const char *message = kn_error_message();
    if (kn_error_status() != status || (status != KN_OK && strlen(message) < 10))
        fail_msg("%s, call %ld: %s is returned, but the error is %s: %s", file, n, kn_status_name(status),
                 kn_status_name(kn_error_status()), message);
    kn_error_clear();
}

static int remove_temporaries(void)
{
    DIR *list = opendir(folder);
    int count = 0;
    for (struct dirent *entry; list && (entry = readdir(list));)
        if (strncmp(entry->d_name, ".koine-tmp-", 11) == 0) {
            char *path = kn_path_join(folder, entry->d_name);
            count += unlink(path) == 0;
            kn_free(path);
        }
    closedir(list);
    return count;
}

/* Returns true if the n-th call was reached. */
static bool save_failing(const kind *k, const char *path, long n, int error, bool sticky, const char *old,
                         size_t old_size, const char *new, size_t new_size)
{
    KN_SCOPE;
    CHECK_OK(k->save(path, 1));
    kn_fail_io_after(n, error, sticky);
    kn_status status = k->save(path, 2);
    const bool reached = sticky ? kn_fail_io_left() <= 1 : kn_fail_io_left() == 0;
    kn_fail_io_after(0, 0, false);
    check_slot(status, k->file, n);
    size_t size;
    char *now = content_of(path, &size);
    if (status == KN_OK ? !same(now, size, new, new_size) : !same(now, size, old, old_size))
        fail_msg("%s, call %ld: after %s the file is not what it should be", k->file, n, kn_status_name(status));
    kn_free(now);
    /* A temporary file is left only if the failing call was its removal. */
    const int left = remove_temporaries();
    if (left > 0 && !sticky && status == KN_OK)
        fail_msg("%s, call %ld: a temporary is left after success", k->file, n);
    return reached;
}

static void fail_each_save(const kind *k, const char *path, int error, bool sticky)
{
    size_t old_size, new_size;
    CHECK_OK(k->save(path, 2));
    char *new = content_of(path, &new_size);
    CHECK_OK(k->save(path, 1));
    char *old = content_of(path, &old_size);
    assert_false(same(old, old_size, new, new_size));
    long n = 1;
    while (save_failing(k, path, n, error, sticky, old, old_size, new, new_size))
        assert_true(++n < 200);
    assert_true(n > 5); /* open, lock, write, sync, rename at least */
    kn_free(old);
    kn_free(new);
}

static void fail_each_load(const kind *k, const char *path)
{
    CHECK_OK(k->save(path, 2));
    bool reached = true;
    for (long n = 1; reached; n++) {
        KN_SCOPE;
        int version = 0;
        kn_fail_io_after(n, EIO, false);
        kn_status status = k->load(path, &version);
        reached = kn_fail_io_left() == 0;
        kn_fail_io_after(0, 0, false);
        check_slot(status, k->file, n);
        if (status == KN_OK)
            assert_int_equal(version, 2);
        assert_true(status == KN_OK || reached);
        assert_true(n < 200);
    }
}

/* A fake gnuplot that finishes immediately. */
static void fake_gnuplot(void)
{
    char line[3 * 4096], path[8192];
    snprintf(line, sizeof line, "printf '#!/bin/sh\\nexec cat\\n' >'%s/gnuplot' && chmod +x '%s/gnuplot'", folder,
             folder);
    assert_int_equal(system(line), 0);
    snprintf(path, sizeof path, "%s:%.3000s", folder, getenv("PATH"));
    setenv("PATH", path, 1);
}

static void prepare(const char *name)
{
    snprintf(folder, sizeof folder, "%s", case_folder(name));
    one = case_make(3, 0.05);
    CHECK_OK(kn_optim_load(one.optim, "/nonexistent") == KN_OK ? KN_ERR_STATE : KN_OK);
    kn_error_clear();
}

TENSOR_TEST(saving_fails_in_words_and_damages_nothing)
{
    prepare("faults-saving");
    fake_gnuplot();
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        char *path = kn_path_join(folder, kinds[i].file);
        fail_each_save(&kinds[i], path, EIO, false);
        fail_each_save(&kinds[i], path, ENOSPC, true); /* and all later calls */
        kn_free(path);
    }
    case_free(&one);
}

TENSOR_TEST(loading_fails_in_words_and_changes_nothing)
{
    prepare("faults-loading");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        char *path = kn_path_join(folder, kinds[i].file);
        if (kinds[i].load)
            fail_each_load(&kinds[i], path);
        kn_free(path);
    }
    case_free(&one);
}

/* --- the cache ------------------------------------------------------------------------------------------------ */

TENSOR_TEST(tuning_results_survive)
{
    prepare("faults-tuning");
    char *kernels = kn_strdup(getenv("KOINE_CACHE_DIR") ? getenv("KOINE_CACHE_DIR") : "");
    CHECK_TENSOR(kn_device_current());
    setenv("KOINE_CACHE_DIR", folder, 1);
    kn_tuning_forget();
    char *path = kn_path_join(folder, "shared.json");
    const kind shared = {"shared.json", export_result, import_result};
    bool reached = true;
    for (long n = 1; reached; n++) {
        int version;
        CHECK_OK(store_result(NULL, 1));
        kn_fail_io_after(n, EIO, false);
        kn_status status = store_result(NULL, 2);
        reached = kn_fail_io_left() == 0;
        kn_fail_io_after(0, 0, false);
        check_slot(status, "tuning", n);
        kn_tuning_forget();
        CHECK_OK(find_result(NULL, &version));
        assert_int_equal(version, status == KN_OK ? 2 : 1);
    }
    reached = true;
    for (long n = 1; reached; n++) { /* a query without an answer is not an error */
        int version;
        kn_tuning_forget();
        kn_fail_io_after(n, EIO, false);
        kn_status status = find_result(NULL, &version);
        reached = kn_fail_io_left() == 0;
        kn_fail_io_after(0, 0, false);
        assert_int_equal(kn_error_status(), KN_OK);
        assert_true(status == KN_OK ? version == 2 : reached);
        kn_error_clear();
    }
    kn_tuning_forget();
    fail_each_load(&shared, path);
    setenv("KOINE_CACHE_DIR", kernels, 1);
    kn_tuning_forget();
    kn_free(kernels);
    kn_free(path);
    case_free(&one);
}

/* A program is recompiled if necessary: never an error, never a wrong program. */
TENSOR_TEST(compiled_programs_are_the_right_ones_or_none)
{
    prepare("faults-programs");
    char *kernels = kn_strdup(getenv("KOINE_CACHE_DIR") ? getenv("KOINE_CACHE_DIR") : "");
    setenv("KOINE_CACHE_DIR", folder, 1);
    static const char key[] = "0123456789abcdef0123456789abcdef";
    static const unsigned char binary[5000] = "what a driver made of a source";
    size_t size = 0;
    bool reached = true;
    for (long n = 1; reached; n++) {
        kn_fail_io_after(n, EIO, false);
        kn_program_cache_store(key, binary, sizeof binary);
        reached = kn_fail_io_left() == 0;
        kn_fail_io_after(0, 0, false);
        check_slot(KN_OK, "program", n);
        unsigned char *loaded = kn_program_cache_load(key, &size);
        assert_true(!loaded || (size == sizeof binary && memcmp(loaded, binary, size) == 0));
        kn_free(loaded);
        check_slot(KN_OK, "program", n);
    }
    reached = true;
    for (long n = 1; reached; n++) {
        kn_program_cache_store(key, binary, sizeof binary);
        kn_fail_io_after(n, EIO, false);
        unsigned char *loaded = kn_program_cache_load(key, &size);
        reached = kn_fail_io_left() == 0;
        kn_fail_io_after(0, 0, false);
        assert_true(loaded ? size == sizeof binary && memcmp(loaded, binary, size) == 0 : reached);
        kn_free(loaded);
        check_slot(KN_OK, "program", n);
    }
    setenv("KOINE_CACHE_DIR", kernels, 1);
    kn_free(kernels);
    case_free(&one);
}

/* --- a whole training ----------------------------------------------------------------------------------------- */

static kn_status fit(trainer_case *c, int epochs, bool resume)
{
    kn_trainer_free(c->trainer);
    c->trainer = NULL;
    c->trainer = kn_trainer_new(.module = c->net, .optim = c->optim, .epochs = epochs, .monitor = "val_acc",
                                .mode = KN_MONITOR_MAX, .output = folder, .resume = resume, .quiet = true);
    return c->trainer != NULL ? kn_trainer_fit(c->trainer, c->train, c->test) : kn_error_status();
}

/* The files of the first epoch stay intact and can be resumed from, and the files that the trainer lists exist. */
TENSOR_TEST(a_training_goes_on_from_whatever_failed)
{
    prepare("faults-training");
    fake_gnuplot();
    case_free(&one);
    trainer_case c = case_make(5, 0.05);
    CHECK_OK(fit(&c, 1, false));
    bool reached = true;
    int n = 1;
    for (; reached; n += 3) { /* covers every kind of call */
        kn_fail_io_after(n, ENOSPC, false);
        kn_status status = fit(&c, 2, true);
        reached = kn_fail_io_left() == 0;
        kn_fail_io_after(0, 0, false);
        check_slot(status, "fit", n);
        const char *names = kn_trainer_files(c.trainer);
        for (const char *const *name = (const char *const[]){"history.csv", "history.svg", NULL}; *name; name++) {
            char *path = kn_path_join(folder, *name);
            assert_true(!strstr(names, *name) || kn_file_exists(path));
            kn_free(path);
        }
        assert_true(status != KN_OK || strstr(names, "history.csv"));
        remove_temporaries();
        kn_tensor_file *file = NULL;
        char *last = kn_path_join(folder, "last.safetensors");
        CHECK_NEW(file = kn_load_safetensors(last));
        kn_tensor_file_free(file);
        unlink(last);
        kn_free(last);
        CHECK_OK(fit(&c, 1, false)); /* back to one epoch */
    }
    assert_true(n > 40);
    case_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(saving_fails_in_words_and_damages_nothing),
        TEST(loading_fails_in_words_and_changes_nothing),
        TEST(tuning_results_survive),
        TEST(compiled_programs_are_the_right_ones_or_none),
        TEST(a_training_goes_on_from_whatever_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
