/* message_cases.c - messages between two ranks; every rank knows what it must get. */
#include <string.h>

#include "dist/group/group_cases.h"
#include "dist/group/rank_case.h"

static void passes_messages_around(state *s)
{
    if (s->size == 1)
        return;
    const int next = (s->rank + 1) % s->size, before = (s->rank + s->size - 1) % s->size;
    kn_tensor *x = kn_full(KN_SHAPE(4), s->rank, .dtype = KN_F32, .device = s->device);
    kn_tensor *y = view(kn_zeros(KN_SHAPE(2, 2), .dtype = KN_F32, .device = s->device), 2, 2, 1, 2, 0);
    int sender = -1;
    kn_work *work = NULL;
    if (s->rank == 0) { /* one rank receives after it has sent, the others before */
        EXPECT_OK(kn_group_send(s->group, x, next, .tag = 7));
        EXPECT_OK(kn_group_receive(s->group, y, KN_ANY_RANK, .tag = 7, .sender = &sender));
    } else {
        EXPECT_OK(kn_group_receive(s->group, y, before, .tag = 7, .sender = &sender, .work = &work));
        EXPECT_OK(kn_group_send(s->group, x, next, .tag = 7));
        EXPECT_OK(kn_work_wait(work));
        kn_work_free(work);
    }
    EXPECT(sender == before);
    EXPECT(value_at(y, 3) == before);
    if (s->rank == 0)
        EXPECT_OK(kn_group_send(s->group, kn_zeros(KN_SHAPE(2), .device = s->device), 1));
    if (s->rank == 1)
        EXPECT(kn_group_receive(s->group, y, 0) == KN_ERR_SHAPE && strstr(kn_error_message(), "rank 0 sent 8 bytes"));
}

#define LARGE (1 << 20) /* elements: more than MPI sends before they are received */

static kn_tensor *large(const state *s, double value)
{
    return kn_full(KN_SHAPE(LARGE), value, .dtype = KN_F32, .device = s->device);
}

static void finish(state *s, kn_work **work, int count)
{
    for (int i = 0; i < count; i++) {
        EXPECT_OK(kn_work_wait(work[i]));
        kn_work_free(work[i]);
    }
}

/* All ranks send before they receive, with a collective between, which nobody's message waits for. */
static void messages_of_all_ranks_at_once(state *s)
{
    if (s->size == 1)
        return;
    const int next = (s->rank + 1) % s->size, before = (s->rank + s->size - 1) % s->size;
    kn_tensor *sum = kn_ones(KN_SHAPE(3), .dtype = KN_F32, .device = s->device), *got[3];
    kn_work *work[6];
    for (int i = 0; i < 3; i++)
        EXPECT_OK(kn_group_send(s->group, large(s, 10 * s->rank + i), next, .tag = i / 2, .work = &work[i]));
    EXPECT_OK(kn_group_all_reduce(s->group, sum));
    EXPECT(value_at(sum, 2) == s->size);
    for (int i = 0; i < 3; i++) { /* the one with the other tag first */
        got[i] = large(s, -1);
        EXPECT_OK(
            kn_group_receive(s->group, got[i], i == 1 ? KN_ANY_RANK : before, .tag = i == 0, .work = &work[3 + i]));
    }
    finish(s, work + 3, 3);
    finish(s, work, 3);
    static const int order[] = {2, 0, 1};
    for (int i = 0; i < 3; i++)
        EXPECT(value_at(got[i], LARGE - 1) == 10 * before + order[i]);
}

/* Each of the first two has started a receive of what the other sends last. */
static void crosses_messages(state *s)
{
    const int other = 1 - s->rank;
    kn_tensor *last = large(s, -1), *first = large(s, -1);
    kn_work *work[2] = {NULL};
    EXPECT_OK(kn_group_receive(s->group, last, other, .tag = 3, .work = &work[0]));
    if (s->rank == 0)
        EXPECT_OK(kn_group_send(s->group, large(s, 5), 1, .tag = 4));
    else
        EXPECT_OK(kn_group_receive(s->group, first, 0, .tag = 4));
    EXPECT_OK(kn_group_send(s->group, large(s, 7 + s->rank), other, .tag = 3, .work = &work[1]));
    finish(s, work, 2);
    EXPECT(value_at(last, 0) == 7 + other);
}

static void a_receive_waits_for_no_other(state *s)
{
    if (s->size > 1 && s->rank < 2)
        crosses_messages(s);
    EXPECT_OK(kn_group_barrier(s->group)); /* nobody leaves before */
}

int message_cases(kn_group *group, kn_device *device)
{
    static const rank_case cases[] = {
        passes_messages_around,
        messages_of_all_ranks_at_once,
        a_receive_waits_for_no_other,
    };
    return run_cases(cases, sizeof cases / sizeof cases[0], group, device);
}
