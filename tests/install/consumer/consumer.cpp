// A user's program in C++: the plain functions that C's macros wrap.
#include <cstdio>
#include <koine/koine.h>

int main()
{
    const int64_t shape[] = {2, 2};
    const float values[] = {1, 2, 3, 4};
    kn_tensor_options options = kn_tensor_options_init();
    options.dtype = KN_F32;

    const int scope = kn_scope_begin();
    kn_tensor *x = kn_from_data_with(values, 2, shape, &options);
    float product[4] = {};
    const kn_status status = kn_read(kn_matmul(x, x), product, sizeof product);
    kn_scope_end(scope);
    if (status != KN_OK) {
        std::fprintf(stderr, "%s\n", kn_error_message());
        return 1;
    }
    std::printf("C++, Koine %s: %g %g %g %g\n", kn_version(), product[0], product[1], product[2], product[3]);
    return product[0] == 7 && product[1] == 10 && product[2] == 15 && product[3] == 22 ? 0 : 1;
}
