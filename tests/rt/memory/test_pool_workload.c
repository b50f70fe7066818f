/* A seeded random workload: sizes log-uniform from a byte to 16 MiB, three streams, a private pool, blocks used by
 * other streams. After every step the blocks tile each segment without overlap, and all statistics agree with a walk
 * over the blocks. */
#include "rt/rt_test.h"

#include <math.h>

#include "rt/command/transfer.h"
#include "rt/memory/blocks.h"
#include "tensor/philox.h"

enum { LIVE = 96, STEPS = 3000, STREAMS = 3 };

typedef struct workload {
    kn_device *device;
    kn_stream *streams[STREAMS];
    kn_mem_pool *private_pool;
    struct {
        kn_buffer *buffer;
        size_t bytes;
        bool is_private;
    } live[LIVE];
} workload;

/* --- expected statistics ----------------------------------------------------------------- */

typedef struct counted {
    int64_t now[KN_POOL_STATS][KN_POOL_PARTS];
} counted;

static void count(counted *c, const kn_segment *segment, kn_pool_stat what, size_t bytes)
{
    kn_pool_part part = segment->small ? KN_PART_SMALL : KN_PART_LARGE;
    c->now[what][KN_PART_ALL]++;
    c->now[what][part]++;
    c->now[what + KN_STAT_BYTES][KN_PART_ALL] += (int64_t)bytes;
    c->now[what + KN_STAT_BYTES][part] += (int64_t)bytes;
}

static bool is_pending(const kn_pool *pool, const kn_buffer *block)
{
    for (const kn_buffer *pending = pool->pending; pending; pending = pending->next_pending)
        if (pending == block)
            return true;
    return false;
}

static void count_block(counted *c, kn_pool *pool, const kn_buffer *block)
{
    const kn_segment *segment = block->segment;
    if (block->is_free) {
        assert_false(block->after && block->after->is_free); /* neighbours merge */
        if (block->before || block->after)
            count(c, segment, KN_STAT_INACTIVE_SPLIT, block->size);
        return;
    }
    count(c, segment, KN_STAT_ACTIVE, block->size);
    c->now[KN_STAT_REQUESTED_BYTES][KN_PART_ALL] += (int64_t)block->requested;
    c->now[KN_STAT_REQUESTED_BYTES][segment->small ? KN_PART_SMALL : KN_PART_LARGE] += (int64_t)block->requested;
    if (!is_pending(pool, block))
        count(c, segment, KN_STAT_ALLOCATION, block->size);
}

static void check_pool(kn_device *device)
{
    counted c = {0};
    kn_pool *pool = device->pool;
    kn_lock(&pool->lock);
    for (const kn_segment *segment = pool->segments; segment; segment = segment->next) {
        size_t offset = 0;
        count(&c, segment, KN_STAT_SEGMENT, segment->size);
        for (const kn_buffer *block = segment->first; block; block = block->after) {
            assert_int_equal(block->offset, offset); /* no gap, no overlap */
            assert_int_equal(block->offset % KN_MIN_BLOCK, 0);
            assert_true(block->size > 0 && block->requested <= block->size);
            assert_true(!block->after || block->after->before == block);
            count_block(&c, pool, block);
            offset += block->size;
        }
        assert_int_equal(offset, segment->size);
    }
    kn_pool_figures figures = pool->figures;
    kn_unlock(&pool->lock);
    for (int stat = 0; stat < KN_POOL_STATS; stat++)
        for (int part = 0; part < KN_POOL_PARTS; part++) {
            const kn_statistic *figure = &figures.stats[stat][part];
            assert_int_equal(figure->current, c.now[stat][part]);
            assert_int_equal(figure->current, figure->allocated - figure->freed);
            assert_true(figure->peak >= figure->current);
        }
    const kn_statistic *segments = figures.stats[KN_STAT_SEGMENT];
    assert_int_equal(segments[KN_PART_ALL].current, figures.driver_allocations - figures.driver_frees);
}

/* --- the workload ----------------------------------------------------------------------------- */

static size_t log_uniform(uint32_t word) { return (size_t)exp2(24.0 * word / 4294967296.0); }

static void allocate(workload *w, int slot, const uint32_t *words)
{
    kn_stream *stream = w->streams[words[2] % STREAMS];
    size_t bytes = log_uniform(words[1]);
    bool is_private = words[3] % 8 == 0;
    kn_buffer *buffer = NULL;
    if (is_private) {
        KN_MEM_POOL(w->private_pool);
        assert_ok(kn_buffer_alloc(&buffer, stream, bytes));
    } else {
        assert_ok(kn_buffer_alloc(&buffer, stream, bytes));
    }
    assert_true(buffer->stream == stream && kn_buffer_size(buffer) == bytes && buffer->size >= bytes);
    assert_true(kn_buffer_in_pool(buffer, is_private ? w->private_pool : NULL));
    w->live[slot].buffer = buffer;
    w->live[slot].bytes = bytes;
    w->live[slot].is_private = is_private;
    if (words[3] % 4 == 1) /* another stream works on it */
        assert_ok(kn_buffer_fill(w->streams[words[3] / 4 % STREAMS], buffer, 0, "k", 1, bytes < 4096 ? bytes : 4096));
}

static void free_stream(kn_stream *stream)
{
    assert_ok(kn_stream_synchronize(stream));
    assert_ok(kn_stream_free(stream));
}

static void step(workload *w, int number)
{
    uint32_t words[4];
    kn_philox_block(words, 11, 0, (uint64_t)number);
    int slot = (int)(words[0] % LIVE);
    if (w->live[slot].buffer) {
        kn_buffer_free(w->live[slot].buffer);
        w->live[slot].buffer = NULL;
    } else {
        allocate(w, slot, words);
    }
    if (number % 500 == 499)
        assert_ok(kn_empty_cache(w->device));
    if (number % 700 == 699) { /* a stream is destroyed, its blocks stay */
        int which = 1 + number / 700 % (STREAMS - 1);
        free_stream(w->streams[which]);
        assert_new(w->streams[which] = kn_stream_new(w->device));
    }
    check_pool(w->device);
}

static void figures_and_places_hold_at_every_step(void **state)
{
    (void)state;
    workload w = {.device = test_device()};
    w.streams[0] = kn_stream_default(w.device);
    for (int i = 1; i < STREAMS; i++)
        assert_new(w.streams[i] = kn_stream_new(w.device));
    assert_new(w.private_pool = kn_mem_pool_new(w.device));
    for (int number = 0; number < STEPS; number++)
        step(&w, number);
    kn_mem_pool_free(w.private_pool);
    check_pool(w.device);
    for (int slot = 0; slot < LIVE; slot++)
        kn_buffer_free(w.live[slot].buffer);
    for (int i = 1; i < STREAMS; i++)
        free_stream(w.streams[i]);
    assert_ok(kn_empty_cache(w.device));
    check_pool(w.device);
    assert_int_equal(kn_memory_reserved(w.device), 0);
    assert_int_equal(kn_memory_allocated(w.device), 0);
}

/* Best fit, oldest first among equals: the same requests get the same positions. */
static void places_are_the_same_each_time(void **state)
{
    (void)state;
    enum { BUFFERS = 200 };
    static uint64_t places[2][BUFFERS];
    kn_device *device = test_device();
    for (int run = 0; run < 2; run++) {
        kn_buffer *buffers[BUFFERS];
        for (int i = 0; i < BUFFERS; i++) {
            uint32_t words[4];
            kn_philox_block(words, 12, 0, (uint64_t)i);
            if (i % 3 == 2)
                kn_buffer_free(buffers[i - 1]);
            assert_ok(kn_buffer_alloc(&buffers[i], kn_stream_default(device), log_uniform(words[0])));
            places[run][i] = kn_buffer_address(buffers[i]);
        }
        for (int i = 0; i < BUFFERS; i++)
            if (i % 3 != 1 || i == BUFFERS - 1)
                kn_buffer_free(buffers[i]);
        for (int i = BUFFERS - 1; i >= 0; i--)
            places[run][i] -= places[run][0];
        assert_ok(kn_empty_cache(device));
    }
    assert_memory_equal(places[0], places[1], sizeof places[0]);
}

static void without_caching_each_block_comes_and_goes(void **state)
{
    (void)state;
    kn_device *device = test_device();
    kn_buffer *cached, *alone, *another;
    kn_stream *stream = kn_stream_default(device);
    assert_ok(kn_buffer_alloc(&cached, stream, 100));
    uint64_t before = kn_memory_reserved(device);
    kn_caching_allocator_enable(false);
    assert_false(kn_caching_allocator_is_enabled());
    assert_ok(kn_buffer_alloc(&alone, stream, 100));
    assert_ok(kn_buffer_alloc(&another, stream, 3 * KN_MIB + 1));
    check_pool(device);
    assert_int_equal(kn_memory_reserved(device), before + 512 + 3 * KN_MIB + 512);
    kn_buffer_free(another);
    kn_caching_allocator_enable(true);
    kn_buffer_free(alone);
    assert_int_equal(kn_memory_reserved(device), before);
    kn_buffer_free(cached);
    check_pool(device);
    assert_string_equal(kn_get_allocator_backend(), "native");
}

/* Where the driver does not know what kernels use (kn_driver_keep). */
static void without_caching_memory_lasts_until_its_kernels_end(void **state)
{
    (void)state;
    enum { ROUNDS = 50 };
    KN_SCOPE;
    kn_caching_allocator_enable(false);
    kn_tensor *total = kn_zeros(KN_SCALAR);
    for (int i = 0; i < ROUNDS; i++) {
        KN_SCOPE;
        assert_new(kn_add_(total, kn_mean(kn_exp(kn_zeros(KN_SHAPE(3 * KN_MIB))))));
    }
    double sum = 0;
    assert_ok(kn_item(total, &sum));
    assert_true(sum == ROUNDS);
    kn_caching_allocator_enable(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_and_places_hold_at_every_step),
        cmocka_unit_test(places_are_the_same_each_time),
        cmocka_unit_test(without_caching_each_block_comes_and_goes),
        cmocka_unit_test(without_caching_memory_lasts_until_its_kernels_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
