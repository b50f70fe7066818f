/* support/parts.c - the main of a program made of several test files (koine_test in tests/CMakeLists.txt), whose
 * own mains run one after another, each with all arguments.
 *
 *     test_train [ARGUMENT...]                          all of them
 *     test_train [ARGUMENT...] test_metrics...          these */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef struct part {
    const char *name;
    int (*main)(int argc, char **argv);
} part;

/* TEST_PARTS: PART(test_a) PART(test_b) ... */
#define PART(name) int name##_main(int argc, char **argv);
TEST_PARTS
#undef PART

#define PART(name) {#name, name##_main},
static const part parts[] = {TEST_PARTS};
#define PARTS (sizeof parts / sizeof parts[0])

static bool is_named(const part *p, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], p->name) == 0)
            return true;
    return false;
}

int main(int argc, char **argv)
{
    bool some = false;
    int failed = 0;
    for (size_t i = 0; i < PARTS; i++)
        some = some || is_named(&parts[i], argc, argv);
    for (size_t i = 0; i < PARTS; i++) {
        if (some && !is_named(&parts[i], argc, argv))
            continue;
        printf("%s\n", parts[i].name);
        fflush(stdout);
        failed += parts[i].main(argc, argv) != 0;
    }
    return failed;
}
