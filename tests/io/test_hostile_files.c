/* test_hostile_files - files that could hang, mislead or overwhelm the reader, and paths that could mislead the
 * writer. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "base/files.h"
#include "io/check.h"
#include "io/files.h"
#include <koine/io.h>
#include <koine/nn.h>
#include <koine/tensor.h>

static double seconds_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static const char *file_of(const char *name, const void *data, size_t size)
{
    const char *path = temporary(name);
    write_bytes(path, data, size);
    return path;
}

/* --- special files ---------------------------------------------------------------------------------- */

static void assert_refused(const char *path, const char *why)
{
    kn_tensor *tensor = NULL;
    kn_tensor_file *file = NULL;
    char *data;
    size_t size;
    assert_fails(kn_status_of(tensor = kn_load_idx(path)), KN_ERR_IO, why);
    assert_fails(kn_status_of(tensor = kn_load_npy(path)), KN_ERR_IO, why);
    assert_fails(kn_status_of(file = kn_load_safetensors(path)), KN_ERR_IO, why);
    assert_fails(kn_file_read_all(&data, &size, path, 1000), KN_ERR_IO, why);
}

/* Nobody writes to the pipe: waiting for data would block forever. */
static void test_pipes_and_devices_are_not_waited_for(void **state)
{
    (void)state;
    const char *pipe_path = temporary("pipe");
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    alarm(20);
    assert_refused(pipe_path, "it is a pipe, not a regular file");
    assert_refused("/dev/zero", "it is a device, not a regular file");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%.100s", temporary("socket"));
    const int listening = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(listening, (struct sockaddr *)&address, sizeof address), 0);
    assert_refused(address.sun_path, "it is a socket, not a regular file");
    close(listening);
    assert_refused("/tmp", "Is a directory");
    alarm(0);
}

/* --- files of other programs ---------------------------------------------------------------------------------- */

static void assert_recognised(const char *path, const char *what)
{
    kn_tensor *tensor = NULL;
    kn_tensor_file *file = NULL;
    kn_module *net = kn_nn_relu();
    assert_fails(kn_status_of(file = kn_load_safetensors(path)), KN_ERR_FORMAT, what);
    assert_fails(kn_status_of(tensor = kn_load_npy(path)), KN_ERR_FORMAT, what);
    assert_fails(kn_module_load(net, path), KN_ERR_FORMAT, what);
    kn_module_free(net);
}

/* The first bytes of files written by torch.save, torch.jit.save, numpy.savez and pickle.dump (protocol 4). */
static void test_other_formats_are_named(void **state)
{
    (void)state;
#define ZIP_HEADER "PK\3\4\0\0\x08\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
    static const char new_pt[] = ZIP_HEADER "\x0c\0\x16\0new/data.pklFB\x12\0ZZZZ\x80\2}q\0X\1\0\0\0aq\1ctorch._utils";
    static const char script[] = ZIP_HEADER "\x0d\0\x15\0script/data/0FB\x11\0ZZZZ";
    static const char old_pt[] = "\x80\2\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.\x80\2M\xe9\3.\x80\2}q\0(X";
    static const char npz[] = "PK\3\4\x2d\0\0\0\0\0\0\0!\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\5\0\x14\0a.npy\1\0";
    static const char pickle[] = "\x80\4\x95\x20\0\0\0\0\0\0\0}\x94\x8c\1a\x94";
    assert_recognised(file_of("new.pt", new_pt, sizeof new_pt), "is a PyTorch pickle, not a tensor file; in");
    assert_recognised(file_of("script.pt", script, sizeof script), "safetensors.torch.save_file");
    assert_recognised(file_of("old.pt", old_pt, sizeof old_pt), "PyTorch before 1.6");
    assert_recognised(file_of("arrays.npz", npz, sizeof npz), "a NumPy archive (.npz)");
    assert_recognised(file_of("object.pkl", pickle, sizeof pickle), "is a Python pickle");
}

/* A header of 640 bytes has a length that looks like the start of a pickle, and may contain "torch". */
static void test_a_tensor_file_is_not_taken_for_a_pickle(void **state)
{
    (void)state;
    byte_block block = {0};
    append_little(&block, 0x280, 8);
    append_text(&block, "{\"__metadata__\":{\"made\":\"by torch\"}}");
    while (block.size < 8 + 0x280)
        append_text(&block, " ");
    kn_tensor_file *file = kn_load_safetensors(file_of("looks.safetensors", block.data, block.size));
    assert_new(file);
    assert_string_equal(kn_tensor_file_metadata(file, "made"), "by torch");
    kn_tensor_file_free(file);
    bytes_free(&block);
}

/* --- claims --------------------------------------------------------------------------------------------------- */

/* 40 GB claimed by a file of 200 bytes, plain and gzipped: rejected before anything is read or allocated. */
static void test_a_claim_beyond_the_file_costs_nothing(void **state)
{
    (void)state;
    byte_block idx = {0};
    append_big(&idx, 0x00000d02, 4);
    append_big(&idx, 100000, 4);
    append_big(&idx, 100000, 4);
    for (int i = 0; i < 200; i++)
        append_text(&idx, "x");
    kn_tensor *tensor = NULL;
    const double started = seconds_now();
    assert_fails(kn_status_of(tensor = kn_load_idx(file_of("claim.idx", idx.data, idx.size))), KN_ERR_FORMAT,
                 "found 200");
    const char *packed = temporary("claim.idx.gz");
    write_gzip(packed, idx.data, idx.size);
    assert_fails(kn_status_of(tensor = kn_load_idx(packed)), KN_ERR_FORMAT, "more than a gzip file of");
    assert_true(seconds_now() - started < 0.5);
    bytes_free(&idx);
}

/* Zeros, which deflate compresses best, are still accepted. */
static void test_the_most_that_gzip_holds_is_taken(void **state)
{
    (void)state;
    const size_t count = (size_t)40 << 20;
    byte_block idx = {0};
    append_big(&idx, 0x00000801, 4);
    append_big(&idx, count, 4);
    char *all = calloc(1, idx.size + count);
    assert_non_null(all);
    memcpy(all, idx.data, idx.size);
    const char *packed = temporary("zeros.idx.gz");
    write_gzip(packed, all, idx.size + count);
    struct stat info;
    assert_int_equal(stat(packed, &info), 0);
    assert_true((size_t)info.st_size < count / 1000);
    kn_tensor *tensor = kn_load_idx(packed);
    assert_new(tensor);
    assert_int_equal(kn_numel(tensor), count);
    kn_release(tensor);
    free(all);
    bytes_free(&idx);
}

/* 300,000 empty tensors: the time is that of reading the header, whatever is queried afterwards. */
static void test_very_many_empty_tensors(void **state)
{
    (void)state;
    const int count = 300000;
    byte_block header = {0}, whole = {0};
    char entry[96];
    for (int i = 0; i < count; i++) {
        snprintf(entry, sizeof entry, "%s\"t%d\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}",
                 i > 0 ? "," : "{", i);
        append_text(&header, entry);
    }
    append_text(&header, "}");
    append_little(&whole, header.size, 8);
    append(&whole, header.data, header.size);
    const char *path = file_of("many.safetensors", whole.data, whole.size);
    kn_tensor_file *file = NULL;
    kn_module *net = kn_nn_relu();
    kn_tensor *own = NULL;
    for (int i = 0; i < 100; i++) {
        KN_SCOPE;
        snprintf(entry, sizeof entry, "own%d", i);
        own = kn_zeros(KN_SHAPE(1), .device = kn_device_host());
        assert_non_null(kn_module_register_buffer(net, entry, own));
    }
    const clock_t started = clock();
    assert_new(file = kn_load_safetensors(path));
    assert_int_equal(kn_tensor_file_count(file), count);
    for (int i = 0; i < count; i++) {
        snprintf(entry, sizeof entry, "t%d", i);
        assert_non_null(kn_tensor_file_get(file, entry));
    }
    assert_fails(kn_module_load(net, path), KN_ERR_FORMAT, "does not fit");
    const double seconds = (double)(clock() - started) / CLOCKS_PER_SEC;
    print_message("%d empty tensors read twice and asked for in %.2f s\n", count, seconds);
    assert_true(seconds < 20); /* a linear search would take minutes */
    kn_tensor_file_free(file);
    kn_module_free(net);
    bytes_free(&header);
    bytes_free(&whole);
}

/* --- names ---------------------------------------------------------------------------------------------------- */

/* Names of tensors and files reach the terminal in messages: they must not contain control sequences. */
static void test_messages_quote_what_is_not_printable(void **state)
{
    (void)state;
    byte_block block = {0};
    const char *header =
        "{\"\\u001b[2J\\u009b31m\\u202ex\\n\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,8]}}";
    append_little(&block, strlen(header), 8);
    append_text(&block, header);
    append_text(&block, "12345678");
    kn_tensor_file *file = NULL;
    kn_status status =
        kn_status_of(file = kn_load_safetensors(file_of("name\033]0;x\007\x9b\n.safetensors", block.data, block.size)));
    for (const char *c = kn_error_message(); *c; c++)
        assert_true((unsigned char)*c >= 0x20 && *c != 0x7f);
    assert_fails(status, KN_ERR_FORMAT, "name\\x1b]0;x\\x07\\x9b\\n.safetensors");
    status = kn_status_of(file = kn_load_safetensors(file_of("plain.safetensors", block.data, block.size)));
    assert_fails(status, KN_ERR_FORMAT, "tensor '\\x1b[2J\\u009b31m\\u202ex\\n'");
    bytes_free(&block);
}

/* Names that cannot be saved are rejected at registration, not at the first checkpoint. */
static void test_names_that_cannot_be_saved_are_refused(void **state)
{
    (void)state;
    kn_module *net = kn_nn_sequential(kn_nn_relu());
    kn_tensor *tensor = kn_zeros(KN_SHAPE(1), .device = kn_device_host());
    assert_null(kn_module_register_parameter(net, "caf\xe9", tensor));
    assert_fails(kn_error_status(), KN_ERR_ARGUMENT, "the name \"caf\\xe9\" is not UTF-8 (byte 3)");
    assert_null(kn_module_register_buffer(net, "\xed\xa0\x80", tensor));
    assert_fails(kn_error_status(), KN_ERR_ARGUMENT, "is not UTF-8 (byte 0)");
    assert_null(kn_module_register_module(net, "\xff", kn_nn_relu()));
    assert_fails(kn_error_status(), KN_ERR_ARGUMENT, "is not UTF-8");
    assert_null(kn_module_register_parameter(net, "__metadata__", tensor));
    assert_fails(kn_error_status(), KN_ERR_ARGUMENT, "__metadata__");
    assert_non_null(kn_module_register_parameter(net,
                                                 "gr\xc3\xb6\xc3\x9f"
                                                 "e",
                                                 tensor));
    assert_ok(kn_module_save(net, temporary("named.safetensors")));
    kn_release(tensor);
    kn_module_free(net);
}

/* --- paths --------------------------------------------------------------------------------------------------- */

static kn_status save_into(const char *path) { return kn_file_save_text(path, "new"); }

static void test_links_are_followed_only_where_they_lead_somewhere(void **state)
{
    (void)state;
    char link_path[1024];
    snprintf(link_path, sizeof link_path, "%s", temporary("dangling"));
    assert_int_equal(symlink("nowhere", link_path), 0);
    assert_fails(save_into(link_path), KN_ERR_IO, "it is a broken symbolic link");
    struct stat info;
    assert_int_equal(lstat(link_path, &info), 0);
    assert_true(S_ISLNK(info.st_mode)); /* not replaced by a file */
    unlink(link_path);
    assert_int_equal(symlink("/dev/null", link_path), 0);
    assert_fails(save_into(link_path), KN_ERR_IO, "not a regular file");
    unlink(link_path);
    if (geteuid() != 0) /* only root can create another user's link */
        return;
    const char *mine = file_of("mine", "old", 3);
    assert_int_equal(symlink(mine, link_path), 0);
    assert_int_equal(lchown(link_path, 65534, 65534), 0);
    assert_fails(save_into(link_path), KN_ERR_IO, "it is a symbolic link created by another user");
    assert_true(file_is(mine, "old", 3));
    unlink(link_path);
}

/* A name of maximum length leaves no room for a suffix. */
static void test_long_names(void **state)
{
    (void)state;
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    const char *path = temporary(name);
    assert_ok(save_into(path));
    assert_true(file_is(path, "new", 3));
}

/* Output printed while the standard streams are closed does not end up in the file. */
static void test_files_are_not_standard_streams(void **state)
{
    (void)state;
    const char *path = temporary("streams");
    for (int closed = 0; closed < 8; closed++) {
        const pid_t child = fork();
        if (child == 0) {
            for (int i = 0; i < 3; i++)
                if (closed >> i & 1)
                    close(i);
            kn_atomic_file file;
            bool fine = kn_file_begin(&file, path) == KN_OK && file.descriptor > 2 &&
                        (fcntl(file.descriptor, F_GETFD) & FD_CLOEXEC) != 0;
            for (int i = 0; i < 3; i++)
                fine = fine && !((closed >> i & 1) && write(i, "printed", 7) > 0);
            fine = fine && kn_file_write(&file, "new", 3) == KN_OK && kn_file_end(&file, KN_OK) == KN_OK;
            for (int i = 0; i < 3; i++) /* closed streams stay closed */
                fine = fine && (fcntl(i, F_GETFD) < 0) == (closed >> i & 1);
            _exit(fine ? 0 : 1);
        }
        int ended = -1;
        assert_int_equal(waitpid(child, &ended, 0), child);
        assert_int_equal(ended, 0);
        assert_true(file_is(path, "new", 3));
    }
}

/* --- leftover temporary files ------------------------------------------------------------------------- */

/* Starts writing a file in a child process, which signals when it has; the caller kills it. */
static pid_t begin_in_child(const char *path)
{
    int told[2];
    char byte;
    assert_int_equal(pipe(told), 0);
    const pid_t child = fork();
    if (child == 0) {
        kn_atomic_file file;
        if (kn_file_begin(&file, path) != KN_OK || kn_file_write(&file, "half", 4) != KN_OK ||
            write(told[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(told[1]);
    assert_int_equal(read(told[0], &byte, 1), 1);
    close(told[0]);
    return child;
}

/* A folder is cleaned once per process, so each save uses a new process. */
static void save_in_child(const char *path)
{
    const pid_t child = fork();
    if (child == 0)
        _exit(save_into(path) == KN_OK ? 0 : 1);
    int ended = -1;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
}

static void end_child(pid_t child)
{
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void test_what_a_killed_process_left_goes_and_a_living_ones_stays(void **state)
{
    (void)state;
    char folder[1024], path[1100], other[1100], strange[1100];
    snprintf(folder, sizeof folder, "%s", temporary("swept"));
    snprintf(path, sizeof path, "%s/file", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    snprintf(strange, sizeof strange, "%s/.koine-tmp-mine", folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    write_bytes(strange, "x", 1); /* not one of the library's names */
    const pid_t living = begin_in_child(path), killed = begin_in_child(path);
    assert_int_equal(count_files_beside(path), 3);
    end_child(killed);
    save_in_child(other);
    assert_int_equal(count_files_beside(path), 3); /* this process's, the living one's, and the saved file */
    assert_true(file_is(other, "new", 3));
    end_child(living);
    save_in_child(other);
    assert_int_equal(count_files_beside(path), 2);
    unlink(other);
    unlink(strange);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipes_and_devices_are_not_waited_for),
        cmocka_unit_test(test_other_formats_are_named),
        cmocka_unit_test(test_a_tensor_file_is_not_taken_for_a_pickle),
        cmocka_unit_test(test_a_claim_beyond_the_file_costs_nothing),
        cmocka_unit_test(test_the_most_that_gzip_holds_is_taken),
        cmocka_unit_test(test_very_many_empty_tensors),
        cmocka_unit_test(test_messages_quote_what_is_not_printable),
        cmocka_unit_test(test_names_that_cannot_be_saved_are_refused),
        cmocka_unit_test(test_links_are_followed_only_where_they_lead_somewhere),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_files_are_not_standard_streams),
        cmocka_unit_test(test_what_a_killed_process_left_goes_and_a_living_ones_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
