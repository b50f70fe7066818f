/* test_trainer_files.c - the trainer's files, resuming from them, unwritable output folders, and that only one fit at a
 * time writes to a folder. */
#include "trainer_case.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"

static kn_status fit_into(trainer_case *c, const char *folder, int epochs, bool resume)
{
    CHECK_NEW(c->trainer = kn_trainer_new(.module = c->net, .optim = c->optim, .epochs = epochs, .monitor = "val_acc",
                                          .mode = KN_MONITOR_MAX, .output = folder, .resume = resume, .quiet = true));
    return kn_trainer_fit(c->trainer, c->train, c->test);
}

TENSOR_TEST(the_files_are_what_they_should_be)
{
    char folder[4096];
    snprintf(folder, sizeof folder, "%s/made/on/the/way", case_folder("files"));
    trainer_case c = case_make(0, 0.05), other = case_make(9, 0.05);
    CHECK_OK(fit_into(&c, folder, 3, false));
    size_t size;
    char *csv = case_file(folder, "history.csv", &size);
    assert_non_null(csv);
    assert_int_equal(strncmp(csv, "epoch,train_loss,train_acc,val_loss,val_acc,lr\n1,", 49), 0);
    kn_free(csv);
    /* The checkpoint is the best module, with PyTorch's names. */
    char path[4200];
    snprintf(path, sizeof path, "%s/checkpoint.safetensors", folder);
    CHECK_OK(kn_module_load(other.net, path));
    assert_true(case_same_weights(c.net, other.net));
    kn_tensor_file *file = kn_load_safetensors(path);
    CHECK_NEW(file);
    char best[16];
    snprintf(best, sizeof best, "%d", kn_trainer_best_epoch(c.trainer));
    assert_string_equal(kn_tensor_file_metadata(file, "epoch"), best);
    CHECK_TENSOR(kn_tensor_file_metadata(file, "val_acc"));
    kn_tensor_file_free(file);
    const char *all = "history.csv, checkpoint.safetensors, last.safetensors, history.svg";
    if (system("gnuplot --version >/dev/null 2>&1") == 0) {
        char *plot = case_file(folder, "history.svg", &size);
        assert_non_null(plot);
        kn_free(plot);
        assert_string_equal(kn_trainer_files(c.trainer), all);
    }
    case_free(&c);
    case_free(&other);
}

/* Only existing files are listed: no plot without gnuplot. */
TENSOR_TEST(only_what_was_written_is_named)
{
    char before[8192];
    snprintf(before, sizeof before, "%s", getenv("PATH"));
    trainer_case c = case_make(0, 0.05);
    setenv("PATH", "/nonexistent", 1);
    CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 1, .quiet = true));
    CHECK_OK(kn_trainer_fit(c.trainer, c.train, c.test));
    assert_string_equal(kn_trainer_files(c.trainer), "");
    kn_trainer_free(c.trainer);
    setenv("PATH", before, 1);
    const char *folder = case_folder("named");
    setenv("PATH", "/nonexistent", 1);
    CHECK_OK(fit_into(&c, folder, 1, false));
    assert_string_equal(kn_trainer_files(c.trainer), "history.csv, checkpoint.safetensors, last.safetensors");
    setenv("PATH", before, 1);
    assert_int_equal(kn_error_status(), KN_OK);
    case_free(&c);
}

/* --- resuming -------------------------------------------------------------------------------------------------- */

TENSOR_TEST(a_resumed_run_gives_the_bits_of_an_unbroken_one)
{
    char whole[4096], broken[4096];
    snprintf(whole, sizeof whole, "%s", case_folder("whole"));
    snprintf(broken, sizeof broken, "%s", case_folder("broken"));
    trainer_case a = case_make(4, 0.05);
    CHECK_OK(fit_into(&a, whole, 5, false));
    trainer_case b = case_make(4, 0.05);
    CHECK_OK(fit_into(&b, broken, 2, false));
    case_free(&b);
    /* As in a new process: another seed, another learning rate. */
    b = case_make(77, 0.5);
    CHECK_OK(fit_into(&b, broken, 5, true));
    case_same_file(whole, broken, "history.csv");
    case_same_file(whole, broken, "checkpoint.safetensors");
    case_same_file(whole, broken, "last.safetensors");
    assert_true(case_same_weights(a.net, b.net));
    assert_int_equal(kn_trainer_best_epoch(a.trainer), kn_trainer_best_epoch(b.trainer));
    case_free(&a);
    case_free(&b);
}

TENSOR_TEST(resuming_a_finished_run_gives_its_best_weights)
{
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", case_folder("finished"));
    trainer_case a = case_make(4, 0.05);
    CHECK_OK(fit_into(&a, folder, 3, false));
    trainer_case b = case_make(5, 0.05);
    CHECK_OK(fit_into(&b, folder, 3, true));
    assert_true(case_same_weights(a.net, b.net));
    assert_int_equal(kn_history_epochs(kn_trainer_history(b.trainer)), 3);
    case_free(&a);
    case_free(&b);
}

TENSOR_TEST(nothing_to_resume_from_is_a_fresh_start)
{
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", case_folder("fresh"));
    trainer_case c = case_make(4, 0.05);
    CHECK_OK(fit_into(&c, folder, 1, true));
    assert_int_equal(kn_history_epochs(kn_trainer_history(c.trainer)), 1);
    case_free(&c);
}

TENSOR_TEST(what_does_not_fit_is_not_resumed_from)
{
    char folder[4096], path[4200];
    snprintf(folder, sizeof folder, "%s", case_folder("unlike"));
    trainer_case c = case_make(4, 0.05);
    CHECK_OK(fit_into(&c, folder, 1, false));
    kn_trainer_free(c.trainer);
    CHECK_NEW(c.trainer =
                  kn_trainer_new(.module = c.net, .optim = c.optim, .output = folder, .resume = true, .quiet = true));
    assert_int_equal(kn_trainer_fit(c.trainer, c.train, c.test), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "val_acc (max)", "val_loss (min)");
    kn_error_clear();

    /* A module's file, and a truncated file. */
    snprintf(path, sizeof path, "%s/last.safetensors", folder);
    CHECK_OK(kn_module_save(c.net, path));
    assert_int_equal(kn_trainer_fit(c.trainer, c.train, c.test), KN_ERR_FORMAT);
    CHECK_ERROR(KN_ERR_FORMAT, "last.safetensors", "training state");
    kn_error_clear();
    assert_int_equal(truncate(path, 100), 0);
    assert_int_equal(kn_trainer_fit(c.trainer, c.train, c.test), KN_ERR_FORMAT);
    CHECK_ERROR(KN_ERR_FORMAT, "last.safetensors");
    kn_error_clear();
    case_free(&c);
}

/* --- unwritable folders ---------------------------------------------------------------------------- */

TENSOR_TEST(a_folder_that_cannot_be_made_is_found_out_at_once)
{
    char folder[4096];
    snprintf(folder, sizeof folder, "%s/file/out", case_folder("nofolder"));
    char *file = strdup(folder);
    *strrchr(file, '/') = '\0';
    fclose(fopen(file, "w"));
    trainer_case c = case_make(0, 0.05);
    assert_int_equal(fit_into(&c, folder, 2, false), KN_ERR_IO);
    CHECK_ERROR(KN_ERR_IO, "file");
    assert_int_equal(kn_history_epochs(kn_trainer_history(c.trainer)), 0);
    kn_error_clear();
    free(file);
    case_free(&c);
}

TENSOR_TEST(a_read_only_folder_is_found_out_at_once)
{
    /* Root may write to any folder except the kernel's. */
    const char *folder = geteuid() == 0 ? "/proc/self" : case_folder("readonly");
    if (geteuid() != 0)
        chmod(folder, 0555);
    trainer_case c = case_make(0, 0.05);
    assert_int_equal(fit_into(&c, folder, 2, false), KN_ERR_IO);
    CHECK_ERROR(KN_ERR_IO, "history.csv");
    assert_int_equal(kn_history_epochs(kn_trainer_history(c.trainer)), 0);
    kn_error_clear();
    case_free(&c);
}

static kn_status shrink_disk(kn_trainer *trainer, int epoch, void *user)
{
    (void)trainer;
    struct rlimit *limit = user;
    if (epoch == 3) {
        struct rlimit small = {512, limit->rlim_max};
        setrlimit(RLIMIT_FSIZE, &small);
    }
    return KN_OK;
}

/* Files may grow to 512 bytes only from the third epoch on: a full disk. Earlier files are unchanged. */
TENSOR_TEST(a_full_folder_ends_the_fit_and_loses_nothing)
{
    char folder[4096], reference[4096];
    snprintf(folder, sizeof folder, "%s", case_folder("full"));
    snprintf(reference, sizeof reference, "%s", case_folder("full-reference"));
    trainer_case r = case_make(4, 0.05);
    CHECK_OK(fit_into(&r, reference, 2, false));
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, SIG_IGN);
    trainer_case c = case_make(4, 0.05);
    CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 5, .monitor = "val_acc",
                                         .mode = KN_MONITOR_MAX, .output = folder, .quiet = true));
    CHECK_OK(kn_trainer_add_callback(c.trainer, &(kn_callback){.on_epoch_start = shrink_disk, .user = &limit}));
    kn_status status = kn_trainer_fit(c.trainer, c.train, c.test);
    setrlimit(RLIMIT_FSIZE, &limit);
    assert_int_equal(status, KN_ERR_IO);
    CHECK_ERROR(KN_ERR_IO, folder, "safetensors");
    case_same_file(folder, reference, "last.safetensors");
    case_same_file(folder, reference, "checkpoint.safetensors");
    char command[8200];
    snprintf(command, sizeof command, "test $(ls -A '%s' | wc -l) -le 4", folder); /* no temporary files are left */
    assert_int_equal(system(command), 0);
    kn_error_clear();
    case_free(&c);
    case_free(&r);
}

/* --- existing files are not overwritten -------------------------------------------------------------------------- */

TENSOR_TEST(only_what_is_not_there_is_begun_anew)
{
    static const char *const targets[] = {"nowhere", "last.safetensors"}; /* a dangling link, and one to itself */
    for (int i = 0; i < 2; i++) {
        char folder[4096], link[4200];
        struct stat info;
        snprintf(folder, sizeof folder, "%s", case_folder("links"));
        snprintf(link, sizeof link, "%s/last.safetensors", folder);
        assert_int_equal(symlink(targets[i], link), 0);
        trainer_case c = case_make(3, 0.05);
        assert_int_equal(fit_into(&c, folder, 1, true), KN_ERR_IO);
        CHECK_ERROR(KN_ERR_IO, "last.safetensors");
        assert_int_equal(lstat(link, &info), 0);
        assert_true(S_ISLNK(info.st_mode));
        size_t size;
        assert_null(case_file(folder, "history.csv", &size));
        kn_error_clear();
        case_free(&c);
    }
}

/* Names that cannot be looked up: too long, below a file. */
TENSOR_TEST(a_name_that_cannot_be_looked_up_is_an_error)
{
    char name[400], path[8200];
    bool exists;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    const char *folder = case_folder("look");
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(kn_file_look_up(path, &exists), KN_ERR_IO);
    CHECK_ERROR(KN_ERR_IO, "look up");
    assert_int_equal(kn_file_look_up("/dev/null/file", &exists), KN_ERR_IO);
    kn_error_clear();
    snprintf(path, sizeof path, "%s/absent", folder);
    CHECK_OK(kn_file_look_up(path, &exists));
    assert_false(exists);
    CHECK_OK(kn_file_look_up(folder, &exists));
    assert_true(exists);
}

/* --- one at a time --------------------------------------------------------------------------------------------- */

typedef struct rival {
    trainer_case c;
    const char *folder;
    int tries;
} rival;

static kn_status try_as_well(kn_trainer *trainer, int epoch, const kn_history *history, void *user)
{
    (void)trainer, (void)epoch, (void)history;
    rival *r = user;
    r->tries++;
    assert_int_equal(kn_trainer_fit(r->c.trainer, r->c.train, r->c.test), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "another training run is writing to", r->folder);
    char command[4200];
    snprintf(command, sizeof command, "flock --nonblock '%s' true", r->folder); /* in another process */
    assert_int_equal(system(command), 1 << 8);
    return KN_OK;
}

TENSOR_TEST(one_fit_at_a_time_writes_into_a_folder)
{
    char folder[4096], alone[4096], command[8400];
    snprintf(folder, sizeof folder, "%s", case_folder("shared"));
    snprintf(alone, sizeof alone, "%s", case_folder("alone"));
    trainer_case reference = case_make(3, 0.05);
    CHECK_OK(fit_into(&reference, alone, 2, false));
    rival second = {.c = case_make(9, 0.1), .folder = folder};
    CHECK_NEW(second.c.trainer = kn_trainer_new(.module = second.c.net, .optim = second.c.optim, .epochs = 1,
                                                .output = folder, .quiet = true));
    trainer_case first = case_make(3, 0.05);
    CHECK_NEW(first.trainer = kn_trainer_new(.module = first.net, .optim = first.optim, .epochs = 2, .output = folder,
                                             .monitor = "val_acc", .mode = KN_MONITOR_MAX, .quiet = true));
    CHECK_OK(kn_trainer_add_callback(first.trainer, &(kn_callback){.on_epoch_end = try_as_well, .user = &second}));
    CHECK_OK(kn_trainer_fit(first.trainer, first.train, first.test));
    assert_int_equal(second.tries, 2);
    case_same_file(folder, alone, "last.safetensors");
    snprintf(command, sizeof command, "flock --nonblock '%s' true && ls -A '%s' | grep -c lock", folder, folder);
    assert_int_equal(system(command), 1 << 8); /* released, leaving no lock file */
    CHECK_OK(kn_trainer_fit(second.c.trainer, second.c.train, second.c.test));
    case_free(&second.c);
    case_free(&first);
    case_free(&reference);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_files_are_what_they_should_be),
        TEST(only_what_was_written_is_named),
        TEST(a_resumed_run_gives_the_bits_of_an_unbroken_one),
        TEST(resuming_a_finished_run_gives_its_best_weights),
        TEST(nothing_to_resume_from_is_a_fresh_start),
        TEST(what_does_not_fit_is_not_resumed_from),
        TEST(a_folder_that_cannot_be_made_is_found_out_at_once),
        TEST(a_read_only_folder_is_found_out_at_once),
        TEST(a_full_folder_ends_the_fit_and_loses_nothing),
        TEST(only_what_is_not_there_is_begun_anew),
        TEST(a_name_that_cannot_be_looked_up_is_an_error),
        TEST(one_fit_at_a_time_writes_into_a_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
