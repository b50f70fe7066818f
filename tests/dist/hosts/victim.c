/* victim.c - ranks that reduce, check every value and write checkpoints until they are done or a rank is lost:
 * victim FOLDER SECONDS COUNT, with COUNT float32 at a time. Each writes its process to FOLDER/rank.N. Ends with 0 when
 * done, with 3 when a rank was lost and named in time, with 1 for anything else: a wrong value, an error that names no
 * rank. */
#include <koine/koine.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOST_AFTER 3

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void write_process(const char *folder, int rank)
{
    char path[512], ready[512];
    snprintf(path, sizeof path, "%s/.rank.%d", folder, rank);
    snprintf(ready, sizeof ready, "%s/rank.%d", folder, rank);
    FILE *file = fopen(path, "w");
    if (!file)
        return;
    fprintf(file, "%ld\n", (long)getpid());
    fclose(file);
    rename(path, ready);
}

/* Rank r's values are r + i + call: their sum over the ranks is known. */
static bool reduce_once(kn_group *group, kn_tensor *x, int call, kn_status *status)
{
    float *values = kn_data(x);
    const int64_t count = kn_numel(x);
    const int size = kn_group_size(group), rank = kn_group_rank(group);
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)(rank + i % 100 + call % 100);
    *status = kn_group_all_reduce(group, x);
    for (int64_t i = 0; i < count && *status == KN_OK; i++)
        if (values[i] != (float)(size * (size - 1) / 2 + size * (i % 100 + call % 100)))
            return false;
    return true;
}

static int save(kn_group *group, kn_tensor *x, const char *folder)
{
    char path[512];
    if (kn_group_rank(group) != 0)
        return KN_OK;
    snprintf(path, sizeof path, "%s/checkpoint.npy", folder);
    return kn_save_npy(path, x);
}

int main(int argc, char **argv)
{
    kn_group *group = kn_group_open(.backend = "mpi", .lost_after = LOST_AFTER, .timeout = 30);
    if (argc < 4 || !group) {
        fprintf(stderr, "%s\n", argc < 4 ? "victim FOLDER SECONDS COUNT" : kn_error_message());
        return 2;
    }
    KN_SCOPE;
    kn_tensor *x = kn_zeros(KN_SHAPE(atoi(argv[3])), .device = kn_device_host());
    kn_status status = KN_OK;
    bool right = true, goes_on = true;
    write_process(argv[1], kn_group_rank(group));
    const double end = seconds() + atof(argv[2]);
    int call = 0;
    for (; goes_on && right && status == KN_OK; call++) {
        right = reduce_once(group, x, call, &status);
        if (right && status == KN_OK && call % 50 == 0)
            right = save(group, x, argv[1]) == KN_OK;
        if (call % 50 == 49 && status == KN_OK) { /* rank 0's clock decides */
            float *value = kn_data(x);
            value[0] = seconds() < end ? 1 : 0;
            status = kn_group_broadcast(group, x, 0);
            goes_on = value[0] > 0;
        }
    }
    const bool named = strstr(kn_error_message(), "rank ") != NULL;
    printf("rank %d after %d calls: %s\n", kn_group_rank(group), call,
           !right            ? "WRONG VALUES"
           : status == KN_OK ? "done"
                             : kn_error_message());
    fflush(stdout);
    kn_group_free(group);
    return !right ? 1 : status == KN_OK ? 0 : named ? 3 : 1;
}
