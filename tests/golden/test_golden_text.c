/* test_golden_text.c - printing as PyTorch does it. */
#include "support/check.h"

#include <stdlib.h>
#include <string.h>

#include "support/golden.h"

/* --- printing ---------------------------------------------------------------------------------------- */

static int check_text(const kn_tensor_file *file, const char *name)
{
    kn_tensor *tensor = kn_tensor_file_get(file, name);
    assert_non_null(tensor);
    if (strcmp(name, "requires_grad") == 0)
        CHECK_OK(kn_set_requires_grad(tensor, true));
    char *text = kn_to_string(tensor);
    const char *expected = kn_tensor_file_metadata(file, name);
    int failed = !text || strcmp(text, expected) != 0;
    if (failed)
        print_error("%s prints as\n%s\nand in PyTorch as\n%s\n", name, text ? text : kn_error_message(), expected);
    kn_free(text);
    return failed;
}

static void test_printing(void **state)
{
    (void)state;
    kn_tensor_file *file = golden_open("printing");
    assert_non_null(file);
    char *words = golden_words(file, "cases");
    int failed = 0;
    for (const char *word = words; *word; word = GOLDEN_NEXT(word))
        failed += check_text(file, word);
    free(words);
    kn_tensor_file_free(file);
    assert_int_equal(failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_printing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
