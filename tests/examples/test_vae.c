/* test_vae.c - the variational autoencoder: a short run that writes its pictures, and a folder that is not there. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/run_program.h"

#define DATA "/usr/share/datasets/fashion-mnist"

static void need_data(void)
{
    if (access(DATA "/train-images-idx3-ubyte.gz", R_OK) != 0 && access(DATA "/train-images-idx3-ubyte", R_OK) != 0)
        skip();
}

/* Of 16 columns and 6 rows of images of 28 pixels, 2 apart. */
static void assert_is_a_picture(const char *folder, int epoch)
{
    KN_SCOPE;
    char path[4096];
    snprintf(path, sizeof path, "%s/small-%d.png", folder, epoch);
    kn_tensor *picture = kn_read_image(path);
    assert_non_null(picture);
    assert_int_equal(kn_size(picture, 0), 3);
    assert_int_equal(kn_size(picture, 1), 6 * 30 + 2);
    assert_int_equal(kn_size(picture, 2), 16 * 30 + 2);
}

static void it_learns_and_draws(void **state)
{
    (void)state;
    need_data();
    char folder[4096];
    double first = 0, last = 0;
    snprintf(folder, sizeof folder, "%s", fresh_folder("vae"));
    run_result r = run_shell(EXAMPLES "/vae --epochs 2 --limit 256 --batch-size 32 --pictures '%s/small'", folder);
    assert_status(r, 0);
    const char *one = strstr(r.output, "epoch 1: loss "), *two = strstr(r.output, "epoch 2: loss ");
    assert_true(one && two && sscanf(one, "epoch 1: loss %lf", &first) == 1);
    assert_int_equal(sscanf(two, "epoch 2: loss %lf", &last), 1);
    assert_true(first < 600 && last < first); /* 784 ln 2 = 543 before the first step */
    assert_is_a_picture(folder, 1);
    assert_is_a_picture(folder, 2);
    run_free(&r);
}

static void pictures_need_a_folder(void **state)
{
    (void)state;
    need_data();
    run_result r = run_shell(EXAMPLES "/vae --epochs 1 --limit 16 --pictures /nowhere/vae");
    assert_status(r, 1);
    assert_contains(r.errors, "/nowhere/vae-1.png");
    run_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_learns_and_draws),
        cmocka_unit_test(pictures_need_a_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
