/* test_trials.c - trials in a process of their own: what its end means, and that the answer is stored. */
#include "rt/rt_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "ops/dispatch/trial.h"
#include "rt/tuning/tuning.h"

static char folder[600];

/* A program in place of `koine`. */
static void set_program(const char *commands)
{
    char path[700];
    snprintf(path, sizeof path, "%s/program", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", commands);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0755), 0);
    setenv("KOINE_PROGRAM", path, 1);
}

static void ends_are_understood(void **state)
{
    (void)state;
    static const struct {
        const char *name, *commands;
        kn_verdict expected;
    } cases[] = {{"well", "exit 0", KN_WORKS},
                 {"badly", "exit 10", KN_FAILS},
                 {"crash", "kill -SEGV $$", KN_FAILS},
                 {"endless", "sleep 60", KN_FAILS},
                 {"memory", "exit 11", KN_UNDECIDED},
                 {"no device", "exit 1", KN_UNDECIDED},
                 {"arguments", "[ \"$1 $2 $3\" = \"--trial arguments $EXPECTED\" ]", KN_WORKS}};
    setenv("EXPECTED", kn_device_string(test_device()), 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        set_program(cases[i].commands);
        kn_trial_seconds = strcmp(cases[i].name, "endless") == 0 ? 0.2 : 60;
        assert_int_equal(kn_trial_elsewhere(test_device(), cases[i].name), cases[i].expected);
    }
    setenv("KOINE_PROGRAM", "/nonexistent/koine", 1);
    assert_int_equal(kn_trial_elsewhere(test_device(), "no program"), KN_UNDECIDED);
}

static void answers_are_kept(void **state)
{
    (void)state;
    set_program("exit 10");
    assert_int_equal(kn_trial_elsewhere(test_device(), "stored"), KN_FAILS);
    set_program("exit 0");
    kn_tuning_forget(); /* as in another process */
    assert_int_equal(kn_trial_elsewhere(test_device(), "stored"), KN_FAILS);
    assert_int_equal(kn_trial_elsewhere(test_device(), "another"), KN_WORKS);
    set_program("exit 1");
    assert_int_equal(kn_trial_elsewhere(test_device(), "undecided"), KN_UNDECIDED);
    set_program("exit 0");
    assert_int_equal(kn_trial_elsewhere(test_device(), "undecided"), KN_WORKS);
}

/* A device without tensor cores. */
static void the_program_tries(void **state)
{
    (void)state;
    if (kn_device_limits(test_device())->ptx_capability > 0)
        skip();
    setenv("KOINE_PROGRAM", KOINE_PROGRAM, 1);
    assert_int_equal(kn_trial_elsewhere(test_device(), "tensor-cores-tf32"), KN_FAILS);
    char command[1300]; /* it says so, instead of a crash, which would be the same answer */
    snprintf(command, sizeof command, "KOINE_LOG=off '%s' --trial tensor-cores-tf32 auto", KOINE_PROGRAM);
    assert_int_equal(system(command), KN_EXIT_FAILS << 8);
    assert_int_equal(kn_trial_elsewhere(test_device(), "nonsense"), KN_UNDECIDED);
}

int main(void)
{
    char command[1300];
    snprintf(folder, sizeof folder, "%s/tests/folders/trials", KOINE_BINARY_DIR);
    snprintf(command, sizeof command, "rm -rf '%s'; mkdir -p '%s'", folder, folder);
    if (system(command) != 0)
        return 1;
    setenv("KOINE_CACHE_DIR", folder, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_are_understood),
        cmocka_unit_test(answers_are_kept),
        cmocka_unit_test(the_program_tries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
