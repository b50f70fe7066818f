/* Private pools: which allocations use them, the fate of their memory, nesting, threads, redirected streams. */
#include "rt/rt_test.h"

#include "base/threads.h"
#include "rt/command/transfer.h"
#include "rt/memory/pool.h"

#define MIB ((size_t)1 << 20)

static kn_stream *stream(void) { return kn_stream_default(test_device()); }

static kn_buffer *new_buffer(size_t bytes)
{
    kn_buffer *buffer = NULL;
    assert_ok(kn_buffer_alloc(&buffer, stream(), bytes));
    return buffer;
}

static kn_mem_pool *new_pool(void)
{
    kn_mem_pool *pool = kn_mem_pool_new(test_device());
    assert_new(pool);
    return pool;
}

static int empty(void **state)
{
    (void)state;
    assert_ok(kn_empty_cache(test_device()));
    assert_int_equal(kn_memory_reserved(test_device()), 0);
    return 0;
}

static void blocks_serve_their_pool_only(void **state)
{
    (void)state;
    kn_mem_pool *pool = new_pool();
    kn_buffer *inside = NULL, *outside;
    {
        KN_MEM_POOL(pool);
        inside = new_buffer(1000);
    }
    assert_true(kn_buffer_in_pool(inside, pool));
    kn_buffer_free(inside);
    outside = new_buffer(1000);
    assert_true(kn_buffer_in_pool(outside, NULL));
    assert_int_equal(kn_memory_reserved(test_device()), 4 * MIB);
    {
        KN_MEM_POOL(pool);
        kn_buffer *again = new_buffer(900);
        assert_ptr_equal(again, inside); /* the pool's freed block */
        kn_buffer_free(again);
    }
    assert_int_equal(kn_memory_reserved(test_device()), 4 * MIB);
    kn_buffer_free(outside);
    kn_mem_pool_free(pool);
}

static void its_memory_stays_while_it_lives_and_joins_the_others_after(void **state)
{
    (void)state;
    kn_device *device = test_device();
    kn_mem_pool *pool = new_pool();
    kn_buffer *kept = NULL, *freed = NULL;
    {
        KN_MEM_POOL(pool);
        kept = new_buffer(3 * MIB);
        freed = new_buffer(18 * MIB);
    }
    kn_buffer_free(freed);
    assert_ok(kn_empty_cache(device));
    assert_int_equal(kn_memory_reserved(device), 38 * MIB);
    kn_mem_pool_free(pool);
    assert_true(kn_buffer_in_pool(kept, NULL));
    float value = 3, read = 0;
    assert_ok(kn_buffer_write(stream(), kept, 0, &value, sizeof value)); /* still valid */
    assert_ok(kn_buffer_read(stream(), kept, 0, &read, sizeof read));
    assert_true(read == 3);
    kn_buffer *reused = new_buffer(18 * MIB);
    assert_int_equal(kn_memory_reserved(device), 38 * MIB);
    kn_buffer_free(reused);
    assert_ok(kn_empty_cache(device));
    assert_int_equal(kn_memory_reserved(device), 20 * MIB);
    kn_buffer_free(kept);
}

static void blocks_nest_and_end_when_left(void **state)
{
    (void)state;
    kn_mem_pool *outer = new_pool(), *inner = new_pool();
    kn_buffer *buffers[4] = {NULL};
    {
        KN_MEM_POOL(outer);
        buffers[0] = new_buffer(1);
        for (int i = 0; i < 2; i++) {
            KN_MEM_POOL(inner);
            buffers[1] = new_buffer(1);
            break; /* leaves the loop and the pool */
        }
        buffers[2] = new_buffer(1);
        kn_mem_pool_free(outer); /* destroyed when the block ends */
        assert_true(kn_buffer_in_pool(buffers[2], outer));
    }
    buffers[3] = new_buffer(1);
    assert_true(kn_buffer_in_pool(buffers[0], NULL));
    assert_true(kn_buffer_in_pool(buffers[1], inner));
    assert_true(kn_buffer_in_pool(buffers[3], NULL));
    kn_mem_pool_free(inner);
    for (int i = 0; i < 4; i++)
        kn_buffer_free(buffers[i]);
}

static void *allocate_elsewhere(void *out)
{
    *(kn_buffer **)out = new_buffer(1);
    return NULL;
}

static kn_buffer *buffer_of_another_thread(void)
{
    pthread_t thread;
    kn_buffer *buffer = NULL;
    assert_int_equal(pthread_create(&thread, NULL, allocate_elsewhere, &buffer), 0);
    pthread_join(thread, NULL);
    return buffer;
}

static void the_block_is_its_threads_the_redirection_is_everyones(void **state)
{
    (void)state;
    kn_mem_pool *mine = new_pool(), *streams = new_pool();
    kn_buffer *buffers[4] = {NULL};
    {
        KN_MEM_POOL(mine);
        buffers[0] = buffer_of_another_thread();
        kn_stream_redirect_allocations(stream(), streams);
        buffers[1] = buffer_of_another_thread();
        buffers[2] = new_buffer(1);
        kn_stream_redirect_allocations(stream(), NULL);
        buffers[3] = new_buffer(1);
    }
    kn_mem_pool *expected[4] = {NULL, streams, streams, mine};
    for (int i = 0; i < 4; i++) {
        assert_true(kn_buffer_in_pool(buffers[i], expected[i]));
        kn_buffer_free(buffers[i]);
    }
    kn_mem_pool_free(mine);
    kn_mem_pool_free(streams);
}

static void a_redirection_holds_its_pool_until_the_stream_goes(void **state)
{
    (void)state;
    kn_mem_pool *pool = new_pool();
    kn_stream *side;
    kn_buffer *buffer;
    assert_new(side = kn_stream_new(test_device()));
    kn_stream_redirect_allocations(side, pool);
    kn_mem_pool_free(pool);
    assert_ok(kn_buffer_alloc(&buffer, side, 100));
    assert_true(kn_buffer_in_pool(buffer, pool));
    assert_ok(kn_stream_free(side));
    assert_true(kn_buffer_in_pool(buffer, NULL));
    kn_buffer_free(buffer);
}

static void misuse_is_refused(void **state)
{
    (void)state;
    kn_mem_pool *pool = NULL;
    {
        KN_MEM_POOL(NULL);
        assert_null(kn_stream_current(test_device())); /* nothing can be done */
    }
    assert_non_null(kn_stream_current(test_device()));
    assert_message("KN_MEM_POOL");
    assert_int_equal(kn_status_of(pool = kn_mem_pool_new(kn_device_host())), KN_ERR_DEVICE);
    assert_message("the host has no memory pool");
    assert_int_equal(kn_status_of(pool = kn_mem_pool_new(NULL)), KN_ERR_ARGUMENT);
    assert_message("device");
    kn_mem_pool_free(NULL);
}

typedef struct flagged {
    kn_buffer_watcher watcher;
    int freed;
} flagged;

static void raise_flag(kn_buffer_watcher *watcher) { ((flagged *)watcher)->freed++; }

static void watchers_hear_of_the_free_once(void **state)
{
    (void)state;
    flagged a = {.watcher.freed = raise_flag}, b = a, unwatched = a;
    kn_buffer *buffer = new_buffer(64);
    assert_ok(kn_buffer_watch(buffer, &a.watcher));
    assert_ok(kn_buffer_watch(buffer, &unwatched.watcher));
    assert_ok(kn_buffer_watch(buffer, &b.watcher));
    assert_int_equal(kn_buffer_watch(buffer, &b.watcher), KN_ERR_STATE);
    assert_message("already watches");
    kn_buffer_unwatch(&unwatched.watcher);
    kn_buffer_free(buffer);
    kn_buffer *again = new_buffer(64); /* the same block, no longer watched */
    assert_ptr_equal(again, buffer);
    kn_buffer_free(again);
    assert_int_equal(a.freed, 1);
    assert_int_equal(b.freed, 1);
    assert_int_equal(unwatched.freed, 0);
    kn_buffer_unwatch(&a.watcher); /* too late: harmless */
    kn_buffer *other = new_buffer(64);
    assert_ok(kn_buffer_watch(other, &a.watcher)); /* and may watch again */
    kn_buffer_unwatch(&a.watcher);
    kn_buffer_unwatch(&a.watcher);
    kn_buffer_free(other);
    assert_int_equal(a.freed, 1);
}

#define POOL_TEST(function) cmocka_unit_test_setup_teardown(function, empty, empty)

int main(void)
{
    const struct CMUnitTest tests[] = {
        POOL_TEST(blocks_serve_their_pool_only),
        POOL_TEST(its_memory_stays_while_it_lives_and_joins_the_others_after),
        POOL_TEST(blocks_nest_and_end_when_left),
        POOL_TEST(the_block_is_its_threads_the_redirection_is_everyones),
        POOL_TEST(a_redirection_holds_its_pool_until_the_stream_goes),
        POOL_TEST(misuse_is_refused),
        POOL_TEST(watchers_hear_of_the_free_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
