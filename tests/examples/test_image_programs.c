/* test_image_programs.c - train_images on a small folder of pictures, and classify with what it has written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/run_program.h"

#define PICTURES KOINE_BINARY_DIR "/tests/pictures"
#define RESULT KOINE_BINARY_DIR "/tests/pictures-result"
#define BRIEF "--data '" PICTURES "' --model lenet5 --size 32 --batch-size 4 --workers 1"

/* A picture of one color with a little noise. */
static void write_picture(const char *path, int red, int green, int blue, int seed)
{
    KN_SCOPE;
    kn_tensor *image = kn_empty(KN_SHAPE(3, 40, 36), .dtype = KN_U8, .device = kn_device_host());
    const int color[] = {red, green, blue};
    for (int i = 0; i < 3 * 1440; i++)
        ((uint8_t *)kn_data(image))[i] = (uint8_t)(color[i / 1440] + (i * 7 + seed * 13) % 20);
    assert_int_equal(strstr(path, ".png") ? kn_write_png(image, path) : kn_write_jpeg(image, path), KN_OK);
}

/* train and val, each with two classes. */
static int make_pictures(void **state)
{
    (void)state;
    run_result r = run_shell("rm -rf '" PICTURES "' '" RESULT "' && mkdir -p '" PICTURES "'/train/green '" PICTURES
                             "'/train/red '" PICTURES "'/val/green '" PICTURES "'/val/red");
    assert_status(r, 0);
    run_free(&r);
    for (int i = 0; i < 12; i++) {
        const char *set = i < 8 ? "train" : "val";
        char path[4096];
        snprintf(path, sizeof path, PICTURES "/%s/red/%d.png", set, i);
        write_picture(path, 200, 30, 40, i);
        snprintf(path, sizeof path, PICTURES "/%s/green/%d.jpg", set, i);
        write_picture(path, 20, 180, 30, i);
    }
    return 0;
}

static int remove_pictures(void **state)
{
    (void)state;
    run_result r = run_shell("rm -rf '" PICTURES "' '" RESULT "'");
    run_free(&r);
    return 0;
}

static void trains_on_a_folder(void **state)
{
    (void)state;
    run_result r = run_shell(EXAMPLES "/train_images " BRIEF " --epochs 4 --lr 0.003 --out '" RESULT "'");
    assert_status(r, 0);
    assert_contains(r.output, "data: 16 pictures in 2 classes, 8 to test; RGB, 32 x 32\n");
    assert_contains(r.output, "network: lenet5, ");
    assert_contains(r.output, "epoch  train_loss  train_acc");
    assert_contains(r.output, "accuracy 1.0000\n");
    assert_contains(r.output, "model.safetensors, ");
    assert_contains(r.errors, "epoch 4/4");
    run_free(&r);
}

static void classifies_in_several_threads(void **state)
{
    (void)state;
    run_result r = run_shell("cd '" PICTURES "/val' && " EXAMPLES "/classify --model '" RESULT
                             "/model.safetensors' --threads 3 red/8.png green/8.jpg red/9.png green/9.jpg");
    assert_status(r, 0);
    const char *order[] = {"red/8.png\n", "  red\n", "green/8.jpg\n", "  green\n",
                           "red/9.png\n", "  red\n", "green/9.jpg\n", "  green\n"};
    const char *at = r.output;
    for (int i = 0; i < 8; i++) {
        at = strstr(at, order[i]);
        if (!at)
            fail_msg("expected \"%s\" in:\n%s", order[i], r.output);
    }
    run_free(&r);
}

/* The file's names of classes, of which one is changed to an escape. */
static void names_do_not_command_the_terminal(void **state)
{
    (void)state;
    run_result r = run_shell("cd '" PICTURES "' && sed 's/green\\\\u000ared/\\\\u001b\\\\u000are/' '" RESULT
                             "/model.safetensors' > escape.safetensors && " EXAMPLES
                             "/classify --model escape.safetensors val/green/8.jpg");
    assert_status(r, 0);
    assert_contains(r.output, " %  ?\n");
    assert_lacks(r.output, "\033");
    run_free(&r);
}

static void pictures_that_cannot_be_read_are_named(void **state)
{
    (void)state;
    put_file(PICTURES, "broken.png", "no picture");
    run_result r = run_shell("cd '" PICTURES "' && " EXAMPLES "/classify --model '" RESULT
                             "/model.safetensors' --top 1 broken.png val/red/8.png absent.jpg");
    assert_status(r, 1);
    assert_contains(r.errors, "classify: 'broken.png': neither a PNG nor a JPEG file");
    assert_contains(r.errors, "absent.jpg");
    assert_contains(r.output, "val/red/8.png\n");
    assert_lacks(r.output, "green");
    run_free(&r);
}

static void mixes_and_augments(void **state)
{
    (void)state;
    run_result r =
        run_shell(EXAMPLES "/train_images " BRIEF " --epochs 1 --augment trivial --mixup 0.2 --cutmix 1 --out '"
                           "%s'",
                  fresh_folder("mixed-pictures"));
    assert_status(r, 0);
    assert_contains(r.output, "epoch  train_loss  val_loss        lr\n");
    assert_contains(r.output, "best epoch 1: accuracy ");
    run_free(&r);
}

static void expect_error(const char *arguments, int status, const char *reason)
{
    run_result r = run_shell(EXAMPLES "/%s", arguments);
    assert_status(r, status);
    assert_contains(r.errors, reason);
    run_free(&r);
}

static void wrong_arguments_are_explained(void **state)
{
    (void)state;
    expect_error("train_images --augment wild", 2, "--augment needs none, basic or trivial, not \"wild\"");
    expect_error("train_images --precision f8", 2, "--precision needs f32, f16 or bf16, not \"f8\"");
    expect_error("train_images --data /usr", 1, "'/usr' holds neither MNIST nor CIFAR, nor the folders train and val");
    expect_error("train_images " BRIEF " --model resnet19", 1, "resnet18");
    expect_error("train_images picture.png", 2, "there is no option \"picture.png\"");
    expect_error("classify", 2, "which pictures?");
    expect_error("classify --model /nowhere a.png", 1, "/nowhere");
    run_result r = run_shell(EXAMPLES "/classify --help");
    assert_status(r, 0);
    assert_contains(r.output, "usage: classify [options] IMAGE...\n");
    run_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trains_on_a_folder),
        cmocka_unit_test(classifies_in_several_threads),
        cmocka_unit_test(names_do_not_command_the_terminal),
        cmocka_unit_test(pictures_that_cannot_be_read_are_named),
        cmocka_unit_test(mixes_and_augments),
        cmocka_unit_test(wrong_arguments_are_explained),
    };
    return cmocka_run_group_tests(tests, make_pictures, remove_pictures);
}
